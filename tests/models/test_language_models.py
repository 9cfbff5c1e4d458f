"""Builders of models that generate text: language models and encoder-decoders."""

import dataclasses

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.models.head import make_transform
from tests.stacks import make_encoder, make_writer

random = np.random.default_rng(0)
SMALL = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=20)
V = 23


def language_model(**kwargs):
    return drawn(make_writer(V, **{**SMALL, **kwargs}))


def transformer(target=None, **kwargs):
    size = {"hidden_dim": 16} if "decoder" in kwargs else SMALL
    return drawn(ka.models.seq2seq_transformer(V, target, **{**size, **kwargs}))


def make_stacks(num_layers=1, num_decoder_layers=None, **settings):
    """Make both stacks of an encoder-decoder, with rarer settings."""
    sizes = (2, 16, 20)
    encoder = ka.models.TransformerEncoder.of_size(num_layers, *sizes, **settings)
    decoder = ka.models.TransformerDecoder.of_size(
        num_decoder_layers or num_layers, *sizes, **settings
    )
    return dict(encoder=encoder, decoder=decoder)


def like(structure, **kwargs):
    return drawn(ka.models.encoder_decoder(V, structure=structure, **{**SMALL, **kwargs}))


def drawn(model):
    """Add random numbers to weights, because zeros and ones would hide errors."""
    for weight in model.trainable_weights:
        weight.assign(weight + random.normal(size=weight.shape, scale=0.2))
    return model


def ids(batch=2, length=5, high=V):
    return random.integers(1, high, size=(batch, length)).astype("int32")


def padded(x, by=3):
    return np.pad(x, [(0, 0), (0, by)])


LANGUAGE_MODELS = {
    "plain": dict(),
    "GPT-2": dict(position=ka.positions.Learned(9), activation="gelu_tanh", epsilon=1e-5),
    "windowed, grouped": dict(mask=ka.masks.Window(3), num_key_value_heads=1, use_bias=False),
    "untied, post-norm": dict(tie_embeddings=False, norm="post", position=["sinusoidal", "alibi"]),
}
TRANSFORMERS = {
    "Vaswani et al.": transformer,
    "two vocabularies, untied": lambda: transformer(
        19, tie_embeddings=False, **make_stacks(2, norm="deep_norm", position="rotary")
    ),
    "two streams": lambda: transformer(
        position=ka.positions.Learned(9), **make_stacks(norm="resi_dual")
    ),
    "T5": lambda: like("t5", num_layers=2),
    "BART": lambda: like("bart"),
}


@pytest.mark.parametrize("kwargs", LANGUAGE_MODELS.values(), ids=LANGUAGE_MODELS)
def test_later_tokens_change_no_earlier_logits(kwargs):
    model, x = language_model(**kwargs), ids()
    logits = np.asarray(model(x))
    changed = np.concatenate([x[:, :3], x[:, 3:] % (V - 1) + 1], axis=1)
    np.testing.assert_allclose(np.asarray(model(changed))[:, :3], logits[:, :3], atol=1e-4)
    assert not np.allclose(np.asarray(model(changed))[:, 3:], logits[:, 3:], atol=1e-2)
    np.testing.assert_allclose(np.asarray(model(padded(x)))[:, :5], logits, atol=1e-4)


def test_a_window_limits_the_visible_tokens():
    """Check that two layers with a window of three tokens reach four back."""
    model, x = language_model(mask=ka.masks.Window(3), num_layers=2), ids(1, 8)
    for place, reached in [(2, False), (3, True)]:
        changed = x.copy()
        changed[0, place] = x[0, place] % (V - 1) + 1
        same = np.allclose(np.asarray(model(changed))[:, 7], np.asarray(model(x))[:, 7], atol=1e-5)
        assert same != reached


def test_soft_caps_bound_logits_and_keep_their_order():
    ids = random.integers(1, V, (2, 7))
    plain = language_model()
    capped = ka.models.causal_language_model(
        V, **SMALL, embedding=ka.models.TextEmbedding(logit_soft_cap=0.5)
    )
    capped.set_weights(plain.get_weights())
    expected = 0.5 * np.tanh(np.asarray(plain(ids)) / 0.5)
    np.testing.assert_allclose(capped(ids), expected, atol=1e-5)


