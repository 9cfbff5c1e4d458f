"""`ImageGenerator`: generates images of a class, pixel by pixel."""

import math
import typing

import numpy as np

from keras_attention import data
from keras_attention.core.checks import check_many
from keras_attention.core.lazy import masks, models, positions, visualization
from keras_attention.data.preprocessors.pixel_levels import MOST_LEVELS
from keras_attention.files.fields import MOST_TOKENS
from keras_attention.files.manifest import MANIFEST
from keras_attention.tasks.interface import AttentionMaps
from keras_attention.tasks.labels import make_perplexity
from keras_attention.tasks.language_models import (
    ExportedLanguageModel,
    KerasLanguageModel,
    check_temperature,
    compute_mean_loss,
    read_choice,
)
from keras_attention.tasks.pictures import check_picture_fields, check_pictures, collect_pictures
from keras_attention.tasks.runners import check_sizes
from keras_attention.tasks.task import Task

ROWS = 128  # images per batch
DRAWN = 5  # images of each class in the grid
SEED = 0  # for generating the images in `attention` and in the grid


class GeneratedImage(typing.NamedTuple):
    """A generated image and its class.

    `pixels` is a list of rows. A row is a list of pixels: ints from 0 to 255 in a grayscale image,
    or lists of 3 such ints in an RGB image.
    """

    label: str
    pixels: list


