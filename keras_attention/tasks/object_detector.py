"""`ObjectDetector`: predicts the classes and boxes of the objects in images."""

import dataclasses
import typing

import numpy as np

from keras_attention import data, training
from keras_attention.core.checks import check_many
from keras_attention.core.lazy import keras, keras_internals, models, visualization
from keras_attention.data.readers.boxed_images import convert_boxes
from keras_attention.tasks.folders import MANIFEST
from keras_attention.tasks.interface import AttentionMaps
from keras_attention.tasks.pictures import (
    check_picture_fields,
    check_picture_runner,
    choose_image_size,
    describe_pictures,
    find_channels,
    find_grid,
    read_picture_sizes,
)
from keras_attention.tasks.runners import check_sizes, softmax
from keras_attention.tasks.task import Task

ROWS = 16  # images per batch
THRESHOLD = 0.5  # default minimum score of the objects that `predict` returns
PICTURED = 7  # maximum number of objects whose attention is drawn


class FoundObject(typing.NamedTuple):
    """A detected object: its class, its score from 0 to 1, and its box.

    The box is (x0, y0, x1, y1): the left, top, right and bottom sides in pixels of the image,
    unless another format was passed to `ObjectDetector.predict`.
    """

    label: str
    score: float
    box: tuple


class ObjectDetector(Task):
    """Detects objects in images, and predicts their classes and boxes.

    Exported files return `"logits"` and `"boxes"`, as `ka.models.object_detector` does. An app must
    apply a sigmoid to the logits (or a softmax if the model has a no-object class), and multiply
    the boxes by the width and height of its image.

    Args:
        model: functional `keras.Model`, such as `ka.models.object_detector`. It converts images
            (B, H, W, C) with values from 0 to 1 to a dict with `logits` and `boxes`.
        preprocessor: `ka.data.DetectionPreprocessor`.
        builder: str, the name of the function of `ka.models` that built the model, one of the
            class attribute `builders`. It is stored with the task, and chooses the recipe of
            `fit`. None is the first of them.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    random = np.random.default_rng(0)


    def draw():
        image, x, y = np.zeros((16, 16, 1), "uint8"), *random.integers(0, 9, 2)
        image[y : y + 6, x : x + 8] = 255
        return ka.data.BoxedImage(image, [(x, y, x + 8, y + 6)], ["light"])


    size = dict(
        embedding={"stem_filters": (8,)}, patch_size=2, num_layers=1, num_heads=2, hidden_dim=16
    )
    task = ka.tasks.ObjectDetector.from_data(
        [draw() for _ in range(32)], image_size=(16, 16), **size
    )
    task.fit([draw() for _ in range(32)], epochs=2, batch_size=8, verbose=False)
    (objects,) = task.predict([draw().image], threshold=0.0)
    assert objects[0].label == "light" and len(objects[0].box) == 4
    ```
    """

    builders = ("object_detector",)
    example_kind, holds, example = data.BoxedImage, "images with boxes", "picture.png"
    unit, predict_options, rows = "images", ("threshold",), ROWS

    @classmethod
    def make_parts(cls, data_set, recipe, builder):
        keywords = recipe.list_keywords(models.ImageEmbedding)
        size = choose_image_size(data_set, recipe.data.image_size, keywords)
        channels = keywords.setdefault("num_channels", find_channels(data_set.train))
        model = models.object_detector(size, len(data_set.labels), **keywords)
        return model, data.DetectionPreprocessor(data_set.labels, size, channels), {}

    @classmethod
    def read_settings(cls, fields):
        fields.texts("labels")
        check_picture_fields(fields)
        return {}

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        sizes = read_picture_sizes(folder, manifest)
        return data.DetectionPreprocessor(manifest["labels"], **sizes)

    @property
    def settings(self):
        return {
            "labels": list(self.preprocessor.labels.names),
            **describe_pictures(self.preprocessor),
            "boxes": "cx, cy, w, h from 0 to 1",
        }

    @classmethod
    def count_examples(cls, data_set):
        counts = super().count_examples(data_set)
        return counts | {"train objects": sum(len(example.boxes) for example in data_set.train)}

    @property
    def has_no_object(self):
        """bool, whether the last class of the model means that a query found no object."""
        return self.model.output["logits"].shape[-1] == len(self.preprocessor.labels) + 1

    def replace_head(self, labels):
        """Return a copy of the model with new, untrained layers that predict the classes `labels`.

        The layers that predict boxes are kept.
        """
        outputs = dict(self.model.output)

        def make_head(name):
            old = keras_internals.producer(outputs[name])
            config = old.get_config() | {"units": len(labels) + self.has_no_object}
            return type(old).from_config(config)

        new = make_head("logits")
        layers = [outputs["logits"]]
        if "auxiliary_logits" in outputs:
            layers = [*keras_internals.inputs_of(outputs["auxiliary_logits"]), *layers]
        *auxiliary, last = [new(*keras_internals.inputs_of(logits)) for logits in layers]
        outputs["logits"] = last
        if auxiliary:
            outputs["auxiliary_logits"] = keras.ops.stack(auxiliary, axis=1)
        if (name := "one_to_many_logits") in outputs:
            outputs[name] = make_head(name)(*keras_internals.inputs_of(outputs[name]))
        return keras.Model(self.model.input, outputs, name=self.model.name)

    def make_training_batches(self, examples, recipe):
        changes = dataclasses.asdict(recipe.data)
        del changes["image_size"]
        augment = data.detection_augmentation(**changes)
        return data.batches(
            examples,
            self.preprocessor,
            recipe.batch_size,
            shuffle=True,
            seed=recipe.seed,
            augment=augment,
        )

    def make_loss(self, recipe, train):
        return training.HungarianLoss("cross_entropy" if self.has_no_object else "varifocal")

    def make_metrics(self):
        """Return one metric: an approximate mean average precision, fast enough for training."""
        count, no_object = len(self.preprocessor.labels), self.has_no_object
        return [lambda: training.BoxAveragePrecision(count, no_object, name="map")]

    def make_exportable(self, model):
        """Return the model without the outputs that only the training loss needs."""
        outputs = {name: model.output[name] for name in ("logits", "boxes")}
        return keras.Model(model.input, outputs, name=model.name)

    def wrap_model(self, model, path=None):
        return super().wrap_model(self.make_exportable(model), path)

    def compute_scores(self, examples, where):
        """Compute COCO's mean average precision, and the average precision at IoU 0.5 and 0.75.

        `examples` is a list of `BoxedImage`. Error messages begin with `where`, a str.
        """
        if not any(example.boxes for example in examples):
            return {}
        predicted = []
        for start in range(0, len(examples), ROWS):
            batch = self._find(examples[start : start + ROWS])
            predicted += [objects for objects, _ in batch]
        actual = [example.objects() for example in examples]
        labels = self.preprocessor.labels.names
        try:
            scores = training.score_boxes(actual, predicted, labels=labels)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error
        return {name: round(scores[name], 6) for name in ("map", "map50", "map75")}

    def check_runner(self, path, run):
        outputs = {tensor.name: tensor.shape for tensor in run.inspection.signatures[0].outputs}
        labels, classes = len(self.preprocessor.labels), outputs.get("logits", (None,))[-1]
        classes = labels if classes == labels + 1 else classes
        check_sizes(path, [(MANIFEST, "labels", labels, classes)])
        check_picture_runner(path, run, self.preprocessor)

    def predict(self, inputs, *, threshold=THRESHOLD, bounding_box_format="xyxy"):
        """Detect the objects in each image.

        Args:
            inputs: list of paths, or of arrays (H, W, C) of any size, uint8 or floats from 0 to 1.
            threshold: float from 0 to 1, the minimum score of an object.
            bounding_box_format: str, the format of the returned boxes, as in
                `keras.utils.bounding_boxes.convert_format`, such as `"xywh"` or `"rel_xyxy"`.

        Returns:
            A list with one list of `FoundObject` for each image, sorted by decreasing score. Each
            query of the model (a learned vector that searches for objects) finds at most one. If
            two queries find the same object, both are returned, without non-maximum suppression.

        Raises:
            ValueError: `threshold` is not from 0 to 1, or an image cannot be read.
        """
        check_many(inputs, "image", ndim=3)
        if isinstance(threshold, str) or not 0 <= threshold <= 1:
            raise ValueError(f"threshold={threshold!r}: expected a score from 0 to 1.")
        results = []
        for picture in inputs:
            is_example = isinstance(picture, data.BoxedImage)
            ((objects, size),) = self._find([picture if is_example else data.BoxedImage(picture)])
            objects = [item for item in objects if item.score >= threshold]
            if bounding_box_format != "xyxy" and objects:
                boxes = [item.box for item in objects]
                boxes = convert_boxes(boxes, "xyxy", bounding_box_format, size)
                objects = [
                    item._replace(box=tuple(map(float, box)))
                    for item, box in zip(objects, boxes, strict=True)
                ]
            results.append(objects)
        return results

    def _find(self, examples):
        """Run the model on a list of `BoxedImage`.

        Return a list with (objects, (height, width)) for each image. `objects` contains a
        `FoundObject` for every query of the model, also for those with a low score.
        """
        read = [self.preprocessor.read(example.image) for example in examples]
        outputs = self.runner({next(iter(self.runner.inputs)): np.stack([x for x, _ in read])})
        results = []
        for k, (example, (_, size)) in enumerate(zip(examples, read, strict=True)):
            size = example.size or size
            objects = self._decode(outputs["logits"][k], outputs["boxes"][k], size)
            results.append(([item for _, item in objects], size))
        return results

    def _decode(self, logits, boxes, size):
        """Convert the model outputs for one image to objects.

        Args:
            logits: array (Q, C), the class logits of the Q queries.
            boxes: array (Q, 4), (center x, center y, width, height) from 0 to 1.
            size: (height, width) of the image in pixels.

        Returns:
            A list of (index of the query, `FoundObject`), sorted by decreasing score.
        """
        height, width = size
        names = self.preprocessor.labels.names
        logits = np.asarray(logits, "float32")
        if logits.shape[1] == len(names) + 1:
            shares = softmax(logits)[:, :-1]
        else:
            shares = 1.0 / (1.0 + np.exp(-logits))
        best = shares.argmax(axis=1)
        scores = shares[np.arange(len(best)), best]
        middles, sides = np.asarray(boxes)[:, :2], np.asarray(boxes)[:, 2:]
        corners = np.concatenate([middles - sides / 2, middles + sides / 2], axis=1)
        corners = np.clip(corners, 0.0, 1.0) * [width, height, width, height]
        return [
            (int(q), FoundObject(names[best[q]], float(scores[q]), tuple(map(float, corners[q]))))
            for q in np.argsort(-scores, kind="stable")
        ]

    def attention(self, example, path=None):
        """Plot the objects in an image, and the image regions that led the model to each object.

        `example` is the path of an image, or an array (H, W, C). The figure is saved at `path`,
        unless this is None. Return the attention weights of all layers and the figure as
        `AttentionMaps`.
        """
        picture = example.image if isinstance(example, data.BoxedImage) else example
        pixels, _ = self.preprocessor.read(picture)
        with visualization.record_attention(self.model) as maps:
            outputs = self.model(pixels[None])
        layer, weights = list(maps.items())[-1]  # in a decoder, this is the last cross-attention
        logits, boxes = (np.asarray(outputs[name])[0] for name in ("logits", "boxes"))
        objects = self._decode(logits, boxes, pixels.shape[:2])
        chosen = [(q, item) for q, item in objects if item.score >= THRESHOLD] or objects[:1]
        attended = np.stack([np.asarray(weights)[0, :, q] for q, _ in chosen[:PICTURED]])
        figure = visualization.boxes_map(
            pixels,
            [item.box for _, item in chosen],
            [f"{item.label} {item.score:.2f}" for _, item in chosen],
            attended,
            grid=find_grid(self.model, self.preprocessor.image_size),
            title=f"Objects, and what the query of each attended to in {layer}",
            path=path,
        )
        return AttentionMaps(dict(maps), None, None, figure)

    def find_pictured(self, data_set):
        return (data_set.test or data_set.dev)[0]
