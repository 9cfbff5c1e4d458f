"""Decoding step by step equals one pass, for language models and encoder-decoders."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention.generation import Decoder
from tests.generation.test_cache import assert_close

SMALL = dict(num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=12)
PIECES = (0, 3, 4, 6, 8)


def recurrent(**kwargs):
    return ka.models.seq2seq_recurrent(30, 20, hidden_dim=8, **kwargs)


BUILDERS = {
    "language model": lambda: ka.models.causal_language_model(20, **SMALL),
    "GPT-2": lambda: ka.models.causal_language_model(20, **SMALL, position=ka.positions.Learned(9)),
    "transformer": lambda: ka.models.seq2seq_transformer(30, 20, **SMALL),
    "transformer with positions": lambda: ka.models.seq2seq_transformer(
        30,
        20,
        **SMALL,
        position="rotary",
        decoder=ka.models.TransformerDecoder.of_size(
            2, 2, 8, 12, norm="pre", position="rotary", cross_position="alibi"
        ),
    ),
    "gru, Bahdanau": recurrent,
    "lstm, Luong": lambda: recurrent(cell="lstm", attention="luong", coverage=True),
}


@pytest.fixture(scope="module", params=BUILDERS)
def model(request):
    model = BUILDERS[request.param]()
    draw = np.random.default_rng(3)
    for weight in model.weights:
        if "float" in weight.dtype:
            weight.assign(draw.normal(size=weight.shape, scale=0.5))
    return model


def tokens(high=20, shape=(2, 8)):
    return ops.convert_to_tensor(np.random.default_rng(0).integers(1, high, shape), "int32")


def source():
    ids = np.random.default_rng(1).integers(1, 30, (2, 6))
    ids[0, 4:] = 0
    return ops.convert_to_tensor(ids, "int32")


def in_steps(decoder, target, cache, pieces=PIECES):
    result = []
    for start, end in zip(pieces, pieces[1:], strict=False):
        logits, cache = decoder.step(target[:, start:end], cache, start)
        result.append(np.asarray(logits))
    return np.concatenate(result, axis=1), cache


@pytest.mark.slow
def test_steps_equal_the_whole_text(model):
    decoder, target = Decoder(model), tokens()
    assert decoder.vocabulary_size == 20
    whole = target
    if decoder.has_source:
        whole = {"source_ids": source(), "target_ids": target}
    cache = decoder.start(2, 9, source() if decoder.has_source else None)
    logits, after = in_steps(decoder, target, cache)
    assert_close(logits, np.asarray(model(whole)))
    shapes = decoder.cache_shapes(9)
    assert set(shapes) == set(cache) == set(after)
    for name, (shape, dtype) in shapes.items():
        expected = tuple(
            b if a is None else a for a, b in zip(shape, cache[name].shape[1:], strict=True)
        )
        assert tuple(after[name].shape) == tuple(cache[name].shape) == (2, *expected), name
        assert keras.backend.standardize_dtype(after[name].dtype) == dtype, name


def test_rows_change_places(model):
    decoder, target = Decoder(model), tokens()
    cache = decoder.start(2, 9, source() if decoder.has_source else None)
    logits, cache = decoder.step(target[:, :5], cache, 0)
    turned, _ = decoder.step(target[::-1, 5:], decoder.reorder(cache, [1, 0]), 5)
    expected, _ = decoder.step(target[:, 5:], cache, 5)
    assert_close(np.asarray(turned)[::-1], np.asarray(expected))


@pytest.mark.slow
def test_weights_are_recorded():
    decoder = Decoder(BUILDERS["transformer"]())
    cache = decoder.start(2, 9, source())
    with decoder.recording() as maps:
        decoder.step(tokens()[:, :3], cache, 0)
    assert {path: tuple(weights.shape) for path, weights in maps.items()} == {
        f"decoder_block_{i}/{kind}attention": (2, 2, 3, length)
        for i in range(2)
        for kind, length in [("", 3), ("cross_", 6)]
    }


def test_a_prefix_comes_whole():
    mask = ka.masks.Causal() | ka.masks.Prefix(3)
    x = ids = keras.Input((None,), dtype="int32")
    x = ka.blocks.TokenEmbedding(20, 8)(ids)
    x = ka.attention.MultiHeadAttention(2, 4, mask=mask)(x, x)
    decoder = Decoder(keras.Model(ids, keras.layers.Dense(20)(x)))
    decoder.check_lengths(3, 9)
    with pytest.raises(ValueError, match="The first 3 tokens attend to one another .* has 2"):
        decoder.check_lengths(2, 9)


def test_a_prompt_longer_than_the_cache():
    with pytest.raises(ValueError, match="prompt has 9 tokens, but the cache has room for 8"):
        Decoder(BUILDERS["language model"]()).check_lengths(9, 8)


def test_decoder_refuses_plain_layers_and_models_with_extra_inputs():
    with pytest.raises(ValueError, match="cannot generate: expected a functional"):
        Decoder(keras.layers.Dense(3))
    ids, other = (keras.Input((None,), dtype="int32", name=name) for name in ("ids", "other_ids"))
    embed = ka.blocks.TokenEmbedding(20, 8)
    x = embed(ids) + embed(other)
    model = keras.Model([ids, other], ka.attention.MultiHeadAttention(2, 4, mask="causal")(x, x))
    with pytest.raises(ValueError, match="has the inputs other_ids besides ids"):
        Decoder(model)


def test_encoder_and_decoder_fit():
    ids = keras.Input((None,), dtype="int32", name="source_ids")
    x = ka.blocks.TokenEmbedding(20, 8)(ids)
    target = keras.Input((None,), dtype="int32", name="target_ids")
    first, second = (keras.Input((None, 8), name=name) for name in ("first", "second"))
    y = ka.blocks.TokenEmbedding(20, 8)(target)
    for value in (first, second):
        y = ka.attention.MultiHeadAttention(2, 4)(y, value)
    decoder = keras.Model({"target_ids": target, "first": first, "second": second}, y)
    decoder.name = "decoder"
    for encoded, message in [(x, "returns 1 tensors"), ({"first": x}, "takes second. The encoder")]:
        encoder = keras.Model(ids, encoded, name="encoder")
        whole = keras.Model([ids, *decoder.inputs], [encoder(ids), decoder(decoder.input)])
        with pytest.raises(ValueError, match=message):
            Decoder(whole)