def test_a_causal_mask_is_added_once():
    causal = ka.masks.Causal()
    for mask, expected in [
        (None, causal),
        ("causal", causal),
        (ka.masks.Window(3), causal & ka.masks.Window(3)),
    ]:
        model = ka.models.causal_language_model(V, **SMALL, mask=mask)
        assert model.get_layer("block_0").attention.mask == expected


@pytest.fixture(scope="module", params=TRANSFORMERS)
def writer(request):
    return TRANSFORMERS[request.param]()


@pytest.mark.slow
def test_source_and_target_have_different_roles(writer):
    """Check that the cross-attention gets the mask of the source, and hides no source token."""
    model, source, target = writer, ids(), ids(2, 4, 19)
    expected = np.asarray(model({"source_ids": source, "target_ids": target}))
    longer = {"source_ids": padded(source), "target_ids": padded(target, 2)}
    for logits in (model(longer), model.predict(longer, verbose=0)):
        np.testing.assert_allclose(np.asarray(logits)[:, :4], expected, atol=2e-4)
    changed = np.concatenate([target[:, :2], target[:, 2:] % 18 + 1], axis=1)
    logits = np.asarray(model({"source_ids": source, "target_ids": changed}))
    np.testing.assert_allclose(logits[:, :2], expected[:, :2], atol=1e-4)
    assert not np.allclose(logits[:, 2:], expected[:, 2:], atol=1e-2)
    logits = model({"source_ids": source[:, ::-1], "target_ids": target})
    assert not np.allclose(logits, expected, atol=1e-2)


def test_only_the_target_has_a_bias_of_logits():
    embedding = ka.models.TextEmbedding(logit_bias=True)
    size = dict(num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8)
    model = ka.models.seq2seq_transformer(12, embedding=embedding, **size)
    with_bias = ["/embedding/bias" in f"/{weight.path}" for weight in model.weights]
    assert sum(with_bias) == 1 and model.get_layer("decoder").get_layer("embedding").logit_bias
    assert not model.get_layer("encoder").get_layer("embedding").logit_bias


@pytest.mark.slow
def test_encoder_and_decoder_equal_the_whole_model(writer, tmp_path):
    model, source, target = writer, padded(ids()), ids(2, 4, 19)
    expected = model({"source_ids": source, "target_ids": target})
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.count_params() == model.count_params()
    np.testing.assert_allclose(
        loaded({"source_ids": source, "target_ids": target}), expected, atol=1e-5
    )
    encoded = model.get_layer("encoder")(keras.ops.array(source))
    target = keras.ops.array(target)
    logits = model.get_layer("decoder")({"encoded": encoded, "target_ids": target})
    np.testing.assert_allclose(logits, expected, atol=1e-5)


def test_attention_of_both_sides_is_recorded():
    model = transformer()
    with ka.visualization.record_attention(model) as maps:
        model({"source_ids": ids(), "target_ids": ids(2, 4)})
    shapes = {path: tuple(weights.shape) for path, weights in maps.items()}
    assert shapes == {
        f"{block}_0/{kind}": (2, 2, *size)
        for block, kind, size in [
            ("encoder_block", "attention", (5, 5)),
            ("decoder_block", "attention", (4, 4)),
            ("decoder_block", "cross_attention", (4, 5)),
        ]
    }


@pytest.mark.slow
def test_layers_of_t5_share_one_bias_on_each_side():
    model = like("t5", num_layers=2)
    blocks = [
        model.get_layer(side).get_layer(f"{side}_block_{i}")
        for side in ("encoder", "decoder")
        for i in range(2)
    ]
    tables = [id(block.attention.position) for block in blocks]
    assert tables[0] == tables[1] != tables[2] == tables[3]
    assert [block.attention.position.bidirectional for block in blocks] == [
        True,
        True,
        False,
        False,
    ]
    assert blocks[2].cross_attention.position is None


