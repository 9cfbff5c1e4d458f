"""How the files and the data sets of TFDS that a `Source` names are read for each task."""

import pathlib
import typing

from keras_attention import data
from keras_attention.data.made_up.spoken_digits import TOP_DB
from keras_attention.data.readers.coco import has_captions, is_coco
from keras_attention.data.readers.dialogues import LINES, TURNS, holds_dialogues

IMAGE_SIZE = 48  # of pictures in folders, unless another size is asked for
SPOKEN_DIGITS, SPOKEN_NUMBERS = "spoken_digit", "spoken_numbers"  # the first is what TFDS calls it
SPEEDS = (0.85, 0.92, 1.0, 1.08, 1.17)  # of its recordings in training: measured, fewer errors
TEXT_OPTIONS = ("label_column", "text_column", "encoding", "on_error")


class Reader(typing.NamedTuple):
    """How the data of a task are read; each function takes a `Source`.

    Attributes:
        describe: gives what the files are, and the names of the options that apply to them.
        read_files: gives the data set in the files.
        read_tfds: gives the data set of TFDS.
    """

    describe: typing.Callable
    read_files: typing.Callable
    read_tfds: typing.Callable


def read_columns_of_tfds(source):
    columns = {"label_column": source.label_column, "text_column": source.text_column}
    return data.from_tfds(source.dataset, data_dir=source.data_dir, **columns)


def tell(what, *options):
    """Make the function of a `Reader` that describes files which are always the same."""
    return lambda source: (what, options)


# Texts with labels, and tagged sentences, whose files differ by their names.


def find_kind(path):
    path = pathlib.Path(path)
    if path.is_dir() or {".csv", ".tsv", ".jsonl"} & set(path.suffixes[-2:]):
        return "texts"
    return "CoNLL-U" if ".conllu" in path.suffixes else "CoNLL"


def describe_by_name(source):
    if any(find_kind(path) == "texts" for path in source.files.values()):
        return "texts", TEXT_OPTIONS
    return "files of tagged sentences", ("label_column", "encoding", "on_error")


def read_by_name(source, task):
    """Read texts, CoNLL-U or CoNLL, by the names of the files, for a task, named by a str."""
    kinds = {find_kind(path) for path in source.files.values()}
    if len(kinds) > 1:
        raise ValueError(
            f"The files are of several kinds, {' and '.join(sorted(kinds))}: give one."
        )
    if task == "text_classifier" and kinds == {"CoNLL"}:
        kinds = {"texts"}  # whose reader says how files of texts are named
    source.check_kind(data.Text if kinds == {"texts"} else data.Sentence, task)
    if kinds == {"texts"}:
        return data.from_text_files(
            **source.files,
            text_column=source.choose_column("text_column", "text"),
            label_column=source.choose_column("label_column", "label"),
            **source.reading,
        )
    if kinds == {"CoNLL-U"}:
        column = "upos" if source.label_column is None else source.label_column
        return data.from_conllu(**source.files, column=column, **source.reading)
    try:
        column = -1 if source.label_column is None else int(source.label_column)
    except ValueError as error:
        raise ValueError(
            f"--label-column {source.label_column}: the columns of CoNLL files have numbers, "
            "from 0; -1 is the last. Names are for CoNLL-U files, which end in .conllu."
        ) from error
    return data.from_conll(**source.files, label_column=column, **source.reading)


def read_multi_label_texts(source):
    return data.from_multi_label_files(
        **source.files,
        text_column=source.choose_column("text_column", "text"),
        label_column=source.choose_column("label_column", "labels"),
        **source.reading,
    )


# Running text, pairs and dialogues.


def read_running_text(source):
    return data.from_plain_text(**source.files, **source.encodings)


def read_running_text_or_dialogues(source):
    files = list(source.files.values())
    others = [path for path in files if not holds_dialogues(path, **source.encodings)]
    if not others:
        return data.join_dialogues(data.from_dialogue_files(**source.files, **source.reading))
    for path in others:
        if len(others) < len(files) or path.endswith(LINES):
            raise ValueError(
                f"{path} holds no dialogues: expected JSON lines with turns or messages, or "
                "ChatterBot's YAML, as in the other files; or running text in all, in files "
                "such as .txt."
            )
    return read_running_text(source)


def are_dialogues(source):
    """Return whether all files of a `Source` are of dialogues."""
    return all(holds_dialogues(path, **source.encodings) for path in source.files.values())


def describe_pairs(source):
    if source.languages is not None:
        return "aligned files", ("languages", "encoding", "on_error")
    if source.files and are_dialogues(source):
        return "dialogues", ("turns", "encoding", "on_error")
    return "pairs of texts", TEXT_OPTIONS


def read_pairs(source):
    """Read aligned files if there are languages, or else files of dialogues or with two columns."""
    if source.languages is None:
        if are_dialogues(source):
            dialogues = data.from_dialogue_files(**source.files, **source.reading)
            return data.pair_dialogues(dialogues, source.turns or TURNS)
        return data.from_pair_files(
            **source.files,
            text_column=source.choose_column("text_column", "source"),
            label_column=source.choose_column("label_column", "target"),
            **source.reading,
        )
    both = source.languages.split("-")
    if len(both) != 2 or not all(both):
        raise ValueError(
            f"--languages {source.languages}: expected two, such as de-en, for files that end in "
            ".de and .en: --train corpus/train is corpus/train.de and corpus/train.en."
        )
    aligned = {
        part: tuple(add_language(path, language) for language in both)
        for part, path in source.files.items()
    }
    return data.from_pair_files(**aligned, **source.reading)


