"""Layouts of models that are made in other ways. It runs as a program on eight devices."""

import contextlib
import pathlib
import re
import sys
import tempfile

import keras
import numpy as np

import keras_attention as ka
from tests.backends.sharded import BUILDERS, draw, train
from tests.conftest import ROOT

TENSOR = {"data": 2, "model": 4}


def refuses(message, make):
    try:
        make()
    except ValueError as error:
        assert re.search(message, str(error)), str(error)
    else:
        raise AssertionError(f"nothing refused: {message}")


def splits(layout, model):
    """{path: split} of the weights that are split, by the arrays themselves."""
    specs = {w.path: tuple(w.value.sharding.spec) for w in model.weights}
    reported = {row.path: row.split for row in layout.report(model).split}
    held = {path: spec for path, spec in specs.items() if any(spec)}
    assert held == reported, (held, reported)
    return held


def check_a_mesh_of_other_size_is_refused():
    refuses(
        r"mesh=\{'data': 2, 'model': 2\} has 4 devices, but 8 are available.*\[:4\]",
        lambda: ka.distribution.RoleParallel({"data": 2, "model": 2}),
    )
    half = keras.distribution.list_devices()[:4]
    assert ka.distribution.RoleParallel({"model": 4}, devices=half).mesh == {"data": 1, "model": 4}


def check_a_device_mesh_keeps_its_devices():
    """Whatever the order of its axes: the devices of one batch stay together."""
    mesh = keras.distribution.DeviceMesh((4, 2), ["model", "data"])
    device_mesh = ka.distribution.RoleParallel(mesh).device_mesh
    assert device_mesh.axis_names == ["data", "model"] and device_mesh.shape == (2, 4)
    assert np.array_equal(device_mesh.devices, mesh.devices.T)


def check_batches_of_any_size_follow_one_another():
    """Keras puts all batches of an epoch into the layouts of the first."""
    x, y = draw("causal", 2 * 16 + 5)
    losses = []
    for layout in (contextlib.nullcontext(), ka.distribution.RoleParallel({"data": 8}).scope()):
        with layout:
            keras.utils.set_random_seed(0)
            model = BUILDERS["causal"]()
            model.compile("adam", ka.training.MaskedSparseCategoricalCrossentropy())
            history = model.fit(x, y, batch_size=16, shuffle=False, verbose=0)
            losses.append([*history.history["loss"], model.evaluate(x, y, 16, verbose=0)])
            assert model.predict(x, batch_size=16, verbose=0).shape[0] == 37
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)


class Inner(keras.layers.Layer):
    """A layer without `build`: Keras builds its children by a symbolic call."""

    def __init__(self):
        super().__init__(name="own")
        self.feed_forward = ka.blocks.FeedForward(32, name="feed_forward")

    def call(self, x):
        return self.feed_forward(x)


def check_weights_of_a_symbolic_call_are_split():
    layout = ka.distribution.RoleParallel(TENSOR)
    with layout.scope():
        x = keras.Input((None, 16))
        held = splits(layout, keras.Model(x, Inner()(x)))
    assert held == {
        "own/feed_forward/intermediate/kernel": (None, "model"),
        "own/feed_forward/intermediate/bias": ("model",),
        "own/feed_forward/output/kernel": ("model", None),
    }


def check_a_subclassed_model_is_split():
    class Own(keras.Model):
        def __init__(self):
            super().__init__(name="model")
            self.inner = Inner()

        def call(self, x):
            return self.inner(x)

    layout = ka.distribution.RoleParallel(TENSOR, fully_sharded=True)
    with layout.scope():
        model = Own()
        model(np.ones((2, 3, 16), "float32"))
        assert len(splits(layout, model)) == 3


def check_a_loaded_model_is_split_as_a_new_one():
    layout = ka.distribution.RoleParallel(TENSOR, fully_sharded=True)
    model = BUILDERS["causal"]()
    x, _ = draw("causal", 8)
    expected = np.asarray(model(x))
    with tempfile.TemporaryDirectory() as folder, layout.scope():
        model.save(f"{folder}/model.keras")
        loaded = keras.saving.load_model(f"{folder}/model.keras")
        assert len(splits(layout, loaded)) == len(splits(layout, BUILDERS["causal"]())) == 11
        np.testing.assert_allclose(np.asarray(loaded(x)), expected, atol=1e-5)


