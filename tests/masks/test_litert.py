import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention import masks
from tests.masks.examples import COMBINATIONS, EXAMPLES

litert = pytest.importorskip("tests.litert", reason="needs tensorflow and ai-edge-litert")

# The contract also exports each mask inside of attention.
pytestmark = pytest.mark.slow

MASKS = [
    *(mask for mask in EXAMPLES if mask != masks.Full()),  # returns None
    *COMBINATIONS,
    masks.Window2D((2, 1), (3, 4), prefix=1),
    masks.Longformer(2, (4,), dilation=2),
    masks.BigBird(12, 2, num_random_blocks=1),
    masks.Causal() & (masks.Window(2) | ~masks.Strided(3)),
]


@pytest.mark.parametrize("queries, keys, axes", [((5,), (7,), 1), ((2, 5), (2, 7), 2)])
def test_masks_export(queries, keys, axes):
    random = np.random.default_rng(0)
    arrays = {
        "i": random.integers(0, 13, queries).astype("int32"),
        "j": random.integers(0, 13, keys).astype("int32"),
    }

    def run(i, j):
        return {
            f"mask_{k}": ops.cast(masks.materialize(mask, i, j), "float32")
            for k, mask in enumerate(MASKS)
        }

    litert.assert_converts(run, arrays, dynamic=axes)


def test_masks_from_data_export():
    def run(lengths, segments):
        padding = masks.padding(lengths > 0)
        together = masks.all_of(padding, None, masks.same_segment(segments))
        positions = masks.positions_in_segments(segments)
        prefix = masks.prefix_lengths(ops.sum(lengths, axis=1) - 2, positions)
        either = masks.any_of(masks.materialize(masks.Causal(), positions, positions), prefix)
        outputs = {"together": together, "positions": positions, "either": either}
        return {name: ops.cast(value, "float32") for name, value in outputs.items()}

    segments = np.array([[1, 1, 2, 2, 0], [1, 2, 2, 0, 0]], "int32")
    arrays = {
        "lengths": np.array([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]], "int32"),
        "segments": segments,
    }
    litert.assert_converts(run, arrays, dynamic=2)


def test_prompts_and_packed_documents_of_any_length_export(tmp_path):
    ids, segments = (keras.Input((None,), dtype="int32", name=name) for name in ("ids", "segments"))
    lengths = keras.Input((), dtype="int32", name="lengths")
    where = masks.positions_in_segments(segments)
    causal = masks.materialize(masks.Causal(), where, where)
    x = keras.layers.Embedding(30, 12)(ids)
    y = ka.attention.MultiHeadAttention(3, 4, position="rotary")(
        x,
        x,
        attention_mask=masks.any_of(causal, masks.prefix_lengths(lengths, where)),
        segment_ids=segments,
        query_positions=where,
        value_positions=where,
    )
    model = keras.Model([ids, lengths, segments], y)
    path = tmp_path / "model.tflite"
    ka.export.to_litert(model, path)  # raises if the file and the model differ
    random = np.random.default_rng(0)
    inputs = {
        "ids": random.integers(0, 30, (3, 6)).astype("int32"),
        "lengths": np.array([0, 2, 3], "int32"),
        "segments": np.array([[1] * 6, [1, 1, 1, 2, 2, 2], [1, 2, 2, 2, 0, 0]], "int32"),
    }
    for run in litert.runners(path.read_bytes()):
        (output,) = run(**inputs).values()
        np.testing.assert_allclose(output, model(inputs), atol=1e-5)


@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_a_mask_of_a_known_length_becomes_a_constant(mask):
    def run(x):
        where = ops.arange(ops.shape(x)[1])
        allowed = masks.materialize(mask, where, where)
        return {"y": x + ops.cast(allowed, "float32")[0, 0]}

    specs = {"x": litert.spec("x", np.zeros((5, 5), "float32"))}
    assert litert.operators(litert.convert(run, specs)) == ["ADD"]
