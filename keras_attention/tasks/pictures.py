"""Sizes of pictures in manifests and files, for tasks that read pictures."""

import numpy as np

from keras_attention import data
from keras_attention.core.lazy import models
from keras_attention.data.preprocessors.pictures import MOST_CHANNELS
from keras_attention.data.preprocessors.resizing import Resizing
from keras_attention.files.fields import MOST_PIXELS, Fields
from keras_attention.files.manifest import MANIFEST
from keras_attention.tasks.runners import check_sizes


def collect_pictures(examples):
    """Return a data set of pictures with classes, of an `ImageSplit` or of (pixels, numbers)."""
    split = data.ImageSplit.of(examples)
    names = [str(k) for k in range(int(split.labels.max(initial=0)) + 1)]
    return data.ImageSplit.collect(split, labels=names, dev_fraction=0)


def check_pictures(preprocessor, data_set):
    """Refuses pictures of another size than the model's."""
    shape = (*preprocessor.image_size, preprocessor.channels)
    image_shape = tuple(data_set.train.image_shape)
    if image_shape != shape:
        raise ValueError(
            f"The pictures are {image_shape}, and this model takes {shape}: read them with "
            f"image_size={shape[:2]} and color_mode={'grayscale' if shape[2] == 1 else 'rgb'!r}."
        )


def check_picture_fields(fields, resized=True):
    """Refuses a manifest (`Fields`) that does not say how pictures become inputs.

    Args:
        resized: bool, whether it says how pictures of other sizes are resized.
    """
    fields.wholes("image_size", 2, most=MOST_PIXELS)
    fields.whole("channels", most=MOST_CHANNELS)
    if resized or "resizing" in fields:
        Resizing.read(fields.object("resizing"))


def read_picture_sizes(folder, manifest):
    """Return keywords of a preprocessor of pictures, from a manifest that is checked."""
    resizing = Resizing()
    if "resizing" in manifest:
        resizing = Resizing.read(Fields(folder / MANIFEST, manifest).object("resizing"))
    size = tuple(manifest["image_size"])
    return {"image_size": size, "channels": manifest["channels"], "resizing": resizing}


def describe_pictures(preprocessor):
    """Return the manifest's entries that say how pictures become inputs."""
    return {
        "image_size": list(preprocessor.image_size),
        "channels": preprocessor.channels,
        "resizing": preprocessor.resizing.config(),
        "pixels": "float32 from 0 to 1, row 0 on top",
    }


def check_picture_runner(path, run, preprocessor):
    """Refuses a file whose pictures are of another size than the manifest beside it says."""
    _, *shape = next(iter(run.shapes.values()))
    sizes = shape if len(shape) == 3 else (None, None, None)
    names = ("rows in an image", "columns in an image", "channels")
    there = (*preprocessor.image_size, preprocessor.channels)
    check_sizes(path, [(MANIFEST, *each) for each in zip(names, there, sizes, strict=True)])


def find_grid(model, image_size):
    """Return (rows, columns) of an encoder's cells: the stem, if any, and the patches say so."""
    layers = {layer.name: layer for layer in model.layers}
    embedding = models.ImageEmbedding()
    if "stem" in layers:
        stem = layers["stem"]
        embedding = models.ImageEmbedding(stem_filters=stem.filters, stem_strides=stem.strides)
    return embedding.count_patches(image_size, layers["patches"].patch_size)


def fit_image_size(examples, longer, settings):
    """Return (height, width), shaped as pictures are on average, with `longer` as the longer side.

    Both are multiples of the cells that the stem and the patches of a model make.

    Args:
        examples: list of `BoxedImage`.
        longer: int, pixels.
        settings: dict, keywords of `ka.models.object_detector`.
    """
    embedding = settings.get("embedding") or models.ImageEmbedding()
    cell = embedding.measure_patch(settings.get("patch_size", 16))
    ratio = float(np.median([example.size[0] / example.size[1] for example in examples]))
    sides = (longer * min(1.0, ratio), longer * min(1.0, 1.0 / ratio))
    return tuple(max(1, round(side / c)) * c for side, c in zip(sides, cell, strict=True))


def find_channels(examples):
    """Return 1 where all pictures are arrays of one channel, else 3."""
    images = [example.image for example in examples]
    one = all(isinstance(image, np.ndarray) and image.shape[-1] == 1 for image in images)
    return 1 if one else 3
