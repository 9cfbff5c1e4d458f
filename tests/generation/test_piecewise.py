"""Models with layers of other packages: correct token by token, or refused."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention.generation import piecewise
from tests.grids import sampled

G, V = ka.generation, 20


class Counting(keras.layers.Layer):
    """The embedding of Keras's own guides, which counts tokens from the first that it is given."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.tokens, self.places = keras.layers.Embedding(V, 8), keras.layers.Embedding(64, 8)

    def call(self, ids):
        return self.tokens(ids) + self.places(ops.arange(ops.shape(ids)[-1]))


class Doubled(keras.layers.Layer):
    """Each token for itself."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.supports_masking = True

    def call(self, x):
        return 2 * x


def model_of(mix, embed=None):
    tokens = keras.Input((None,), dtype="int32", name="token_ids")
    x = (embed or keras.layers.Embedding(V, 8))(tokens)
    x = mix(x)
    x = x + ka.attention.MultiHeadAttention(2, 4, mask="causal")(x, x)
    return keras.Model(tokens, keras.layers.Dense(V, name="logits")(x), name="mine")


MIXING = {
    "cumsum": lambda x: ops.cumsum(x, axis=1),
    "mean": lambda x: x + ops.mean(x, axis=1, keepdims=True),
    "shifted": lambda x: x + ops.pad(x, [[0, 0], [1, 0], [0, 0]])[:, :-1],
    "softmax": keras.layers.Softmax(axis=1, name="over_time"),
    "lambda": keras.layers.Lambda(lambda x: ops.cumsum(x, axis=1), name="sums"),
    "cropped": lambda x: keras.layers.Cropping1D((0, 1))(keras.layers.ZeroPadding1D((1, 0))(x)),
}


@pytest.mark.parametrize("name", MIXING)
def test_generate_refuses_layers_that_mix_tokens(name):
    model = model_of(MIXING[name])
    with pytest.raises(ValueError, match="mine computes other logits token by token"):
        G.generate(model, [[1, 2]], 3)


def test_generation_refuses_and_names_layers_that_count_positions():
    model = model_of(Doubled(), Counting(name="counting"))
    with pytest.raises(ValueError, match=r"counting or .* may look .* position='learned'"):
        G.stream(model, [[1, 2]], 3)
    with pytest.raises(ValueError, match="other logits"):
        G.generate(model_of(Doubled()), [[1, 2]], 3, draft_model=model)


@pytest.mark.slow
def test_custom_layers_may_treat_tokens_one_by_one():
    model = model_of(Doubled(name="doubled"))
    assert "doubled" in set(piecewise._find_foreign_operations(model))
    text = np.array([[1, 2]])
    for token in G.generate(model, text, 4)[0]:
        assert token == np.argmax(np.asarray(model(text))[0, -1, 1:]) + 1
        text = np.append(text, [[token]], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_rounding_does_not_count_as_another_answer(dtype):
    keras.utils.set_random_seed(0)
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(f"mixed_{dtype}")
    try:
        good, bad = model_of(Doubled()), model_of(MIXING["cumsum"])
    finally:
        keras.config.set_dtype_policy(before)
    assert G.generate(good, [[1, 2]], 3).shape == (1, 3)
    with pytest.raises(ValueError, match="other logits"):
        G.generate(bad, [[1, 2]], 3)


def test_an_encoder_decoder_is_tried_on_some_source():
    source = keras.Input((None, 3), name="frames")
    encoder = keras.Model(source, keras.layers.Dense(8)(source), name="encoder")
    tokens, encoded = keras.Input((None,), dtype="int32", name="ids"), keras.Input((None, 8))
    x = Counting(name="counting")(tokens)
    x = ka.blocks.DecoderBlock(
        attention=ka.attention.MultiHeadAttention(2, 4, mask="causal"),
        cross_attention=ka.attention.MultiHeadAttention(2, 4),
        feed_forward=ka.blocks.FeedForward(16),
    )(x, encoded)
    decoder = keras.Model([tokens, encoded], keras.layers.Dense(V)(x), name="decoder")
    model = keras.Model([source, tokens], decoder([tokens, encoder(source)]), name="mine")
    with pytest.raises(ValueError, match="counting may look"):
        G.generate(model, np.ones((1, 4, 3), "float32"), 3, start_token_id=1)


@pytest.mark.slow
def test_models_of_these_layers_need_no_trial(monkeypatch):
    monkeypatch.setattr(G.Decoder, "step", None)
    for model in (
        ka.models.causal_language_model(V, num_layers=1, num_heads=2, hidden_dim=8),
        ka.models.seq2seq_transformer(V, V, num_layers=1, num_heads=2, hidden_dim=8),
        ka.models.seq2seq_recurrent(V, V, hidden_dim=8),
        model_of(keras.layers.LayerNormalization()),
    ):
        piecewise.check_piecewise(G.Decoder(model))


def test_a_model_of_one_length_is_refused():
    tokens = keras.Input((12,), dtype="int32", name="token_ids")
    x = ka.blocks.TokenEmbedding(V, 8)(tokens)
    x = ka.attention.MultiHeadAttention(2, 4, mask="causal")(x, x)
    with pytest.raises(ValueError, match=r"\(None, 12\).*keras.Input\(\(None,\)"):
        G.generate(keras.Model(tokens, keras.layers.Dense(V)(x)), [[1]], 2)


def test_logits_of_only_the_last_token_are_refused():
    tokens = keras.Input((None,), dtype="int32", name="token_ids")
    x = ka.blocks.TokenEmbedding(V, 8)(tokens)
    x = ka.attention.MultiHeadAttention(2, 4, mask="causal")(x, x)
    with pytest.raises(ValueError, match=r"expected the logits of the next token at every"):
        G.generate(keras.Model(tokens, keras.layers.Dense(V)(x[:, -1])), [[1]], 2)


@pytest.mark.parametrize("back", [1, 5, 8, 16])
def test_generate_refuses_layers_that_look_back_any_distance(back):
    model = model_of(lambda x: x + ops.pad(x, [[0, 0], [back, 0], [0, 0]])[:, :-back])
    with pytest.raises(ValueError, match="other logits"):
        G.generate(model, [[1, 2]], 3)


@pytest.mark.slow
@pytest.mark.parametrize("prefix", [4, 12])
def test_a_prefix_is_tried_in_one_piece(prefix):
    tokens = keras.Input((None,), dtype="int32", name="token_ids")
    x = Doubled()(keras.layers.Embedding(V, 8)(tokens))
    x = x + ka.attention.MultiHeadAttention(2, 4, mask=ka.masks.Prefix(prefix))(x, x)
    model = keras.Model(tokens, keras.layers.Dense(V)(x))
    assert G.generate(model, [[1 + i % 3 for i in range(prefix)]], 3).shape == (1, 3)


@pytest.mark.slow
@pytest.mark.parametrize("positions", sampled([2, 3, 4, 30], 2))
def test_texts_are_no_longer_than_the_positions(positions):
    embed = ka.blocks.TokenEmbedding(V, 8, position=ka.positions.Learned(positions))
    good = model_of(Doubled(), embed)
    assert G.generate(good, [[1]], positions).shape == (1, positions)
    mixing = model_of(MIXING["cumsum"], embed)
    with pytest.raises(ValueError, match="other logits"):
        G.generate(mixing, [[1]], positions)
