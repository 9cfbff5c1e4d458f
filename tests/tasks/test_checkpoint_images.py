"""Checkpoints of images as tasks: pixels, labels, new heads, and a file for the phone."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.grids import quick
from tests.tasks.checkpoint_files import make_pictures

pytestmark = pytest.mark.tensorflow
MEAN, STD = np.array([0.5, 0.4, 0.3]), np.array([0.2, 0.25, 0.5])
CROPPED = {
    "size": {"shortest_edge": 16},
    "crop_size": {"height": 12, "width": 12},
    "do_center_crop": True,
    "resample": 3,
    "image_processor_type": "BitImageProcessor",
}


def draw_pictures(folder, count=12):
    """Write class folders of striped pictures of several sizes."""
    random = np.random.default_rng(0)
    for name in ("lying", "standing"):
        (folder / name).mkdir(parents=True)
        for k in range(count):
            height, width = random.integers(20, 40, 2)
            rows, columns = np.mgrid[:height, :width]
            place = rows / height if name == "lying" else columns / width
            bright = np.sin(18 * place + random.uniform(0, 6))[..., None]
            picture = 128 + 90 * bright + random.normal(0, 8, (height, width, 3))
            path = folder / name / f"{k}.png"
            keras.utils.save_img(path, np.clip(picture, 0, 255), scale=False)
    return folder


@pytest.mark.parametrize(
    "name", quick(["vit", "deit", "deit-distilled", "dinov2"], "deit-distilled")
)
def test_the_model_normalizes_pixels_from_0_to_1(name, tmp_path):
    names = {str(k): f"name {k}" for k in range(5)}
    folder = make_pictures(name, tmp_path / name, id2label=names)
    task = ka.tasks.from_preset(folder)
    assert type(task) is ka.tasks.ImageClassifier
    pixels = np.random.default_rng(0).random((2, 12, 12, 3)).astype("float32")
    expected = np.asarray(ka.pretrained.load(folder)(((pixels - MEAN) / STD).astype("float32")))
    np.testing.assert_allclose(task.model(pixels), expected, atol=2e-5)
    results = task.predict(pixels)
    assert [one.label for one in results] == [names[str(k)] for k in expected.argmax(-1)]
    assert task.settings["pixels"] == "float32 from 0 to 1, row 0 on top"
    ka.pretrained.save(
        task.model, tmp_path / "saved"
    )  # its pixels are normalized outside of the model
    again = ka.pretrained.load(tmp_path / "saved")
    np.testing.assert_allclose(
        again(((pixels - MEAN) / STD).astype("float32")), expected, atol=2e-5
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vit", "dinov2"])
def test_positions_are_resized_to_the_picture_size(name, tmp_path):
    """Check a size as of DINOv2, which was trained on 518 pixels and crops to 224."""
    settings = CROPPED | {"crop_size": {"height": 8, "width": 16}}
    folder = make_pictures(name, tmp_path / name, processing=settings)
    task = ka.tasks.from_preset(folder)
    assert task.preprocessor.image_size == (8, 16)
    pixels = np.random.default_rng(0).random((2, 8, 16, 3)).astype("float32")
    normalized = ((pixels - MEAN) / STD).astype("float32")
    expected = np.asarray(ka.pretrained.load(folder, image_size=(8, 16))(normalized))
    np.testing.assert_allclose(task.model(pixels), expected, atol=2e-5)
    ka.pretrained.save(task.model, tmp_path / "saved")
    again = ka.tasks.from_preset(tmp_path / "saved")
    assert again.predict(pixels) == task.predict(pixels)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "vit-headless",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("dinov2-headless", "clip")),
    ],
)
def test_checkpoint_without_a_head_gets_a_new_one(name, tmp_path):
    folder = make_pictures(name, tmp_path / name)
    if name != "clip":  # without a class, CLIP opens as an `ImageTextMatcher`
        with pytest.raises(ValueError, match="no head that classifies images. Open it with ka."):
            ka.tasks.from_preset(folder)
    task = ka.tasks.ImageClassifier.from_preset(folder)
    light, dark = np.full((12, 12, 12, 3), 220, "uint8"), np.full((12, 12, 12, 3), 30, "uint8")
    pixels, numbers = np.concatenate([light, dark]), np.repeat([0, 1], 12)
    images = ka.data.ImageSplit.collect(train=(pixels, numbers), labels=["day", "night"])
    options = {"lora_rank": 2} if name == "clip" else {"freeze": "all"}
    task.fit(images, epochs=8, batch_size=4, learning_rate=0.05, verbose=False, **options)
    assert [one.label for one in task.predict([light[0], dark[0]])] == ["day", "night"]
    assert all(layer.trainable for layer in task.model.layers)


@pytest.mark.slow
def test_pictures_are_fine_tuned_on_and_the_file_runs_as_in_an_app(tmp_path):
    """Follow docs/guides/pretrained-tasks.md with a tiny checkpoint and drawn pictures."""
    folder = make_pictures("vit", tmp_path / "vit", processing=CROPPED)
    task = ka.tasks.ImageClassifier.from_preset(folder)
    assert task.preprocessor.resizing == ka.data.Resizing("bicubic", 16)
    pictures = draw_pictures(tmp_path / "pictures")
    data = ka.data.from_image_folder(
        pictures,
        image_size=task.preprocessor.image_size,
        resizing=task.preprocessor.resizing,
        color_mode="rgb",
    )
    assert "by Resizing(interpolation='bicubic', size=16)" in data.notes[-1]
    task.fit(data, epochs=20, batch_size=8, learning_rate=0.01, layer_decay=0.9, verbose=False)
    assert task.evaluate(data.train)["accuracy"] > 0.9
    preset = tmp_path / "preset"
    task.save_to_preset(preset)
    paths = [pictures / name / "0.png" for name in ("lying", "standing")]
    expected = task.predict(paths)
    assert [one.label for one in expected] == ["lying", "standing"]
    for quantization in ("float16", "int8_weights"):
        task.export(preset / "model.tflite", quantization=quantization, batch_size=1)
        file = ka.tasks.from_preset(preset, "litert")
        assert file.preprocessor == task.preprocessor
        for results, one in zip(file.predict(paths), expected, strict=True):
            assert results.label == one.label
            assert results.probability == pytest.approx(one.probability, abs=0.05)
        run = ka.export.load(preset / "model.tflite")
        pixels = task.preprocessor(paths[:1])
        assert 0 <= pixels.min() and pixels.max() <= 1 and pixels.dtype == "float32"
        (logits,) = run({next(iter(run.inputs)): pixels}).values()
        assert task.preprocessor.labels.names[int(logits.argmax())] == "lying"
    again = ka.tasks.from_preset(preset, "keras")
    assert again.recipe.batch_size == 16 and again.pretrained
    assert again.predict(paths) == expected


def test_resizing_equals_pillow(tmp_path):
    image = pytest.importorskip("PIL.Image")
    path = draw_pictures(tmp_path / "pictures", count=1) / "lying" / "0.png"
    picture = image.open(path)
    for kind, name in ((2, "bilinear"), (3, "bicubic"), (1, "lanczos3")):
        width, height = picture.size
        short = min(width, height)
        size = (16 * width // short, 16 * height // short)
        small = np.asarray(picture.resize(size, kind), "float32") / 255
        top, left = (small.shape[0] - 12) // 2, (small.shape[1] - 12) // 2
        results = ka.data.read_image(path, 12, "rgb", ka.data.Resizing(name, 16))
        difference = np.abs(results - small[top : top + 12, left : left + 12])
        assert difference.max() < 2.5 / 255 and difference.mean() < 0.6 / 255


WRONG = {
    "a size that leaves the shape open": ({"size": {"shortest_edge": 12}}, "would differ in shape"),
    "no scale of pixels": ({"do_rescale": False}, "says do_rescale=False"),
    "another scale": ({"rescale_factor": 1 / 127.5}, "says rescale_factor=0.00784"),
    "an unknown filter": ({"resample": 9}, "resample is 9: expected one of 0, 1, 2, 3"),
    "an unknown key": (
        {"crop_pct": 0.9},
        "says crop_pct=0.9, a setting that the loader of a model of images",
    ),
    "an unknown key of a size": ({"size": {"longest_edge": 4}}, "size.height is not there"),
    "no mean": ({"image_mean": None}, "image_mean is null: expected numbers"),
    "two means": ({"image_mean": [0.5, 0.5]}, r"pixel_mean=\(0.5, 0.5\)\): expected 3 numbers"),
    "a crop that is larger": (CROPPED | {"size": {"shortest_edge": 8}}, "are smaller than 12 x 12"),
    "a crop without a size": ({"do_center_crop": True}, "with do_center_crop also crop_size"),
    "a size that patches do not tile": (
        {"size": {"height": 14, "width": 14}},
        r"image_size=\(14, 14\): .* into patches of \(4, 4\) pixels",
    ),
}


@pytest.mark.parametrize("settings", WRONG)
def test_unsupported_picture_settings_are_refused(settings, tmp_path):
    processing, message = WRONG[settings]
    folder = make_pictures("vit", tmp_path / "vit", processing=processing)
    with pytest.raises(ValueError, match=message):
        ka.tasks.ImageClassifier.from_preset(folder)


def test_missing_picture_settings_are_refused(tmp_path):
    folder = make_pictures("vit", tmp_path / "vit")
    (folder / "preprocessor_config.json").write_text("[]")
    with pytest.raises(ka.pretrained.CheckpointError, match="preprocessor_config.json is damaged"):
        ka.tasks.from_preset(folder)
    (folder / "preprocessor_config.json").unlink()
    with pytest.raises(ka.pretrained.CheckpointError, match="holds no preprocessor_config.json"):
        ka.tasks.from_preset(folder)


@pytest.mark.parametrize(
    "size, kind, expected",
    [
        (12, "ViTFeatureExtractor", ka.data.Resizing("bilinear")),
        (16, "DeiTFeatureExtractor", ka.data.Resizing("bilinear", (16, 16))),
        (16, "CLIPFeatureExtractor", ka.data.Resizing("bilinear", 16)),
    ],
)
def test_size_formats_of_older_files_are_read(size, kind, expected, tmp_path):
    """Check that a number is the side of a square, or the shorter side for CLIP."""
    crop = {"do_center_crop": True, "crop_size": 12} if size > 12 else {}
    settings = {"size": size, "feature_extractor_type": kind, "image_processor_type": None, **crop}
    folder = make_pictures("vit", tmp_path / "vit", processing=settings)
    assert ka.tasks.from_preset(folder).preprocessor.resizing == expected
