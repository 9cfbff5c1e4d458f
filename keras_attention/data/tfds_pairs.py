"""Pairs of texts, and running text, out of TensorFlow Datasets."""

from keras_attention.data.corpus import corpus
from keras_attention.data.pairs import Pairs


def find_pair(tfds, builder):
    """(source, target), the features that hold a pair of texts, or None.

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


def read_pairs(builder, columns, splits, *, dev_fraction, seed):
    """A `Pairs` of the splits, whose values are TFDS's words for them, or None."""
    parts = {}
    for part, rows in _read(builder, (columns.inputs, columns.label), splits).items():
        pairs = [(source.strip(), target.strip()) for source, target in rows]
        # Sets that were gathered by machines have sentences without a translation.
        parts[part] = [pair for pair in pairs if all(pair)]
    return Pairs.from_lists(**parts, dev_fraction=dev_fraction, seed=seed)


def read_running_text(builder, columns, splits, *, dev_fraction):
    """A `Corpus` of the splits; several texts of one are joined by an empty line."""
    parts = _read(builder, (columns.inputs,), splits)
    joined = {part: "\n\n".join(text for (text,) in rows) for part, rows in parts.items()}
    return corpus(**joined, dev_fraction=dev_fraction)


def _read(builder, names, splits):
    """{part: [(text of each of the features, ...), ...]}"""
    return {part: _rows(builder, names, words) if words else [] for part, words in splits.items()}


def _rows(builder, names, split):
    dataset = builder.as_dataset(split=split).map(lambda x: tuple(x[name] for name in names))
    return [
        tuple(text.decode("utf-8") for text in row)
        for batch in dataset.batch(1024).as_numpy_iterator()
        for row in zip(*batch, strict=True)
    ]
