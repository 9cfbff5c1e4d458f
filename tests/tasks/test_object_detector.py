"""`ObjectDetector`: training on squares, files of every format, and pictures."""

import json

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.tasks.pictures import fit_image_size
from tests.data.readers.detection_files import HEIGHT, LABELS, WIDTH, draw, write_coco, write_voc

SIZE = dict(
    image_size=(HEIGHT, WIDTH),
    embedding={"stem_filters": (16, 32)},
    patch_size=2,
    num_layers=1,
    num_heads=2,
    hidden_dim=32,
)


def make_data(count=192):
    parts = draw(count, 0), draw(32, 1), draw(128, 2)
    return ka.data.BoxedImage.collect(*parts, labels=LABELS)


def make_task(**settings):
    data = ka.data.BoxedImage.collect(draw(8, 0), draw(2, 1), labels=LABELS)
    return ka.tasks.ObjectDetector.from_data(data, **SIZE | settings)


def list_outputs(path):
    return {tensor.name for tensor in ka.export.inspect(path).signatures[0].outputs}


@pytest.fixture(scope="module")
def trained():
    data = make_data()
    task = ka.tasks.ObjectDetector.from_data(data, **SIZE)
    task.fit(data, epochs=24, batch_size=8, learning_rate=0.005, verbose=False)
    return task, data


@pytest.mark.sweep
@pytest.mark.tensorflow
def test_every_file_finds_squares(trained, tmp_path):
    task, data = trained
    scores = task.evaluate(data)
    assert scores["map50"] > 0.8 and scores["map50"] >= scores["map75"]
    images = [example.image for example in data.test]
    expected = task.predict(images)
    task.save_to_preset(tmp_path / "preset")
    opened = ka.tasks.from_preset(tmp_path / "preset")
    assert isinstance(opened, ka.tasks.ObjectDetector) and opened.predict(images) == expected
    for name, quantization in (("model.tflite", None), ("model.int8.tflite", "int8_weights")):
        path = tmp_path / "preset" / name
        opened.export(
            path, quantization=quantization
        )  # the export refuses ops that are not built in
        assert list_outputs(path) == {"logits", "boxes"}
        kind = "litert" if quantization is None else "litert-int8"
        in_file = ka.tasks.from_preset(tmp_path / "preset", kind)
        in_file_scores = in_file.evaluate(data)
        if quantization is None:
            assert in_file_scores == pytest.approx(scores, abs=1e-6)
        else:  # not `map75`, because a few boxes are close to its threshold
            for name in ("map", "map50"):
                assert in_file_scores[name] == pytest.approx(scores[name], abs=0.01)
    counts = [sum(map(len, part)) for part in (expected, [e.boxes for e in data.test])]
    assert abs(counts[0] - counts[1]) < 0.3 * counts[1]
    near = 0
    for objects, example in zip(expected, data.test, strict=True):
        for item in objects[:1]:
            boxes = [box for label, box, _ in example.objects() if label == item.label]
            near += min((np.abs(np.array(box) - item.box).max() for box in boxes), default=9) < 3
    assert near > 0.8 * len(data.test)


@pytest.mark.slow
def test_boxes_are_in_pixels_of_the_input_picture(trained, tmp_path):
    task, data = trained
    image = data.test[0].image
    twice = image.repeat(2, axis=0).repeat(3, axis=1)
    keras.utils.save_img(tmp_path / "a.png", twice, scale=False)
    (small,), (large,) = task.predict([image]), task.predict([str(tmp_path / "a.png")])
    assert [item.label for item in small] == [item.label for item in large]
    for one, other in zip(small, large, strict=True):
        np.testing.assert_allclose(np.array(one.box) * [3, 2, 3, 2], other.box, atol=3)
    (shares,) = task.predict([image], bounding_box_format="rel_xywh")
    x0, y0, x1, y1 = small[0].box
    expected = [x0 / WIDTH, y0 / HEIGHT, (x1 - x0) / WIDTH, (y1 - y0) / HEIGHT]
    np.testing.assert_allclose(shares[0].box, expected, atol=1e-5)


