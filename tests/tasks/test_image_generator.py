"""`ImageGenerator`, with every format, and the commands on a small run."""

import json
import math

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.cli.show import show
from tests.small_runs import train

SIZE = dict(num_layers=1, num_heads=2, hidden_dim=16, dropout=0.0, window=3)
FAST = dict(epochs=12, batch_size=8, learning_rate=0.02, jit_compile=False, verbose=False)
PATTERNS = {"left": [[3, 0, 0]] * 2, "right": [[0, 0, 3]] * 2, "top": [[2] * 3, [0] * 3]}


def make_images(count=20, channels=1):
    """Make pictures (2, 3, C) of three classes, with one pattern each."""
    pixels = [PATTERNS[name] for name in PATTERNS for _ in range(count)]
    pixels = np.repeat((np.array(pixels) * 85).astype("uint8")[..., None], channels, axis=3)
    numbers = np.repeat(np.arange(3), count)
    whole = (pixels, numbers)
    return ka.data.ImageSplit.collect(train=whole, dev=whole, test=whole, labels=list(PATTERNS))


IMAGES = make_images()


@pytest.fixture(scope="module")
def generator():
    task = ka.tasks.ImageGenerator.from_data(IMAGES, num_levels=4, **SIZE)
    task.fit(IMAGES, **FAST)
    return task


@pytest.mark.slow
def test_drawn_pictures_show_the_requested_classes(generator):
    results = generator.predict(["right", "left", "top", "left"], temperature=0)
    assert [picture.label for picture in results] == ["right", "left", "top", "left"]
    for picture in results:
        assert picture.pixels == [[85 * level for level in row] for row in PATTERNS[picture.label]]
    drawn = generator.draw(["top"] * 300, seed=1)
    assert drawn.shape == (300, 2, 3, 1) and drawn.dtype == "uint8"
    np.testing.assert_array_equal(drawn, generator.draw(["top"] * 300, seed=1))
    assert (drawn[..., 0] == np.array(PATTERNS["top"]) * 85).mean() > 0.9
    assert generator.draw([]).shape == (0, 2, 3, 1)


def test_bits_equal_the_definition(generator):
    """Compare with the definition: the mean of -log2 p of every level after the class."""
    ids = generator.preprocessor(IMAGES.test.pixels, IMAGES.test.labels)
    logits = np.asarray(generator.model(ids[:, :-1]), "float64")
    shares = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    bits = [-math.log2(shares[n, k, ids[n, k + 1]]) for n in range(len(ids)) for k in range(6)]
    scores = generator.evaluate(IMAGES)
    assert scores["bits_per_dimension"] == pytest.approx(np.mean(bits), rel=1e-3, abs=1e-4)
    assert scores["bits_per_dimension"] < 0.2  # an even guess of 4 levels has 2
    # The metric that chooses the epoch is the same number as a perplexity.
    batches = generator.make_batches(IMAGES.test, "x")
    (metric,) = [make() for make in generator.make_metrics()]
    for inputs, labels in batches:
        metric.update_state(labels, generator.model(inputs))
    assert math.log2(float(metric.result())) == pytest.approx(np.mean(bits), abs=1e-3)


def test_pixel_attends_only_to_pixels_near_it():
    """Check that only the class and pixels within the window change a pixel."""
    images = ka.data.ImageSplit.collect(
        train=(np.zeros((2, 5, 6, 1), "uint8"), [0, 1]), labels=["a", "b"], dev_fraction=0
    )
    task = ka.tasks.ImageGenerator.from_data(images, num_levels=4, **SIZE | {"window": 2})
    ids = task.preprocessor(images.train.pixels[:1], [0])
    before = np.asarray(task.model(ids))[0]
    row, column = 3, 3
    query = 1 + row * 6 + column  # the position of the pixel, whose logits predict the next one
    for k in range(ids.shape[1]):
        other = ids.copy()
        other[0, k] = 5 if k == 0 else 3
        changed = np.abs(np.asarray(task.model(other))[0, query] - before[query]).max() > 1e-6
        r, c = divmod(k - 1, 6)
        near = abs(r - row) < 2 and abs(c - column) < 2 and k <= query
        assert changed == (k == 0 or near), k


@pytest.mark.slow
def test_colour_pictures_have_three_channels(tmp_path):
    images = make_images(8, channels=3)
    task = ka.tasks.ImageGenerator.from_data(images, num_levels=4, **SIZE)
    assert task.preprocessor.count == 18 and task.preprocessor.grid == (2, 9)
    task.fit(images, **FAST)
    (left,) = task.predict(["left"], temperature=0)
    assert left.pixels[0] == [[255] * 3, [0] * 3, [0] * 3]
    task.attention("left", path=tmp_path / "x.png")


