import numpy as np
import pytest

from keras_attention import positions
from keras_attention.positions import scalings

litert = pytest.importorskip("tests.litert", reason="needs tensorflow and ai-edge-litert")

# The contract also exports each position inside of attention.
pytestmark = pytest.mark.slow

RANDOM = np.random.default_rng(0)
ROWS = np.array([[3, 0, 1, 2, 9], [8, 7, 1, 0, 4]], "int32")


def weights(parts, shape):
    layers = [part for part in parts.values() if hasattr(part, "build")]
    for layer in layers:
        layer.build(shape)
    return [weight.value for layer in layers for weight in layer.weights]


def test_embeddings_export():
    x = RANDOM.normal(size=(2, 5, 6)).astype("float32")
    parts = {
        "sinusoidal": positions.Sinusoidal(),
        "concatenated": positions.Sinusoidal("concatenated"),
        "learned": positions.Learned(11),
        "index": positions.Scalar(False),
        "fraction": positions.Scalar(length=11),
        "sinusoidal 2d": positions.Sinusoidal2D((2, 5), 1),
        "learned 2d": positions.Learned2D((2, 5), 1),
    }
    variables = weights(parts, x.shape)

    def run(x, rows):
        outputs = {name: part.embed(x, rows) for name, part in parts.items()}
        counted = {f"{name}, counted": part.embed(x) for name, part in parts.items()}
        return {**outputs, **counted, "scaled": positions.Scalar().embed(x)}

    litert.assert_converts(run, {"x": x, "rows": ROWS}, dynamic=2, variables=variables)


def test_rotations_export():
    x = RANDOM.normal(size=(2, 5, 3, 8)).astype("float32")
    parts = {
        "half": positions.Rotary(),
        "interleaved": positions.Rotary("interleaved"),
        "part": positions.Rotary(rotary_dim=4),
        "interleaved part": positions.Rotary("interleaved", rotary_dim=4),
        "grid": positions.Rotary(grid=(2, 5), prefix=1),
        "dynamic": positions.Rotary(scaling=scalings.DynamicNTK(2, 4)),
        "long": positions.Rotary(scaling=scalings.LongRoPE((1,) * 4, (1, 2, 3, 4), 9, 2)),
        "yarn": positions.Rotary(scaling=scalings.YaRN(4, 20)),
        "xpos": positions.XPos(scale_base=10),
    }

    def run(x, rows):
        outputs = {name: part.rotate(x, rows) for name, part in parts.items()}
        counted = {f"{name}, counted": part.rotate_key(x) for name, part in parts.items()}
        return {**outputs, **counted}

    litert.assert_converts(run, {"x": x, "rows": ROWS}, dynamic=2)


def test_biases_export():
    query = RANDOM.normal(size=(2, 5, 3, 8)).astype("float32")
    key = RANDOM.normal(size=(2, 7, 3, 8)).astype("float32")
    parts = {
        "alibi": positions.ALiBi(),
        "causal alibi": positions.ALiBi(True),
        "relative": positions.RelativeBias(8, 20),
        "causal relative": positions.RelativeBias(8, 20, False),
        "learned alibi": positions.LearnedALiBi(),
        "shaw": positions.Shaw(2),
        "transformer xl": positions.TransformerXL(),
        "disentangled": positions.Disentangled(3),
        "buckets": positions.Disentangled(9, num_buckets=4),
        "swin": positions.SwinBias((2, 5)),
        "swin, prefix": positions.SwinBias((2, 5), 1),
        "continuous": positions.ContinuousBias((2, 5), 1, hidden_dim=8),
        "several": positions.get(["alibi", "relative_bias"]),
    }
    variables = weights(parts, query.shape)

    def run(query, key, rows):
        outputs = {name: part.bias(rows, None, query, key) for name, part in parts.items()}
        counted = {f"{n}, counted": p.bias(None, None, query, query) for n, p in parts.items()}
        return {**outputs, **counted}

    arrays = {"query": query, "key": key, "rows": ROWS}
    litert.assert_converts(run, arrays, dynamic=2, variables=variables)


def test_value_terms_export():
    position = positions.Shaw(2)
    variables = weights({"shaw": position}, (2, 5, 3, 8))
    chosen = RANDOM.random(size=(2, 3, 5, 7)).astype("float32")

    def run(chosen, rows):
        return {
            "given": position.values(rows, None, chosen),
            "counted": position.values(None, None, chosen),
        }

    arrays = {"chosen": chosen, "rows": ROWS}
    litert.assert_converts(run, arrays, dynamic=1, variables=variables)


def test_litert_refuses_positions_beyond_the_table():
    position = positions.Learned(5)
    x = np.zeros((1, 4, 3), "float32")
    variables = weights({"learned": position}, x.shape)
    model = litert.convert(
        lambda x: {"y": position.embed(x)}, {"x": litert.spec("x", x, dynamic=2)}, variables
    )
    for run in litert.runners(model):
        np.testing.assert_allclose(run(x=x)["y"], position.embed(x), atol=1e-6)
        with pytest.raises(RuntimeError, match="Invalid begin and size"):
            run(x=np.zeros((1, 6, 3), "float32"))


def test_tables_of_known_length_become_constants():
    x = np.zeros((2, 5, 6), "float32")
    query = np.zeros((2, 5, 3, 8), "float32")
    added = {
        "sinusoidal": positions.Sinusoidal(),
        "learned": positions.Learned(11),
        "sinusoidal 2d": positions.Sinusoidal2D((2, 3), 1),
        "learned 2d": positions.Learned2D((2, 3), 1),
    }
    biases = {
        "alibi": positions.ALiBi(),
        "relative": positions.RelativeBias(),
        "learned alibi": positions.LearnedALiBi(initializer="zeros"),
        "swin": positions.SwinBias((2, 3), 1),
        "continuous": positions.ContinuousBias((2, 3), 1, hidden_dim=8),
    }
    turning = {
        "rotary": positions.Rotary(),
        "grid": positions.Rotary(grid=(2, 3)),
        "dynamic": positions.Rotary(scaling=scalings.DynamicNTK(2, 4)),
        "long": positions.Rotary(scaling=scalings.LongRoPE((1,) * 4, (1, 2, 3, 4), 4, 2)),
        "xpos": positions.XPos(),
    }
    variables = weights(added, x.shape) + weights(biases, query.shape)

    def run(x, query):
        rotated = {name: part.rotate(query) for name, part in turning.items()}
        sums = {name: part.bias(None, None, query) + x[0, 0, 0] for name, part in biases.items()}
        return {**{name: part.embed(x) for name, part in added.items()}, **sums, **rotated}

    specs = {"x": litert.spec("x", x), "query": litert.spec("query", query)}
    used = litert.operators(litert.convert(run, specs, variables))
    assert set(used) == {"ADD", "STRIDED_SLICE", "MUL", "CONCATENATION"}
    assert used.count("ADD") == len(added) + len(biases) + len(turning)
    assert used.count("MUL") == 2 * len(turning)
