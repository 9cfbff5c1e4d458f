"""Names of positions in image models, on the grid of patches and others."""

import numpy as np
import pytest

import keras_attention as ka

SIZE = dict(num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=24, patch_size=2)
STEM = ka.models.ImageEmbedding(stem_filters=(4,), num_registers=2)  # (8, 12): 2 x 3 patches
ON_GRID = {
    "rotary_2d": ka.positions.Rotary(max_wavelength=100, grid=(2, 3), prefix=3),
    "sinusoidal_2d": ka.positions.Sinusoidal2D(grid=(2, 3), prefix=3),
    "learned_2d": ka.positions.Learned2D(grid=(2, 3), prefix=3),
    "swin_bias": ka.positions.SwinBias(grid=(2, 3), prefix=3),
    "continuous_bias": ka.positions.ContinuousBias(grid=(2, 3), prefix=3),
}
random = np.random.default_rng(0)


def build(**kwargs):
    return ka.models.image_encoder((8, 12), embedding=STEM, **SIZE, **kwargs)


def randomize(*models):
    """Give all models the same weights."""
    for weights in zip(*(model.weights for model in models), strict=True):
        values = random.normal(size=weights[0].shape, scale=0.3)
        for weight in weights:
            weight.assign(np.abs(values) if "variance" in weight.path else values)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ON_GRID))
def test_a_name_means_a_position_on_the_grid(name):
    named, made = build(position=name), build(position=ON_GRID[name])
    randomize(named, made)
    images = random.random((2, 8, 12, 3)).astype("float32")
    np.testing.assert_array_equal(named(images), made(images))


def test_lists_may_contain_names_of_grid_positions():
    named = build(position=["sinusoidal_2d", "swin_bias"])
    made = build(position=[ON_GRID["sinusoidal_2d"], ON_GRID["swin_bias"]])
    randomize(named, made)
    images = random.random((2, 8, 12, 3)).astype("float32")
    np.testing.assert_array_equal(named(images), made(images))


def test_other_names_mean_positions_of_tokens():
    line = build(position="rotary"), build(position=ka.positions.Rotary())
    randomize(*line)
    images = random.random((2, 8, 12, 3)).astype("float32")
    np.testing.assert_array_equal(line[0](images), line[1](images))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"position": "rotary_3d"}, "position='rotary_3d': expected one of rotary_2d"),
        ({"position": "rotary_2d", "hidden_dim": 12}, "a multiple of 4"),
        (
            {"position": ["sinusoidal_2d", "rotary_2d"], "hidden_dim": 12},
            "a multiple of 4",
        ),
        ({"position": "rotary_2d", "patch_size": 16}, "patch_size=.16, 16. does not divide"),
    ],
)
def test_image_encoder_refuses_positions_that_do_not_fit(settings, message):
    with pytest.raises(ValueError, match=message):
        ka.models.image_encoder((8, 12), **SIZE | settings)


def test_detectors_and_captioners_take_grid_positions():
    models = (
        ka.models.object_detector((8, 12), 3, position="rotary_2d", **SIZE),
        ka.models.image_to_sequence((8, 12), 9, position="rotary_2d", **SIZE),
    )
    rotary = ka.positions.Rotary(max_wavelength=100, grid=(4, 6))
    for model in models:
        layers = list(model._flatten_layers())
        assert sum(getattr(layer, "position", None) == rotary for layer in layers) == 2
