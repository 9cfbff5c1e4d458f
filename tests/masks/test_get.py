import keras
import pytest

from keras_attention import masks
from tests.masks import examples
from tests.tables import assert_lists

EXAMPLES = [
    *examples.EXAMPLES,
    masks.Window2D((2, 1), (3, 4), prefix=1),
    masks.Blockwise(masks.Causal() & masks.Window(2), 4),
    masks.Longformer(4, (0, 3)),
    masks.BigBird(40, 4),
]


def test_there_is_an_example_of_every_mask():
    table = "EXAMPLES of tests/masks/examples.py"
    assert_lists(table, map(type, examples.EXAMPLES), masks.NAMES.values())


@pytest.mark.parametrize("mask", EXAMPLES, ids=str)
def test_get_by_object_and_config(mask):
    assert masks.get(mask) is mask
    assert masks.get(keras.saving.serialize_keras_object(mask)) == mask
    assert masks.get({"class_name": type(mask).__name__, "config": mask.get_config()}) == mask


@pytest.mark.parametrize("name", ["full", "causal", "Full", "Causal"])
def test_get_by_name(name):
    assert masks.get(name) == {"full": masks.Full(), "causal": masks.Causal()}[name.lower()]


def test_get_none():
    assert masks.get(None) is None


@pytest.mark.parametrize("name", sorted(set(masks.NAMES) - {"full", "causal"}))
def test_a_name_of_a_mask_with_arguments_is_an_error(name):
    with pytest.raises(ValueError, match=f"{masks.NAMES[name].__name__} needs .*pass"):
        masks.get(name)


@pytest.mark.parametrize("bad", ["casual", {"class_name": "Casual", "config": {}}])
def test_an_unknown_name_lists_the_names(bad):
    with pytest.raises(ValueError, match=f"(?i)'casual'.*Known: {', '.join(masks.NAMES)}"):
        masks.get(bad)


def test_an_unknown_key_lists_the_arguments():
    with pytest.raises(ValueError, match="Window has no argument width. It takes: size"):
        masks.get({"class_name": "Window", "config": {"width": 3}})


@pytest.mark.parametrize("bad", [3, True, [masks.Causal()], masks.Causal, object()])
def test_other_types_are_an_error(bad):
    with pytest.raises(ValueError, match="is not a mask"):
        masks.get(bad)
