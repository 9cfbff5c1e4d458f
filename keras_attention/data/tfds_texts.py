"""Labelled texts out of TensorFlow Datasets."""

from keras_attention.data.texts import Text, Texts

HIDDEN = -1  # the label that TFDS gives where the authors keep it to themselves


def read_labelled_texts(builder, columns, splits, *, dev_fraction, seed):
    """A `Texts` of the splits, whose values are TFDS's words for them, or None."""
    read = {part: _read(builder, columns, words) if words else [] for part, words in splits.items()}
    if splits["test"] and not read["test"] and read["dev"]:
        # GLUE keeps the labels of its test parts: as in its papers, one tests on the other.
        read["test"], read["dev"] = read["dev"], []
    labels = builder.info.features[columns.label].names
    return Texts.from_lists(**read, labels=labels, dev_fraction=dev_fraction, seed=seed)


def _read(builder, columns, split):
    names = builder.info.features[columns.label].names
    wanted = (columns.inputs, columns.label)
    dataset = builder.as_dataset(split=split).map(lambda x: {name: x[name] for name in wanted})
    texts = []
    for batch in dataset.batch(1024).as_numpy_iterator():
        for text, label in zip(*(batch[name] for name in wanted), strict=True):
            text = text.decode("utf-8").strip()
            if text and label != HIDDEN:
                texts.append(Text(text, names[label]))
    return texts
