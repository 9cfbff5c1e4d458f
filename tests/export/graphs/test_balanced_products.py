"""Int8 kernels behind norms: activations are rounded, too, and lose less."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.export import convert
from keras_attention.export.graphs import flatbuffer
from tests.export.conftest import vary
from tests.grids import quick

WIDTH, LENGTH = 64, 5
NORMS = {
    "layer": lambda: keras.layers.LayerNormalization(name="norm"),
    "no offset": lambda: keras.layers.LayerNormalization(center=False, name="norm"),
    "root mean square": lambda: keras.layers.RMSNormalization(name="norm"),
}
X = np.random.default_rng(0).normal(size=(3, LENGTH, WIDTH)).astype("float32")


def make_model(norm, length=LENGTH, depth=96):
    """Return a norm with a few very large features, and two products after it."""
    keras.utils.set_random_seed(0)
    x = keras.Input((length, WIDTH), name="x")
    normed = norm(x)
    first, second = (keras.layers.Dense(depth, name=n)(normed) for n in ("first", "second"))
    y = keras.layers.Add(name="y")([first, 2 * second])
    enlarge(norm)
    return keras.Model(x, y)


def enlarge(norm):
    """Makes some of the features that a norm gives much larger than the others."""
    scale = np.random.default_rng(1).uniform(0.5, 1.5, WIDTH).astype("float32")
    scale[[3, 17]] = 20.0, -12.0
    norm.set_weights([scale, *[w * 0 + scale / 3 for w in norm.get_weights()[1:]]])


def export(model, path, monkeypatch=None, signature=None, **settings):
    """Return a runner of the model's int8 file, without balancing if `monkeypatch` is passed."""
    settings = {"quantization": "int8_weights", "examples": [X], **settings}
    if monkeypatch is None:
        ka.export.to_litert(model, path, **settings)
    else:
        with monkeypatch.context() as patch:
            patch.setattr(convert, "balance_products", lambda content, *_: content)
            ka.export.to_litert(model, path, **settings)
    return ka.export.load(path, signature)


def count(path, kind):
    return flatbuffer.read_graph(path).ops.get(kind, 0)


@pytest.mark.parametrize("length", quick([None, LENGTH], None))
@pytest.mark.parametrize("kind", quick(NORMS, "root mean square"))
def test_large_features_leave_levels_for_the_others(kind, length, tmp_path, monkeypatch):
    model = make_model(NORMS[kind](), length)
    before, after = tmp_path / "before.tflite", tmp_path / "after.tflite"
    runs = export(model, before, monkeypatch), export(model, after)
    expected = model.predict(X, verbose=0)
    plain, balanced = (np.abs(run({"x": X})["y"] - expected).std() for run in runs)
    assert balanced < 0.8 * plain
    assert count(after, "MUL") == count(before, "MUL") + 2
    assert after.stat().st_size < before.stat().st_size + 3000


@pytest.mark.slow
def test_kernels_not_always_behind_a_norm_stay_unchanged(tmp_path, monkeypatch):
    """Not behind a norm, and behind one only in one of two uses."""
    x = keras.Input((LENGTH, WIDTH), name="x")
    twice = keras.layers.Dense(WIDTH, name="twice")
    norm = keras.layers.LayerNormalization()
    y = twice(norm(twice(x)))
    enlarge(norm)
    model = keras.Model(x, keras.layers.Dense(WIDTH, name="y")(y))
    paths = tmp_path / "before.tflite", tmp_path / "after.tflite"
    export(model, paths[0], monkeypatch), export(model, paths[1])
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.slow
def test_a_sum_of_norms_is_not_a_norm(tmp_path, monkeypatch):
    """Add a tensor of unknown size to a normalized one."""
    x = keras.Input((LENGTH, WIDTH), name="x")
    norm = keras.layers.RMSNormalization()
    y = x + norm(x)
    enlarge(norm)
    model = keras.Model(x, keras.layers.Dense(96, name="y")(y))
    paths = tmp_path / "before.tflite", tmp_path / "after.tflite"
    export(model, paths[0], monkeypatch), export(model, paths[1])
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.slow
def test_even_features_stay_unchanged(tmp_path, monkeypatch):
    """Use features of similar size, where factors would only make kernels less exact."""
    model = make_model(NORMS["layer"]())
    scale, offset = model.get_layer("norm").get_weights()
    model.get_layer("norm").set_weights([np.ones_like(scale), np.zeros_like(offset)])
    paths = tmp_path / "before.tflite", tmp_path / "after.tflite"
    export(model, paths[0], monkeypatch), export(model, paths[1])
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.slow
def test_one_scale_for_all_rows_stays(tmp_path, monkeypatch):
    model = make_model(NORMS["layer"]())
    paths = tmp_path / "before.tflite", tmp_path / "after.tflite"
    export(model, paths[0], monkeypatch, per_channel=False)
    export(model, paths[1], per_channel=False)
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.slow
def test_features_without_use(tmp_path):
    """Nothing is divided by zero where a norm or a kernel drops a feature, or all of them."""
    model = make_model(NORMS["layer"]())
    kernel, bias = model.get_layer("first").get_weights()
    kernel[5] = 0.0
    model.get_layer("first").set_weights([kernel, bias + 1])
    scale, offset = model.get_layer("norm").get_weights()
    scale[:7] = offset[:7] = 0.0
    model.get_layer("norm").set_weights([scale, offset])
    run, expected = export(model, tmp_path / "some.tflite"), model.predict(X, verbose=0)
    assert np.abs(run({"x": X})["y"] - expected).max() < 0.02 * np.abs(expected).max()
    model.get_layer("norm").set_weights([scale * 0, offset * 0])
    run = export(model, tmp_path / "none.tflite", examples=None)
    np.testing.assert_allclose(run({"x": X})["y"], np.ones((3, LENGTH, 96)), atol=1e-6)


@pytest.mark.slow
def test_every_signature_reads_the_same_kernels(tmp_path, monkeypatch):
    """Check that a decoder's `step` and loop agree, and that every kernel is stored once."""
    model = vary(
        ka.models.causal_language_model(
            211, num_layers=2, num_heads=2, hidden_dim=WIDTH, tie_embeddings=True
        )
    )
    for scale in [w for w in model.weights if w.path.endswith("norm/gamma")]:
        scale.assign(np.where(np.arange(WIDTH) == 5, 15.0, scale))
    ids = np.random.default_rng(2).integers(1, 211, (2, 9)).astype("int32")
    decoder = ka.generation.Decoder(model)
    cache = {name: np.asarray(x) for name, x in decoder.start(2, 24).items()}
    expected = np.asarray(decoder.step(ids, decoder.start(2, 24), 0)[0])
    inputs = cache | {"token_ids": ids, "index": np.int32(0), "start": np.zeros(2, "int32")}
    loops = {"generate": ka.export.Generation("greedy", 24, 1), "examples": None}
    paths, errors = (tmp_path / "before.tflite", tmp_path / "after.tflite"), []
    for path, patch in zip(paths, (monkeypatch, None), strict=True):
        step = export(model, path, patch, signature="step", **loops)
        logits = step({name: inputs[name] for name in step.inputs if name in inputs})["logits"]
        errors.append(np.abs(logits - expected).mean())
    written = ka.export.load(path, "generate")({"token_ids": ids})["generated_ids"]
    np.testing.assert_array_equal(written[:, 0], logits[:, -1].argmax(-1))
    assert errors[1] < 0.9 * errors[0]
    assert count(paths[1], "MUL") > count(paths[0], "MUL")
    assert paths[1].stat().st_size < 1.05 * paths[0].stat().st_size