@pytest.mark.sweep
def test_learned_queries_and_losses_of_every_layer_learn_too(tmp_path):
    data = make_data(48)
    settings = dict(queries=6, num_decoder_layers=2, auxiliary=True, no_object=True)
    task = ka.tasks.ObjectDetector.from_data(data, **SIZE | settings)
    history = task.fit(data, epochs=4, batch_size=8, learning_rate=0.003, verbose=False).history
    assert history["val_loss"][-1] < history["val_loss"][0]
    (objects,) = task.predict([data.test[0].image], threshold=0.0)
    assert len(objects) == 6 and all(0 <= item.score <= 1 for item in objects)
    task.export(tmp_path / "model.tflite")
    assert list_outputs(tmp_path / "model.tflite") == {"logits", "boxes"}


@pytest.mark.slow
def test_picture_shows_boxes_and_attention_of_queries(trained, tmp_path):
    task, data = trained
    maps = task.attention(data.test[0].image, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 5000
    assert [weights.shape for weights in maps.weights.values()] == [(1, 2, 12, 12)]
    titles = [axis.get_title() for axis in maps.figure.axes[1:]]
    (objects,) = task.predict([data.test[0].image])
    assert titles[: len(objects)] == [f"{item.label} {item.score:.2f}" for item in objects]
    assert task.draw_examples(data, tmp_path) == ["attention.png"]


def test_new_labels_replace_the_logits_but_not_the_boxes():
    learned = {"queries": 4, "num_decoder_layers": 2, "auxiliary": True, "one_to_many": False}
    for settings in ({}, learned):
        task = make_task(no_object=bool(settings), **settings)
        assert ("one_to_many_logits" in task.model.output) != bool(settings)
        images = np.random.default_rng(0).random((1, HEIGHT, WIDTH, 3))
        before = {name: np.array(value) for name, value in task.model(images).items()}
        renamed = [example._replace(labels=("x",) * len(example.boxes)) for example in draw(3, 0)]
        data = ka.data.BoxedImage.collect(renamed, dev_fraction=0, labels=["x", "y", "z"])
        task.adapt(data)
        after = task.model(images)
        assert list(after) == list(before)
        assert task.preprocessor.labels.names == ("x", "y", "z")
        for name, value in before.items():
            if "boxes" in name:
                np.testing.assert_array_equal(after[name], value)
            else:
                assert after[name].shape == (*value.shape[:-1], 3 + bool(settings))
        assert task.has_no_object == bool(settings)


def test_sizes_are_multiples_of_cells():
    examples = draw(3, 0)  # 24 x 32
    stems = [
        ka.models.ImageEmbedding(stem_filters=(8, 8), stem_strides=strides)
        for strides in (None, (4, 4))
    ]
    for stem in stems:
        assert fit_image_size(examples, 64, dict(embedding=stem, patch_size=1)) == (48, 64)
    assert fit_image_size(examples, 50, dict(patch_size=16)) == (32, 48)
    tall = [ka.data.BoxedImage("x", size=(300, 100))]
    assert fit_image_size(tall, 96, dict(patch_size=(8, 4))) == (96, 32)


def test_data_set_may_set_the_size_and_grey_pictures_have_one_channel():
    grey = [example._replace(image=example.image[..., :1]) for example in draw(6, 0)]
    data = ka.data.BoxedImage.collect(grey, image_size=16)
    settings = {name: value for name, value in SIZE.items() if name != "image_size"}
    task = ka.tasks.ObjectDetector.from_data(data, **settings | {"patch_size": 1})
    assert task.model.input_shape == (None, 12, 16, 1)
    (objects,) = task.predict([grey[0].image], threshold=0.0)
    assert len(objects) == 3 * 4


def test_file_names_decide_the_reader(tmp_path):
    from keras_attention.cli.sources import Source

    examples = draw(4, 0)
    coco, voc = write_coco(tmp_path / "coco", examples), write_voc(tmp_path / "voc", examples)
    for path in (coco, tmp_path / "coco", voc):
        data = Source(files={"test": path}).load("object_detector")
        assert [example.boxes for example in data.test] == [example.boxes for example in examples]
    with pytest.raises(ValueError, match="have two formats"):
        Source(files={"train": coco, "test": voc}).load("object_detector")


def test_a_part_without_objects_has_no_scores():
    task = make_task()
    nothing = draw(1, 0)[0]._replace(boxes=(), labels=())
    assert task.compute_scores([nothing], "The test part") == {}


def test_a_preset_of_other_labels_is_refused(tmp_path):
    task = make_task()
    task.save_to_preset(tmp_path / "preset")
    path = tmp_path / "preset" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["labels"] = ["a", "b", "c", "d"]
    path.write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="4 labels.*made with 2"):
        ka.tasks.from_preset(tmp_path / "preset").predict([draw(1, 0)[0].image])
