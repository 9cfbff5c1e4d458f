"""Functions for each task that read the files or the TFDS dataset of a `Source`."""

import pathlib
import typing

from keras_attention import data
from keras_attention.data.made_up.spoken_digits import TOP_DB
from keras_attention.data.readers.coco import has_captions, is_coco
from keras_attention.data.readers.dialogues import LINES, TURNS, holds_dialogues

IMAGE_SIZE = 48  # default size of images in folders
SPOKEN_DIGITS, SPOKEN_NUMBERS = "spoken_digit", "spoken_numbers"  # TFDS has only the first
SPEEDS = (0.85, 0.92, 1.0, 1.08, 1.17)  # speed perturbation, which measurably reduces errors
LABELED_TEXT = "labeled text"
TEXT_OPTIONS = ("label_column", "text_column", "encoding", "on_error")


def read_columns_of_tfds(source):
    columns = {"label_column": source.label_column, "text_column": source.text_column}
    return data.from_tfds(source.dataset, data_dir=source.data_dir, **columns)


class Reader(typing.NamedTuple):
    """The functions that read the data of a task. The argument of each function is a `Source`.

    Attributes:
        read_files: function that reads the files, and returns a `DataSet`.
        content: str, the content of the files, for error messages.
        options: tuple of str, the names of the options that apply to these files.
        read_tfds: function that reads the TFDS dataset, and returns a `DataSet`.
        describe: function that returns (content, options) if both depend on the files, or else
            None.
    """

    read_files: typing.Callable
    content: str = ""
    options: tuple = ()
    read_tfds: typing.Callable = read_columns_of_tfds
    describe: typing.Callable | None = None

    def describe_files(self, source):
        """Return the attributes (content, options) for the files of a `Source`.

        `source` has the paths of the files and the user's options for reading them.
        """
        return self.describe(source) if self.describe else (self.content, self.options)


# Labeled text and tagged sentences. The names of the files distinguish them.


def find_kind(path):
    path = pathlib.Path(path)
    if path.is_dir() or {".csv", ".tsv", ".jsonl"} & set(path.suffixes[-2:]):
        return LABELED_TEXT
    return "CoNLL-U" if ".conllu" in path.suffixes else "CoNLL"


def describe_by_name(source):
    if any(find_kind(path) == LABELED_TEXT for path in source.files.values()):
        return LABELED_TEXT, TEXT_OPTIONS
    return "files of tagged sentences", ("label_column", "encoding", "on_error")


def read_by_name(source, task):
    """Read labeled text, CoNLL-U or CoNLL files, and return a `DataSet`.

    The names of the files determine the format. `task` is the name of the task. `source` is a
    `Source`, the paths of the files and the user's options.
    """
    kinds = {find_kind(path) for path in source.files.values()}
    if len(kinds) > 1:
        raise ValueError(
            f"The files have different formats, {' and '.join(sorted(kinds))}: give files of one "
            "format."
        )
    if task == "text_classifier" and kinds == {"CoNLL"}:
        kinds = {LABELED_TEXT}  # the error of this reader lists the valid file names
    source.check_kind(data.Text if kinds == {LABELED_TEXT} else data.Sentence, task)
    if kinds == {LABELED_TEXT}:
        return read_texts(source, data.from_text_files, "text", "label")
    if kinds == {"CoNLL-U"}:
        column = "upos" if source.label_column is None else source.label_column
        return data.from_conllu(**source.files, column=column, **source.reading)
    try:
        column = -1 if source.label_column is None else int(source.label_column)
    except ValueError as error:
        raise ValueError(
            f"--label-column {source.label_column}: the columns of CoNLL files have numbers from "
            "0, and -1 is the last column. Names are for CoNLL-U files, which end in .conllu."
        ) from error
    return data.from_conll(**source.files, label_column=column, **source.reading)


def read_texts(source, read, text_column, label_column):
    """Read files with two columns by calling `read`, such as `ka.data.from_text_files`.

    `text_column` and `label_column` are the columns (str) if the source does not name them.
    """
    return read(
        **source.files,
        text_column=source.choose_column("text_column", text_column),
        label_column=source.choose_column("label_column", label_column),
        **source.reading,
    )


