import numpy as np
import pytest

import keras_attention as ka
from keras_attention.export import Tensor
from keras_attention.export.checks import cases
from keras_attention.export.generation import endpoints, reference
from tests.export.conftest import TEXTS, TRANSLATOR, WRITER
from tests.export.generation.test_settings import make

KEYS = "block_0_attention_key"


def points(decoder, generate=(), batch_size=None, sequence_length=None, **arguments):
    generation = make(decoder, list(generate), sequence_length, batch_size, **arguments)
    made = endpoints.make_endpoints(generation)
    return {point.name: point for point in made}


def test_a_language_model_of_free_shapes(decoders):
    made = points(decoders["writer"], ["greedy"], **WRITER)
    assert list(made) == ["step", "generate"]
    assert made["step"].inputs[:3] == (
        Tensor("token_ids", (None, None), "int32"),
        Tensor("index", (), "int32"),
        Tensor("start", (None,), "int32"),
    )
    assert Tensor(KEYS, (None, 2, 14, 8), "float32") in made["step"].inputs
    assert made["step"].outputs[0] == "logits" and KEYS in made["step"].outputs
    assert made["generate"].inputs == (Tensor("token_ids", (None, None), "int32"),)


def test_a_language_model_of_fixed_shapes(decoders):
    made = points(decoders["writer"], batch_size=2, sequence_length=4, **WRITER)
    assert list(made) == ["prefill", "step"]
    assert [point.inputs[0].shape for point in made.values()] == [(2, 4), (2, 1)]
    assert all(None not in tensor.shape for point in made.values() for tensor in point.inputs)


@pytest.mark.slow
@pytest.mark.parametrize("batch_size, sequence_length", [(None, None), (2, 6)])
def test_an_encoder_decoder(decoders, batch_size, sequence_length):
    decoder = decoders["translator"]
    sizes = {"batch_size": batch_size, "sequence_length": sequence_length}
    made = points(decoder, ["sample"], **sizes, **TRANSLATOR)
    assert list(made) == ["encode", "step", "generate"]
    source = f"decoder_{KEYS.replace('attention', 'cross_attention_source')}"
    assert Tensor(source, (batch_size, 2, sequence_length, 8), "float32") in made["step"].inputs
    assert source in made["encode"].outputs and source not in made["step"].outputs
    assert "start" not in [tensor.name for tensor in made["step"].inputs]
    assert [tensor.name for tensor in made["generate"].inputs] == ["source_ids", "uniform"]
    assert made["generate"].inputs[1].shape == (batch_size, 7)


def naive(decoder, prompts, count, end_token_ids, source=None):
    """Greedy new tokens after prompts (B, T), by the whole model for every token."""
    tokens = np.array(prompts, "int32")
    for _ in range(count):
        logits = reference.compute_logits(decoder, tokens, source)[:, -1]
        best = logits[:, 1:].argmax(axis=1) + 1
        tokens = np.concatenate([tokens, best[:, None].astype("int32")], axis=1)
    return cut(tokens[:, -count:], end_token_ids)


def cut(new, end_token_ids):
    """New tokens (B, N) with padding after the first that is an end."""
    is_end = np.isin(new, end_token_ids)
    return np.where(np.cumsum(is_end, axis=1) - is_end > 0, 0, new)


def test_rows_of_a_batch_equal_single_rows(decoders):
    """Prompts of unequal length, with padding in front, and greedy decoding without a cache."""
    decoder = decoders["writer"]
    call = points(decoder, ["greedy"], **WRITER)["generate"]
    padded = np.stack([TEXTS[0], np.roll(TEXTS[1], 2)]).astype("int32")
    result = cases.run_model(call, {"token_ids": padded})["generated_ids"]
    for row, prompt in zip(result, [TEXTS[0], TEXTS[1, :4]], strict=True):
        assert row.tolist() == naive(decoder, [prompt], 5, (3,))[0].tolist()


@pytest.mark.slow
def test_rows_end_with_any_of_the_ends(decoders):
    decoder = decoders["translator"]
    sources = {"source_ids": np.random.default_rng(1).integers(1, 19, (4, 5), dtype="int32")}
    free = naive(decoder, np.ones((4, 1)), 7, (), sources)
    ends = [int(free[0, 0]), int(free[1, 1])]  # the first row ends at once, the second soon
    made = points(decoder, ["greedy"], **TRANSLATOR | {"end_token_id": ends})["generate"]
    result = cases.run_model(made, sources)["generated_ids"]
    np.testing.assert_array_equal(result, cut(free, ends))
    assert {1, 2} <= set((result != 0).sum(axis=1))


def test_the_padding_in_front_is_counted():
    ids = np.array([[0, 0, 5, 0], [1, 2, 3, 4]])
    assert np.asarray(endpoints.count_left_padding(ids, 0)).tolist() == [2, 0]
    assert np.asarray(endpoints.count_left_padding(ids, 1)).tolist() == [0, 1]


def test_samplers_take_random_numbers_as_input(decoders):
    call = points(decoders["writer"], ["sample"], **WRITER)["generate"]
    prompt, chance = np.repeat(TEXTS[:1].astype("int32"), 2, axis=0), np.zeros((2, 5), "float32")
    chance[1] = 0.999
    low, high = cases.run_model(call, {"token_ids": prompt, "uniform": chance})["generated_ids"]
    assert low[0] == 1 and high[0] > 15  # the first and one of the last that are probable at all
    assert not endpoints.draws_tokens(
        make(decoders["writer"], ka.generation.Beam(2)).configs["beam"]
    )


def test_an_encoder_of_images_keeps_its_size_in_a_file_of_fixed_shapes():
    """Browsers and GPUs need `sequence_length` for the tokens, and images have no free axis."""
    model = ka.models.image_to_sequence(
        (8, 12), 9, patch_size=4, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=16
    )
    decoder = ka.generation.Decoder(model)
    made = points(decoder, batch_size=1, sequence_length=4, start_token_id=1, max_length=7)
    assert made["encode"].inputs == (Tensor("images", (1, 8, 12, 3), "float32"),)
    assert made["step"].inputs[0] == Tensor("token_ids", (1, 1), "int32")
