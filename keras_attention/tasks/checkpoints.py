"""Checkpoints of Hugging Face as tasks: the model, and a preprocessor of the files beside it."""

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
from keras_attention.pretrained.image_processing import read_image_processing
from keras_attention.pretrained.keras_hub import read_checkpoint
from keras_attention.pretrained.loading import find_folder
from keras_attention.pretrained.settings import read_settings
from keras_attention.pretrained.sound_processing import read_sound_processing
from keras_attention.tasks import recipes
from keras_attention.tasks.registry import get_builder
from keras_attention.tasks.writing import Writing

PREPROCESSORS = {
    "sequence_labeler": data.TaggerPreprocessor,
    "text_classifier": data.TextPreprocessor,
    "multi_label_classifier": data.TextPreprocessor,
}
LONGEST_ROW, LONGEST_QUESTION = 384, 64  # tokens, as Devlin et al. (2019) have them for SQuAD
NAMELESS = ("LABEL_0", "LABEL_1")  # of a new head, until `fit` sees the labels
# The builder of a file -> that of the task, which is of the same kind.
OF_TASK = {"encoder_decoder": "seq2seq_transformer"}
LENGTH = 128  # tokens of a text that is trained on or written, unless another number is asked for


def find_task(preset):
    """Return the builder whose task the file's own head is for.

    Raises:
        ValueError: the checkpoint has no head of a task that is made of checkpoints.
    """
    folder = find_folder(preset)
    builder, _ = _read_builder(folder)
    if builder == "text_classifier" and _has_label_sets(folder):
        builder = "multi_label_classifier"
    builder = OF_TASK.get(builder, builder)
    if builder in OPENERS:
        return builder
    if builder == "image_encoder":
        raise ValueError(
            f"{preset} has no head that names pictures: open it with "
            "ka.tasks.ImageClassifier.from_preset, which gives it a new one to train, or with "
            "ka.pretrained.load."
        )
    raise ValueError(
        f"{preset} has no head that labels texts or tokens, or marks answers: open it with "
        "ka.tasks.TextClassifier.from_preset, or that of SequenceLabeler or QuestionAnswerer, "
        "which give it a new one to train, or with ka.pretrained.load."
    )


def open_checkpoint(preset, task_class, options=()):
    """Return the task of a checkpoint, of a class; with a new head where the file has none for it.

    Args:
        options: dict of keywords, see `list_options`.
    """
    (builder,) = [name for name in task_class.builders if name in OPENERS] or [None]
    if builder is None:
        raise ValueError(
            f"{task_class.__name__} is not made of a checkpoint: load {preset} with "
            "ka.pretrained.load."
        )
    known, options = list_options(builder), dict(options)
    if unknown := [name for name in options if name not in known]:
        raise ValueError(
            f"{unknown[0]}= is no option of a {task_class.__name__} that is made of a checkpoint: "
            + (f"expected some of {', '.join(known)}." if known else "it has none.")
        )
    folder = find_folder(preset)
    found, places = _read_builder(folder)
    takes, opener, _ = OPENERS[builder]
    if found not in takes:
        raise ValueError(
            f"{preset} is a {found}, and a {task_class.__name__} is made of a {' or '.join(takes)}."
        )
    task = opener(folder, task_class, builder, found, places, **options)
    task.recipe = recipes.choose_recipe(builder, recipes.PRETRAINED)
    task.pretrained, task.checkpoint = True, folder
    return task


def list_options(builder):
    """Return the names of keywords that `open_checkpoint` takes for a builder's task."""
    return OPENERS[builder][2] if builder in OPENERS else ()


def _open_labels(folder, task_class, builder, found, places, *, pooling="auto"):
    made_by = get_builder(builder)
    fresh = found != made_by
    if builder == "multi_label_classifier":  # one label of several is another decision
        fresh = fresh or not _has_label_sets(folder)
    if fresh:
        names = NAMELESS
        model = pretrained.load(folder, task=made_by, num_classes=len(names), pooling=pooling)
    else:
        model = pretrained.load(folder, pooling=pooling)
        names = _read_labels(read_checkpoint(folder), model.output_shape[-1])
    # Tags of what is cut off would be lost: a sentence may be as long as the model has places.
    longest = places if builder == "sequence_labeler" else None
    tokenizer = pretrained.tokenizer(folder, max_length=longest)
    return task_class(model, PREPROCESSORS[builder](tokenizer, names), builder=builder)


def _has_label_sets(folder):
    """Return whether the classes of a checkpoint's head are decisions of their own."""
    return read_checkpoint(folder).config.get("problem_type") == "multi_label_classification"


