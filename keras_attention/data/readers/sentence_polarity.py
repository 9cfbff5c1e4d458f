"""Movie-review sentences, positive and negative, split once and for all."""

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
    """10,662 sentences of movie reviews, half of them positive (Pang and Lee, 2005, *MR*).

    There is no official split. Here a tenth of each class is for testing, a tenth for choosing,
    the others are for training: drawn with `seed`, so the default is the same everywhere.

    Args:
        folder: where `sentence_polarity.zip` lies, as NLTK publishes it, or is put if it is not
            there: then it is downloaded (600 kB). None is Keras's own folder of data sets.
        seed: int, of the split.

    Returns:
        A `DataSet` of `Text` with the labels `negative` and `positive`, 8,530, 1,066 and 1,066
        texts.

    Raises:
        ConnectionError: the archive is not on this machine and could not be fetched.
        ValueError: the archive is not the published one.

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
    """Return the path of the archive, fetched if need be.

    It is what NLTK publishes, or an error.
    """
    target = None if folder is None else pathlib.Path(folder) / ARCHIVE
    path = target if target and target.is_file() else _fetch(target)
    if hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest() != SHA256:
        raise ValueError(f"{path} is not the archive that NLTK publishes. Remove it: {URL} is.")
    return path


def _fetch(target):
    """Downloads to `target`, or into Keras's own folder of data sets."""
    if target is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
    place = {} if target is None else {"cache_dir": target.parent, "cache_subdir": ""}
    try:
        return keras.utils.get_file(ARCHIVE, URL, **place)
    except Exception as error:  # what get_file raises has no class of its own
        raise ConnectionError(f"{ARCHIVE} could not be fetched: {error}") from error
