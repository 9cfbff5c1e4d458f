"""Reads datasets from TensorFlow Datasets, and infers their kind from their features."""

import functools
import typing

import numpy as np

from keras_attention.data.readers.corpus import split_text
from keras_attention.data.readers.images import ImageSplit
from keras_attention.data.readers.multi_label_texts import MultiLabelText
from keras_attention.data.readers.pairs import Pair
from keras_attention.data.readers.questions import Answer, Question
from keras_attention.data.readers.tagged import Sentence
from keras_attention.data.readers.texts import Text
from keras_attention.data.readers.tfds_builder import (
    find_tfds_builder,
    iterate_features,
    read_splits,
    read_words,
)
from keras_attention.files.extras import import_tfds


def from_tfds(
    name,
    *,
    label_column=None,
    text_column=None,
    splits=None,
    dev_fraction=0.1,
    seed=0,
    image_size=None,
    data_dir=None,
):
    """Read a `DataSet` from TensorFlow Datasets, in memory.

    The features of the dataset determine the class of the examples:

    | features | class | such as |
    | --- | --- | --- |
    | tokens and tags, two sequences | `Sentence` | `universal_dependencies/en_ewt`, `conll2003` |
    | an image and a class label | `ImageSplit` | `fashion_mnist`, `mnist`, `cifar10` |
    | a text and a class label | `Text` | `imdb_reviews`, `glue/sst2`, `ag_news_subset` |
    | a text and bools, or a sequence of class labels | `MultiLabelText` | `goemotions` |
    | a source text and a target text | `Pair` | `wmt14_translate/de-en`, `gigaword` |
    | a question, a context and answers | `Question` | `squad/v2.0`, `xquad/en` |
    | only a text | `str`, running text | `tiny_shakespeare`, `lm1b` |

    If the test split is missing, as in SQuAD, or its labels are secret, as in GLUE, the validation
    split becomes test, and a part of train becomes dev. Multiword tokens and empty nodes of
    Universal Dependencies are left out, and so are pairs with an empty side. The documents of a
    corpus are joined with an empty line between them.

    Args:
        name: str, the name in the TFDS catalog. If the dataset has several configs, it must include
            one.
        label_column: str, the feature with the label, or with the target of pairs. Required if
            there are several candidates.
        text_column: str, the feature with the text. Required if there are several candidates.
        splits: dict that maps `"train"`, `"dev"` and `"test"` to splits in TFDS's notation
            (`{"train": "train[:80%]", "test": "train[80%:]"}`). None uses the official splits.
        dev_fraction: float, the share of train that becomes dev if the validation split is missing.
        seed: int, for the random choice of these examples. For running text, dev is the end of
            train instead.
        image_size: (height, width) to resize images to. Required if images differ in size.
        data_dir: path of the folder with TFDS's data. None uses TFDS's default.

    Raises:
        ValueError: the dataset, config, column or split does not exist. The message lists the
            existing ones.
        ConnectionError: the data could not be downloaded.
        ImportError: TensorFlow Datasets is not installed.

    Example (downloads the data, see `ka.data.from_conllu` for files):

        data = ka.data.from_tfds("universal_dependencies/en_ewt")
        data.train[0].tokens, data.train[0].tags
        ner = ka.data.from_tfds("conll2003", label_column="ner")
        sentiment = ka.data.from_tfds("glue/sst2")
    """
    tfds = import_tfds("from_tfds")
    builder = find_tfds_builder(tfds, name, data_dir)
    columns = find_columns(tfds, builder, name, label_column, text_column)
    shape = builder.info.features[columns.inputs].shape
    if columns.kind == "image" and image_size is None and None in shape:
        raise ValueError(
            f"The images of {name} differ in size (shape {shape}): give image_size=(height, width)."
        )
    required = ("test",) if columns.kind == "question" else ("train", "test")
    read, kind = READERS[columns.kind]
    options = {"image_size": image_size} if kind is ImageSplit else {}
    read = functools.partial(read, columns=columns, **options)
    parts = read_splits(tfds, builder, name, splits, read, required)
    if kind is str:
        return split_text(**parts, dev_fraction=dev_fraction)
    if kind is Text and "test" in parts and not parts["test"] and parts.get("dev"):
        # GLUE does not publish the labels of its test splits. Papers report dev scores.
        parts["test"] = parts.pop("dev")
    labels = {}
    if kind in (Text, MultiLabelText, ImageSplit):
        labels["labels"] = _list_labels(builder, columns)
    return kind.collect(**parts, **labels, dev_fraction=dev_fraction, seed=seed)


