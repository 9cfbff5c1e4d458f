"""What a TFDS data set is, from its features: tagged sentences, labelled images, or texts."""

import typing

from keras_attention.data.tfds_pairs import find_pair


class Columns(typing.NamedTuple):
    """Which features are read: `inputs`, whose kind is `kind`, and their `label`.

    A kind is `"tagging"`, `"image"`, `"text"`, `"pair"` (a source and, as label, its target) or
    `"running_text"`, which has no label.
    """

    kind: str
    inputs: str
    label: str


def find_columns(tfds, builder, name, label_column, text_column=None):
    """The `Columns` of a data set; a ValueError if it is of no kind or the label is unclear."""
    features = builder.info.features
    images = [n for n, f in features.items() if isinstance(f, tfds.features.Image)]
    sequences = [n for n, f in features.items() if _is_sequence(tfds, f, _is_text)]
    if images:
        # TFDS names the input where there are several, as with masks beside photographs.
        inputs = next((n for n in builder.info.supervised_keys or () if n in images), images[0])
        return Columns("image", inputs, _class(tfds, builder, name, label_column))
    inputs = "tokens" if "tokens" in sequences else None if len(sequences) != 1 else sequences[0]
    if inputs is None:
        return _texts(tfds, builder, name, label_column, text_column)
    classes = [n for n, f in features.items() if _is_sequence(tfds, f, _is_class)]
    others = [n for n in sequences if n != inputs]
    label = _choose(name, classes + others, classes, label_column)
    return Columns("tagging", inputs, label)


def _texts(tfds, builder, name, label_column, text_column):
    """The `Columns` of a data set whose inputs are texts."""
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
    if not texts or label_column:
        raise ValueError(
            f"{name} has no tokens with tags, and no images or texts with a label. "
            f"Its features are: {', '.join(features)}."
        )
    # Running text, such as books, needs no label.
    preferred = ["text"] if "text" in texts else texts
    return Columns("running_text", _choose(name, texts, preferred, text_column, "text"), None)


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
    given = "" if column is None else f" no {role} column {column!r}, but"
    raise ValueError(
        f"{name} has{given} {', '.join(allowed)}. Choose with {role}_column={allowed[0]!r}."
    )


def _supervised(builder, columns):
    """The column that TFDS names where there are several, as with coarse and fine classes."""
    if len(columns) < 2:
        return columns
    return [n for n in builder.info.supervised_keys or () if n in columns]


def _is_sequence(tfds, feature, of):
    return isinstance(feature, tfds.features.Sequence) and of(tfds, feature.feature)


def _is_text(tfds, feature):
    return isinstance(feature, tfds.features.Text)


def _is_class(tfds, feature):
    return isinstance(feature, tfds.features.ClassLabel)
