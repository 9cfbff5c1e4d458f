"""What a TFDS data set is, from its features: tagged sentences, labelled images, texts."""

import typing

from keras_attention.data.tfds_pairs import find_pair, find_running_text


class Columns(typing.NamedTuple):
    """Which features are read: `inputs` are tokens or images, as `kind` says; `label` is theirs."""

    kind: str
    inputs: str
    label: str


def find_columns(tfds, builder, name, label_column):
    """The `Columns` of a data set; a ValueError if it is neither kind or the label is unclear."""
    features = builder.info.features
    images = [n for n, f in features.items() if isinstance(f, tfds.features.Image)]
    sequences = [n for n, f in features.items() if _is_sequence(tfds, f, _is_text)]
    if images:
        # TFDS names the input where there are several, as with masks beside photographs.
        inputs = next((n for n in builder.info.supervised_keys or () if n in images), images[0])
        labels = [n for n, f in features.items() if isinstance(f, tfds.features.ClassLabel)]
        label = _choose(name, labels, _supervised(builder, labels), label_column)
        return Columns("image", inputs, label)
    inputs = "tokens" if "tokens" in sequences else None if len(sequences) != 1 else sequences[0]
    if inputs is None:
        return _texts(tfds, builder, name, label_column)
    classes = [n for n, f in features.items() if _is_sequence(tfds, f, _is_class)]
    others = [n for n in sequences if n != inputs]
    label = _choose(name, classes + others, classes, label_column)
    return Columns("tagging", inputs, label)


def _texts(tfds, builder, name, label_column):
    """The `Columns` of a data set whose inputs are texts."""
    features = builder.info.features
    classes = [n for n, f in features.items() if _is_class(tfds, f)]
    if pair := find_pair(tfds, builder):
        target = _choose(name, pair, pair[1:], label_column)
        return Columns("pair", pair[pair[0] == target], target)
    if not classes and (text := find_running_text(tfds, builder)):
        label = None if label_column is None else _choose(name, [], [], label_column)
        return Columns("running_text", text, label)
    raise ValueError(
        f"{name} has no tokens with tags and no images with a label, no pairs of texts and no "
        f"running text. Its features are: {', '.join(features)}."
    )


def _choose(name, allowed, preferred, label_column):
    if label_column is None and len(preferred) == 1:
        return preferred[0]
    if label_column in allowed:
        return label_column
    if not allowed:
        raise ValueError(f"{name} has no label column.")
    given = "" if label_column is None else f" no label column {label_column!r}, but"
    raise ValueError(
        f"{name} has{given} {', '.join(allowed)}. Choose with label_column={allowed[0]!r}."
    )


def _supervised(builder, labels):
    """The label that TFDS names where there are several, as with coarse and fine classes."""
    if len(labels) < 2:
        return labels
    return [n for n in builder.info.supervised_keys or () if n in labels]


def _is_sequence(tfds, feature, of):
    return isinstance(feature, tfds.features.Sequence) and of(tfds, feature.feature)


def _is_text(tfds, feature):
    return isinstance(feature, tfds.features.Text)


def _is_class(tfds, feature):
    return isinstance(feature, tfds.features.ClassLabel)
