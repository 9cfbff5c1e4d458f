"""Data sets of TensorFlow Datasets, recognised by their features."""

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
    find_splits,
    find_tfds_builder,
    iterate_features,
    prepare_builder,
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
    """Return a data set of TensorFlow Datasets.

    Tagged sentences, labelled images, or texts of any use.

    The kind of data follows from its features, never from its name:

    - sequences of tokens and of tags make sentences with tags, `Sentence`
      (`universal_dependencies/en_ewt`, `conll2003`);
    - an image and a class label an `ImageSplit` (`fashion_mnist`, `mnist`, `cifar10`);
    - a text and a class label a `Text` (`imdb_reviews`, `glue/sst2`, `ag_news_subset`);
    - a text and several features that are true or false, or a sequence of class labels, a
      `MultiLabelText` (`goemotions`);
    - two texts, one made of the other, a `Pair` (`wmt14_translate/de-en`, `tatoeba/tatoeba_de`,
      `gigaword`);
    - a question, a context and answers a `Question` (`squad/v2.0`, `xquad/en`);
    - only a text makes running text (`tiny_shakespeare`, `lm1b`).

    Args:
        name: str, as in the TFDS catalogue, with the config where there are several.
        label_column: str, which feature is the label; needed where there are several. Of pairs,
            which is the target.
        text_column: str, which feature is the text to classify, or the running text; needed where
            there are several.
        splits: dict that says what is `"train"`, `"dev"` and `"test"`, in TFDS's own words
            (`{"train": "train[:80%]", "test": "train[80%:]"}`); None for the official splits.
        dev_fraction: float, the share of train that becomes dev where there is no validation
            split. The test split is never used for that.
        seed: int, which examples those are; of running text it is the end.
        image_size: (height, width), resizes; needed where images differ in size.
        data_dir: where TFDS keeps its data; None for its own default.

    Returns:
        A `DataSet` of one of these kinds, in memory. Of Universal Dependencies treebanks, as in
        `from_conllu`, multiword tokens and empty
        nodes are left out: they are no words. Where the labels of the test split are kept secret,
        as in GLUE, or there is none, as in SQuAD, the validation split is for testing, and a part
        of train becomes dev. Of pairs those with an empty side are left out. The texts of a corpus
        are joined by an empty line.

    Raises:
        ValueError: no such data set, config, column or split; the message lists those there are.
        ConnectionError: the data is not on this machine and could not be fetched.
        ImportError: TensorFlow Datasets is not installed.

    Example (downloads the data; see `ka.data.from_conllu` for files):

        data = ka.data.from_tfds("universal_dependencies/en_ewt")
        data.train[0].tokens, data.train[0].tags
        ner = ka.data.from_tfds("conll2003", label_column="ner")
        fashion = ka.data.from_tfds("fashion_mnist")
        sentiment = ka.data.from_tfds("glue/sst2")
        translations = ka.data.from_tfds("ted_hrlr_translate/pt_to_en")
        plays = ka.data.from_tfds("tiny_shakespeare")
    """
    tfds = import_tfds("from_tfds")
    builder = find_tfds_builder(tfds, name, data_dir)
    columns = find_columns(tfds, builder, name, label_column, text_column)
    shape = builder.info.features[columns.inputs].shape
    if columns.kind == "image" and image_size is None and None in shape:
        raise ValueError(
            f"The images of {name} differ in size (shape {shape}): give image_size=(height, width)."
        )
    builder = prepare_builder(tfds, builder, name)
    required = ("test",) if columns.kind == "question" else ("train", "test")
    splits = find_splits(builder, name, splits, required)
    read, kind = READERS[columns.kind]
    read = functools.partial(_read_images, image_size=image_size) if kind is ImageSplit else read
    parts = {part: read(builder, columns, words) for part, words in splits.items() if words}
    if kind is str:
        return split_text(**parts, dev_fraction=dev_fraction)
    if kind is Text and "test" in parts and not parts["test"] and parts.get("dev"):
        # GLUE does not publish labels of its test parts: papers report the scores of dev.
        parts["test"] = parts.pop("dev")
    labels = {}
    if kind in (Text, MultiLabelText, ImageSplit):
        labels["labels"] = _list_labels(builder, columns)
    return kind.collect(**parts, **labels, dev_fraction=dev_fraction, seed=seed)


