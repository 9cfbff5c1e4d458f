"""`load` and `describe`: a checkpoint of others as a functional model of our layers."""

import contextlib
import dataclasses
import functools
import math
import pathlib
import weakref

import keras

from keras_attention.core import keras_internals
from keras_attention.pretrained.checkpoint import CONFIG, CheckpointError
from keras_attention.pretrained.image_processing import read_image_processing
from keras_attention.pretrained.keras_hub import read_checkpoint
from keras_attention.pretrained.parts import build_model
from keras_attention.pretrained.resized_positions import (
    POSITIONS,
    check_image_size,
    find_grid,
    resize_positions,
)
from keras_attention.pretrained.settings import IMAGE_ENCODERS, read_settings
from keras_attention.pretrained.sound_processing import read_sound_processing
from keras_attention.pretrained.weights import Fold, match_weights

ORIGINS = weakref.WeakKeyDictionary()  # model -> the folder that `load` made it of, for `save`
NEAR_HEADS = {"pooler", "transform"}  # layers before the logits of some heads


@dataclasses.dataclass(frozen=True)
class Description:
    """What `load` would build of a checkpoint.

    Attributes:
        model_type: str, the architecture by its own name.
        builder: str, the function in `ka.models`.
        keywords: dict, the settings of the checkpoint that it is built by.
        parameters: int, numbers in the model's weights.
        dtypes: tuple of str, the types in which the file has them.
        unused: tuple of str, tensors of the file that the model has no use for, such as another
            head, or what is stored twice.
        fresh_head: bool, whether the head is a new one that is to be trained.
    """

    model_type: str
    builder: str
    keywords: dict
    parameters: int
    dtypes: tuple
    unused: tuple
    fresh_head: bool


def load(
    folder,
    *,
    task=None,
    num_classes=None,
    pooling="auto",
    normalize_pixels=False,
    image_size=None,
    waveform=False,
    revision=None,
    dtype=None,
):
    """Return a functional model of our layers, with the weights of a checkpoint.

    Its outputs are those of the original. It trains in `fit`, generates with a cache, shows its
    attention, saves and exports as every model here. Checkpoints are those of Hugging Face, files
    of timm's vision transformers, and presets of KerasHub. Only settings and files of numbers
    (safetensors, HDF5) are read; nothing of a checkpoint is run.

    Args:
        folder: path of a folder with the files, or the id of a repository on the Hugging Face Hub,
            such as `"distilbert-base-uncased"`, which `huggingface_hub` fetches.
        task: str, a builder in `ka.models`, where it is to be another than that of the file's head:
            a text encoder becomes `"text_encoder"`, `"text_classifier"`, `"sequence_labeler"`,
            `"question_answerer"` or `"masked_language_model"`, one of images `"image_encoder"` or
            `"vision_transformer"`. A head that the file does not have is new, to be trained. Of a
            file with two towers (CLIP, SigLIP) it says which: `"image_encoder"` or
            `"text_encoder"`.
        num_classes: int, the classes or labels of a new head; None for those of the file.
        pooling: of a `text_encoder` and a new head of texts, as there; `"auto"` for what the files
            of Sentence Transformers beside it say, and without such files for a vector of each
            token, or before a head BERT's first token.
        normalize_pixels: bool, of images: whether the model takes pixels from 0 to 1, and itself
            does with them what `preprocessor_config.json` says.
        image_size: int or (height, width), of images of another size than the file says, such as
            224 for DINOv2, which was trained with 518: the positions are resized as the original
            does it. A multiple of the patch size; None for the file's.
        waveform: bool, of speech: whether the model takes samples, and itself makes the spectrogram
            that `preprocessor_config.json` describes.
        revision: str, of a repository: a branch, a tag or a commit.
        dtype: a Keras dtype or policy for the layers, such as `"mixed_bfloat16"`; None for the
            global one. Weights are float32 unless it says otherwise.

    Returns:
        A functional `keras.Model`, as the builder makes it.

    Raises:
        CheckpointError: a ValueError: the checkpoint is damaged, or says something that no builder
            here does. Nothing is loaded in part.
    """
    checkpoint = read_checkpoint(find_folder(folder, revision))
    model, variables, match, _ = _build(
        checkpoint, task, num_classes, pooling, image_size, dtype, normalize_pixels, waveform
    )
    match.fill()
    for variable in variables:  # of a new head, and the seeds of dropout
        if not keras_internals.has_value(variable):
            keras_internals.give_value(variable)
    ORIGINS[model] = checkpoint.folder
    return model


