import keras
import numpy as np
import pytest

from keras_attention import positions
from keras_attention.core.part import Part
from tests.tables import assert_lists

EXAMPLES = [
    positions.Sinusoidal(),
    positions.Sinusoidal("concatenated", 50.5),
    positions.Learned(7, "ones", name="where"),
    positions.Scalar(False),
    positions.Scalar(length=9),
    positions.Rotary("interleaved", 500, 4),
    positions.ALiBi(True),
    positions.RelativeBias(8, 20, False, "zeros", dtype="mixed_bfloat16"),
    positions.Sinusoidal2D((2, 3), 1, "interleaved", 50),
    positions.Learned2D([2, 3], 1),
    positions.Rotary(scaling=positions.scalings.YaRN(4, 8), grid=(2, 3), prefix=1),
    positions.XPos("interleaved", middle=7),
    positions.LearnedALiBi(True),
    positions.Shaw(3, use_values=False, scale=0.5),
    positions.TransformerXL(6),
    positions.Disentangled(9, num_buckets=4),
    positions.SwinBias((2, 3), 1, max_distance=(1, 1)),
    positions.ContinuousBias((2, 3), hidden_dim=5, pretrained_grid=(4, 4)),
    positions.CombinedPositions([positions.Rotary(), positions.Learned(3)]),
]
ids = [type(position).__name__ for position in EXAMPLES]


def test_there_is_an_example_of_every_position():
    expected = [*positions.NAMES.values(), positions.CombinedPositions]
    assert_lists("EXAMPLES of tests/positions/test_get.py", map(type, EXAMPLES), expected)


@pytest.mark.parametrize("position", EXAMPLES, ids=ids)
def test_get_by_object_and_config(position):
    assert positions.get(position) is position
    again = positions.get(keras.saving.serialize_keras_object(position))
    assert type(again) is type(position) and again is not position
    assert again.get_config() == position.get_config()
    if isinstance(position, Part):
        assert again == position and hash(again) == hash(position)


@pytest.mark.parametrize("position", EXAMPLES[:-1], ids=ids[:-1])
def test_get_by_class_name_and_config(position):
    config = {"class_name": type(position).__name__, "config": position.get_config()}
    assert positions.get(config).get_config() == position.get_config()


@pytest.mark.parametrize("position", EXAMPLES, ids=ids)
def test_methods_of_other_roles_change_nothing(position):
    x, query = np.ones((2, 3, 4), "float32"), np.ones((2, 3, 5, 4), "float32")
    if isinstance(position, positions.CombinedPositions):
        return
    if isinstance(position, keras.layers.Layer):
        position.build(x.shape if "embed" in position.roles else query.shape)
    assert (position.embed(x) is not x) == ("embed" in position.roles)
    assert (position.rotate(query, np.arange(3)) is not query) == ("rotate" in position.roles)
    assert (position.rotate_key(query, np.arange(3)) is not query) == ("rotate" in position.roles)
    assert (position.bias(np.arange(3), np.arange(3), query, query) is not None) == (
        "bias" in position.roles
    )


NEEDING = {
    "learned": "max_length",
    **dict.fromkeys(["sinusoidal_2d", "learned_2d", "swin_bias", "continuous_bias"], "grid"),
}


@pytest.mark.parametrize("name", sorted(set(positions.NAMES) - set(NEEDING)))
def test_get_by_name(name):
    assert type(positions.get(name)) is positions.NAMES[name]
    assert type(positions.get(positions.NAMES[name].__name__)) is positions.NAMES[name]


@pytest.mark.parametrize("name", NEEDING)
def test_a_name_of_a_position_with_arguments_is_an_error(name):
    cls = positions.NAMES[name].__name__
    with pytest.raises(ValueError, match=f"{cls} needs {NEEDING[name]}, which a name does not"):
        positions.get(name)


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_list_is_combined(kind):
    rotary = positions.Rotary()
    combined = positions.get(kind([rotary, "relative_bias"]), dtype="mixed_bfloat16")
    assert isinstance(combined, positions.CombinedPositions)
    assert combined.parts[0] is rotary and type(combined.parts[1]) is positions.RelativeBias
    assert combined.dtype_policy.name == combined.parts[1].dtype_policy.name == "mixed_bfloat16"


def test_get_none():
    assert positions.get(None) is None


@pytest.mark.parametrize("bad", ["rotory", {"class_name": "rotory", "config": {}}, ["rotory"]])
def test_an_unknown_name_lists_the_names(bad):
    with pytest.raises(ValueError, match=f"'rotory'.*Known: {', '.join(positions.NAMES)}"):
        positions.get(bad)


@pytest.mark.parametrize(
    "name, takes",
    [
        ("Rotary", "layout, max_wavelength, rotary_dim, scaling, grid, prefix"),
        ("Learned", "max_length, initializer, name, trainable, dtype"),
        ("RelativeBias", "num_buckets, max_distance, bidirectional, initializer, name"),
    ],
)
def test_an_unknown_key_lists_the_arguments(name, takes):
    with pytest.raises(ValueError, match=f"{name} has no argument size. It takes: {takes}"):
        positions.get({"class_name": name, "config": {"size": 3}})


@pytest.mark.parametrize("bad", [3, True, positions.Rotary, object()])
def test_other_types_are_an_error(bad):
    with pytest.raises(ValueError, match="is not a position"):
        positions.get(bad)
    with pytest.raises(ValueError, match="is not a position|must be a list of positions"):
        positions.get([bad])


@pytest.mark.parametrize("bad", [[], [None]])
def test_an_empty_list_is_an_error(bad):
    with pytest.raises(ValueError, match="must be a list of positions"):
        positions.get(bad)
