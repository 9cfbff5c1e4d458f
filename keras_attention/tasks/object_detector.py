"""`ObjectDetector`: pictures, and a box around everything in them that has a name."""

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
    describe_pictures,
    find_channels,
    find_grid,
    fit_image_size,
    read_picture_sizes,
)
from keras_attention.tasks.runners import check_sizes, softmax
from keras_attention.tasks.task import Task

ROWS = 16  # pictures that are scored at a time
THRESHOLD = 0.5  # the least score of an object that is found: how far its box overlaps it
PICTURED = 7  # objects of a picture whose queries are drawn


class FoundObject(typing.NamedTuple):
    """What is found in a picture: its class, a score from 0 to 1, and its box.

    The box is (x0, y0, x1, y1) in pixels of the picture, left, top, right and bottom.
    """

    label: str
    score: float
    box: tuple


class ObjectDetector(Task):
    """Says what is in a picture, and where.

    Files give `"logits"` and `"boxes"` as `ka.models.object_detector` does: an app takes a sigmoid
    of the logits (of a model with a class for no object a softmax), and multiplies the boxes by
    the width and height of its picture.

    Args:
        model: functional `keras.Model`, images (B, H, W, C) from 0 to 1 -> `logits` and `boxes`, as
            `ka.models.object_detector`.
        preprocessor: `ka.data.DetectionPreprocessor`.

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
    (found,) = task.predict([draw().image], threshold=0.0)
    assert found[0].label == "light" and len(found[0].box) == 4
    ```
    """

    builders = ("object_detector",)
    example_kind, holds, example = data.BoxedImage, "pictures with boxes", "picture.png"
    unit, predict_options, rows = "images", ("threshold",), ROWS

    @classmethod
    def make_parts(cls, data_set, recipe, builder):
        keywords = recipe.list_keywords(models.ImageEmbedding)
        size = data_set.about.get("image_size") or recipe.data.image_size
        if not isinstance(size, tuple | list):
            size = fit_image_size(data_set.train, size, keywords)
        channels = keywords.setdefault("num_channels", find_channels(data_set.train))
        model = models.object_detector(tuple(size), len(data_set.labels), **keywords)
        return model, data.DetectionPreprocessor(data_set.labels, tuple(size), channels), {}

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
        """Return whether the model's last class is no object."""
        return self.model.output["logits"].shape[-1] == len(self.preprocessor.labels) + 1

    def replace_head(self, num_labels):
        """Return the model with new logits; boxes are found as before."""
        outputs = dict(self.model.output)

        def make_head(name):
            old = keras_internals.producer(outputs[name])
            config = old.get_config() | {"units": num_labels + self.has_no_object}
            return type(old).from_config(config)

        new = make_head("logits")
        layers = [outputs["logits"]]
        if "auxiliary_logits" in outputs:
            layers = [*keras_internals.inputs_of(outputs["auxiliary_logits"]), *layers]
        *others, last = [new(*keras_internals.inputs_of(logits)) for logits in layers]
        outputs["logits"] = last
        if others:
            outputs["auxiliary_logits"] = keras.ops.stack(others, axis=1)
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
        """Return mean average precision as it can be computed while training."""
        count, no_object = len(self.preprocessor.labels), self.has_no_object
        return [lambda: training.BoxAveragePrecision(count, no_object, name="map")]

    def make_exportable(self, model):
        """Return the model without the outputs that only training needs."""
        outputs = {name: model.output[name] for name in ("logits", "boxes")}
        return keras.Model(model.input, outputs, name=model.name)

    def wrap_model(self, model, path=None):
        return super().wrap_model(self.make_exportable(model), path)

    def compute_scores(self, examples, where):
        """COCO's mean average precision, and those of overlaps of 0.5 and 0.75."""
        if not any(example.boxes for example in examples):
            return {}
        found = []
        for start in range(0, len(examples), ROWS):
            found += self._find(examples[start : start + ROWS])
        wanted = [example.objects() for example in examples]
        labels = self.preprocessor.labels.names
        try:
            scores = training.score_boxes(wanted, found, labels=labels)
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
        """Return the objects in pictures.

        Args:
            inputs: list of paths, or of arrays (H, W, C) of any size, uint8 or floats from 0 to 1.
            threshold: float, the least score of an object.
            bounding_box_format: str, of the boxes, as in
                `keras.utils.bounding_boxes.convert_format`: `"xywh"`, `"rel_xyxy"`, ...

        Returns:
            For each picture a list of `FoundObject`, the surest first, one of each query at most.
            Now and then two queries find one object: nothing is suppressed.
        """
        check_many(inputs, "picture", ndim=3)
        if isinstance(threshold, str) or not 0 <= threshold <= 1:
            raise ValueError(f"threshold={threshold!r}: expected a score from 0 to 1.")
        found = []
        for picture in inputs:
            example = picture
            if not isinstance(picture, data.BoxedImage):
                example = data.BoxedImage(picture)
            ((objects, size),) = self._find([example], with_sizes=True)
            objects = [thing for thing in objects if thing.score >= threshold]
            if bounding_box_format != "xyxy" and objects:
                boxes = convert_boxes(
                    [thing.box for thing in objects], "xyxy", bounding_box_format, size
                )
                objects = [
                    thing._replace(box=tuple(map(float, box)))
                    for thing, box in zip(objects, boxes, strict=True)
                ]
            found.append(objects)
        return found

    def _find(self, examples, with_sizes=False):
        """Return all that the queries find in pictures, with boxes in pixels of an example."""
        read = [self.preprocessor.read(example.image) for example in examples]
        outputs = self.runner({next(iter(self.runner.inputs)): np.stack([x for x, _ in read])})
        found = []
        for k, (example, (_, size)) in enumerate(zip(examples, read, strict=True)):
            size = example.size or size
            objects = self._decode(outputs["logits"][k], outputs["boxes"][k], size)
            found.append(([thing for _, thing in objects], size))
        return found if with_sizes else [objects for objects, _ in found]

    def _decode(self, logits, boxes, size):
        """[(query, `FoundObject`)] of logits (Q, C) and boxes (Q, 4), the surest first."""
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
        """The picture shows what is found, and what the queries of the surest objects looked at."""
        picture = example.image if isinstance(example, data.BoxedImage) else example
        pixels, _ = self.preprocessor.read(picture)
        with visualization.record_attention(self.model) as maps:
            outputs = self.model(pixels[None])
        layer, weights = list(maps.items())[-1]  # of the last block: cross-attention in a decoder
        logits, boxes = (np.asarray(outputs[name])[0] for name in ("logits", "boxes"))
        every = self._decode(logits, boxes, pixels.shape[:2])
        chosen = [(q, thing) for q, thing in every if thing.score >= THRESHOLD] or every[:1]
        looked = np.stack([np.asarray(weights)[0, :, q] for q, _ in chosen[:PICTURED]])
        figure = visualization.boxes_map(
            pixels,
            [thing.box for _, thing in chosen],
            [f"{thing.label} {thing.score:.2f}" for _, thing in chosen],
            looked,
            grid=find_grid(self.model, self.preprocessor.image_size),
            title=f"What is found, and what the query of each looked at in {layer}",
            path=path,
        )
        return AttentionMaps(dict(maps), None, None, figure)

    def find_pictured(self, data_set):
        return (data_set.test or data_set.dev)[0]