# Running text, pairs and dialogues.


def read_running_text(source):
    return data.from_plain_text(**source.files, **source.encodings)


def read_running_text_or_dialogues(source):
    files = list(source.files.values())
    running = [path for path in files if not holds_dialogues(path, **source.encodings)]
    if not running:
        return data.join_dialogues(data.from_dialogue_files(**source.files, **source.reading))
    for path in running:
        if len(running) < len(files) or path.endswith(LINES):
            raise ValueError(
                f"{path} has no dialogues: expected JSON lines with turns or messages, or "
                "ChatterBot's YAML, like the other files, or running text in all files, in "
                "formats such as .txt."
            )
    return read_running_text(source)


def are_dialogues(source):
    return all(holds_dialogues(path, **source.encodings) for path in source.files.values())


def describe_pairs(source):
    if source.languages is not None:
        return "aligned files", ("languages", "encoding", "on_error")
    if source.files and are_dialogues(source):
        return "dialogues", ("turns", "encoding", "on_error")
    return "pairs of text", TEXT_OPTIONS


def read_pairs(source):
    """Read aligned files if `source.languages` is set, or else dialogues or two-column files."""
    if source.languages is None:
        if not are_dialogues(source):
            return read_texts(source, data.from_pair_files, "source", "target")
        dialogues = data.from_dialogue_files(**source.files, **source.reading)
        return data.pair_dialogues(dialogues, source.turns or TURNS)
    return read_aligned(source, data.from_pair_files)


def read_aligned(source, read):
    """Read aligned files, whose suffixes are `source.languages`, by calling `read`.

    `source` is a `Source`, the paths of the files and the user's options. `read` is a function such
    as `ka.data.from_pair_files`.
    """
    languages = source.languages.split("-")
    if len(languages) != 2 or not all(languages):
        raise ValueError(
            f"--languages {source.languages}: expected two, such as de-en, for files that end in "
            ".de and .en: --train corpus/train is corpus/train.de and corpus/train.en."
        )
    aligned = {
        part: tuple(add_language(path, language) for language in languages)
        for part, path in source.files.items()
    }
    return read(**aligned, **source.reading)


def describe_matches(source):
    if source.languages is not None:
        return "aligned files", ("languages", "encoding", "on_error")
    return "texts with matching texts", TEXT_OPTIONS


def read_matches(source):
    read = data.from_matching_files
    if source.languages is not None:
        return read_aligned(source, read)
    return read_texts(source, read, "text", "match")


def add_language(path, language):
    """Append `language` to `path`: `corpus/train` and `de` become `corpus/train.de`.

    If only the gzipped file exists, the path is `corpus/train.de.gz`.
    """
    plain = pathlib.Path(f"{path}.{language}")
    gzipped = pathlib.Path(f"{plain}.gz")
    return gzipped if gzipped.exists() and not plain.exists() else plain


# Images.


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
    """Read COCO's JSON or Pascal VOC, depending on the names of the files.

    `source` is a `Source`, the paths of the files and the user's options.
    """
    kinds = {is_coco(path) for path in source.files.values()}
    if len(kinds) > 1:
        raise ValueError("The files have two formats, COCO and Pascal VOC: give files of one.")
    read = data.from_coco if kinds == {True} else data.from_voc
    options = {"labels": source.labels, "image_size": source.image_size}
    return read(**source.files, **options, **source.skipping)


def read_boxes_of_tfds(source):
    options = {"labels": source.labels, "image_size": source.image_size}
    return data.from_tfds_boxes(source.dataset, data_dir=source.data_dir, **options)


def read_captions(source):
    """Read COCO's captions, a table of images and captions, or boxes, which become captions.

    `source` is a `Source`, the paths of the files and the user's options.
    """
    if all(is_coco(path) and not has_captions(path) for path in source.files.values()):
        boxes = data.from_coco(**source.files, image_size=source.image_size, **source.skipping)
        return data.caption_objects(boxes)
    return data.from_captions(
        **source.files,
        text_column=source.choose_column("text_column", "text"),
        image_size=source.image_size,
        **source.reading,
    )