class Columns(typing.NamedTuple):
    """The names of the features to read from a TFDS dataset.

    `kind` is the kind of its examples, a key of `READERS`. `inputs` is the feature with the inputs,
    and `label` the feature with the label. For the kind `"pair"`, `label` is the target. For
    `"label_sets"`, `label` is a sequence of class labels, or a tuple with the names of several bool
    features. For questions and running text, `label` is None.
    """

    kind: str  # a key of READERS
    inputs: str
    label: str | tuple


def find_columns(tfds, builder, name, label_column, text_column=None):
    """Find the kind of the examples in a TFDS dataset, and return the dataset's `Columns`.

    `tfds` is the module tensorflow_datasets. `builder` is the TFDS builder of the dataset, and
    `name` its name. `label_column` and `text_column` choose a feature if there are several
    candidates. Raise a ValueError if the choice is ambiguous or the kind is not supported.
    """
    features, kinds = builder.info.features, tfds.features
    if label_column is None and text_column is None:
        _refuse_other_kinds(kinds, features, name)
    if images := _list_names(features, kinds.Image):
        # TFDS names the input if there are several images, such as photographs and masks.
        inputs = next((n for n in builder.info.supervised_keys or () if n in images), images[0])
        label = _choose_supervised(builder, name, kinds.ClassLabel, label_column, "label")
        return Columns("image", inputs, label)
    if {"question", "context", "answers"} <= set(features):
        return Columns("question", "question", None)
    sequences = {n: f.feature for n, f in features.items() if isinstance(f, kinds.Sequence)}
    tokens, classes = _list_names(sequences, kinds.Text), _list_names(sequences, kinds.ClassLabel)
    if "tokens" not in tokens and len(tokens) != 1:
        return _find_texts(kinds, builder, name, label_column, text_column, classes)
    inputs = "tokens" if "tokens" in tokens else tokens[0]
    tags = classes + [n for n in tokens if n != inputs]
    return Columns("tagging", inputs, _choose(name, tags, classes, label_column, "label"))


def _list_names(features, kind):
    return [name for name, feature in features.items() if isinstance(feature, kind)]


def _refuse_other_kinds(kinds, features, name):
    """Raise a ValueError for datasets of recordings or of images with boxes.

    `kinds` is the module `tfds.features`, `features` a dict of the dataset's features, and `name`
    the name of the dataset.
    """
    if _list_names(features, kinds.Audio):
        raise ValueError(
            f"{name} has recordings: expected text or images. Read files of recordings with "
            "ka.data.from_recordings, or spoken_digit with ka.data.connected_digits."
        )
    objects = features["objects"] if "objects" in features else None
    objects = objects.feature if isinstance(objects, kinds.Sequence) else None
    boxes = isinstance(objects, kinds.FeaturesDict) and "bbox" in objects
    if boxes and not _list_names(features, kinds.ClassLabel):
        raise ValueError(f"{name} has images with boxes: read it with ka.data.from_tfds_boxes.")


def _find_texts(kinds, builder, name, label_column, text_column, label_sets):
    """Find the features to read from a dataset with text inputs, and return `Columns`.

    `kinds` is the module `tfds.features`. `builder` is the TFDS builder of the dataset, and `name`
    its name. `label_column` and `text_column` are the user's choices, or None. `label_sets` are the
    features that are sequences of class labels.
    """
    features, texts = builder.info.features, _list_names(builder.info.features, kinds.Text)
    if pair := find_pair(builder, texts):
        target = _choose(name, pair, pair[1:], label_column, "label")
        return Columns("pair", pair[pair[0] == target], target)
    flags = tuple(n for n, f in features.items() if f.shape == () and f.np_dtype == np.bool_)
    sets = label_sets[0] if len(label_sets) == 1 else flags if len(flags) > 1 else None
    if texts and _list_names(features, kinds.ClassLabel):
        kind = "text"
        label = _choose_supervised(builder, name, kinds.ClassLabel, label_column, "label")
    elif texts and sets and label_column in (None, sets):
        kind, label = "label_sets", sets
    elif texts and not label_column:
        # Running text, such as books, has no label.
        preferred = ["text"] if "text" in texts else texts
        text = _choose(name, texts, preferred, text_column, "text")
        return Columns("running_text", text, None)
    else:
        raise ValueError(
            f"{name} has neither tokens with tags, nor images or text with a label. "
            f"Its features are: {', '.join(features)}."
        )
    return Columns(kind, _choose_supervised(builder, name, kinds.Text, text_column, "text"), label)


def _choose_supervised(builder, name, kind, column, role):
    """Choose a feature of the class `kind`. If there are several, prefer `supervised_keys`.

    `column` is the user's choice, or None. `role` names the feature in error messages.
    """
    names = preferred = _list_names(builder.info.features, kind)
    if len(names) > 1:
        preferred = [n for n in builder.info.supervised_keys or () if n in names]
    return _choose(name, names, preferred, column, role)


