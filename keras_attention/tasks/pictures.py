"""Functions that several image tasks share: datasets, image sizes and manifest entries."""

import numpy as np

from keras_attention import data
from keras_attention.core.checks import check_not_a_path
from keras_attention.core.lazy import models
from keras_attention.data.preprocessors.pictures import MOST_CHANNELS
from keras_attention.data.preprocessors.resizing import Resizing
from keras_attention.files.fields import MOST_PIXELS, Fields
from keras_attention.files.manifest import MANIFEST
from keras_attention.tasks.runners import check_sizes


def collect_pictures(examples):
    """Make a dataset of labeled images with `examples` as its training split.

    `examples` is an `ImageSplit`, or a tuple of arrays: pixels (n, H, W, C) and int labels (n,).
    The names of the classes are "0", "1" and so on, up to the largest label.
    """
    check_not_a_path(examples)
    split = data.ImageSplit.of(examples)
    names = [str(k) for k in range(int(split.labels.max(initial=0)) + 1)]
    return data.ImageSplit.collect(split, labels=names, dev_fraction=0)


def check_pictures(preprocessor, data_set):
    """Raise a ValueError if a dataset's images have another size than the model's inputs.

    `preprocessor` is the preprocessor of the model, and `data_set` a `DataSet` with `ImageSplit`s.
    """
    shape = (*preprocessor.image_size, preprocessor.channels)
    image_shape = tuple(data_set.train.image_shape)
    if image_shape != shape:
        raise ValueError(
            f"The images are {image_shape}, and this model takes {shape}: read them with "
            f"image_size={shape[:2]} and color_mode={'grayscale' if shape[2] == 1 else 'rgb'!r}."
        )


def check_picture_fields(fields, resized=True):
    """Check the entries of `manifest.json` that describe image inputs.

    `fields` is a `Fields`, which reads these entries. If `resized` is True, the entry `resizing` is
    required. Otherwise it may be missing.
    """
    fields.wholes("image_size", 2, most=MOST_PIXELS)
    fields.whole("channels", most=MOST_CHANNELS)
    if resized or "resizing" in fields:
        Resizing.read(fields.object("resizing"))


def read_picture_sizes(folder, manifest):
    """Return the arguments `image_size`, `channels` and `resizing` of an image preprocessor.

    `manifest` is the dict of a `manifest.json` whose entries are already checked, and `folder` the
    path of its folder, for error messages. The result is a dict.
    """
    resizing = Resizing()
    if "resizing" in manifest:
        resizing = Resizing.read(Fields(folder / MANIFEST, manifest).object("resizing"))
    size = tuple(manifest["image_size"])
    return {"image_size": size, "channels": manifest["channels"], "resizing": resizing}


def describe_pictures(preprocessor):
    """Return a dict, the entries of `manifest.json` that say how to convert images to inputs.

    `preprocessor` is the model's preprocessor of images, such as an `ImagePreprocessor`.
    """
    return {
        "image_size": list(preprocessor.image_size),
        "channels": preprocessor.channels,
        "resizing": preprocessor.resizing.config(),
        "pixels": "float32 from 0 to 1, row 0 on top",
    }


def check_picture_runner(path, run, preprocessor):
    """Raise a ValueError if a model file has another input size than its preprocessor.

    `run` is the `Runner` of the file `path`.
    """
    _, *shape = next(iter(run.shapes.values()))
    sizes = shape if len(shape) == 3 else (None, None, None)
    names = ("rows in an image", "columns in an image", "channels")
    expected = (*preprocessor.image_size, preprocessor.channels)
    check_sizes(path, [(MANIFEST, *each) for each in zip(names, expected, sizes, strict=True)])


def find_grid(model, image_size):
    """Return the (rows, columns) of the grid of patches into which a model divides an image.

    `image_size` is the (height, width) of the image.
    """
    layers = {layer.name: layer for layer in model.layers}
    embedding = models.ImageEmbedding()
    if "stem" in layers:
        stem = layers["stem"]
        embedding = models.ImageEmbedding(stem_filters=stem.filters, stem_strides=stem.strides)
    return embedding.count_patches(image_size, layers["patches"].patch_size)


def choose_image_size(data_set, size, settings):
    """Return the image size (height, width) of a new model.

    Args:
        data_set: `DataSet`. If its entry `image_size` is (height, width), this is the result.
        size: int or (height, width), the choice without this entry. An int is the longer side. If
            the size of an example is unknown, it is both sides.
        settings: as in `fit_image_size`.
    """
    size = data_set.about.get("image_size") or size
    if isinstance(size, tuple | list):
        return tuple(size)
    if any(example.size is None for example in data_set.train):
        return size, size
    return fit_image_size(data_set.train, size, settings)


def fit_image_size(examples, longer, settings):
    """Choose an image size (height, width) with the median aspect ratio of the examples.

    Args:
        examples: examples with an attribute `size`, (height, width).
        longer: int, the longer side.
        settings: dict of arguments of `ka.models.object_detector`. Both sides are rounded to
            multiples of the patch size in pixels, including the strides of the stem.
    """
    embedding = settings.get("embedding") or models.ImageEmbedding()
    cell = embedding.measure_patch(settings.get("patch_size", 16))
    ratio = float(np.median([example.size[0] / example.size[1] for example in examples]))
    sides = (longer * min(1.0, ratio), longer * min(1.0, 1.0 / ratio))
    return tuple(max(1, round(side / c)) * c for side, c in zip(sides, cell, strict=True))


def find_channels(examples):
    """Return the number of channels: 1 if all images are arrays with one channel, else 3."""
    images = [example.image for example in examples]
    one = all(isinstance(image, np.ndarray) and image.shape[-1] == 1 for image in images)
    return 1 if one else 3