class ImageGenerator(Task):
    """Generates images of a class with a causal language model whose tokens are pixels.

    The method follows Parmar et al. (2018, *Image Transformer*) and Chen et al. (2020, *Image
    GPT*).

    A model from `from_data` has learned position embeddings for rows and columns, and a local mask
    (`Window2D`): a pixel attends to nearby pixels and to the class. `from_data` has two arguments
    for this: `num_levels` is the number of brightness levels of a pixel, and `window` is the number
    of rows and columns in the neighborhood.

    Args:
        model: functional `keras.Model` that converts token ids (B, T) to logits (B, T,
            vocabulary_size), such as `ka.models.causal_language_model` with an embedding with
            `padding_id=None`.
        preprocessor: `ka.data.PixelLevelsPreprocessor`, which converts images to tokens and back.
        temperature: float, the default sampling temperature of `predict`.
        builder: str, the function that built the model, a name in the attribute `builders`. None is
            the first.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    light, dark = np.full((20, 2, 3, 1), 255, "uint8"), np.zeros((20, 2, 3, 1), "uint8")
    pixels, numbers = np.concatenate([light, dark]), np.repeat([0, 1], 20)
    images = ka.data.ImageSplit.collect(train=(pixels, numbers), labels=["day", "night"])
    task = ka.tasks.ImageGenerator.from_data(
        images, num_levels=2, num_layers=1, num_heads=2, hidden_dim=16, dropout=0.0
    )
    task.fit(images, epochs=8, batch_size=8, learning_rate=0.02, verbose=False)
    day, night = task.predict(["day", "night"], temperature=0)
    assert day.pixels == [[255] * 3] * 2 and night.pixels == [[0] * 3] * 2
    ```
    """

    builders = ("image_generator",)
    example_kind, holds, unit = data.ImageSplit, "images", "images"
    example = "7"
    draws = True
    predict_options = ("temperature", "top_k", "top_p", "seed")
    lower_is_better, rows = True, ROWS

    def __init__(self, model, preprocessor, *, temperature=1.0, builder=None):
        super().__init__(model, preprocessor, builder=builder)
        self.temperature = check_temperature(self, temperature)

    @classmethod
    def collect(cls, examples):
        return collect_pictures(examples)

    @classmethod
    def make_parts(cls, data_set, recipe, builder):
        *size, channels = (int(number) for number in data_set.train.image_shape)
        options = recipe.data
        preprocessor = data.PixelLevelsPreprocessor(
            data_set.labels, tuple(size), channels, options.num_levels
        )
        grid = preprocessor.grid
        window = options.window, options.window * channels
        parts = {
            "position": positions.Learned2D(grid, prefix=1),
            "mask": masks.Window2D(window, grid, prefix=1),
        }
        model = models.causal_language_model(
            preprocessor.vocabulary_size, **parts | recipe.list_keywords(padding_id=None)
        )
        return model, preprocessor, {"temperature": options.temperature}

    @classmethod
    def read_settings(cls, fields):
        fields.texts("labels")
        check_picture_fields(fields, resized=False)
        fields.whole("num_levels", least=2, most=MOST_LEVELS)
        writing = fields.object("writing")
        writing.whole("max_length", most=MOST_TOKENS)
        writing.whole("max_new_tokens", most=MOST_TOKENS)
        return {"temperature": writing.number("temperature", above=0)}

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        size = tuple(manifest["image_size"])
        return data.PixelLevelsPreprocessor(
            manifest["labels"], size, manifest["channels"], manifest["num_levels"]
        )

    @property
    def settings(self):
        preprocessor = self.preprocessor
        classes = preprocessor.class_ids(range(len(preprocessor.labels)))
        return {
            "labels": list(preprocessor.labels.names),
            "image_size": list(preprocessor.image_size),
            "channels": preprocessor.channels,
            "num_levels": preprocessor.num_levels,
            "tokens": "num_levels + the class, and then num_levels of each pixel, row 0 on top",
            "writing": {
                "temperature": self.temperature,
                "max_length": preprocessor.count,
                "max_new_tokens": preprocessor.count,
                "suppress_tokens": classes.ravel().tolist(),
            },
        }

    def adapt(self, data_set):
        check_pictures(self.preprocessor, data_set)
        names = list(self.preprocessor.labels.names)
        if list(data_set.labels) != names[: len(data_set.labels)]:
            raise ValueError(
                f"The classes of these images are {', '.join(data_set.labels)}, and the model "
                f"generates {', '.join(names)}: read them with labels={names}, or make a new model "
                "with from_data."
            )
        return ()

    def make_metrics(self):
        return [make_perplexity]

    def open_runner(self, path):
        run, count = ExportedLanguageModel(path), self.preprocessor.count
        self._check_tokens(path, run)
        if run.max_length < count:
            raise ValueError(
                f"{path} takes {run.max_length} tokens, and an image has {count}: export it again."
            )
        return run

    def wrap_model(self, model, path=None):
        run = KerasLanguageModel(model)
        if path is not None:
            self._check_tokens(path, run)
        return run

    def _check_tokens(self, path, run):
        """Raise a ValueError if a model file has more or fewer tokens than levels and classes."""
        size = self.preprocessor.vocabulary_size
        check_sizes(path, [(MANIFEST, "levels and classes", size, run.tokens)])

    def compute_scores(self, examples, where):
        """Compute the loss in bits for each channel of each pixel ("bits per dimension").

        `examples` is an `ImageSplit`. Error messages begin with `where`, a str.
        """
        batches = self.make_batches(examples, where)
        if batches is None:
            return {}
        bits = compute_mean_loss(self.runner, batches) / math.log(2)
        return {"bits_per_dimension": round(float(bits), 6)}

    def predict(self, inputs, *, temperature=None, top_k=None, top_p=None, seed=None):
        """Generate an image for each class name.

        Args:
            inputs: list of str, the names of the classes. A name may occur several times.
            temperature: float, the sampling temperature. 0 always selects the most probable level
                (pixel value). None uses the task's `temperature`.
            top_k: int, sample from the k most probable levels. None does not restrict the levels.
            top_p: float, sample from the smallest set of most probable levels whose probabilities
                sum to at least `top_p`. None does not restrict the levels.
            seed: int, makes the images reproducible. None samples differently in each call.

        Returns:
            A list with a `GeneratedImage` for each class name.
        """
        pictures = self.draw(inputs, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
        grey = self.preprocessor.channels == 1
        return [
            GeneratedImage(label, (picture[..., 0] if grey else picture).tolist())
            for label, picture in zip(inputs, pictures, strict=True)
        ]

    def draw(self, labels, *, temperature=None, top_k=None, top_p=None, seed=None):
        """Generate an image for each class name, and return a uint8 array (n, H, W, C).

        `labels` are n class names. H, W and C are the height, the width and the channels of an
        image. `predict` explains the other arguments. Raise a ValueError if a label is not a class
        of the model.
        """
        check_many(labels, "class")
        choice = read_choice(self.temperature, temperature, "levels", top_k=top_k, top_p=top_p)
        names = self.preprocessor.labels
        if unknown := [label for label in labels if label not in names]:
            raise ValueError(
                f"{str(unknown[0])[:40]!r} is not a class of the model: expected one of "
                f"{', '.join(names)}."
            )
        prompts = self.preprocessor.class_ids(names.ids(labels))
        if not len(prompts):
            return self.preprocessor.pictures(np.zeros((0, self.preprocessor.count)))
        seed = np.random.randint(2**31) if seed is None else seed
        parts = [
            self.runner.draw(
                prompts[k : k + ROWS],
                self.preprocessor.count,
                choice,
                self.preprocessor.num_levels,
                seed + k,
            )
            for k in range(0, len(prompts), ROWS)
        ]
        return self.preprocessor.pictures(np.concatenate(parts))

    def attention(self, example, path=None, pixel=None):
        """Generate an image, and plot the attention of the query that predicts one of its pixels.

        Args:
            example: str, the name of the class.
            path: path for saving the figure. None does not save it.
            pixel: tuple of int, (row, column) of the pixel, 0-based. None selects a pixel a little
                below the center.

        Returns:
            `AttentionMaps`, the attention weights of all layers and the figure.
        """
        height, width = self.preprocessor.image_size
        row, column = (height * 5 // 8, width // 2) if pixel is None else pixel
        picture = self.draw([example], seed=SEED)
        number = self.preprocessor.labels.index(example)
        ids = self.preprocessor(picture, [number])
        with visualization.record_attention(self.model) as maps:
            self.model(ids)
        layer, weights = list(maps.items())[-1]
        query = (row * width + column) * self.preprocessor.channels  # the token before the pixel
        figure = visualization.attention_map(
            weights,
            image=picture[0],
            grid=self.preprocessor.grid,
            query=query,
            title=f"{example}: what the pixel in row {row}, column {column} attended to ({layer})",
            path=path,
        )
        return AttentionMaps(dict(maps), None, None, figure)

    def find_pictured(self, data_set):
        names = self.preprocessor.labels.names
        return names[min(7, len(names) - 1)]

    def draw_examples(self, data_set, folder):
        """Save a grid of images of every class, and a figure of the attention of one pixel.

        Both files are written to `folder`. `data_set` is a `DataSet` of images. Return the names of
        the files.
        """
        draw_grid(self, list(self.preprocessor.labels.names), DRAWN, folder / "samples.png")
        return ["samples.png", *super().draw_examples(data_set, folder)]

    def find_example(self, data_set):
        return self.preprocessor.labels.names[-1]


def draw_grid(task, labels, count, path):
    """Generate images, plot them in a grid with a column for each class, and return the figure.

    Args:
        task: an `ImageGenerator`.
        labels: list of str, the class names.
        count: int, the number of images of each class.
        path: path for saving the figure.
    """
    from keras_attention.visualization.figure import new_figure, save_figure
    from keras_attention.visualization.overlay import draw_image, normalize_image

    classes = [label for label in labels for _ in range(count)]
    pictures = task.draw(classes, seed=SEED)
    figure = new_figure(0.7 * len(labels) + 0.4, 0.7 * count + 0.6, "Drawn images of each class")
    cells = figure.add_gridspec(count, len(labels))
    for k, picture in enumerate(pictures):
        axis = figure.add_subplot(cells[k % count, k // count])
        draw_image(axis, normalize_image(picture))
        axis.set_xticks([])
        axis.set_yticks([])
        if k % count == 0:
            axis.set_title(classes[k], fontsize=8, parse_math=False)
    return save_figure(figure, path)