def test_the_depth_of_deep_norm_is_that_of_both_stacks():
    norm = ka.blocks.DeepNorm(1, num_decoder_layers=3)
    stacks = make_stacks(1, 3, norm=norm)
    stacks["decoder"] = dataclasses.replace(stacks["decoder"], norm="deep_norm")
    model = transformer(**stacks)
    norms = [
        model.get_layer(side).get_layer(f"{side}_block_0").norm for side in ("encoder", "decoder")
    ]
    assert norms == [ka.blocks.DeepNorm(1, num_decoder_layers=3), ka.blocks.DeepNorm(3, 3)]


def test_a_masked_language_model_sees_both_sides_and_segments():
    model = drawn(
        ka.models.masked_language_model(V, **SMALL, embedding=ka.models.TextEmbedding.of_bert())
    )
    x, segments = ids(), random.integers(0, 2, size=(2, 5)).astype("int32")
    logits = np.asarray(model({"token_ids": x, "segment_ids": segments}))
    longer = {"token_ids": padded(x), "segment_ids": padded(segments)}
    output = model(longer)
    np.testing.assert_allclose(np.asarray(output)[:, :5], logits, atol=1e-4)
    np.testing.assert_array_equal(output._keras_mask, padded(x) != 0)
    for changed in ({"token_ids": x % 7 + 1}, {"segment_ids": 1 - segments}):
        changed = np.asarray(model({"token_ids": x, "segment_ids": segments, **changed}))
        assert not np.allclose(changed[:, 0], logits[:, 0], atol=1e-2)


def test_the_head_of_a_masked_language_model_may_have_no_biases():
    norm = dict(normalization="layer_norm_no_bias")
    model = drawn(
        ka.models.masked_language_model(
            V,
            hidden_dim=16,
            embedding=ka.models.TextEmbedding(**norm),
            encoder=make_encoder(**SMALL, **norm, norm="post", use_bias=False),
            head=make_transform(16, "relu", use_bias=False, **norm),
        )
    )
    assert {weight.name for weight in model.weights if weight.name in ("bias", "beta")} == set()
    assert model.get_layer("transform").activation is keras.activations.relu
    assert model(ids()).shape == (2, 5, V)


def test_a_labeler_may_have_the_transform_of_a_masked_language_model():
    """Check it for tokens of a labeler and for the pooled vector of a classifier."""
    stack, transform = make_encoder(**SMALL), make_transform(16, "relu")

    def encode(x):
        for layer in (stack, *transform):
            x = layer(x)
        return x

    labeler = drawn(ka.models.sequence_labeler(V, 4, hidden_dim=16, encoder=encode))
    head = make_transform(16, "relu", use_bias=False)
    classifier = drawn(ka.models.text_classifier(V, 4, **SMALL, pooling="mean", head=head))
    texts = ids()
    for model, before in ((labeler, "final_norm"), (classifier, "pooling")):
        dense, norm = model.get_layer("transform"), model.get_layer("transform_norm")
        x = np.asarray(keras.Model(model.input, model.get_layer(before).output)(texts))
        bias = 0 if dense.bias is None else np.asarray(dense.bias)
        x = np.maximum(x @ np.asarray(dense.kernel) + bias, 0)
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + norm.epsilon)
        x = x * np.asarray(norm.gamma) + np.asarray(norm.beta)
        logits = model.get_layer("logits")
        expected = x @ np.asarray(logits.kernel) + np.asarray(logits.bias)
        np.testing.assert_allclose(model(texts), expected, atol=1e-4)
    assert classifier.get_layer("transform").bias is None


