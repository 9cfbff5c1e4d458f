"""`ImageClassifier`: predicts the class of each image."""

import numpy as np

from keras_attention import data
from keras_attention.core.checks import check_many
from keras_attention.core.lazy import models, visualization
from keras_attention.export import inspection
from keras_attention.tasks.explaining import RecordedExample
from keras_attention.tasks.interface import AttentionMaps
from keras_attention.tasks.labels import check_top, classify, make_accuracy, make_balanced_loss
from keras_attention.tasks.pictures import (
    check_picture_fields,
    check_picture_runner,
    check_pictures,
    collect_pictures,
    describe_pictures,
    read_picture_sizes,
)
from keras_attention.tasks.runners import compute_logits
from keras_attention.tasks.task import Task
from keras_attention.training.scores.class_scores import score_labels

SHOWN = 12  # number of test images in the gallery
SEED = 0  # for the random choice of these images
ROWS = 128  # images per batch


class ImageClassifier(Task):
    """Predicts one class for each image.

    Args:
        model: functional `keras.Model`, such as `ka.models.vision_transformer`. It converts images
            (B, H, W, C) with values from 0 to 1 to logits (B, num_classes).
        preprocessor: `ka.data.ImagePreprocessor`, which resizes images and stores the class names.
        builder: str, the name of the function of `ka.models` that built the model, one of the
            class attribute `builders`. It is stored with the task, and chooses the recipe of
            `fit`. None is the first of them.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    light, dark = np.full((20, 8, 8, 1), 220, "uint8"), np.full((20, 8, 8, 1), 30, "uint8")
    pixels, numbers = np.concatenate([light, dark]), np.repeat([0, 1], 20)
    images = ka.data.ImageSplit.collect(train=(pixels, numbers), labels=["day", "night"])
    task = ka.tasks.ImageClassifier.from_data(
        images, num_layers=1, num_heads=2, hidden_dim=16, dropout=0.0
    )
    task.fit(images, epochs=2, batch_size=4, verbose=False)
    labels = [prediction.label for prediction in task.predict([light[0], dark[0]])]
    assert labels == ["day", "night"]
    ```
    """

    builders = ("vision_transformer",)
    example_kind, holds, unit = data.ImageSplit, "images", "images"
    example, predict_options = "picture.png", ("top", "invert")

    @classmethod
    def collect(cls, examples):
        return collect_pictures(examples)

    @classmethod
    def make_parts(cls, data_set, recipe, builder):
        height, width, channels = (int(size) for size in data_set.train.image_shape)
        model = models.vision_transformer(
            (height, width),
            len(data_set.labels),
            num_channels=channels,
            **recipe.list_keywords(models.ImageEmbedding),
        )
        return model, data.ImagePreprocessor(data_set.labels, (height, width), channels), {}

    @classmethod
    def read_settings(cls, fields):
        fields.texts("labels")
        check_picture_fields(fields, resized=False)  # the oldest manifests lack `resizing`
        return {}

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        sizes = read_picture_sizes(folder, manifest)
        return data.ImagePreprocessor(manifest["labels"], **sizes)

    @property
    def settings(self):
        return {
            "labels": list(self.preprocessor.labels.names),
            **describe_pictures(self.preprocessor),
        }

    def adapt(self, data_set):
        """Replace the last layer of the model if the dataset has classes that the model lacks.

        Return a tuple of str, notes on this change. `data_set` is the `DataSet` to train on.

        Raises:
            ValueError: the dataset has the classes of the model in another order.
        """
        check_pictures(self.preprocessor, data_set)
        names = list(self.preprocessor.labels.names)
        if list(data_set.labels) == names[: len(data_set.labels)]:
            return ()
        notes = super().adapt(data_set)
        if list(self.preprocessor.labels.names) != list(data_set.labels):
            raise ValueError(
                "The classes of these images are in another order than in the model: read them "
                f"with labels={names}."
            )
        return notes

    def make_training_batches(self, examples, recipe):
        augment = data.image_augmentation(recipe.data.shift, recipe.data.flip, recipe.seed)
        options = {"shuffle": True, "seed": recipe.seed, "augment": augment}
        return data.batches(examples, batch_size=recipe.batch_size, **options)

    def make_batches(self, examples, where):
        return data.batches(examples, batch_size=ROWS) if examples else None

    def make_loss(self, recipe, train):
        return make_balanced_loss(recipe, lambda: train.labels, len(self.preprocessor.labels))

    def make_metrics(self):
        return [make_accuracy]

    def compute_scores(self, examples, where):
        predicted = []
        for k in range(0, len(examples), ROWS):
            pixels, _ = examples.arrays(k, k + ROWS)
            predicted += list(compute_logits(self.runner, pixels).argmax(axis=-1))
        return score_labels(self.preprocessor.labels.names, predicted, examples.labels)

    def check_runner(self, path, run):
        inspection.check_sizes(run.inspection, labels=len(self.preprocessor.labels))
        check_picture_runner(path, run, self.preprocessor)

    def predict(self, inputs, *, top=None, invert=False):
        """Return the most probable class, or the `top` most probable classes, of each image.

        Args:
            inputs: list of paths, or of arrays (H, W, C) with the image size of the model.
            top: int, the number of classes to return for each image. None returns only the most
                probable class.
            invert: bool, whether to invert the images (swap black and white).

        Returns:
            A list with a `Classification` for each image. If `top` is an int, each element is
            instead a list of `top` `Classification`s, sorted by decreasing probability.
        """
        check_many(inputs, "image", ndim=len(self.preprocessor.image_size))
        check_top(top)
        # Load the model before the images, so that an invalid model file is reported first.
        run = self.runner
        pictures = (self.preprocessor([picture], invert) for picture in inputs)
        logits = (compute_logits(run, picture)[0] for picture in pictures)
        return classify(self.preprocessor.labels.names, logits, top)

    def record_example(self, example):
        pixels = self.preprocessor([example])
        recorded = RecordedExample.run(self.model, pixels)
        return recorded.with_labels(self.preprocessor.labels.names, image=pixels[0])

    def attention(self, example, path=None):
        recorded = self.record_example(example)
        layer, weights = list(recorded.maps.items())[-1]  # the last block, or the pooling
        label = recorded.choices[recorded.predicted].name
        figure = visualization.attention_map(
            weights, image=recorded.image, title=f"{label}: {layer}, head by head", path=path
        )
        return AttentionMaps(recorded.maps, None, None, figure)

    def find_pictured(self, data_set):
        split = data_set.test or data_set.dev
        return split.arrays(0, 1)[0][0]

    def draw_examples(self, data_set, folder):
        """Plot the attention over several test images, and each head's attention over the first.

        `data_set` is a `DataSet` of images. Save the figures in `folder`, and return their names.
        The first image is also saved as `example.png`, for the web page.
        """
        split = data_set.test or data_set.dev
        chosen = np.random.default_rng(SEED).permutation(len(split))[:SHOWN]
        pixels, numbers = split[chosen].arrays()
        with visualization.record_attention(self.model) as maps:
            predicted = np.argmax(self.model(pixels), axis=-1)
        layer, weights = list(maps.items())[-1]
        names = data_set.labels
        titles = [
            names[label] + ("" if label == number else f" (is {names[number]})")
            for label, number in zip(predicted, numbers, strict=True)
        ]
        visualization.attention_gallery(
            pixels,
            weights,
            titles,
            title=f"Test images with predictions, and what {layer} attended to",
            path=folder / "attention.png",
        )
        self.attention(pixels[0], folder / "attention_heads.png")
        (folder / "example.png").write_bytes(data.readers.images.encode_png(pixels[0]))
        return ["attention.png", "attention_heads.png"]
