"""Names in checkpoints of Orbax, and what is refused; that they are read is in tests/backends."""

import importlib.util
import types

import pytest

import keras_attention as ka
from keras_attention.distribution.orbax import _match


def match(saved, paths, name="sequential_2"):
    """{path in a checkpoint: path in a model} of variables with such paths."""
    variables = [types.SimpleNamespace(path=path) for path in paths]
    model = types.SimpleNamespace(name=name)
    found = _match(saved, variables, model, "folder")
    return {path: variable.path for path, variable in found.items()}


def test_the_same_names_are_the_same_variables():
    paths = ["a/kernel", "dense_1/kernel", "dense/kernel"]
    assert match(paths[::-1], paths) == {path: path for path in paths}


def test_numbers_that_a_process_gives_are_taken_in_order():
    saved = [f"block_{k}/dropout/seed_generator_{k + 9}/state" for k in (1, 0, 10, 2)]
    ours = [f"block_{k}/dropout/seed_generator_{k}/state" for k in (0, 1, 2, 10)]
    found = match(saved, ours)
    assert {a.split("/")[0]: b.split("/")[0] for a, b in found.items()} == {
        f"block_{k}": f"block_{k}" for k in (0, 1, 2, 10)
    }


def test_the_name_of_the_model_may_be_in_front():
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
    message = rf"folder has {len(saved)} variables and the model 2, among them {other}: expected"
    with pytest.raises(ValueError, match=message):
        match(saved, ["a/kernel", "a/bias"], "model")


@pytest.mark.skipif(importlib.util.find_spec("orbax") is not None, reason="Orbax is there")
def test_without_orbax_the_error_says_how_to_install_it(tmp_path):
    with pytest.raises(ImportError, match=r"OrbaxBackup needs Orbax.*keras-attention-zoo\[jax\]"):
        ka.distribution.OrbaxBackup(tmp_path)
