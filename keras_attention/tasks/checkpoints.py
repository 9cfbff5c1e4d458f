"""Open Hugging Face checkpoints as tasks, with preprocessors that are made from their files."""

import dataclasses

from keras_attention import data
from keras_attention.blocks.log_mel_spectrogram import STRIDE
from keras_attention.core.lazy import keras, pretrained
from keras_attention.pretrained.architecture import read_builder
from keras_attention.pretrained.checkpoint import CONFIG, CheckpointError
from keras_attention.pretrained.generation_settings import (
    read_generation_settings,
    read_speech_prompts,
)
from keras_attention.pretrained.keras_hub import read_checkpoint
from keras_attention.pretrained.loading import find_folder
from keras_attention.pretrained.preprocessor_config import (
    read_image_processing,
    read_sound_processing,
)
from keras_attention.pretrained.sentence_transformers import read_pooling
from keras_attention.pretrained.settings import read_settings
from keras_attention.tasks import recipes
from keras_attention.tasks.registry import get_builder
from keras_attention.tasks.writing import Writing

PREPROCESSORS = {
    "sequence_labeler": data.TaggerPreprocessor,
    "text_classifier": data.TextPreprocessor,
    "multi_label_classifier": data.TextPreprocessor,
}
LONGEST_ROW, LONGEST_QUESTION = 384, 64  # tokens, as in Devlin et al. (2019) for SQuAD
MEAN = "mean"  # pooling of a checkpoint without Sentence Transformers' files
NAMELESS = ("LABEL_0", "LABEL_1")  # labels of a new head, which `fit` replaces by those in the data
TASK_NAMES = {"encoder_decoder": "seq2seq_transformer"}  # builder -> task, where the names differ
LENGTH = 128  # default maximum number of tokens for training or generation


def find_task(preset):
    """Return the name of the task that the head of a Hugging Face checkpoint was trained for.

    `preset` is `"hf://name"`, or the path of a folder.

    Raises:
        ValueError: the checkpoint has no head, or this package has no task for it.
    """
    folder = find_folder(preset)
    builder, _ = _read_builder(folder)
    if builder == "text_classifier" and _has_label_sets(folder):
        builder = "multi_label_classifier"
    if builder == "text_encoder" and read_pooling(folder):
        builder = "text_embedder"
    if builder == "image_encoder" and _has_towers(folder):
        builder = "image_text_matcher"
    builder = TASK_NAMES.get(builder, builder)
    if builder in OPENERS:
        return builder
    if builder == "image_encoder":
        raise ValueError(
            f"{preset} has no head that classifies images. Open it with "
            "ka.tasks.ImageClassifier.from_preset, which adds a new head to train, or with "
            "ka.pretrained.load."
        )
    raise ValueError(
        f"{preset} has no head that labels text or tokens, or marks answers. Open it with "
        "from_preset of ka.tasks.TextClassifier, SequenceLabeler or QuestionAnswerer, which adds a "
        "new head to train, of ka.tasks.TextEmbedder, or with ka.pretrained.load."
    )


def open_checkpoint(preset, task_class, options=()):
    """Open a Hugging Face checkpoint as a task, and return it.

    If the checkpoint has no head for this task, the model gets a new, untrained head.

    Args:
        preset: str, `"hf://name"`, or the path of a folder.
        task_class: subclass of `Task`, the class of the result.
        options: dict of options for this task, such as `max_length`. `list_options` returns their
            names.

    Raises:
        ValueError: the class cannot open this kind of checkpoint, or does not have one of the
            options.
    """
    (builder,) = [name for name in task_class.builders if name in OPENERS] or [None]
    if builder is None:
        raise ValueError(
            f"A {task_class.__name__} cannot be made from a checkpoint: load {preset} with "
            "ka.pretrained.load."
        )
    names, options = list_options(builder), dict(options)
    if unknown := [name for name in options if name not in names]:
        raise ValueError(
            f"{unknown[0]}= is not an option of a {task_class.__name__} from a checkpoint: "
            + (f"expected some of {', '.join(names)}." if names else "it has none.")
        )
    folder = find_folder(preset)
    file_builder, positions = _read_builder(folder)
    takes, opener, _ = OPENERS[builder]
    if file_builder not in takes:
        raise ValueError(
            f"{preset} is a {file_builder}, and a {task_class.__name__} is made from a "
            f"{' or '.join(takes)}."
        )
    task = opener(folder, task_class, builder, file_builder, positions, **options)
    task.recipe = recipes.choose_recipe(builder, recipes.PRETRAINED)
    task.pretrained, task.checkpoint = True, folder
    return task