def add_language(path, language):
    """`corpus/train` as `corpus/train.de`, or that gzipped where only this is there."""
    plain = pathlib.Path(f"{path}.{language}")
    gzipped = pathlib.Path(f"{plain}.gz")
    return gzipped if gzipped.exists() and not plain.exists() else plain


# Pictures.


def read_image_folder(source):
    return data.from_image_folder(
        **source.files,
        image_size=source.image_size or IMAGE_SIZE,
        color_mode=source.color_mode,
        resizing=source.resizing,
        labels=source.labels,
        **source.skipping,
    )


def read_boxes(source):
    """Read COCO's JSON, or Pascal VOC, by the names of the files."""
    kinds = {is_coco(path) for path in source.files.values()}
    if len(kinds) > 1:
        raise ValueError("The files are of several kinds, COCO's and Pascal VOC's: give one.")
    read = data.from_coco if kinds == {True} else data.from_voc
    about = {"labels": source.labels, "image_size": source.image_size}
    return read(**source.files, **about, **source.skipping)


def read_boxes_of_tfds(source):
    about = {"labels": source.labels, "image_size": source.image_size}
    return data.from_tfds_boxes(source.dataset, data_dir=source.data_dir, **about)


def read_captions(source):
    """Read COCO's captions, a table of pictures and texts, or boxes, which become texts."""
    if all(is_coco(path) and not has_captions(path) for path in source.files.values()):
        boxes = data.from_coco(**source.files, image_size=source.image_size, **source.skipping)
        return data.caption_objects(boxes)
    return data.from_captions(
        **source.files,
        text_column=source.choose_column("text_column", "text"),
        image_size=source.image_size,
        **source.reading,
    )


def read_captions_of_tfds(source):
    options = {"image_size": source.image_size, "data_dir": source.data_dir}
    return data.caption_objects(data.from_tfds_boxes(source.dataset, **options))


# Recordings.


def read_recordings(source):
    text_column = source.choose_column("text_column", "text")
    columns = {"sound_column": 0} if isinstance(text_column, int) else {}
    return data.from_recordings(
        **source.files,
        **columns,
        text_column=text_column,
        sampling_rate=source.sampling_rate,
        **source.reading,
    )


def read_digits_of_tfds(source):
    if source.dataset != SPOKEN_DIGITS:
        raise ValueError(
            f"--dataset {source.dataset}: of TFDS a recognizer takes {SPOKEN_DIGITS}, joined to "
            "strings of digits. Give files with --train, --dev and --test."
        )
    return data.connected_digits(speeds=SPEEDS, data_dir=source.data_dir)


def read_numbers_of_tfds(source):
    if source.dataset not in (SPOKEN_DIGITS, SPOKEN_NUMBERS):
        raise ValueError(
            f"--dataset {source.dataset}: of TFDS it takes {SPOKEN_DIGITS}, joined to strings of "
            f"digits, and {SPOKEN_NUMBERS}, the same with German numbers to write. Give files with "
            "--train, --dev and --test."
        )
    read = data.spoken_numbers if source.dataset == SPOKEN_NUMBERS else data.connected_digits
    return read(top_db=TOP_DB, data_dir=source.data_dir)


PAIRS = Reader(describe_pairs, read_pairs, read_columns_of_tfds)
PICTURES = Reader(
    tell("folders of pictures", "image_size", "on_error"), read_image_folder, read_columns_of_tfds
)
READERS = {
    "causal_language_model": Reader(
        tell("running text", "encoding"), read_running_text_or_dialogues, read_columns_of_tfds
    ),
    "constituency_parser": Reader(
        tell("files of bracketed trees", "encoding"),
        lambda source: data.from_bracketed_files(**source.files, **source.encodings),
        read_columns_of_tfds,
    ),
    "dependency_parser": Reader(
        tell("files of dependency trees", "encoding", "on_error"),
        lambda source: data.from_conllu_trees(**source.files, **source.reading),
        lambda source: data.from_tfds_trees(source.dataset, data_dir=source.data_dir),
    ),
    "image_generator": PICTURES,
    "image_to_sequence": Reader(
        tell("pictures with texts", "image_size", "text_column", "encoding", "on_error"),
        read_captions,
        read_captions_of_tfds,
    ),
    "masked_language_model": Reader(
        tell("running text", "encoding"), read_running_text, read_columns_of_tfds
    ),
    "multi_label_classifier": Reader(
        tell("texts with lists of labels", *TEXT_OPTIONS),
        read_multi_label_texts,
        read_columns_of_tfds,
    ),
    "object_detector": Reader(
        tell("pictures with boxes", "image_size", "on_error"), read_boxes, read_boxes_of_tfds
    ),
    "question_answerer": Reader(
        tell("files of questions", "on_error"),
        lambda source: data.from_question_files(**source.files, **source.skipping),
        read_columns_of_tfds,
    ),
    "seq2seq_recurrent": PAIRS,
    "seq2seq_transformer": PAIRS,
    "sequence_labeler": Reader(
        describe_by_name,
        lambda source: read_by_name(source, "sequence_labeler"),
        read_columns_of_tfds,
    ),
    "speech_recognizer": Reader(
        tell("recordings", "text_column", "encoding", "on_error"),
        read_recordings,
        read_digits_of_tfds,
    ),
    "speech_to_text": Reader(
        tell("recordings", "text_column", "encoding", "on_error"),
        read_recordings,
        read_numbers_of_tfds,
    ),
    "text_classifier": Reader(
        describe_by_name,
        lambda source: read_by_name(source, "text_classifier"),
        read_columns_of_tfds,
    ),
    "vision_transformer": PICTURES,
}