def _open_answers(folder, task_class, builder, found, places):
    """Return a task of questions, with a new head where the file has none of answers."""
    length = LONGEST_ROW if places is None else min(LONGEST_ROW, places)
    preprocessor = data.QuestionPreprocessor(
        pretrained.tokenizer(folder),
        maximum_length=length,
        maximum_question=min(LONGEST_QUESTION, length // 4),
    )
    return task_class(pretrained.load(folder, task=builder), preprocessor)


def _open_masked(folder, task_class, builder, found, places, *, max_length=LENGTH):
    length = _bound(max_length, places)
    tokenizer = pretrained.tokenizer(folder)
    preprocessor = data.MaskedLMPreprocessor(tokenizer, length)
    return task_class(pretrained.load(folder), preprocessor)


def _open_running_text(folder, task_class, builder, found, places, *, max_length=LENGTH):
    settings = read_generation_settings(read_checkpoint(folder))
    for name, value in settings.name_constraints(start_tokens=0).items():
        if value and name != "forced_bos_token_id":
            raise CheckpointError(
                f"{folder} says {name}={value}, which a {task_class.__name__} does not keep to: "
                "load it with ka.pretrained.load, and write with ka.generation.generate and its "
                "constraints=."
            )
    window = _bound(max_length, places)
    # A text of any length is cut into windows, and not at its tokenizer's.
    tokenizer = dataclasses.replace(pretrained.tokenizer(folder), max_length=None)
    preprocessor = data.SequencePreprocessor(tokenizer, end_token_ids=settings.end_token_ids)
    temperature = {} if settings.temperature is None else {"temperature": settings.temperature}
    room = _bound(4 * window, places)
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
    found,
    places,
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
            _bound(max_length, places),
            **settings.name_constraints(start_tokens=1),
        ),
        score=score,
        builder=builder,
    )


def _open_speech(
    folder,
    task_class,
    builder,
    found,
    places,
    *,
    language=None,
    task=None,
    max_length=None,
    beam=None,
    length_penalty=None,
):
    """Return the model takes samples, and makes the spectrogram itself."""
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
    room = places - len(preprocessor.start_token_id) + 1
    penalty = settings.length_penalty if length_penalty is None else length_penalty
    return task_class(
        pretrained.load(folder, waveform=True),
        preprocessor,
        writing=Writing(
            settings.beam if beam is None else beam,
            max(0.0, penalty),
            _bound(places // 2 if max_length is None else max_length, room),
            **settings.name_constraints(len(preprocessor.start_token_id)),
        ),
        score="translation" if preprocessor.prompt.task == "translate" else "error_rates",
        builder=builder,
    )


def _open_pictures(folder, task_class, builder, found, places):
    """Return the model takes pixels from 0 to 1: a layer without weights normalizes them.

    The weights of the patches could take that over, but what was fine-tuned is to go back to
    Hugging Face's files, whose pixels are normalized outside.
    """
    processing = read_image_processing(folder)
    names, options = NAMELESS, {"image_size": processing.image_size, "normalize_pixels": True}
    if _has_towers(folder):
        model = pretrained.load(folder, task=found, **options)
        head = keras.layers.Dense(len(names), dtype="float32", name="logits")
        model = keras.Model(model.input, head(model.output), name=builder)
    elif found != builder:
        model = pretrained.load(folder, task=builder, num_classes=len(names), **options)
    else:
        model = pretrained.load(folder, **options)
        names = _read_labels(read_checkpoint(folder), model.output_shape[-1])
    *size, channels = model.input_shape[1:]
    preprocessor = data.ImagePreprocessor(names, tuple(size), channels, processing.resizing)
    return task_class(model, preprocessor)


LABELS = (
    *("text_encoder", "masked_language_model", "text_classifier", "sequence_labeler"),
    "question_answerer",
)
# task's builder -> (builders of the files that it is made of, function, its keywords)
OPENERS = {
    "causal_language_model": (("causal_language_model",), _open_running_text, ("max_length",)),
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
    "vision_transformer": (("vision_transformer", "image_encoder"), _open_pictures, ()),
}


def _read_builder(folder):
    """Return (the builder of a file by its own head, how many positions its model has, or None)."""
    checkpoint = read_checkpoint(folder)
    task = "image_encoder" if _has_towers(folder) else None
    settings = read_settings(checkpoint, task)
    builder, keywords = settings.builder, settings.keywords
    return builder, keywords.get("max_length")


def _has_towers(folder):
    """Return whether a file holds a model of images and one of texts."""
    towers = read_builder(read_checkpoint(folder))
    return isinstance(towers, tuple) and "image_encoder" in towers


def _bound(wanted, places):
    """`wanted` tokens, or the positions that a model has where these are fewer."""
    return wanted if places is None else min(wanted, places)


def _read_labels(checkpoint, count):
    """Return the names of the labels by `config.json`, in order."""
    said = checkpoint.config.get("id2label")
    if said is None:
        return [f"LABEL_{i}" for i in range(count)]
    names = [said.get(str(i)) for i in range(count)] if isinstance(said, dict) else []
    if len(said) != count or len(set(names)) != count or not all(
        isinstance(name, str) and name.strip() for name in names
    ):  # fmt: skip
        raise CheckpointError(
            f"{checkpoint.folder / CONFIG} names labels in id2label that are not {count} different "
            "ones, one for each output of the head."
        )
    return names