@contextlib.contextmanager
def _dtype_policy(dtype):
    """Inside, layers are made with this policy, if it is not None."""
    before = keras.config.dtype_policy()
    if dtype is not None:
        keras.config.set_dtype_policy(dtype)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def describe(
    folder, *, task=None, num_classes=None, pooling="auto", image_size=None, revision=None
):
    """What `load` would build of a checkpoint; no weight is read.

    Args: as for `load`.

    Returns:
        `Description`.
    """
    checkpoint = read_checkpoint(find_folder(folder, revision))
    return _build(checkpoint, task, num_classes, pooling, image_size)[-1]


def _build(
    checkpoint,
    task,
    num_classes,
    pooling,
    image_size=None,
    dtype=None,
    normalize_pixels=False,
    waveform=False,
):
    """A model without values, its variables, the `Match` with tensors, and the `Description`."""
    settings = read_settings(checkpoint, task, num_classes, pooling)
    architecture, builder, fresh = settings.architecture, settings.builder, settings.fresh
    of_file, keywords, more = settings.keywords, settings.keywords, {}
    if image_size is not None:
        size = check_image_size(image_size, builder, keywords, checkpoint)
        keywords = keywords | {"image_size": size}
    if waveform:
        if builder != "speech_to_text":
            raise ValueError(f"waveform=True is for speech, and this is a {builder}.")
        more = read_sound_processing(checkpoint.folder, keywords)
    if normalize_pixels:
        if builder not in IMAGE_ENCODERS:
            raise ValueError(f"normalize_pixels=True is for images, and this is a {builder}.")
        found = read_image_processing(checkpoint.folder)
        more = {"pixel_mean": found.mean, "pixel_std": found.std}
    build = functools.partial(build_model, builder, keywords | more)
    try:
        with _dtype_policy(dtype):
            model, variables = keras_internals.build_without_values(build)
            keras_internals.choose_layouts(model)
    except (TypeError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), "")
        raise CheckpointError(
            f"{checkpoint.folder / CONFIG} describes a model that cannot be built: {reason}"
        ) from error
    table = architecture.table(settings.config, builder, of_file, checkpoint.tensors)
    if image_size is not None and find_grid(keywords) != find_grid(of_file):
        table[POSITIONS] = resize_positions(
            table[POSITIONS], of_file, keywords, architecture.ANTIALIASES
        )
    new, ignored = (), architecture.IGNORED
    if isinstance(ignored, dict):
        ignored = ignored[builder]
    elif fresh or builder in ("text_encoder", "image_encoder"):
        ignored = (*ignored, architecture.OTHER_HEADS)
    if fresh:  # a pooler or transform that the file has is kept, as it is pretrained, too
        kernels = {name: table.get(f"{name}/kernel") for name in NEAR_HEADS}
        names = {n: x.names if isinstance(x, Fold) else [x] for n, x in kernels.items()}
        kept = {name for name in NEAR_HEADS if set(names[name]) <= checkpoint.tensors.keys()}
        new = ("logits/", *(f"{name}{end}/" for name in NEAR_HEADS - kept for end in ("", "_norm")))
    match = match_weights(model, checkpoint, table, ignored=ignored, fresh=new)
    found = Description(
        model_type=checkpoint.model_type,
        builder=builder,
        keywords=keywords,
        parameters=sum(math.prod(variable.shape) for variable in match.weights.values()),
        dtypes=tuple(sorted({tensor.dtype for tensor in checkpoint.tensors.values()})),
        unused=tuple(match.unused),
        fresh_head=fresh,
    )
    return model, variables, match, found


def find_folder(folder, revision=None):
    """Return the folder of a checkpoint: one that is there, or one that is fetched by its id."""
    path = pathlib.Path(folder)
    if path.is_dir():
        return path
    name = str(folder).removeprefix("hf://")
    if name.count("/") > 1 or name.startswith((".", "/", "~")) or not name:
        raise CheckpointError(f"There is no folder {folder}.")
    try:
        import huggingface_hub
    except ImportError as error:
        raise ImportError(
            f"There is no folder {folder}, and to fetch {name} from the Hugging Face Hub "
            "huggingface_hub is needed: pip install 'keras-attention-zoo[pretrained]'."
        ) from error
    patterns = ["*.json", "*.safetensors", "*.txt", "*.model", "*.spm", "*.weights.h5"]
    fetched = huggingface_hub.snapshot_download(name, revision=revision, allow_patterns=patterns)
    return pathlib.Path(fetched)
