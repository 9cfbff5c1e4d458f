"""Images of another size than in a checkpoint: positions are resized as in the original."""

import json
import shutil

import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention.pretrained.resized_positions import interpolation_weights, resize_table
from tests.pretrained.make_checkpoints import FOLDER, RESIZED
from tests.pretrained.make_foreign_checkpoints import FOLDER as FOREIGN
from tests.pretrained.make_foreign_checkpoints import TIMM_RESIZED
from tests.pretrained.test_parity import options_of


def read_resized(folder):
    with np.load(folder / "resized.npz") as file:
        return file["images"], file["expected"]


@pytest.mark.parametrize("name", RESIZED)
def test_outputs_equal_the_originals(name):
    images, expected = read_resized(FOLDER / name)
    model = ka.pretrained.load(FOLDER / name, image_size=RESIZED[name], **options_of(name))
    assert model.input_shape == (None, *RESIZED[name], 3)
    actual = ops.convert_to_numpy(model(images))
    np.testing.assert_allclose(actual, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", TIMM_RESIZED)
def test_outputs_equal_those_of_timm(name):
    """Compare models with antialiasing, some of them with positions only for patches."""
    images, expected = read_resized(FOREIGN / name)
    model = ka.pretrained.load(FOREIGN / name, image_size=TIMM_RESIZED[name])
    actual = ops.convert_to_numpy(model(images))
    np.testing.assert_allclose(actual, expected, atol=1e-5, rtol=1e-5)


def test_the_original_image_size_changes_no_weights():
    plain = ka.pretrained.load(FOLDER / "dinov2")
    asked = ka.pretrained.load(FOLDER / "dinov2", image_size=12)
    for one, other in zip(plain.get_weights(), asked.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_describe_reports_the_resized_image_size():
    actual = ka.pretrained.describe(FOLDER / "dinov2-headless", image_size=(8, 16))
    assert actual.keywords["image_size"] == (8, 16)
    loaded = ka.pretrained.load(FOLDER / "dinov2-headless", image_size=(8, 16))
    assert actual.parameters == loaded.count_params()


def test_a_new_head_with_another_image_size():
    images, _ = read_resized(FOLDER / "dinov2-headless")
    options = {"task": "vision_transformer", "num_classes": 7, "image_size": 20}
    assert ka.pretrained.load(FOLDER / "dinov2-headless", **options)(images).shape == (2, 7)


@pytest.mark.parametrize("name", ["vit", "deit-distilled", "dinov2"])
def test_a_resized_model_is_saved_with_its_new_size(name, tmp_path):
    """Save the new `image_size` and the resized positions, as transformers expects."""
    images, expected = read_resized(FOLDER / name)
    model = ka.pretrained.load(FOLDER / name, image_size=RESIZED[name])
    ka.pretrained.save(model, tmp_path / "saved")
    image_size = json.loads((tmp_path / "saved" / "config.json").read_text())["image_size"]
    height, width = RESIZED[name]
    assert image_size == (height if height == width else [height, width])
    actual = ops.convert_to_numpy(ka.pretrained.load(tmp_path / "saved")(images))
    np.testing.assert_allclose(actual, expected, atol=1e-5, rtol=1e-5)


def test_resized_towers_are_not_saved(tmp_path):
    model = ka.pretrained.load(FOLDER / "clip", task="image_encoder", image_size=8)
    message = r"images of \(8, 8\) pixels, but .* is a clip for 12, which can only be saved"
    with pytest.raises(ValueError, match=message):
        ka.pretrained.save(model, tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


@pytest.mark.parametrize(
    "folder, options, message",
    [
        (FOLDER / "dinov2", {"image_size": 14}, r"\(4, 4\) pixels. .* such as \(16, 16\)"),
        (FOLDER / "dinov2", {"image_size": (12, 1)}, r"of the patch size, such as \(12, 4\)"),
        (FOLDER / "dinov2", {"image_size": 0}, "image_size=0"),
        (FOLDER / "dinov2", {"image_size": (8, 8, 3)}, "must be a whole number or"),
        (FOLDER / "bert", {"image_size": 8}, "image_size=8 is for images, but this is a text_enc"),
        (FOREIGN / "vit", {"image_size": 8}, r"is a preset of KerasHub.*expected \(12, 8\)"),
    ],
)
def test_unsuitable_image_sizes_are_refused(folder, options, message):
    with pytest.raises(ValueError, match=message):
        ka.pretrained.load(folder, **options)


def test_positions_of_another_grid_are_refused(tmp_path):
    shutil.copytree(FOLDER / "vit", tmp_path / "vit")
    config = json.loads((tmp_path / "vit" / "config.json").read_text()) | {"image_size": 16}
    (tmp_path / "vit" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ka.pretrained.CheckpointError, match="does not make patches/positions/tab"):
        ka.pretrained.load(tmp_path / "vit", image_size=8)


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("old, new", [(5, 3), (3, 7), (11, 2), (4, 4)])
def test_interpolation_weights_equal_the_definition(old, new, antialias):
    """Compute Keys's kernel from its two cubic pieces, for each pair of positions."""
    a, stretch = (-0.5, max(old / new, 1)) if antialias else (-0.75, 1)
    expected = np.zeros((new, old))
    for i in range(new):
        center = (i + 0.5) * old / new - 0.5
        for j in range(-20, old + 20):
            x = abs(j - center) / stretch
            near = (a + 2) * x**3 - (a + 3) * x**2 + 1
            far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
            weight = near if x <= 1 else far if x < 2 else 0
            if not antialias:
                expected[i, min(max(j, 0), old - 1)] += weight
            elif 0 <= j < old:
                expected[i, j] += weight
        expected[i] /= expected[i].sum()
    actual = interpolation_weights(old, new, antialias)
    np.testing.assert_allclose(actual, expected, atol=1e-12)
    if old == new:
        np.testing.assert_allclose(actual, np.eye(old), atol=1e-12)


def test_the_prefix_stays_and_axes_are_not_swapped():
    """Resize a ramp along each axis."""
    rows, columns = np.mgrid[:5, :7]
    patches = np.stack([rows, columns], axis=-1).reshape(-1, 2)
    table = np.concatenate([[[30.0, 40.0]], patches])[None]
    actual = resize_table(table, (5, 7), (10, 14), prefix=1)
    assert actual.shape == (1 + 140, 2) and actual.dtype == np.float32
    np.testing.assert_array_equal(actual[0], [30, 40])
    grid = actual[1:].reshape(10, 14, 2)
    np.testing.assert_allclose(grid[4, :, 0], np.full(14, grid[4, 0, 0]), atol=1e-5)
    np.testing.assert_allclose(grid[:, 6, 1], np.full(10, grid[0, 6, 1]), atol=1e-5)
    assert (np.diff(grid[3:7, 0, 0]) > 0).all() and (np.diff(grid[0, 3:11, 1]) > 0).all()
