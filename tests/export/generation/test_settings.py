import keras
import pytest

import keras_attention as ka
from keras_attention.export.generation import settings
from keras_attention.generation.decoder import Decoder


def make(decoder, generate="greedy", sequence_length=None, batch_size=None, **arguments):
    request = settings.Generation(generate, **arguments)
    return settings.make_plan(decoder, request, batch_size, sequence_length)


@pytest.mark.parametrize(
    "kind, arguments, expected",
    [
        ("writer", {}, (256, 128)),
        ("writer", {"max_length": 20}, (20, 10)),
        ("writer", {"sequence_length": 8, "max_length": 20}, (20, 13)),
        ("writer", {"sequence_length": 8, "max_new_tokens": 4}, (11, 4)),
        ("writer", {"max_new_tokens": 4}, (256, 4)),
        ("translator", {"start_token_id": 1}, (256, 256)),
        ("translator", {"start_token_id": 1, "max_new_tokens": 9, "sequence_length": 30}, (9, 9)),
    ],
)
def test_lengths_follow_from_one_another(decoders, kind, arguments, expected):
    made = make(decoders[kind], **arguments)
    assert (made.max_length, made.max_new_tokens) == expected


def test_a_cache_is_no_longer_than_the_positions():
    model = ka.models.causal_language_model(
        9, num_layers=1, num_heads=1, hidden_dim=4, position=ka.positions.Learned(10)
    )
    decoder = ka.generation.Decoder(model)
    assert make(decoder).max_length == 10
    with pytest.raises(ValueError, match="11 tokens .* more than"):
        make(decoder, max_length=11)


@pytest.mark.slow
def test_a_prefix_must_come_together():
    mask = ka.masks.Causal() | ka.masks.Prefix(3)
    tokens = keras.Input((None,), dtype="int32", name="token_ids")
    x = ka.blocks.TokenEmbedding(23, 8)(tokens)
    x = ka.attention.MultiHeadAttention(2, 4, mask=mask)(x, x)
    decoder = Decoder(keras.Model(tokens, keras.layers.Dense(23)(x)))
    assert make(decoder, max_length=9).max_length == 9
    with pytest.raises(
        ValueError, match="first 3 tokens attend to one another.*Leave sequence_length"
    ):
        make(decoder, max_length=9, sequence_length=4)


def test_samplers_have_a_signature_each(decoders):
    beam = ka.generation.Beam(3)
    made = make(decoders["writer"], [ka.generation.Sample(0.5), beam], end_token_id=[4, 5])
    assert list(made.configs) == ["generate", "beam"] and made.configs["beam"].sampler == beam
    assert made.end_token_ids == made.configs["generate"].end_token_ids == (4, 5)
    assert make(decoders["writer"], []).configs == {}


@pytest.mark.parametrize(
    "kind, arguments, message",
    [
        ("translator", {}, "decoder reads first. Pass start_token_id="),
        ("writer", {"generate": "best"}, "Unknown sampler 'best'. Known: greedy"),
        ("writer", {"generate": ["greedy", "sample"]}, "two samplers for the signature 'generate'"),
        ("writer", {"max_length": 0}, "max_length=0"),
        ("writer", {"max_new_tokens": 2.5}, "max_new_tokens=2.5"),
        ("writer", {"end_token_id": 23}, "end_token_id=23 is outside the vocabulary of 23 ids"),
        ("writer", {"end_token_id": [1, -1]}, "end_token_id=-1"),
        ("writer", {"end_token_id": [1, 0]}, "end_token_id=0 is the model.s padding"),
        (
            "writer",
            {"max_length": 5, "max_new_tokens": 6},
            "does not fit into the cache.* 5 tokens",
        ),
        (
            "writer",
            {"sequence_length": 4, "max_length": 5, "max_new_tokens": 3},
            "max_new_tokens=3 after a prompt of 4",
        ),
        ("writer", {"sequence_length": 6, "max_length": 5}, "prompt"),
    ],
)
def test_export_refuses_invalid_generation_settings(decoders, kind, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(decoders[kind], **arguments)
