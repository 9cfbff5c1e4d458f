"""Losses, gradients and metrics of logits in chunks are those of all logits at once."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.backends.marks import slow_on_tensorflow
from tests.gradients import enabled

T = ka.training
VOCABULARY = 23
SIZE = dict(num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=16, dropout=0.0)


def draw_tokens(length=9):
    ids = np.random.default_rng(0).integers(1, VOCABULARY, (5, length)).astype("int32")
    ids[1, 4:], ids[3, 2:] = 0, 0
    return ids


def shift(ids):
    return np.pad(ids[:, 1:], ((0, 0), (0, 1)))


def language_model(**settings):
    ids = draw_tokens()
    return ka.models.causal_language_model(VOCABULARY, **SIZE, **settings), ids, shift(ids)


def tied():
    embedding = ka.models.TextEmbedding(logit_soft_cap=3.0)
    return language_model(embedding=embedding, position=ka.positions.Learned(9))


def untied():
    return language_model(tie_embeddings=False)


def masked():
    """Build a model with a bias for each token's logit."""
    ids = draw_tokens()
    model = ka.models.masked_language_model(VOCABULARY, **SIZE)
    return model, ids, np.where(ids % 3 == 0, ids, 0)


def translator():
    """Build a model whose logits come from a model inside it."""
    ids = draw_tokens()
    model = ka.models.seq2seq_transformer(VOCABULARY, VOCABULARY, **SIZE)
    return model, {"source_ids": ids[:, ::-1].copy(), "target_ids": ids}, shift(ids)


def scaled():
    """Build a model with a bias, a scale like T5's, and a regularizer."""
    tokens = keras.Input((None,), dtype="int32")
    embed = ka.blocks.TokenEmbedding(
        VOCABULARY, 8, logit_bias=True, logit_scale=8**-0.5, name="embed"
    )
    x = keras.layers.Dense(8, "tanh", kernel_regularizer="l2", name="dense")(embed(tokens))
    ids = draw_tokens()
    return keras.Model(tokens, embed(x, reverse=True)), ids, ids


def biased():
    """Build a model with a head of Keras, and no mask except the labels'."""
    tokens = keras.Input((9,), dtype="int32")
    x = keras.layers.Embedding(VOCABULARY, 8, name="embedding")(tokens)
    ids = draw_tokens()
    return keras.Model(tokens, keras.layers.Dense(VOCABULARY, name="logits")(x)), ids, ids


CASES = {make.__name__: make for make in (tied, untied, masked, translator, scaled, biased)}


def train(make, chunk_size=None, weights=None, loss=None, eager=False):
    keras.utils.set_random_seed(0)
    model, x, y = make()
    fitted = model if chunk_size is None else T.ChunkedLogits(model, chunk_size)
    metrics = [T.MaskedPerplexity(ignore_class=0)]
    weighted = [T.MaskedSparseCategoricalAccuracy(ignore_class=0, name="weighted")]
    fitted.compile(
        keras.optimizers.SGD(0.5),
        loss or T.MaskedSparseCategoricalCrossentropy(0.1, ignore_class=0),
        metrics=metrics,
        weighted_metrics=weighted,
        run_eagerly=eager,
    )
    options = dict(batch_size=3, verbose=0, sample_weight=weights)
    with enabled():
        logged = fitted.fit(x, y, shuffle=False, **options).history
    logged |= {f"val_{k}": v for k, v in fitted.evaluate(x, y, return_dict=True, **options).items()}
    return logged, [keras.ops.convert_to_numpy(weight) for weight in model.weights]


def assert_equal(actual, expected):
    """Compare the logs, and the weights after two steps. Weights are of order 1, the rate is 0.5.

    The order of the sums differs, by 2e-6 at most so far. A label left out changes weights by 0.02.
    """
    assert actual[0].keys() == expected[0].keys() and len(actual[0]) == 6
    for name, value in actual[0].items():
        np.testing.assert_allclose(value, expected[0][name], rtol=2e-6, err_msg=name)
    for weight, right in zip(actual[1], expected[1], strict=True):
        np.testing.assert_allclose(weight, right, rtol=2e-6, atol=1e-5)


@slow_on_tensorflow
@pytest.mark.parametrize("name", CASES)
def test_steps_are_those_of_all_logits(name):
    """Check chunks of 2 places of each row. The last chunk is shorter."""
    weights = np.linspace(0.2, 2.0, 45, dtype="float32").reshape(5, 9) if name == "tied" else None
    expected = train(CASES[name], weights=weights)
    assert_equal(train(CASES[name], 6, weights), expected)


