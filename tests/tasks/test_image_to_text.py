"""`ImageToText`: captions, objects as text, files, and (slow) all commands on a small run."""

import json
import zipfile

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.cli import main

TINY = dict(
    embedding={"stem_filters": (8, 8)},
    patch_size=2,
    num_layers=1,
    num_decoder_layers=1,
    num_heads=2,
)
TINY |= dict(hidden_dim=32, intermediate_dim=64, dropout=0.0)
COLOURS = {"red": (230, 30, 30), "green": (20, 200, 20), "blue": (40, 60, 220)}


def draw(count, seed):
    """Make pictures of a rectangle on the left or on the right."""
    random, examples = np.random.default_rng(seed), []
    for _ in range(count):
        image = np.full((16, 24, 3), 240, "uint8")
        name, side = random.choice(list(COLOURS)), int(random.integers(2))
        x, y = int(random.integers(2)) + 12 * side, int(random.integers(6))
        image[y : y + 8, x : x + 9] = COLOURS[name]
        text = f"something {name} on the {('left', 'right')[side]}"
        examples.append((image, text, ka.data.BoxedImage(image, [(x, y, x + 9, y + 8)], [name])))
    return examples


@pytest.fixture(scope="module")
def new():
    pairs = [(image, text) for image, text, _ in draw(24, 0)]
    return ka.tasks.ImageToText.from_data(pairs, image_size=(16, 24), **TINY), pairs


@pytest.mark.sweep
def test_model_overfits_two_captions_of_coco(data_root, tmp_path):
    with zipfile.ZipFile(data_root / "detection-tiny-coco" / "tiny_coco.zip") as archive:
        archive.extractall(tmp_path)
    names = {part: f"captions_{part}2017.json" for part in ("train", "val")}
    train, test = (tmp_path / "annotations" / name for name in names.values())
    read = ka.data.from_captions(train=train, test=test, dev_fraction=0)
    assert [len(part) for part in (read.train, read.test)] == [13, 20]
    first = [(one.image, one.texts[0]) for one in read.train]
    task = ka.tasks.ImageToText.from_data(first, image_size=32, **TINY, score="exact_match", beam=1)
    options = dict(epochs=20, batch_size=13, learning_rate=5e-3, verbose=False)
    task.fit(first * 10, validation_data=first, **options)
    assert task.evaluate(first)["exact_match"] > 0.9
    assert all(task.predict([one.image for one in read.test]))


@pytest.mark.slow
def test_exported_files_have_the_scores_of_the_model(new, tmp_path):
    task, pairs = new
    scores = task.evaluate(pairs[:4])
    assert set(scores) == {"bleu", "bleu_lowercase"}
    several = ka.data.CaptionedImage(
        pairs[0][0], (task.predict([pairs[0][0]])[0] or "x", "a b c d")
    )
    assert task.writing.max_new_tokens == 6 and task.preprocessor.image_size == (16, 24)
    task.save_to_preset(tmp_path / "captioner")
    again = ka.tasks.from_preset(tmp_path / "captioner")
    assert again.settings == task.settings and again.score == "bleu"
    images = [image for image, _ in pairs[:3]]
    assert again.predict(images) == task.predict(images) == task.predict(images, beam=3)
    assert again.evaluate([several]).keys() == scores.keys()
    maps = task.attention(images[0], tmp_path / "attention.png")
    assert (tmp_path / "attention.png").exists() and len(maps.queries) <= 7
    with pytest.raises(ValueError, match="also rounds a decoder's cache"):
        task.export(tmp_path / "m.tflite", quantization="int8", calibration=pairs[:2])