# The counts of the released checkpoints. BART's tables of positions have two unused rows.
@pytest.mark.slow
@pytest.mark.parametrize(
    "builder, name, vocabulary_size, count",
    [
        ("causal_language_model", "GPT-2", 50257, 124_439_808),
        ("masked_language_model", "BERT-Base", 30522, 109_514_298),
        ("encoder_decoder", "T5-small", 32128, 60_506_624),
        ("encoder_decoder", "BART-base", 50265, 139_420_416 - 2 * 2 * 768),
        *(
            pytest.param(*sizes, marks=pytest.mark.slow)
            for sizes in [
                ("causal_language_model", "GPT-2-medium", 50257, 354_823_168),
                ("causal_language_model", "GPT-2-large", 50257, 774_030_080),
                ("causal_language_model", "GPT-2-XL", 50257, 1_557_611_200),
                ("encoder_decoder", "T5-base", 32128, 222_903_552),
                ("encoder_decoder", "T5-large", 32128, 737_668_096),
                ("encoder_decoder", "T5-1.1-small", 32128, 76_961_152),
                ("encoder_decoder", "T5-1.1-base", 32128, 247_577_856),
            ]
        ),
    ],
)
def test_parameter_counts_equal_the_published_ones(builder, name, vocabulary_size, count):
    scope = keras.StatelessScope(initialize_variables=False)  # draws no weights
    with scope:
        size = ka.models.sizes(builder)[name]
        counted = getattr(ka.models, builder)(vocabulary_size, **size).count_params()
    keras.utils.clear_session(free_memory=False)  # otherwise the next scope would draw them
    assert counted == count


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: language_model(num_heads=3), "num_heads=3 does not divide hidden_dim=16"),
        (lambda: language_model(position="learned"), "Learned needs max_length"),
        (
            lambda: language_model(
                embedding=ka.models.TextEmbedding(logit_soft_cap=30.0), tie_embeddings=False
            ),
            "logit_soft_cap=30.0 with tie_embeddings=False",
        ),
        (lambda: transformer(position="learned"), r"pass ka.positions.Learned\(max_length="),
        (lambda: like("gpt"), "structure='gpt'.*t5, t5_1.1, bart"),
        (lambda: transformer(num_key_value_heads=2), "unexpected keyword .*num_key_value_heads"),
        (
            lambda: ka.models.causal_language_model(V, num_heads=4, encoder=lambda x: x),
            r"causal_language_model\(num_heads=4, encoder=...\): num_heads has no effect",
        ),
    ],
)
def test_refuses(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


@pytest.mark.sweep
def test_a_transformer_learns_to_reverse_words():
    """Train in batches with padding, and generate greedily."""
    model = ka.models.seq2seq_transformer(
        12, num_layers=1, num_heads=4, hidden_dim=32, intermediate_dim=64, dropout=0.0
    )
    lengths = random.integers(2, 7, size=2000)
    source = np.zeros((2000, 6), "int32")
    target = np.zeros((2000, 7), "int32")
    for row, length in enumerate(lengths):
        source[row, :length] = random.integers(3, 12, size=length)
        target[row, : length + 1] = [*source[row, :length][::-1], 2]
    begun = np.concatenate([np.ones((2000, 1), "int32"), target[:, :-1]], axis=1)
    begun = np.where(target == 0, 0, begun)
    model.compile(
        keras.optimizers.Adam(3e-3),
        ka.training.MaskedSparseCategoricalCrossentropy(),
        metrics=[ka.training.MaskedSparseCategoricalAccuracy()],
    )
    inputs = {"source_ids": source, "target_ids": begun}
    model.fit(inputs, target, epochs=25, batch_size=50, verbose=0)
    written = np.full((2000, 1), 1, "int32")
    for _ in range(7):
        logits = model.predict(
            {"source_ids": source, "target_ids": written}, batch_size=500, verbose=0
        )
        written = np.concatenate([written, logits[:, -1:].argmax(-1).astype("int32")], axis=1)
    right = (written[:, 1:] == target) | (target == 0)
    assert right.all(axis=1).mean() > 0.9


def test_sizes_equal_those_of_the_papers():
    """Compare with Devlin et al. (2019), section 3, and Turc et al. (2019), table 1."""
    sizes = {"Base": (12, 768), "Large": (24, 1024), "Tiny": (2, 128), "Mini": (4, 256)}
    sizes |= {"Small": (4, 512), "Medium": (8, 512)}
    counted = {
        name.removeprefix("BERT-"): (one["encoder"].num_layers, one["hidden_dim"])
        for name, one in ka.models.sizes("masked_language_model").items()
    }
    assert counted == sizes
    for one in ka.models.sizes("masked_language_model").values():
        encoder, width = one["encoder"], one["hidden_dim"]
        assert encoder.attention.num_heads == width // 64
        assert encoder.feed_forward.intermediate_dim == 4 * width