@pytest.mark.slow
def test_show_prints_answers(generator, capsys, tmp_path):
    show(generator, ["left", "right"], {"temperature": 0})
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["left:", "██", "██", "", "right:", "    ██", "    ██"]
    assert generator.draw_examples(IMAGES, tmp_path) == ["samples.png", "attention.png"]
    for name in ("samples.png", "attention.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    maps = generator.attention("left", pixel=(1, 1))
    (weights,) = maps.weights.values()
    assert weights.shape[2:] == (7, 7)


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ("left", {}, "'left' is one class: pass a list"),
        ([3], {}, "'3' is not a class of the model"),
        (["up"], {}, "'up' is not a class of the model: expected one of left, right, top"),
        (["left"], {"temperature": 0, "top_k": 3}, "top_k=3 is for sampling levels"),
    ],
)
def test_predict_refuses_unknown_classes_and_invalid_options(generator, labels, options, message):
    with pytest.raises(ValueError, match=message):
        generator.predict(labels, **options)


def test_other_classes_and_sizes_are_refused(generator):
    other_images = ka.data.ImageSplit.collect(train=IMAGES.train, labels=["a", "b", "c"])
    with pytest.raises(ValueError, match="The classes of these images are a, b, c, and the mod"):
        generator.fit(other_images, epochs=1, verbose=False)
    with pytest.raises(ValueError, match=r"The images are \(2, 3, 3\), and this model takes"):
        generator.fit(make_images(2, channels=3), epochs=1, verbose=False)
    with pytest.raises(ValueError, match=r"ImageGenerator\(temperature=0\): expected a number ab"):
        type(generator)(generator.model, generator.preprocessor, temperature=0)


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("quantization", [None, "int8_weights"])
def test_files_draw_the_same_pictures(generator, quantization, tmp_path):
    """Check built-in ops, the same pictures with the same seed, and the signature `generate`."""
    generator.save_to_preset(tmp_path / "preset")
    path = tmp_path / "preset" / "model.tflite"
    report = generator.export(path, quantization=quantization)
    assert not any(op.startswith("Flex") for op in report.ops)
    file = ka.tasks.from_preset(tmp_path / "preset", "litert")
    asked = list(PATTERNS) * 4
    best = generator.draw(asked, temperature=0)
    np.testing.assert_array_equal(file.draw(asked, temperature=0), best)
    bits = file.evaluate(IMAGES)["bits_per_dimension"]
    assert bits == pytest.approx(generator.evaluate(IMAGES)["bits_per_dimension"], abs=0.02)
    drawn = file.draw(asked, seed=5) == generator.draw(asked, seed=5)
    assert drawn.all() if quantization is None else drawn.mean() > 0.9
    generate = ka.export.load(path, "generate")
    prompts = generator.preprocessor.class_ids([0, 1, 2])
    inputs = {"token_ids": prompts, "uniform": np.full((3, 6), 0.5), "start": np.zeros(3)}
    inputs = {name: inputs[name].astype(dtype) for name, dtype in generate.inputs.items()}
    pictures = generator.preprocessor.pictures(generate(inputs)["generated_ids"])
    np.testing.assert_array_equal(pictures, best[:3])


@pytest.mark.slow
@pytest.mark.tensorflow
def test_a_file_never_draws_a_class(tmp_path):
    """Check an untrained model, whose last ids are classes."""
    new = ka.tasks.ImageGenerator.from_data(IMAGES, num_levels=4, num_layers=1, hidden_dim=16)
    new.export(tmp_path / "model.tflite")
    generate = ka.export.load(tmp_path / "model.tflite", "generate")
    inputs = {"token_ids": [[4]], "start": [0], "uniform": np.full((1, 6), 0.999)}
    inputs = {name: np.array(inputs[name], dtype) for name, dtype in generate.inputs.items()}
    assert (generate(inputs)["generated_ids"] == 3).all()


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    """Train a small generator on class folders with `train`, and return its folder."""
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path_factory.mktemp("pictures")
    for part in ("train", "dev", "test"):
        for name, rows in PATTERNS.items():
            (folder / part / name).mkdir(parents=True)
            pixels = (np.array([*rows, rows[-1]]) * 85).astype("uint8")
            for k in range(16):
                image.fromarray(pixels).save(folder / part / name / f"{k}.png")
    words = ["image_generator", "--image-size", "3", "--epochs", "12", "--batch-size", "8"]
    for part in ("train", "dev", "test"):
        words += [f"--{part}", str(folder / part)]
    size = ["--num-layers", "1", "--num-heads", "2", "--hidden-dim", "16", "--dropout", "0"]
    train([*words, *size, "--learning-rate", "0.02"], folder / "preset")
    return folder / "preset"


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("kind", ["keras", "saved_model", "litert", "litert-int8"])
def test_every_format_draws_pictures(run, preset, kind):
    scores = json.loads((preset / "scores.json").read_text())
    assert scores["test"]["litert"]["bits_per_dimension"] < 0.3
    code, out, err = run("predict", preset, "left", "--with", kind, "--json", "--temperature", 0)
    assert (code, err) == (0, "")
    results = json.loads(out)["prediction"]
    assert results == {"label": "left", "pixels": [[255, 0, 0]] * 3}
    code, out, _ = run("predict", preset, "left", "--with", kind, "--seed", 3)
    assert code == 0 and out.startswith("left:\n")
    code, out, _ = run("evaluate", preset, "--file", preset.parent / "test", "--with", kind)
    assert code == 0 and "bits_per_dimension" in out