def check_a_checkpoint_is_split():
    """Check a model that gets its weights long after its layers are made. It has three heads."""
    folder = ROOT / "tests" / "pretrained" / "checkpoints" / "gpt2"
    expected = ka.pretrained.load(folder)
    layout = ka.distribution.RoleParallel({"data": 4, "model": 2})
    with layout.scope():
        model = ka.pretrained.load(folder)
        held = splits(layout, model)
    assert len(held) == 6 and held["block_1/feed_forward/output/kernel"] == ("model", None)
    for ours, theirs in zip(model.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def check_what_was_made_before_is_reported():
    model = BUILDERS["labeler"]()
    layout = ka.distribution.RoleParallel(TENSOR)
    report = layout.report(model)
    assert not report.split and report.size_on_a_device == report.size
    assert {row.reason for row in report.weights} == {
        "made before this layout was set. Set it first."
    }


class Bare(keras.layers.Layer):
    """A user's layer without `weight_axes`."""

    def build(self, shape):
        self.kernel = self.add_weight(name="kernel", shape=(shape[-1], 8))
        self.memory = self.add_weight(name="memory", shape=(8, 4))

    def call(self, x):
        return x @ self.kernel


class Named(Bare):
    """A user's layer with `weight_axes`."""

    weight_axes = {"kernel": ("embed", "mlp")}


def check_layers_of_users():
    layout = ka.distribution.RoleParallel(TENSOR)
    with layout.scope():
        x = keras.Input((16,))
        bare, named = (keras.Model(x, cls(name="own")(x)) for cls in (Bare, Named))
    assert not splits(layout, bare)
    assert splits(layout, named) == {"own/kernel": (None, "model")}
    assert "no roles: weight_axes of its layer does not name it" in str(layout.report(named))


def check_the_same_text_is_written():
    prompt = [[3, 5, 7], [2, 4, 6]]
    settings = dict(max_new_tokens=6)
    keras.utils.set_random_seed(1)
    expected = ka.generation.generate(BUILDERS["causal"](), prompt, **settings)
    for mesh in (TENSOR, {"data": 8}):
        keras.utils.set_random_seed(1)
        with ka.distribution.RoleParallel(mesh, fully_sharded=True).scope():
            actual = ka.generation.generate(BUILDERS["causal"](), prompt, **settings)
        np.testing.assert_array_equal(np.asarray(actual), np.asarray(expected))


def check_a_loop_over_layers_loses_the_same():
    """Check that its weights are split like those of layers in a row."""
    stack = dict(num_layers=2)
    expected = train("labeler", **stack)[1]
    layout = ka.distribution.RoleParallel(TENSOR, fully_sharded=True)
    with layout.scope():
        plain = splits(layout, BUILDERS["labeler"](**stack))
        model, losses = train("labeler", **stack, scan_layers=True, remat=True)
        held = splits(layout, model)
    assert list(held.values()) == list(plain.values()) and len(held) == 14 + 11
    np.testing.assert_allclose(losses, expected, rtol=1e-5)


def check_the_example_of_the_docstring():
    code = re.search(r"```python\n(.*?)```", ka.distribution.RoleParallel.__doc__, re.DOTALL)[1]
    exec(re.sub(r"^    ", "", code, flags=re.MULTILINE), {})


def check_the_guide():
    text = (ROOT / "docs" / "guides" / "several-devices.md").read_text()
    blocks = re.findall(r"^```py\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    of_one_process = [code for code in blocks if "layout = " in code and "initialize" not in code]
    assert len(of_one_process) == 2
    names = {}
    try:
        for code in of_one_process:
            exec(code, names)
    finally:
        keras.distribution.set_distribution(None)
    lines = re.search(r"```text\nweight.*?\n(.*?)```", text, re.DOTALL)[1].splitlines()
    report = [line.split() for line in str(names["report"]).splitlines()]
    assert len(lines) > 3 and not [line for line in lines if line.split() not in report]


if __name__ == "__main__":
    assert len(keras.distribution.list_devices()) == 8
    assert pathlib.Path(ka.__file__).parent.parent == ROOT
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            print(name, file=sys.stderr, flush=True)
            check()
