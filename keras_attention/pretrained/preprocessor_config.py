"""Functions that read from a checkpoint how to preprocess images or sound for its model."""

import contextlib
import dataclasses

from keras_attention.blocks.log_mel_spectrogram import FRAME, STRIDE
from keras_attention.data.preprocessors.resizing import Resizing
from keras_attention.files.io import read_json
from keras_attention.pretrained.checkpoint import CheckpointError, report_invalid
from keras_attention.pretrained.config import read_config

FILE = "preprocessor_config.json"
# Settings about Python classes and array formats. They do not change the pixels.
IMAGE_IRRELEVANT = (
    *("feature_extractor_type", "image_processor_type", "processor_class", "_processor_class"),
    *("_valid_processor_keys", "data_format", "input_data_format", "return_tensors", "device"),
    *("disable_grouping", "auto_map", "default_to_square", "image_seq_length", "do_convert_rgb"),
)
# The same for audio, and settings that follow from other settings.
SOUND_IRRELEVANT = (
    *("feature_extractor_type", "processor_class", "return_attention_mask", "padding_side"),
    *("padding_value", "return_tensors", "nb_max_frames", "n_samples", "mel_filters", "padding"),
)
RESAMPLINGS = {0: "nearest", 1: "lanczos3", 2: "bilinear", 3: "bicubic"}  # Pillow's numbers
LEVELS = 1 / 255  # scales pixels from 0 to 255 to the range 0 to 1


@dataclasses.dataclass(frozen=True)
class ImageProcessing:
    """The settings for resizing and normalizing images for the model of a checkpoint.

    Attributes:
        image_size: (height, width) of the model's input.
        resizing: `Resizing`, how images are resized to this size.
        mean, std: tuples with a float for each channel, for pixels from 0 to 1. None does not
            normalize.
    """

    image_size: tuple
    resizing: Resizing
    mean: tuple | None
    std: tuple | None


@contextlib.contextmanager
def _open_config(folder, kind, ignored, processor):
    """Yield `Fields` with preprocessor_config.json, then check that every setting was read.

    Args:
        folder: pathlib.Path of the checkpoint.
        kind: str, `"images"` or `"spectrograms"`, for error messages.
        ignored: names of settings that need not be read.
        processor: str, the class in transformers that writes the file, for error messages.
    """
    path = folder / FILE
    if not path.is_file():
        raise CheckpointError(
            f"{folder} holds no {FILE}, which describes the {kind} that the model takes: "
            f"transformers.{processor}.from_pretrained(name).save_pretrained(folder) writes it."
        )
    with report_invalid(f"{path} is damaged"):
        config = read_config(read_json(path) | {"model_type": f"model of {kind}"}, path, ignored)
        yield config
        config.finish()


def read_image_processing(folder):
    """Return how images are resized and normalized for a checkpoint, as an `ImageProcessing`.

    Args:
        folder: pathlib.Path of a checkpoint, with `preprocessor_config.json`.

    Raises:
        CheckpointError: the file is missing or damaged, or has a setting that is not supported.
    """
    with _open_config(folder, "images", IMAGE_IRRELEVANT, "AutoImageProcessor") as config:
        image_size, size = _read_sizes(config)
        resample = config.one_of("resample", RESAMPLINGS)
        resizing = Resizing(resample, None if size == image_size else size)
        resizing.check_image_size(image_size)
        return ImageProcessing(image_size, resizing, *_read_normalization(config))


def _read_sizes(config):
    """Return the size of the model's input, and the size of images before a center crop.

    The first is (height, width). The second is also (height, width), or an int for the shorter
    side.
    """
    resizes, crops = config.flag("do_resize", True), config.flag("do_center_crop", False)
    size = _read_size(config, "size") if config.get("size") is not None else None
    crop = _read_size(config, "crop_size") if config.get("crop_size") is not None else None
    if not resizes or size is None or (crops and crop is None):
        raise CheckpointError(
            f"{config.path} does not say how images are resized: expected do_resize and size, and "
            "with do_center_crop also crop_size."
        )
    image_size = crop if crops else size
    if not isinstance(image_size, tuple):
        if not crops and config.values["size"] != image_size:
            raise CheckpointError(
                f"{config.path} says size={config.values['size']}. Images would differ in shape, "
                "but the model takes one shape."
            )
        image_size = (image_size, image_size)
    kinds = (config.values.get("image_processor_type"), config.values.get("feature_extractor_type"))
    shorter_side = any(str(kind).startswith(("CLIP", "Bit")) for kind in kinds)
    if type(config.values["size"]) is int and not shorter_side:  # a square for ViT and DeiT
        size = (size, size)
    return image_size, size


def _read_size(config, name):
    """Return the setting `name`, a size, as (height, width) or an int for the shorter side."""
    size = config.get(name)
    if not isinstance(size, dict):
        return config.whole(name)
    inner = config.object(name, {})
    if "shortest_edge" in size:
        size = inner.whole("shortest_edge")
    else:
        size = inner.whole("height"), inner.whole("width")
    inner.finish()
    return size


def _read_normalization(config):
    """Return the mean and the standard deviation for pixels from 0 to 1, both None if not used."""
    if not config.flag("do_rescale", True):
        raise CheckpointError(
            f"{config.path} says do_rescale=False: the model takes pixels from 0 to 255, which is "
            "not supported."
        )
    factor = config.number("rescale_factor", LEVELS)
    offset = config.flag("rescale_offset", False) if config.values.get("rescale_offset") else False
    if abs(factor - LEVELS) > 1e-6 or offset:
        raise CheckpointError(
            f"{config.path} says rescale_factor={factor} and rescale_offset={offset}: expected "
            f"1/255 and no offset."
        )
    mean, std = config.get("image_mean"), config.get("image_std")
    if not config.flag("do_normalize", True):
        return None, None
    for name, values in (("image_mean", mean), ("image_std", std)):
        if not isinstance(values, list) or not all(type(x) in (int, float) for x in values):
            raise config.error(name, "numbers")
    return tuple(mean), tuple(std)


def read_sound_processing(folder, keywords):
    """Return a dict to add to `keywords`, so that the input of a speech model is a waveform.

    Args:
        folder: pathlib.Path of the checkpoint, with `preprocessor_config.json`.
        keywords: dict, the settings from `config.json`.

    Raises:
        CheckpointError: the file is missing, or describes spectrograms that this package cannot
            compute.
    """
    with _open_config(folder, "spectrograms", SOUND_IRRELEVANT, "AutoFeatureExtractor") as config:
        rate = config.whole("sampling_rate", 16000)
        expected = {
            "feature_size": keywords["num_mel_bins"],
            "hop_length": round(STRIDE * rate),
            "n_fft": round(FRAME * rate),
        }
        for name, value in expected.items():
            config.one_of(name, {value: None}, value)
        seconds = config.number("chunk_length", 30)
        config.refuse("dither")
        config.one_of("do_normalize", {False: None}, False)
    if round(seconds / STRIDE) != keywords["num_frames"]:
        raise CheckpointError(
            f"{config.path} says chunk_length={seconds}, but the model takes "
            f"{keywords['num_frames']} frames of {STRIDE} seconds."
        )
    return {"input": "waveform", "sampling_rate": rate}
