"""Names in Orbax checkpoints. tests/backends reads such checkpoints."""

import importlib.util
import types

import pytest

import keras_attention as ka
from keras_attention.distribution.orbax import _match


def match(saved, paths, name="sequential_2"):
    """Match paths in a checkpoint with paths in a model."""
    variables = [types.SimpleNamespace(path=path) for path in paths]
    model = types.SimpleNamespace(name=name)
    actual = _match(saved, variables, model, "folder")
    return {path: variable.path for path, variable in actual.items()}


def test_equal_paths_are_matched():
    paths = ["a/kernel", "dense_1/kernel", "dense/kernel"]
    assert match(paths[::-1], paths) == {path: path for path in paths}


def test_numbered_paths_are_matched_in_order():
    saved = [f"block_{k}/dropout/seed_generator_{k + 9}/state" for k in (1, 0, 10, 2)]
    ours = [f"block_{k}/dropout/seed_generator_{k}/state" for k in (0, 1, 2, 10)]
    actual = match(saved, ours)
    assert {a.split("/")[0]: b.split("/")[0] for a, b in actual.items()} == {
        f"block_{k}": f"block_{k}" for k in (0, 1, 2, 10)
    }


def test_the_model_name_in_front_is_ignored():
    saved = [
        "sequential/dense/bias",
        "sequential/dense_1/bias",
        "adam/sequential_dense_1_bias_momentum",
    ]
    ours = ["dense_3/bias", "dense_4/bias", "adam/dense_4_bias_momentum"]
    assert match(saved, ours) == dict(zip(saved, ours, strict=True))


@pytest.mark.parametrize(
    ("saved", "other"),
    [
        (["a/kernel"], "a/bias"),
        (["a/kernel", "a/bias", "a/gamma"], "a/gamma"),
        (["b/kernel", "a/bias"], "a/kernel"),
    ],
)
def test_other_variables_are_refused(saved, other):
    message = rf"folder has {len(saved)} variables, but the model has 2. They differ in {other}. "
    with pytest.raises(ValueError, match=message):
        match(saved, ["a/kernel", "a/bias"], "model")


@pytest.mark.skipif(importlib.util.find_spec("orbax") is not None, reason="Orbax is there")
def test_the_error_without_orbax_says_how_to_install_it(tmp_path):
    with pytest.raises(ImportError, match=r"OrbaxBackup needs Orbax.*keras-attention-zoo\[jax\]"):
        ka.distribution.OrbaxBackup(tmp_path)
