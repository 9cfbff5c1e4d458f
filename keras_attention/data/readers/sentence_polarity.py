"""Positive and negative sentences from movie reviews, with a fixed split."""

import hashlib
import pathlib
import zipfile

import numpy as np

from keras_attention.core.lazy import keras
from keras_attention.data.readers.texts import Text

LABELS = {"negative": "rt-polarity.neg", "positive": "rt-polarity.pos"}
ARCHIVE = "sentence_polarity.zip"
URL = (
    "https://raw.githubusercontent.com/nltk/nltk_data/5db857e6f7df11eabb5e5665836db9ec8df07e28/"
    "packages/corpora/sentence_polarity.zip"
)
SHA256 = "6e1ed4405b65c7eabf1d199a7f7c437091ac21da0ea7467b410a74062574566b"


def sentence_polarity(folder=None, *, seed=0):
    """Load 10,662 sentences from movie reviews as a `DataSet` of `Text` (Pang and Lee, 2005, *MR*).

    Half are `"positive"` and half `"negative"`. Because an official split does not exist, a random
    tenth of each class becomes test and another tenth dev.

    Args:
        folder: path of the folder with `sentence_polarity.zip`, as published by NLTK. If the file
            is missing, it is downloaded to this folder (600 kB). None uses Keras's own folder for
            datasets.
        seed: int, for the random split.

    Raises:
        ConnectionError: the archive could not be downloaded.
        ValueError: the archive differs from the published one.

    Example (downloads the data):

        data = ka.data.sentence_polarity()
        data.train[0].text, data.train[0].label
    """
    parts = {"train": [], "dev": [], "test": []}
    generator = np.random.default_rng(seed)
    with zipfile.ZipFile(_archive(folder)) as archive:
        for label, name in LABELS.items():
            lines = archive.read(f"sentence_polarity/{name}").decode("utf-8").split("\n")
            texts = [Text(line.strip(), label) for line in lines if line.strip()]
            order = generator.permutation(len(texts))
            tenth = round(len(texts) / 10)
            chosen = (order[2 * tenth :], order[tenth : 2 * tenth], order[:tenth])
            for part, indices in zip(parts.values(), chosen, strict=True):
                part += [texts[i] for i in np.sort(indices)]
    return Text.collect(**parts, labels=tuple(LABELS))


def _archive(folder):
    """Download the archive if necessary, verify its hash, and return its path."""
    path = None if folder is None else pathlib.Path(folder) / ARCHIVE
    if path is None or not path.is_file():
        path = _download(path)
    if hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest() != SHA256:
        raise ValueError(f"{path} is not the archive that NLTK publishes. Remove it: {URL} is.")
    return path


def _download(target):
    cache = {}
    if target is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        cache = {"cache_dir": target.parent, "cache_subdir": ""}
    try:
        return keras.utils.get_file(ARCHIVE, URL, **cache)
    except Exception as error:  # get_file raises a plain Exception
        raise ConnectionError(f"{ARCHIVE} could not be fetched: {error}") from error