def read_matched_images(source):
    """Read COCO's captions, or a table of images and texts.

    `source` is a `Source`, the paths of the files and the user's options.
    """
    return data.from_captions(
        **source.files,
        text_column=source.choose_column("text_column", "text"),
        image_size=source.image_size,
        **source.reading,
    )


def refuse_tfds(source):
    raise ValueError(
        f"--dataset {source.dataset}: this task reads images with text from files. Give them with "
        "--train, --dev and --test."
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
            f"--dataset {source.dataset}: a recognizer takes {SPOKEN_DIGITS} of TFDS, joined to "
            "strings of digits. Give files with --train, --dev and --test."
        )
    return data.connected_digits(speeds=SPEEDS, data_dir=source.data_dir)


def read_numbers_of_tfds(source):
    if source.dataset not in (SPOKEN_DIGITS, SPOKEN_NUMBERS):
        raise ValueError(
            f"--dataset {source.dataset}: this task takes {SPOKEN_DIGITS} of TFDS, joined to "
            f"strings of digits, and {SPOKEN_NUMBERS}, the same with German numbers to write. Give "
            "files with --train, --dev and --test."
        )
    read = data.spoken_numbers if source.dataset == SPOKEN_NUMBERS else data.connected_digits
    return read(top_db=TOP_DB, data_dir=source.data_dir)


PAIRS = Reader(read_pairs, describe=describe_pairs)
IMAGES = Reader(read_image_folder, "folders of images", ("image_size", "on_error"))
RECORDINGS = "recordings", ("text_column", "encoding", "on_error")
READERS = {
    "causal_language_model": Reader(read_running_text_or_dialogues, "running text", ("encoding",)),
    "constituency_parser": Reader(
        lambda source: data.from_bracketed_files(**source.files, **source.encodings),
        "files of bracketed trees",
        ("encoding",),
    ),
    "dependency_parser": Reader(
        lambda source: data.from_conllu_trees(**source.files, **source.reading),
        "files of dependency trees",
        ("encoding", "on_error"),
        lambda source: data.from_tfds_trees(source.dataset, data_dir=source.data_dir),
    ),
    "image_generator": IMAGES,
    "image_to_sequence": Reader(
        read_captions,
        "images with captions",
        ("image_size", "text_column", "encoding", "on_error"),
        read_captions_of_tfds,
    ),
    "image_text_matcher": Reader(
        read_matched_images,
        "images with text",
        ("image_size", "text_column", "encoding", "on_error"),
        refuse_tfds,
    ),
    "masked_language_model": Reader(read_running_text, "running text", ("encoding",)),
    "multi_label_classifier": Reader(
        lambda source: read_texts(source, data.from_multi_label_files, "text", "labels"),
        "text with lists of labels",
        TEXT_OPTIONS,
    ),
    "object_detector": Reader(
        read_boxes, "images with boxes", ("image_size", "on_error"), read_boxes_of_tfds
    ),
    "question_answerer": Reader(
        lambda source: data.from_question_files(**source.files, **source.skipping),
        "files of questions",
        ("on_error",),
    ),
    "seq2seq_recurrent": PAIRS,
    "seq2seq_transformer": PAIRS,
    "sequence_labeler": Reader(
        lambda source: read_by_name(source, "sequence_labeler"), describe=describe_by_name
    ),
    "speech_recognizer": Reader(read_recordings, *RECORDINGS, read_digits_of_tfds),
    "speech_to_text": Reader(read_recordings, *RECORDINGS, read_numbers_of_tfds),
    "text_classifier": Reader(
        lambda source: read_by_name(source, "text_classifier"), describe=describe_by_name
    ),
    "text_embedder": Reader(read_matches, describe=describe_matches),
    "vision_transformer": IMAGES,
}
