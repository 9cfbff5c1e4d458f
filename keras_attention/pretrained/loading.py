"""`load` and `describe`: build a Keras model from a published checkpoint."""

import contextlib
import dataclasses
import functools
import math
import pathlib
import weakref

import keras

from keras_attention.core import keras_internals
from keras_attention.pretrained.checkpoint import CONFIG, CheckpointError
from keras_attention.pretrained.keras_hub import read_checkpoint
from keras_attention.pretrained.parts import build_model
from keras_attention.pretrained.preprocessor_config import (
    read_image_processing,
    read_sound_processing,
)
from keras_attention.pretrained.resized_positions import (
    POSITIONS,
    check_image_size,
    find_grid,
    resize_positions,
)
from keras_attention.pretrained.settings import IMAGE_ENCODERS, read_settings
from keras_attention.pretrained.table_entries import get_conversion
from keras_attention.pretrained.weights import match_weights

ORIGINS = weakref.WeakKeyDictionary()  # model -> folder that it was loaded from, for `save`
NEAR_HEADS = {"pooler", "transform"}  # layers that some heads have before the logits


@dataclasses.dataclass(frozen=True)
class Description:
    """Facts about the model that `load` would build. The function `describe` returns them.

    Attributes:
        model_type: str, the name of the architecture in `config.json`.
        builder: str, the name of the function in `ka.models` that builds the model.
        keywords: dict, the settings of the model, from the checkpoint.
        parameters: int, the number of parameters.
        dtypes: tuple of str, the dtypes of the stored tensors.
        unused: tuple of str, names of tensors that are not loaded, such as another head or a copy.
        fresh_head: bool, whether the head is randomly initialized and must be trained.
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
    """Load a pretrained checkpoint as a functional Keras model, built from this package's layers.

    The model computes the same outputs as the original. Like every model of this package, it can be
    trained with `fit`, generate with a cache, record its attention, be saved and be exported. You
    can load checkpoints of Hugging Face, vision transformers of timm, and folders that KerasHub
    saved. Only settings and weights (safetensors, HDF5) are read. Code in a checkpoint is never
    run.

    Args:
        folder: path of a folder with the files, or the id of a repository on the Hugging Face Hub
            such as `"distilbert-base-uncased"`, which `huggingface_hub` downloads.
        task: str, the name of a function in `ka.models`, to load the checkpoint with another head.
            None keeps the head of the checkpoint. Text encoders load as `"text_encoder"`,
            `"text_classifier"`, `"sequence_labeler"`, `"question_answerer"` or
            `"masked_language_model"`, image encoders as `"image_encoder"` or
            `"vision_transformer"`. A head that the checkpoint does not have is randomly initialized
            and must be trained. For CLIP and SigLIP, which have two encoders, `task` must be
            `"image_encoder"` or `"text_encoder"`.
        num_classes: int, the number of classes or labels of a new head. None keeps the head of the
            checkpoint.
        pooling: how a `text_encoder` or a new text head makes one vector from the vectors of the
            tokens, such as `"mean"`, with the choices of `ka.models.text_encoder`. `"auto"` reads
            it from the files of Sentence Transformers. Without these files, an encoder returns a
            vector for each token, and a head reads the first token.
        normalize_pixels: bool, for images: whether the model itself normalizes its input, pixels
            from 0 to 1, with the mean and standard deviation in `preprocessor_config.json`.
        image_size: int or (height, width), multiples of the patch size, for images of another size
            than the checkpoint's, such as 224 for DINOv2, which was trained with 518. The position
            embeddings are resized as in the original. None keeps the size.
        waveform: bool, for speech: whether the input is a waveform. The model then computes the
            spectrogram itself, with the settings in `preprocessor_config.json`.
        revision: str, a branch, tag or commit of the repository. None loads the default branch.
        dtype: Keras dtype or policy of the layers, such as `"mixed_bfloat16"`. None uses the global
            policy. The weights stay float32, unless the policy says otherwise.

    Returns:
        A functional `keras.Model`.

    Raises:
        CheckpointError: a ValueError. The checkpoint is damaged, or it has a setting or a tensor
            that is not supported.
    """
    checkpoint = read_checkpoint(find_folder(folder, revision))
    model, variables, match, _ = _build(
        checkpoint, task, num_classes, pooling, image_size, dtype, normalize_pixels, waveform
    )
    match.fill()
    for variable in variables:  # weights of a new head, and seeds of dropout
        if not keras_internals.has_value(variable):
            keras_internals.give_value(variable)
    ORIGINS[model] = checkpoint.folder
    return model


@contextlib.contextmanager
def _dtype_policy(dtype):
    """Set the global dtype policy inside the `with` block. None keeps the current policy."""
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
    """Return the `Description` of the model that `load` would build, without reading any weights.

    `load` explains the arguments, which choose the checkpoint, its head and the image size.
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
    """Build the model of a `Checkpoint` without its weights. `load` explains the arguments.

    Returns:
        A tuple: the model, a list of its variables that have no values yet, the `Match` of weights
        and tensors, the `Description`.
    """
    settings = read_settings(checkpoint, task, num_classes, pooling)
    architecture, builder, fresh = settings.architecture, settings.builder, settings.fresh
    of_file, keywords, more = settings.keywords, settings.keywords, {}
    if image_size is not None:
        size = check_image_size(image_size, builder, keywords, checkpoint)
        keywords = keywords | {"image_size": size}
    if waveform:
        if builder != "speech_to_text":
            raise ValueError(f"waveform=True is for speech, but this is a {builder}.")
        more = read_sound_processing(checkpoint.folder, keywords)
    if normalize_pixels:
        if builder not in IMAGE_ENCODERS:
            raise ValueError(f"normalize_pixels=True is for images, but this is a {builder}.")
        processing = read_image_processing(checkpoint.folder)
        more = {"pixel_mean": processing.mean, "pixel_std": processing.std}
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
            table[POSITIONS], of_file, keywords, architecture.ANTIALIAS
        )
    new, ignored = (), architecture.IGNORED
    if isinstance(ignored, dict):
        ignored = ignored[builder]
    elif fresh or builder in ("text_encoder", "image_encoder"):
        ignored = (*ignored, architecture.OTHER_HEADS)
    if fresh:  # if the file has a pooler or transform, it is pretrained, so load it
        new = ["logits/"]
        for name in NEAR_HEADS:
            names = get_conversion(table.get(f"{name}/kernel")).names
            if not checkpoint.tensors.keys() >= set(names):
                new += [f"{name}/", f"{name}_norm/"]
    match = match_weights(model, checkpoint, table, ignored=ignored, fresh=new)
    description = Description(
        model_type=checkpoint.model_type,
        builder=builder,
        keywords=keywords,
        parameters=sum(math.prod(variable.shape) for variable in match.weights.values()),
        dtypes=tuple(sorted({tensor.dtype for tensor in checkpoint.tensors.values()})),
        unused=tuple(match.unused),
        fresh_head=fresh,
    )
    return model, variables, match, description


def find_folder(folder, revision=None):
    """Return the pathlib.Path of a checkpoint. If `folder` is the id of a repository, download it.

    `revision` is a branch, tag or commit of the repository. None is the default branch. Raise a
    CheckpointError if there is neither such a folder nor such a repository.
    """
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
            f"There is no folder {folder}. To download {name} from the Hugging Face Hub, install "
            "huggingface_hub: pip install 'keras-attention-zoo[pretrained]'."
        ) from error
    patterns = ["*.json", "*.safetensors", "*.txt", "*.model", "*.spm", "*.weights.h5"]
    path = huggingface_hub.snapshot_download(name, revision=revision, allow_patterns=patterns)
    return pathlib.Path(path)