def list_options(builder):
    """Return the names of the options that `open_checkpoint` accepts, a tuple of str.

    `builder` is the name of the task, such as `"text_classifier"`.
    """
    return OPENERS[builder][2] if builder in OPENERS else ()


def _open_labels(folder, task_class, builder, file_builder, positions, *, pooling="auto"):
    made_by = get_builder(builder)
    fresh = file_builder != made_by
    if builder == "multi_label_classifier":  # a single-label head has the same builder
        fresh = fresh or not _has_label_sets(folder)
    if fresh:
        names = NAMELESS
        model = pretrained.load(folder, task=made_by, num_classes=len(names), pooling=pooling)
    else:
        model = pretrained.load(folder, pooling=pooling)
        names = _read_labels(read_checkpoint(folder), model.output_shape[-1])
    # Sentences are never truncated, because tags would be lost. They may use all positions.
    longest = positions if builder == "sequence_labeler" else None
    tokenizer = pretrained.tokenizer(folder, max_length=longest)
    return task_class(model, PREPROCESSORS[builder](tokenizer, names), builder=builder)


def _open_vectors(folder, task_class, builder, file_builder, positions, *, pooling="auto"):
    """Open a `TextEmbedder`. A checkpoint that only computes vectors of tokens gets a pooling."""
    if pooling == "auto" and not read_pooling(folder):
        pooling = MEAN
    model = pretrained.load(folder, task="text_encoder", pooling=pooling)
    preprocessor = data.TextPairPreprocessor(pretrained.tokenizer(folder))
    return task_class(model, preprocessor, builder=builder)


def _has_label_sets(folder):
    """Return whether the head of a checkpoint predicts any number of labels for one text."""
    return read_checkpoint(folder).config.get("problem_type") == "multi_label_classification"


