"""Checkpoints of Hugging Face as tasks: the model, and the tokenizer as its preprocessor."""

import pathlib

from keras_attention import data, pretrained
from keras_attention.data.manifest import MANIFEST
from keras_attention.pretrained.checkpoint import CONFIG, CheckpointError
from keras_attention.pretrained.keras_hub import read_checkpoint
from keras_attention.pretrained.loading import find_folder
from keras_attention.tasks import recipes

HUB = "hf://"
PREPROCESSORS = {
    "question_answerer": data.SubwordQuestionPreprocessor,
    "sequence_labeler": data.SubwordTaggerPreprocessor,
    "text_classifier": data.SubwordTextPreprocessor,
}
LONGEST_ROW, LONGEST_QUESTION = 384, 64  # tokens, as Devlin et al. (2019) have them for SQuAD
NAMELESS = ("LABEL_0", "LABEL_1")  # of a new head, until `fit` sees the labels


def is_checkpoint(preset):
    """Whether a preset is one of Hugging Face: by `hf://`, or a folder without our manifest."""
    path = pathlib.Path(preset)
    by_files = (path / CONFIG).is_file() and not (path / MANIFEST).is_file()
    return str(preset).startswith(HUB) or by_files


def find_task(preset):
    """The builder whose task the file's own head is for.

    Raises:
        ValueError: the checkpoint has no head of a task that is made of checkpoints.
    """
    folder = find_folder(preset)
    found = pretrained.describe(folder)
    if found.builder in PREPROCESSORS:
        return found.builder
    if found.builder in ("text_encoder", "masked_language_model", *PREPROCESSORS):
        raise ValueError(
            f"{preset} has no head that labels texts or tokens, or marks answers: open it with "
            "ka.tasks.TextClassifier.from_preset, or that of SequenceLabeler or QuestionAnswerer, "
            "which give it a new one to train, or with ka.pretrained.load."
        )
    raise ValueError(
        f"{preset} is a {found.builder}: load it with ka.pretrained.load, and its tokenizer with "
        "ka.pretrained.tokenizer. Tasks are made of encoders of texts."
    )


def open_checkpoint(preset, task_class):
    """The task of a checkpoint, of a class; with a new head where the file has none for it."""
    (builder,) = [name for name in task_class.builders if name in PREPROCESSORS] or [None]
    if builder is None:
        raise ValueError(
            f"{task_class.__name__} is not made of a checkpoint: load {preset} with "
            "ka.pretrained.load."
        )
    folder = find_folder(preset)
    if builder == "question_answerer":
        return _open_answers(folder, task_class)
    fresh = pretrained.describe(folder).builder != builder
    if fresh:
        names = NAMELESS
        model = pretrained.load(folder, task=builder, num_classes=len(names))
    else:
        model = pretrained.load(folder)
        names = _read_labels(read_checkpoint(folder), model.output_shape[-1])
    # Tags of what is cut off would be lost: a sentence may be as long as the model has places.
    longest = _find_places(folder) if builder == "sequence_labeler" else None
    tokenizer = pretrained.tokenizer(folder, max_length=longest)
    preprocessor = PREPROCESSORS[builder](tokenizer, names)
    task = task_class(model, preprocessor, builder=builder)
    task.recipe = recipes.choose_recipe(builder, recipes.PRETRAINED)
    return task


def _open_answers(folder, task_class):
    """A task of questions, with a new head where the file has none of answers."""
    places = _find_places(folder)
    length = LONGEST_ROW if places is None else min(LONGEST_ROW, places)
    preprocessor = data.SubwordQuestionPreprocessor(
        pretrained.tokenizer(folder),
        maximum_length=length,
        maximum_question=min(LONGEST_QUESTION, length // 4),
    )
    task = task_class(pretrained.load(folder, task="question_answerer"), preprocessor)
    task.recipe = recipes.choose_recipe(task.builder, recipes.PRETRAINED)
    return task


def _find_places(folder):
    """How many positions a model has, or None for any."""
    return pretrained.describe(folder).keywords.get("max_length")


def _read_labels(checkpoint, count):
    """The names of the labels by `config.json`, in order."""
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
