"""Data sets of TensorFlow Datasets, recognised by their features."""

from keras_attention.data.extras import import_tfds
from keras_attention.data.tfds_builder import find_builder, find_splits, prepared
from keras_attention.data.tfds_features import find_columns
from keras_attention.data.tfds_images import check_image_size, read_images
from keras_attention.data.tfds_tagged import read_tagged
from keras_attention.data.tfds_texts import read_labelled_texts


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
    """A data set of TensorFlow Datasets, for tagging, or for classifying images or texts.

    Which of them is read from the data set's features: sequences of tokens and of tags make it
    a tagging one (`universal_dependencies/en_ewt`, `conll2003`), an image and a class label an
    image one (`fashion_mnist`, `mnist`, `cifar10`), a text and a class label a text one
    (`imdb_reviews`, `glue/sst2`, `ag_news_subset`). Nothing depends on its name.

    Args:
        name: str, as in the TFDS catalogue, with the config where there are several.
        label_column: str, which feature is the label; needed where there are several.
        text_column: str, which feature is the text to classify; needed where there are several.
        splits: dict that says what is `"train"`, `"dev"` and `"test"`, in TFDS's own words
            (`{"train": "train[:80%]", "test": "train[80%:]"}`); None for the official splits.
        dev_fraction: float, the share of train that becomes dev where there is no validation
            split. The test split is never used for that.
        seed: int, which examples those are.
        image_size: (height, width), resizes; needed where images differ in size.
        data_dir: where TFDS keeps its data; None for its own default.

    Returns:
        A `Tagged`, an `Images` or a `Texts`, in memory. Of Universal Dependencies treebanks, as in
        `from_conllu`, multiword tokens and empty nodes are left out: they are no words. Where the
        labels of the test split are kept secret, as in GLUE, the validation split is for testing,
        and a part of train becomes dev.

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
    """
    tfds = import_tfds("from_tfds")
    builder = find_builder(tfds, name, data_dir)
    columns = find_columns(tfds, builder, name, label_column, text_column)
    if columns.kind == "image":
        check_image_size(builder, columns, name, image_size)
    builder = prepared(tfds, builder, name)
    splits = find_splits(builder, name, splits)
    options = dict(dev_fraction=dev_fraction, seed=seed)
    if columns.kind == "image":
        return read_images(builder, columns, splits, image_size=image_size, **options)
    if columns.kind == "text":
        return read_labelled_texts(builder, columns, splits, **options)
    return read_tagged(builder, columns, splits, **options)
