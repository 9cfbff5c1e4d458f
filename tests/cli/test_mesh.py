"""Checks of `--mesh`."""

import re

import keras
import pytest

from keras_attention.cli import main
from keras_attention.cli.mesh import check_batch_size, read_mesh
from keras_attention.tasks import recipes

TRAIN = ("train", "vision_transformer", "--dataset", "digits")


def test_read_mesh_returns_the_sizes_of_axes():
    assert read_mesh(None) is None
    assert read_mesh("data=4,model=2") == {"data": 4, "model": 2}
    assert read_mesh("model=8") == {"model": 8}


@pytest.mark.parametrize(
    "value",
    ["", "8", "data", "data=", "data=x", "data=0", "data=-2", "data=2,data=4", "rows=2", "data=2,"],
)
def test_read_mesh_refuses_malformed_values(value):
    with pytest.raises(ValueError, match=rf"--mesh {re.escape(value)}: .*Expected data=N.*data=4,"):
        read_mesh(value)


def test_batch_size_must_be_a_multiple_of_the_devices():
    check_batch_size(8, {"data": 4})
    check_batch_size(7, {"model": 4})
    check_batch_size(7, None)
    with pytest.raises(ValueError, match="--batch-size 7 is not a multiple of data=4.* such as 4"):
        check_batch_size(7, {"data": 4})
    with pytest.raises(ValueError, match="such as 4"):
        check_batch_size(3, {"data": 4})


def test_default_batch_size_is_a_multiple_of_the_devices():
    recipe = recipes.choose_recipe("sequence_labeler")  # instead of 32
    for count, multiple, expected in [(9999, 1, 32), (9999, 3, 30), (640, 8, 16), (3, 16, 16)]:
        assert recipes.shrink_batches(recipe, count, multiple).batch_size == expected
    windows = recipes.choose_recipe("causal_language_model")  # instead of 16
    assert recipes.shrink_batches(windows, 3, 3).batch_size == 15


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--mesh", "data=2"), "needs JAX.* Keras runs on tensorflow: export KERAS_BACKEND=jax"),
        (("--mesh", "data:2"), "'data:2' is not an axis of a mesh"),
        (("--fully-sharded",), "--fully-sharded is for --mesh"),
        (("--mesh", "data=4", "--batch-size", "6"), "--batch-size 6 is not a multiple of data=4"),
    ],
)
def test_mesh_errors_are_one_sentence(tmp_path, capsys, options, message):
    assert keras.backend.backend() == "tensorflow"
    with pytest.raises(SystemExit) as stopped:
        main([*TRAIN, "--output", str(tmp_path / "new"), *options])
    error = capsys.readouterr().err.strip()
    assert stopped.value.code == 2 and "\n" not in error and re.search(message, error), error
    assert not (tmp_path / "new").exists()
