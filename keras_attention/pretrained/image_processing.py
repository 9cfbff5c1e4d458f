"""`read_image_processing`: what `preprocessor_config.json` says about the pictures of a model."""

import dataclasses

from keras_attention.data.preprocessors.resizing import Resizing
from keras_attention.files.io import read_json
from keras_attention.pretrained.checkpoint import CheckpointError
from keras_attention.pretrained.config import read_config

FILE = "preprocessor_config.json"
# Of classes and arrays: pixels come out the same.
IRRELEVANT = (
    *("feature_extractor_type", "image_processor_type", "processor_class", "_processor_class"),
    *("_valid_processor_keys", "data_format", "input_data_format", "return_tensors", "device"),
    *("disable_grouping", "auto_map", "default_to_square", "image_seq_length", "do_convert_rgb"),
)
RESAMPLINGS = {0: "nearest", 1: "lanczos3", 2: "bilinear", 3: "bicubic"}  # of Pillow
LEVELS = 1 / 255  # to which pixels from 0 to 255 are scaled by all models that are known


@dataclasses.dataclass(frozen=True)
class ImageProcessing:
    """How pictures become what a checkpoint's model takes.

    Attributes:
        image_size: (height, width) of the pictures at the end.
        resizing: `ka.data.Resizing`, how they get it.
        mean, std: tuples of floats, which are taken from pixels from 0 to 1, and which these are
            divided by; None for neither.
    """

    image_size: tuple
    resizing: Resizing
    mean: tuple | None
    std: tuple | None


def read_image_processing(folder):
    """Return the `ImageProcessing` of a checkpoint's folder, a pathlib.Path.

    Raises:
        CheckpointError: there is no such file, or it says something that is not done here.
    """
    path = folder / FILE
    if not path.is_file():
        raise CheckpointError(
            f"{folder} holds no {FILE}, which says what pixels the model takes: "
            "transformers.AutoImageProcessor.from_pretrained(name).save_pretrained(folder) writes "
            "it."
        )
    try:
        said = read_json(path) | {"model_type": "model of images"}
        config = read_config(said, path, IRRELEVANT)
        found = _read(config)
        config.finish()
    except CheckpointError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged: {error!s:.200}") from error
    return found


def _read(config):
    resizes = config.flag("do_resize", True)
    size = _read_size(config, "size") if config.get("size") is not None else None
    resample = config.one_of("resample", RESAMPLINGS)
    crops = config.flag("do_center_crop", False)
    cut = _read_size(config, "crop_size") if config.get("crop_size") is not None else None
    image_size = cut if crops else size
    if not resizes or size is None or (crops and cut is None):
        raise CheckpointError(
            f"{config.path} does not say to which size pictures are resized and cut: expected "
            "do_resize and size, and with do_center_crop crop_size."
        )
    if not isinstance(image_size, tuple):
        if not crops and config.values["size"] != image_size:
            raise CheckpointError(
                f"{config.path} says size={config.values['size']}: pictures would differ in shape, "
                "where the model takes one."
            )
        image_size = (image_size, image_size)
    size = _stretch(config, size)
    resizing = Resizing(resample, None if size == image_size else size)
    resizing.check_image_size(image_size)
    return ImageProcessing(image_size, resizing, *_read_normalization(config))


def _read_size(config, name):
    """(height, width), or an int."""
    size = config.get(name)
    if not isinstance(size, dict):
        return config.whole(name)
    inner = config.object(name, {})
    if "shortest_edge" in size:
        found = inner.whole("shortest_edge")
    else:
        found = inner.whole("height"), inner.whole("width")
    inner.finish()
    return found


def _stretch(config, size):
    """Return a size that is a number alone: of ViT and DeiT a square, of CLIP the shorter side."""
    plain = type(config.values["size"]) is int
    kinds = (config.values.get("image_processor_type"), config.values.get("feature_extractor_type"))
    if plain and not any(str(kind).startswith(("CLIP", "Bit")) for kind in kinds):
        return (size, size)
    return size


def _read_normalization(config):
    """(mean, std) of pixels from 0 to 1, or None for either."""
    if not config.flag("do_rescale", True):
        raise CheckpointError(
            f"{config.path} says do_rescale=False: the model takes pixels from 0 to 255, and only "
            "those from 0 to 1 are given here."
        )
    factor = config.number("rescale_factor", LEVELS)
    offset = config.flag("rescale_offset", False) if config.values.get("rescale_offset") else False
    if abs(factor - LEVELS) > 1e-6 or offset:
        raise CheckpointError(
            f"{config.path} says rescale_factor={factor} and rescale_offset={offset}: expected "
            f"1/255 and none."
        )
    mean, std = config.get("image_mean"), config.get("image_std")
    if not config.flag("do_normalize", True):
        return None, None
    for name, values in (("image_mean", mean), ("image_std", std)):
        if not isinstance(values, list) or not all(type(x) in (int, float) for x in values):
            raise config.error(name, "numbers")
    return tuple(mean), tuple(std)