@pytest.mark.slow
def test_objects_are_scored_as_boxes(tmp_path):
    boxes = ka.data.BoxedImage.collect([one for *_, one in draw(12, 0)], dev_fraction=0)
    data = ka.data.caption_objects(boxes, bins=25)
    task = ka.tasks.ImageToText.from_data(data, image_size=(16, 24), **TINY)
    assert task.score == "map" and task.labels == ("blue", "green", "red") and task.bins == 25
    assert "<24>" in task.preprocessor.target.entries and len(task.preprocessor.target) == 4 + 28
    scores = task.evaluate(data.train)
    assert set(scores) == {"map", "map50", "map75"} and 0 <= scores["map"] < 0.5
    right = {example.image.tobytes(): example.texts[0] for example in data.train}
    task.predict = lambda images: [right[image.tobytes()] for image in images]
    assert task.evaluate(data.train)["map50"] == 1.0  # the task has another number of positions
    task.save_to_preset(tmp_path / "finder")
    assert ka.tasks.from_preset(tmp_path / "finder").bins == 25
    coarse = ka.data.caption_objects(boxes, bins=10)
    with pytest.raises(
        ValueError, match="10 positions along a side, and this model has 25.*bins=25"
    ):
        task.fit(coarse, epochs=1)
    renamed = [one._replace(labels=("cell",)) for one in boxes.train]
    renamed = ka.data.caption_objects(ka.data.BoxedImage.collect(renamed))
    with pytest.raises(
        ValueError, match="The classes are cell, and this model writes blue, green, red"
    ):
        task.fit(renamed, epochs=1)


def test_image_to_text_refuses_wrong_scores_and_long_texts(new):
    task, pairs = new
    with pytest.raises(ValueError, match="expected labels, the class names of the objects"):
        ka.tasks.ImageToText(task.model, task.preprocessor, score="map")
    with pytest.raises(ValueError, match="score='rouge'.*expected one of bleu, exact_match, map"):
        ka.tasks.ImageToText(task.model, task.preprocessor, score="rouge")
    unknown = ka.data.CaptionedImage.collect([(pairs[0][0], "nothing red")], dev_fraction=0)
    assert task.describe_data(unknown) == (
        "1 of the 2 words in the captions are unknown to the model",
    )
    short = ka.tasks.ImageToText(
        task.model, task.preprocessor, writing=ka.tasks.Writing(max_new_tokens=3)
    )
    with pytest.raises(ValueError, match="Every text to train on has more than 3 tokens"):
        short.fit(pairs, epochs=1, verbose=False)


@pytest.mark.slow
def test_train_command_learns_captions():
    train, test = ([(image, text) for image, text, _ in draw(n, s)] for n, s in ((300, 0), (40, 1)))
    task = ka.tasks.ImageToText.from_data(train, image_size=(16, 24), score="exact_match", **TINY)
    task.fit(train, epochs=12, batch_size=16, learning_rate=5e-3, verbose=False)
    assert task.evaluate(test)["exact_match"] > 0.95


@pytest.mark.sweep
def test_every_file_finds_objects(tmp_path, capsys):
    """Train on COCO's boxes as texts with the command, and check every export."""
    for part, count, seed in (("train", 300, 0), ("dev", 20, 1), ("test", 30, 2)):
        (tmp_path / part).mkdir()
        content = {"images": [], "annotations": [], "categories": []}
        content["categories"] = [{"id": k, "name": name} for k, name in enumerate(COLOURS)]
        for k, (image, _, example) in enumerate(draw(count, seed)):
            keras.utils.save_img(tmp_path / part / f"{k}.png", image, scale=False)
            name = {"id": k, "file_name": f"{k}.png", "width": 24, "height": 16}
            x0, y0, x1, y1 = map(int, example.boxes[0])
            category = list(COLOURS).index(example.labels[0])
            box = {"id": k, "image_id": k, "category_id": category}
            content["images"].append(name)
            content["annotations"].append(box | {"bbox": [x0, y0, x1 - x0, y1 - y0]})
        (tmp_path / part / "annotations.json").write_text(json.dumps(content))
    files = [x for part in ("train", "dev", "test") for x in (f"--{part}", str(tmp_path / part))]
    options = ["--image-size", "48", "--epochs", "25", "--learning-rate", "0.003", "--beam", "1"]
    sizes = ["--num-layers", "1", "--num-heads", "2", "--hidden-dim", "48", "--dropout", "0"]
    folder = tmp_path / "finder"
    with pytest.raises(SystemExit) as stop:
        main(["train", "image_to_sequence", *files, "--output", str(folder), *options, *sizes])
    assert stop.value.code == 0
    scores = json.loads((folder / "scores.json").read_text())["test"]
    assert scores["keras"]["map50"] > 0.8 and scores["litert"] == scores["keras"]
    assert scores["litert-int8"]["map50"] > scores["keras"]["map50"] - 0.02
    picture = tmp_path / "test" / "0.png"
    for kind in ("keras", "saved_model", "litert"):
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main(["predict", str(folder), str(picture), "--with", kind])
        assert stop.value.code == 0 and "<" in capsys.readouterr().out