def make_loss(name):
    if name == "keras":
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
    return T.MaskedSparseCategoricalCrossentropy(ignore_class=0, reduction=name)


@pytest.mark.parametrize(
    "name",
    [
        "mean_with_sample_weight",
        pytest.param("sum", marks=slow_on_tensorflow),
        pytest.param("keras", marks=slow_on_tensorflow),
    ],
)
def test_losses(name):
    """Keras's own has no weights here: on PyTorch it changes them before the metrics see them."""
    weights = np.linspace(0.01, 0.05, 5, dtype="float32")[:, None] * np.ones((5, 9), "float32")
    weights = None if name == "keras" else weights
    eager = name == "mean_with_sample_weight"  # quicker, the others run as graphs
    whole, chunked = (train(biased, size, weights, make_loss(name), eager) for size in (None, 4))
    assert_equal(chunked, whole)


def test_weights_stay_as_they_are():
    labels, logits = np.array([[1, 0, 2]]), np.zeros((1, 3, 4), "float32")
    weights = keras.ops.ones((1, 3))
    T.MaskedSparseCategoricalCrossentropy(ignore_class=0)(labels, logits, weights)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(weights), 1.0)


def test_chunked_logits_refuse_unsupported_models_and_losses():
    model = untied()[0]
    fitted = T.ChunkedLogits(model)
    loss = T.MaskedSparseCategoricalCrossentropy()
    with pytest.raises(ValueError, match="loss='sparse_categorical_crossentropy'.: expected"):
        fitted.compile("sgd", "sparse_categorical_crossentropy")
    with pytest.raises(ValueError, match="expected a Keras loss of logits that is reduced"):
        fitted.compile("sgd", T.MaskedSparseCategoricalCrossentropy(reduction=None))
    with pytest.raises(
        ValueError, match="masked_sequence_accuracy.* cannot be computed chunk by chunk"
    ):
        fitted.compile("sgd", loss, metrics=[T.MaskedSequenceAccuracy()])
    with pytest.raises(ValueError, match="chunk_size"):
        T.ChunkedLogits(model, 0)
    classifier = ka.models.text_classifier(VOCABULARY, 2, **SIZE)
    with pytest.raises(ValueError, match=r"text_classifier, of shape \(None, 2\), comes from"):
        T.ChunkedLogits(classifier)
    with pytest.raises(ValueError, match="of class TwoPasses: expected logits"):
        T.ChunkedLogits(T.with_two_passes(translator()[0]))
    x = keras.Input((3,))
    two = keras.Model(x, [keras.layers.Dense(2)(x), keras.layers.Dense(2)(x)], name="two")
    with pytest.raises(ValueError, match="two.*expected a functional keras.Model with one output"):
        T.ChunkedLogits(two)
    with pytest.raises(ValueError, match="expected no loss_weights="):
        fitted.compile("sgd", loss, loss_weights=[0.5])
    fitted.compile("sgd", loss, run_eagerly=True)
    ids, hidden = draw_tokens(), fitted(draw_tokens())
    weights = np.random.default_rng(0).uniform(size=ids.shape).astype("float32")
    expected = float(fitted.compute_loss(None, ids, hidden, weights))
    again = fitted.compute_loss(None, ids[..., None], hidden, weights[..., None])
    assert float(again) == pytest.approx(expected, rel=1e-6)
    for wrong in (ids.T, ids[:1], ids[:, :1]):
        with pytest.raises(ValueError, match="ChunkedLogits: labels of shape .* for predictions"):
            fitted.compute_loss(None, wrong, hidden)
    with pytest.raises(ValueError, match="ChunkedLogits: sample_weight of shape"):
        fitted.compute_loss(None, ids, hidden, weights.T)


def test_it_is_for_training_alone(tmp_path):
    fitted = T.ChunkedLogits(untied()[0])
    message = "A ChunkedLogits is only for training. It returns the vectors before the last"
    with pytest.raises(ValueError, match=message):
        ka.generation.generate(fitted, [[5, 7]], max_new_tokens=2)
    with pytest.raises(ValueError, match=message):
        fitted.save(tmp_path / "model.keras")
    assert not list(tmp_path.iterdir())


@pytest.mark.tensorflow
def test_it_is_not_exported(tmp_path):
    fitted = T.ChunkedLogits(untied()[0])
    for export, name in ((ka.export.to_litert, "a.tflite"), (ka.export.to_saved_model, "a")):
        with pytest.raises(ValueError, match="A ChunkedLogits is only for training"):
            export(fitted, tmp_path / name)
    assert not list(tmp_path.iterdir())
