"""The handwritten digits that come with scikit-learn, split once and for all."""

import numpy as np

from keras_attention import data

NAME = "digits"
ABOUT = {
    "name": "handwritten digits of scikit-learn (the test set of UCI's Optical Recognition of "
    "Handwritten Digits)",
    "licence": "CC BY 4.0 (UCI Machine Learning Repository)",
    "notes": (
        "split by class with a fixed seed: a fifth for testing, an eighth of the rest for choosing "
        "the epoch, the others for training; the same people wrote digits of all three parts",
    ),
}


def load(seed=0):
    """The 1,797 images (8, 8, 1) as `ka.data.Images`, every part with its share of each digit.

    A fifth is for testing, an eighth of the rest for choosing, the others for training.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError(
            "The digits come with scikit-learn, which is not installed: pip install scikit-learn"
        ) from error
    digits = load_digits()
    images = (digits.images / 16.0).astype("float32")[..., None]
    parts = {name: (images[k], digits.target[k]) for name, k in split(digits.target, seed).items()}
    return data.Images.from_arrays(**parts, labels=[str(digit) for digit in range(10)])


def split(labels, seed):
    """Indices of train, dev and test, stratified."""
    generator = np.random.default_rng(seed)
    parts = {"train": [], "dev": [], "test": []}
    for label in np.unique(labels):
        order = generator.permutation(np.flatnonzero(labels == label))
        test = round(len(order) / 5)
        dev = test + round((len(order) - test) / 8)
        for name, chosen in zip(parts, (order[dev:], order[test:dev], order[:test]), strict=True):
            parts[name].append(chosen)
    return {name: np.sort(np.concatenate(chosen)) for name, chosen in parts.items()}