class Columns(typing.NamedTuple):
    """Which features are read: `inputs`, whose kind is `kind`, and their `label`.

    A kind is `"tagging"`, `"image"`, `"text"`, `"label_sets"` (a text, and as label a sequence of
    labels or a tuple of features that are true or false), `"question"`, `"pair"` (a source and, as
    label, its target) or `"running_text"`, which has no label.
    """

    kind: str
    inputs: str
    label: str | tuple


def find_columns(tfds, builder, name, label_column, text_column=None):
    """Return the `Columns` of a data set.

    A ValueError if it is of no kind or the label is unclear.
    """
    features = builder.info.features
    if label_column is None and text_column is None:
        _refuse_kinds_of_others(tfds, features, name)
    images = [n for n, f in features.items() if isinstance(f, tfds.features.Image)]
    sequences = [n for n, f in features.items() if _is_sequence(tfds, f, _is_text)]
    if images:
        # TFDS names the input where there are several, as with masks beside photographs.
        inputs = next((n for n in builder.info.supervised_keys or () if n in images), images[0])
        return Columns("image", inputs, _class(tfds, builder, name, label_column))
    if {"question", "context", "answers"} <= set(features):
        return Columns("question", "question", None)
    inputs = "tokens" if "tokens" in sequences else None if len(sequences) != 1 else sequences[0]
    if inputs is None:
        return _texts(tfds, builder, name, label_column, text_column)
    classes = [n for n, f in features.items() if _is_sequence(tfds, f, _is_class)]
    remaining = [n for n in sequences if n != inputs]
    label = _choose(name, classes + remaining, classes, label_column)
    return Columns("tagging", inputs, label)


def _refuse_kinds_of_others(tfds, features, name):
    """Refuses recordings and pictures with boxes, of which no column was asked for."""
    if any(isinstance(feature, tfds.features.Audio) for feature in features.values()):
        raise ValueError(
            f"{name} has recordings, and is no data set of texts or pictures. Of those, "
            "ka.data.connected_digits joins spoken_digit, for a SpeechRecognizer; others are read "
            "from files with ka.data.from_recordings."
        )
    objects = getattr(features["objects"], "feature", None) if "objects" in features else None
    boxes = isinstance(objects, tfds.features.FeaturesDict) and "bbox" in objects
    if boxes and not any(_is_class(tfds, f) for f in features.values()):
        raise ValueError(
            f"{name} has pictures with boxes: read it with ka.data.from_tfds_boxes, for an "
            "ObjectDetector."
        )


def _texts(tfds, builder, name, label_column, text_column):
    """Return the `Columns` of a data set whose inputs are texts."""
    features = builder.info.features
    if pair := find_pair(tfds, builder):
        target = _choose(name, pair, pair[1:], label_column)
        return Columns("pair", pair[pair[0] == target], target)
    classes = [n for n, f in features.items() if _is_class(tfds, f)]
    texts = [n for n, f in features.items() if _is_text(tfds, f)]
    if texts and classes:
        label = _class(tfds, builder, name, label_column)
        text = _choose(name, texts, _supervised(builder, texts), text_column, "text")
        return Columns("text", text, label)
    if texts and (label := _find_label_sets(tfds, features)) and label_column in (None, label):
        text = _choose(name, texts, _supervised(builder, texts), text_column, "text")
        return Columns("label_sets", text, label)
    if not texts or label_column:
        raise ValueError(
            f"{name} has no tokens with tags, and no images or texts with a label. "
            f"Its features are: {', '.join(features)}."
        )
    # Running text, such as books, needs no label.
    preferred = ["text"] if "text" in texts else texts
    return Columns("running_text", _choose(name, texts, preferred, text_column, "text"), None)


def _find_label_sets(tfds, features):
    """Return a sequence of class labels, or a tuple of features that are true or false; or None."""
    sequences = [n for n, f in features.items() if _is_sequence(tfds, f, _is_class)]
    flags = tuple(n for n, f in features.items() if f.shape == () and f.np_dtype == np.bool_)
    return sequences[0] if len(sequences) == 1 else flags if len(flags) > 1 else None


def _class(tfds, builder, name, label_column):
    labels = [n for n, f in builder.info.features.items() if _is_class(tfds, f)]
    return _choose(name, labels, _supervised(builder, labels), label_column)


