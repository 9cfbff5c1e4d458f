import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention import masks

litert = pytest.importorskip("tests.litert", reason="needs tensorflow and ai-edge-litert")

MASKS = {
    "causal": masks.Causal(),
    "window": masks.Window(3),
    "dilated": masks.Dilated(2, 2),
    "strided": masks.Strided(3),
    "prefix": masks.Prefix(2),
    "first": masks.Global(2),
    "chosen": masks.Global((1, 4)),
    "chunked": masks.Chunked(3),
    "window_2d": masks.Window2D((2, 1), (3, 4), prefix=1),
    "blockwise": masks.Blockwise(masks.Window(2), 2),
    "block_sparse": masks.BlockSparse([[1, 0, 1], [0, 1, 1]], 3),
    "random": masks.Random(2, 10),
    "longformer": masks.Longformer(2, (4,), dilation=2),
    "big_bird": masks.BigBird(12, 2, num_random_blocks=1),
    "combined": masks.Causal() & (masks.Window(2) | ~masks.Strided(3)),
}


def test_every_mask_has_a_case():
    assert {type(mask) for mask in MASKS.values()} >= set(masks.NAMES.values()) - {masks.Full}


@pytest.mark.parametrize("queries, keys, axes", [((5,), (7,), 1), ((2, 5), (2, 7), 2)])
def test_masks(queries, keys, axes):
    random = np.random.default_rng(0)
    arrays = {
        "i": random.integers(0, 13, queries).astype("int32"),
        "j": random.integers(0, 13, keys).astype("int32"),
    }

    def run(i, j):
        return {
            name: ops.cast(masks.materialize(mask, i, j), "float32") for name, mask in MASKS.items()
        }

    litert.assert_converts(run, arrays, dynamic=axes)


def test_masks_that_come_with_the_data():
    def run(lengths, segments):
        padding = masks.padding(lengths > 0)
        together = masks.all_of(padding, None, masks.same_segment(segments))
        positions = masks.positions_in_segments(segments)
        prefix = masks.prefix_lengths(ops.sum(lengths, axis=1) - 2, positions)
        either = masks.any_of(masks.materialize(masks.Causal(), positions, positions), prefix)
        found = {"together": together, "positions": positions, "either": either}
        return {name: ops.cast(value, "float32") for name, value in found.items()}

    segments = np.array([[1, 1, 2, 2, 0], [1, 2, 2, 0, 0]], "int32")
    arrays = {
        "lengths": np.array([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]], "int32"),
        "segments": segments,
    }
    litert.assert_converts(run, arrays, dynamic=2)


def test_a_model_with_prompts_and_packed_documents_of_any_length(tmp_path):
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
    ka.export.to_litert(model, path)  # raises where the file and the model differ
    random = np.random.default_rng(0)
    inputs = {
        "ids": random.integers(0, 30, (3, 6)).astype("int32"),
        "lengths": np.array([0, 2, 3], "int32"),
        "segments": np.array([[1] * 6, [1, 1, 1, 2, 2, 2], [1, 2, 2, 2, 0, 0]], "int32"),
    }
    for run in litert.runners(path.read_bytes()):
        (output,) = run(**inputs).values()
        np.testing.assert_allclose(output, model(inputs), atol=1e-5)


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_of_a_known_length_becomes_a_constant(name):
    def run(x):
        where = ops.arange(ops.shape(x)[1])
        allowed = masks.materialize(MASKS[name], where, where)
        return {"y": x + ops.cast(allowed, "float32")[0, 0]}

    specs = {"x": litert.spec("x", np.zeros((5, 5), "float32"))}
    assert litert.operators(litert.convert(run, specs)) == ["ADD"]