def _open_answers(folder, task_class, builder, file_builder, positions):
    """Open a question answering task. If the checkpoint has no head for this, make a new one.

    `positions` is the maximum number of tokens in an input, or None without a limit.
    """
    length = LONGEST_ROW if positions is None else min(LONGEST_ROW, positions)
    preprocessor = data.QuestionPreprocessor(
        pretrained.tokenizer(folder),
        maximum_length=length,
        maximum_question=min(LONGEST_QUESTION, length // 4),
    )
    return task_class(pretrained.load(folder, task=builder), preprocessor)


def _open_masked(folder, task_class, builder, file_builder, positions, *, max_length=LENGTH):
    length = _bound(max_length, positions)
    tokenizer = pretrained.tokenizer(folder)
    preprocessor = data.MaskedLMPreprocessor(tokenizer, length)
    return task_class(pretrained.load(folder), preprocessor)


def _open_running_text(folder, task_class, builder, file_builder, positions, *, max_length=LENGTH):
    settings = read_generation_settings(read_checkpoint(folder))
    for name, value in settings.list_constraints(start_tokens=0).items():
        if value and name != "forced_bos_token_id":
            raise CheckpointError(
                f"{folder} sets {name}={value}, which a {task_class.__name__} cannot apply: "
                "load it with ka.pretrained.load, and write with ka.generation.generate and its "
                "constraints=."
            )
    window = _bound(max_length, positions)
    # The tokenizer must not truncate text, because the text is cut into windows later.
    tokenizer = dataclasses.replace(pretrained.tokenizer(folder), max_length=None)
    preprocessor = data.SequencePreprocessor(tokenizer, end_token_ids=settings.end_token_ids)
    temperature = {} if settings.temperature is None else {"temperature": settings.temperature}
    room = _bound(4 * window, positions)
    return task_class(
        pretrained.load(folder),
        preprocessor,
        maximum_length=window,
        max_length=room,
        max_new_tokens=max(1, room // 2),
        **temperature,
    )


def _open_pairs(
    folder,
    task_class,
    builder,
    file_builder,
    positions,
    *,
    prefix="",
    max_length=LENGTH,
    beam=None,
    length_penalty=None,
    score="bleu",
):
    settings = read_generation_settings(read_checkpoint(folder))
    tokenizer = pretrained.tokenizer(folder)
    preprocessor = data.SequencePreprocessor(
        tokenizer, tokenizer, settings.end_token_ids, settings.start_token_id, prefix
    )
    penalty = settings.length_penalty if length_penalty is None else length_penalty
    return task_class(
        pretrained.load(folder),
        preprocessor,
        writing=Writing(
            settings.beam if beam is None else beam,
            max(0.0, penalty),
            _bound(max_length, positions),
            **settings.list_constraints(start_tokens=1),
        ),
        score=score,
        builder=builder,
    )


def _open_speech(
    folder,
    task_class,
    builder,
    file_builder,
    positions,
    *,
    language=None,
    task=None,
    max_length=None,
    beam=None,
    length_penalty=None,
):
    """Open `SpeechToText` from a Whisper checkpoint. The model computes the spectrogram itself."""
    checkpoint = read_checkpoint(folder)
    settings = read_generation_settings(checkpoint)
    prompts = read_speech_prompts(checkpoint)
    prompts |= {k: v for k, v in (("language", language), ("task", task)) if v is not None}
    keywords = read_settings(checkpoint).keywords
    preprocessor = data.SpeechTextPreprocessor(
        pretrained.tokenizer(folder),
        read_sound_processing(folder, keywords)["sampling_rate"],
        seconds=keywords["num_frames"] * STRIDE,
        end_token_ids=settings.end_token_ids,
        prompt=data.SpeechPrompt(settings.start_token_id, **prompts),
    )
    room = positions - len(preprocessor.start_token_id) + 1
    penalty = settings.length_penalty if length_penalty is None else length_penalty
    return task_class(
        pretrained.load(folder, waveform=True),
        preprocessor,
        writing=Writing(
            settings.beam if beam is None else beam,
            max(0.0, penalty),
            _bound(positions // 2 if max_length is None else max_length, room),
            **settings.list_constraints(len(preprocessor.start_token_id)),
        ),
        score="translation" if preprocessor.prompt.task == "translate" else "error_rates",
        builder=builder,
    )


def _open_pictures(folder, task_class, builder, file_builder, positions):
    """Open an `ImageClassifier`, with a model whose inputs are pixels from 0 to 1.

    The model normalizes the pixels in a layer. The normalization is not folded into the weights of
    the patch embedding, because fine-tuned weights may be converted back to a Hugging Face
    checkpoint, which normalizes pixels outside the model.
    """
    processing = read_image_processing(folder)
    names, options = NAMELESS, {"image_size": processing.image_size, "normalize_pixels": True}
    if _has_towers(folder):
        model = pretrained.load(folder, task=file_builder, **options)
        head = keras.layers.Dense(len(names), dtype="float32", name="logits")
        model = keras.Model(model.input, head(model.output), name=builder)
    elif file_builder != builder:
        model = pretrained.load(folder, task=builder, num_classes=len(names), **options)
    else:
        model = pretrained.load(folder, **options)
        names = _read_labels(read_checkpoint(folder), model.output_shape[-1])
    *size, channels = model.input_shape[1:]
    preprocessor = data.ImagePreprocessor(names, tuple(size), channels, processing.resizing)
    return task_class(model, preprocessor)


def _open_matcher(folder, task_class, builder, file_builder, positions):
    """Open an `ImageTextMatcher` with both encoders, and with the temperature in the file."""
    if not _has_towers(folder):
        raise ValueError(
            f"{folder} has no text encoder beside its image encoder: expected a checkpoint of CLIP "
            "or SigLIP. Open this one with ka.tasks.ImageClassifier.from_preset."
        )
    processing, checkpoint = read_image_processing(folder), read_checkpoint(folder)
    options = {"image_size": processing.image_size, "normalize_pixels": True}
    images = pretrained.load(folder, task="image_encoder", **options)
    texts = pretrained.load(folder, task="text_encoder")
    tensors = checkpoint.tensors
    model = task_class.join_encoders(images, texts, bias=0.0 if "logit_bias" in tensors else None)
    logits = model.get_layer("logits")
    for variable in logits.weights:
        variable.assign(tensors[variable.name].read().astype("float32").reshape(()))
    *size, channels = images.input_shape[1:]
    preprocessor = data.ImageTextPairPreprocessor(
        pretrained.tokenizer(folder),
        tuple(size),
        channels,
        processing.resizing,
        pad_to_maximum=read_settings(checkpoint, "text_encoder").keywords["pooling"] == "last",
    )
    return task_class(model, preprocessor)


LABELS = (
    *("text_encoder", "masked_language_model", "text_classifier", "sequence_labeler"),
    "question_answerer",
)
# Name of a task -> (builders of the accepted checkpoints, function that opens one, its options).
# The function's arguments are the folder of the checkpoint, the class of the task, the functions of
# `ka.models` for the task and for the checkpoint, and the maximum number of tokens or None.
OPENERS = {
    "causal_language_model": (("causal_language_model",), _open_running_text, ("max_length",)),
    "image_text_matcher": (("image_encoder",), _open_matcher, ()),
    "masked_language_model": (("masked_language_model",), _open_masked, ("max_length",)),
    "seq2seq_transformer": (
        ("encoder_decoder",),
        _open_pairs,
        ("prefix", "max_length", "beam", "length_penalty", "score"),
    ),
    "multi_label_classifier": (LABELS, _open_labels, ("pooling",)),
    "question_answerer": (LABELS, _open_answers, ()),
    "sequence_labeler": (LABELS, _open_labels, ()),
    "speech_to_text": (
        ("speech_to_text",),
        _open_speech,
        ("language", "task", "max_length", "beam", "length_penalty"),
    ),
    "text_classifier": (LABELS, _open_labels, ("pooling",)),
    "text_embedder": (LABELS, _open_vectors, ("pooling",)),
    "vision_transformer": (("vision_transformer", "image_encoder"), _open_pictures, ()),
}


def _read_builder(folder):
    """Return (name of a function, number of positions) for the model of a checkpoint.

    The function of `ka.models` makes the model with the head of the checkpoint. The number of
    positions is the maximum number of tokens in an input, or None if the model has no limit.
    """
    checkpoint = read_checkpoint(folder)
    task = "image_encoder" if _has_towers(folder) else None
    settings = read_settings(checkpoint, task)
    builder, keywords = settings.builder, settings.keywords
    return builder, keywords.get("max_length")


def _has_towers(folder):
    """Return whether a checkpoint contains both an image encoder and a text encoder."""
    towers = read_builder(read_checkpoint(folder))
    return isinstance(towers, tuple) and "image_encoder" in towers


def _bound(length, positions):
    """Return the smaller of two ints, or `length` if `positions` is None (no limit)."""
    return length if positions is None else min(length, positions)


def _read_labels(checkpoint, count):
    """Read the names of a checkpoint's `count` labels from `config.json`, in the order of outputs.

    If the file has no names, return `LABEL_0`, `LABEL_1` and so on.
    """
    id2label = checkpoint.config.get("id2label")
    if id2label is None:
        return [f"LABEL_{i}" for i in range(count)]
    names = [id2label.get(str(i)) for i in range(count)] if isinstance(id2label, dict) else []
    if len(id2label) != count or len(set(names)) != count or not all(
        isinstance(name, str) and name.strip() for name in names
    ):  # fmt: skip
        raise CheckpointError(
            f"{checkpoint.folder / CONFIG} has id2label {id2label!r:.200}: expected {count} "
            "different names, one for each output of the head."
        )
    return names
