import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.export import ExportError
from keras_attention.export.checks.cases import run_model
from keras_attention.export.generation.engine_endpoints import EngineReader
from keras_attention.generation.decoder import Decoder
from tests.export.conftest import vary
from tests.export.generation.test_exportable import Sums
from tests.grids import quick

SIZES = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 8, "dropout": 0.0}
LENGTH = 7
PIECES = [4, 2]  # the second is filled up with padding, which lies beyond the end


def make_model(**options):
    return vary(ka.models.causal_language_model(19, **(SIZES | options)))


def read_as_engine(reader, tokens):
    """Return the logits of the tokens after `PIECES`, with one cache that is written over."""
    prefill, decode = reader.endpoints
    cache = {t.name: np.zeros(t.shape, t.dtype) for t in prefill.inputs if "kv_cache_" in t.name}
    index, logits = 0, []
    for count in [*PIECES, *[1] * (LENGTH - sum(PIECES))]:
        point = prefill if index < sum(PIECES) else decode
        length = point.inputs[0].shape[1]
        ids, positions = np.zeros((1, length), "int32"), np.zeros(length, "int32")
        ids[0, :count] = tokens[index : index + count]
        positions[:count] = np.arange(index, index + count)
        outputs = run_model(point, {"tokens": ids, "input_pos": positions, **cache})
        cache |= {name: outputs[name] for name in cache}
        logits += [outputs["logits"][0, 0]] if point is decode else []
        index += count
    return np.array(logits)


MODELS = {
    "window": {"mask": ka.masks.Window(3), "position": ka.positions.Learned(LENGTH)},
    "rotary": {"embedding": ka.models.TextEmbedding(padding_id=None)},
    "bias": {"position": "relative_bias"},
}


@pytest.mark.parametrize("name", quick(MODELS, "window"))
def test_padding_of_pieces_does_not_change_logits(name):
    model = make_model(**MODELS[name])
    tokens = np.random.default_rng(1).integers(1, 19, LENGTH)
    logits = read_as_engine(EngineReader(Decoder(model), LENGTH, 4), tokens)
    expected = np.asarray(model(tokens[None]))[0, sum(PIECES) :]
    assert len(logits) == 1 and np.abs(logits - expected).max() < 1e-5


def test_names_shapes_and_lengths_are_the_engines():
    decoder = Decoder(make_model(mask=ka.masks.Window(3)))
    prefill, decode = EngineReader(decoder, 20, 6).endpoints
    assert (prefill.name, decode.name) == ("prefill_6", "decode")
    assert prefill.outputs == decode.outputs[1:] and decode.outputs[0] == "logits"
    shapes = {tensor.name: tensor.shape for tensor in prefill.inputs}
    assert shapes["tokens"] == (1, 6) and shapes["input_pos"] == (6,)
    # A piece of 1 token and 5 paddings fits after 19 tokens. No entry is shorter.
    assert shapes["kv_cache_k_0"] == shapes["kv_cache_v_0"] == (1, 2, 25, 4)
    assert len(shapes) == 4  # and no mask
    latent = ka.attention.LatentAttention(2, 4, latent_dim=5, rotary_dim=2)
    feed_forward = ka.blocks.FeedForward(8)
    encoder = ka.models.TransformerEncoder(2, attention=latent, feed_forward=feed_forward)
    model = ka.models.causal_language_model(19, hidden_dim=8, position=None, encoder=encoder)
    (*_, last) = EngineReader(Decoder(model), 20, 6).endpoints[0].inputs
    assert (last.name, last.shape) == ("kv_cache_v_0", (1, 1, 25, 7))
    reader = EngineReader(Decoder(make_model(position=ka.positions.Learned(30))), None, None)
    assert (reader.max_length, reader.prefill_length) == (30, 30)


def test_cases_cover_both_signatures_and_the_last_position(decoders):
    cases = EngineReader(decoders["writer"], 20, 4).make_cases()
    starts = {name: [case.inputs["input_pos"][0] for case in cases[name]] for name in cases}
    assert starts == {"prefill_4": [0, 4, 19], "decode": [6, 7]}


def make_layer_model(attention, *layers):
    """Return a model of an attention layer, and of `layers` between it and the logits."""
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    x = ka.blocks.TokenEmbedding(23, 8)(ids)
    x = attention(x, x)
    for layer in layers:
        x = layer(x)
    return keras.Model(ids, keras.layers.Dense(23)(x), name="layers")


def test_a_layer_without_a_cache_is_noticed():
    model = make_layer_model(ka.attention.MultiHeadAttention(2, 4, mask="causal"), Sums())
    with pytest.raises(ExportError, match="layers gives other logits with a cache"):
        EngineReader(Decoder(model), 12, 4).make_cases()


def test_decoders_that_the_engine_cannot_run_are_refused(decoders):
    with pytest.raises(ValueError, match="is an encoder-decoder. LiteRT-LM runs"):
        EngineReader(decoders["translator"], 8, 4)
    model = make_layer_model(ka.attention.LinearAttention(2, 4, mask="causal"))
    with pytest.raises(ValueError, match="keeps a state, .* which every token changes"):
        EngineReader(Decoder(model), 8, 4)


def test_a_single_entry_and_a_prefix_are_refused():
    latent = ka.attention.LatentAttention(2, 4, latent_dim=5, rotary_dim=2, mask="causal")
    with pytest.raises(ValueError, match="layers stores a single tensor, but LiteRT-LM needs keys"):
        EngineReader(Decoder(make_layer_model(latent)), 8, 4)
    prefix = ka.attention.MultiHeadAttention(2, 4, mask=ka.masks.Prefix(3))
    with pytest.raises(ValueError, match="The first 3 tokens of .* LiteRT-LM reads prompts"):
        EngineReader(Decoder(make_layer_model(prefix)), 8, 4)