def _choose(name, allowed, preferred, column, role="label"):
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


def _supervised(builder, columns):
    """Return the column that TFDS names, where there are several."""
    if len(columns) < 2:
        return columns
    return [n for n in builder.info.supervised_keys or () if n in columns]


def _is_sequence(tfds, feature, is_item):
    return isinstance(feature, tfds.features.Sequence) and is_item(tfds, feature.feature)


def _is_text(tfds, feature):
    return isinstance(feature, tfds.features.Text)


def _is_class(tfds, feature):
    return isinstance(feature, tfds.features.ClassLabel)


def _list_labels(builder, columns):
    """Return the names of the labels, in the order of their ids."""
    if isinstance(columns.label, tuple):
        return columns.label
    feature = builder.info.features[columns.label]
    return (feature.feature if columns.kind == "label_sets" else feature).names


def _read_tagged(builder, columns, split):
    features = builder.info.features
    names = getattr(features[columns.label].feature, "names", None)
    # Universal Dependencies in TFDS hold a "token" for every line of the file. Words have a
    # number as their head; multiword tokens and empty nodes have "None".
    head = "head" if "head" in features and columns.inputs == "tokens" else None
    read = [name for name in (columns.inputs, columns.label, head) if name]
    sentences = []
    for example in iterate_features(builder, read, split):
        rows = [
            (token.decode("utf-8"), names[tag] if names else tag.decode("utf-8"))
            for token, tag, *heads in zip(*example, strict=True)
            if not head or heads[0].isdigit()
        ]
        if rows:
            sentences.append(Sentence(*zip(*rows, strict=True)))
    return sentences


HIDDEN = -1  # the label that TFDS gives where the authors keep it to themselves


def _read_texts(builder, columns, split):
    names, texts = _list_labels(builder, columns), []
    for text, label in iterate_features(builder, (columns.inputs, columns.label), split):
        text = text.decode("utf-8").strip()
        if text and label != HIDDEN:
            texts.append(Text(text, names[label]))
    return texts


def _read_label_sets(builder, columns, split):
    of_flags, names = isinstance(columns.label, tuple), _list_labels(builder, columns)
    read = (columns.inputs, *(columns.label if of_flags else (columns.label,)))
    texts = []
    for text, *labels in iterate_features(builder, read, split):
        ids = np.flatnonzero(labels) if of_flags else np.unique(labels[0])
        if text := text.decode("utf-8").strip():
            texts.append((text, tuple(names[i] for i in ids)))
    return texts


def _read_questions(builder, columns, split):
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


def find_pair(tfds, builder):
    """Return (source, target), the features that hold a pair of texts, or None.

    They are TFDS's own inputs and outputs if both are texts, as in all translation sets. Where it
    names none, they are called source and target, as in Tatoeba.
    """
    features = builder.info.features
    texts = [name for name, f in features.items() if isinstance(f, tfds.features.Text)]
    pair = builder.info.supervised_keys or ()
    if len(pair) == 2 and pair[0] != pair[1] and set(pair) <= set(texts):
        return pair
    partners = [(n, n.replace("source", "target", 1)) for n in texts if n.startswith("source")]
    pairs = [p for p in partners if p[1] in texts and not p[0].endswith("language")]
    return pairs[0] if len(pairs) == 1 else None


def _read_pairs(builder, columns, split):
    rows = iterate_features(builder, (columns.inputs, columns.label), split)
    pairs = [tuple(text.decode("utf-8").strip() for text in row) for row in rows]
    # Sets that were gathered by machines have sentences without a translation.
    return [pair for pair in pairs if all(pair)]


def _read_running_text(builder, columns, split):
    """Several texts are joined by an empty line."""
    rows = iterate_features(builder, (columns.inputs,), split)
    return "\n\n".join(text.decode("utf-8") for (text,) in rows)


def _read_images(builder, columns, split, image_size=None):
    """Return (uint8 images (n, H, W, C), labels (n,))."""
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


# kind of columns -> what reads a split, and the class of its examples
READERS = {
    "tagging": (_read_tagged, Sentence),
    "text": (_read_texts, Text),
    "label_sets": (_read_label_sets, MultiLabelText),
    "question": (_read_questions, Question),
    "pair": (_read_pairs, Pair),
    "running_text": (_read_running_text, str),
    "image": (_read_images, ImageSplit),
}
