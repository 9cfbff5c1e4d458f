"""Data sets of TensorFlow Datasets, recognised by their features."""

from keras_attention.data.extras import import_tfds
from keras_attention.data.tfds_builder import find_builder, find_splits, prepared
from keras_attention.data.tfds_features import find_columns
from keras_attention.data.tfds_images import check_image_size, read_images
from keras_attention.data.tfds_pairs import read_pairs, read_running_text
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
    """A data set of TensorFlow Datasets: tagged sentences, labelled images, or texts of any use.

    What it is, its features say; nothing depends on its name:

    - sequences of tokens and of tags make a `Tagged` (`universal_dependencies/en_ewt`,
      `conll2003`);
    - an image and a class label an `Images` (`fashion_mnist`, `mnist`, `cifar10`);
    - a text and a class label a `Texts` (`imdb_reviews`, `glue/sst2`, `ag_news_subset`);
    - two texts, one made of the other, a `Pairs` (`wmt14_translate/de-en`, `tatoeba/tatoeba_de`,
      `gigaword`);
    - a text alone a `Corpus` (`tiny_shakespeare`, `lm1b`).

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
        A `Tagged`, `Images`, `Texts`, `Pairs` or `Corpus`, in memory. Of Universal Dependencies
        treebanks, as in `from_conllu`, multiword tokens and empty nodes are left out: they are no
        words. Where the labels of the test split are kept secret, as in GLUE, the validation split
        is for testing, and a part of train becomes dev. Of pairs those with an empty side are left
        out. The texts of a corpus are joined by an empty line.

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
    builder = find_builder(tfds, name, data_dir)
    columns = find_columns(tfds, builder, name, label_column, text_column)
    if columns.kind == "image":
        check_image_size(builder, columns, name, image_size)
    builder = prepared(tfds, builder, name)
    splits = find_splits(builder, name, splits)
    options = dict(dev_fraction=dev_fraction, seed=seed)
    if columns.kind == "image":
        return read_images(builder, columns, splits, image_size=image_size, **options)
    if columns.kind == "pair":
        return read_pairs(builder, columns, splits, **options)
    if columns.kind == "running_text":
        return read_running_text(builder, columns, splits, dev_fraction=dev_fraction)
    if columns.kind == "text":
        return read_labelled_texts(builder, columns, splits, **options)
    return read_tagged(builder, columns, splits, **options)