def _choose(name, allowed, preferred, column, role):
    if column is None and len(preferred) == 1:
        return preferred[0]
    if column in allowed:
        return column
    if not allowed:
        raise ValueError(f"{name} has no {role} column.")
    problem = "" if column is None else f" no {role} column {column!r}, but"
    raise ValueError(
        f"{name} has{problem} {', '.join(allowed)}. Choose with {role}_column={allowed[0]!r}."
    )


def _list_labels(builder, columns):
    """Return the names of the labels in the order of their ids."""
    if isinstance(columns.label, tuple):
        return columns.label
    feature = builder.info.features[columns.label]
    return (feature.feature if columns.kind == "label_sets" else feature).names


def _read_tagged(builder, split, columns):
    has_heads = columns.inputs == "tokens" and "head" in builder.info.features
    rows = read_words(builder, split, columns.inputs, columns.label, "head" if has_heads else None)
    return [Sentence(tokens, tags) for tokens, tags, *_ in rows]


HIDDEN = -1  # TFDS's id for secret labels


def _read_texts(builder, split, columns):
    names, texts = _list_labels(builder, columns), []
    for text, label in iterate_features(builder, (columns.inputs, columns.label), split):
        text = text.decode("utf-8").strip()
        if text and label != HIDDEN:
            texts.append(Text(text, names[label]))
    return texts


def _read_label_sets(builder, split, columns):
    of_flags, names = isinstance(columns.label, tuple), _list_labels(builder, columns)
    read = (columns.inputs, *(columns.label if of_flags else (columns.label,)))
    texts = []
    for text, *labels in iterate_features(builder, read, split):
        ids = np.flatnonzero(labels) if of_flags else np.unique(labels[0])
        if text := text.decode("utf-8").strip():
            texts.append((text, tuple(names[i] for i in ids)))
    return texts


def _read_questions(builder, split, columns):
    questions = []
    for example in builder.as_dataset(split=split).as_numpy_iterator():
        texts, starts = (example["answers"][name] for name in ("text", "answer_start"))
        answers = tuple(
            Answer(text.decode("utf-8"), int(start))
            for text, start in zip(texts, starts, strict=True)
            if text.strip()
        )
        question, context = (example[n].decode("utf-8") for n in ("question", "context"))
        name = example["id"].decode("utf-8") if "id" in example else None
        questions.append(Question(question, context, answers, name))
    return questions


def find_pair(builder, texts):
    """Find source and target among the names of text features: return (source, target), or None.

    `texts` are the names, and `builder` is the TFDS builder of the dataset. The result is TFDS's
    `supervised_keys` if both are text, as in all translation datasets. If TFDS does not state them,
    the result is the two features whose names begin with source and with target, as in Tatoeba.
    """
    pair = builder.info.supervised_keys or ()
    if len(pair) == 2 and pair[0] != pair[1] and set(pair) <= set(texts):
        return pair
    partners = [(n, n.replace("source", "target", 1)) for n in texts if n.startswith("source")]
    pairs = [p for p in partners if p[1] in texts and not p[0].endswith("language")]
    return pairs[0] if len(pairs) == 1 else None


def _read_pairs(builder, split, columns):
    rows = iterate_features(builder, (columns.inputs, columns.label), split)
    pairs = [tuple(text.decode("utf-8").strip() for text in row) for row in rows]
    # Automatically collected datasets contain sentences without a translation.
    return [pair for pair in pairs if all(pair)]


def _read_running_text(builder, split, columns):
    rows = iterate_features(builder, (columns.inputs,), split)
    return "\n\n".join(text.decode("utf-8") for (text,) in rows)


def _read_images(builder, split, columns, image_size=None):
    """Read a split of a TFDS dataset of images: return uint8 (n, H, W, C), and labels (n,).

    `builder` is a TFDS builder whose data are prepared, and `columns` the names of the features.
    `image_size` is the (height, width) to resize to, or None.
    """
    import tensorflow as tf

    def resize(image, label):
        image = tf.image.resize(image, image_size, antialias=True)
        return tf.cast(tf.clip_by_value(tf.round(image), 0, 255), "uint8"), label

    names = (columns.inputs, columns.label)
    dataset = builder.as_dataset(split=split).map(lambda x: tuple(x[name] for name in names))
    if image_size is not None:
        dataset = dataset.map(resize)
    batches = list(dataset.batch(1024).as_numpy_iterator())
    return tuple(np.concatenate(arrays) for arrays in zip(*batches, strict=True))


# kind of `Columns` -> function that reads a split, class of its examples
READERS = {
    "tagging": (_read_tagged, Sentence),
    "text": (_read_texts, Text),
    "label_sets": (_read_label_sets, MultiLabelText),
    "question": (_read_questions, Question),
    "pair": (_read_pairs, Pair),
    "running_text": (_read_running_text, str),
    "image": (_read_images, ImageSplit),
}
