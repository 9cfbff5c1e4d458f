"""Divides a dataset into train, dev and test."""

import numpy as np

from keras_attention.data.problems import Problems


def read_parts(read, train, dev, test, on_error=None, **options):
    """Read the examples of train, dev and test from files, and return a dict of lists.

    Args:
        read: function of a path that returns a list of examples. `options` are its keyword
            arguments.
        train, dev, test: a path, a list of paths, or None for no examples.
        on_error: `"raise"` or `"skip"`. `read` then has an argument `problems`, a `Problems` that
            collects broken examples. None calls `read` without this argument.
    """
    paths = {"train": train, "dev": dev, "test": test}
    if not any(paths.values()):
        raise ValueError("No file given: pass the paths of train, dev or test.")
    if on_error is None:
        return {name: _read_all(path, read, options) for name, path in paths.items()}
    problems = Problems(on_error)
    options["problems"] = problems
    parts = {name: _read_all(path, read, options) for name, path in paths.items()}
    problems.report()
    return parts


def _read_all(paths, read, options):
    if paths is None:
        return []
    paths = paths if isinstance(paths, list | tuple) else [paths]
    return [example for path in paths for example in read(path, **options)]


def add_dev(train, dev, *, dev_fraction, seed):
    """Return (train, dev), where an empty `dev` is replaced by a random part of `train`.

    Both arguments are lists or `ImageSplit`s, and do not change. The part is the share
    `dev_fraction`, chosen by the int `seed`, and the new `train` is the rest.
    """
    if len(dev) or not len(train):
        return train, dev
    parts = hold_out(len(train), dev_fraction, seed)
    if isinstance(train, list | tuple):
        return tuple([train[i] for i in part] for part in parts)
    return tuple(train[part] for part in parts)


def split_by_class(labels, fractions, seed):
    """Split examples at random into parts that have the same share of each class.

    Return a dict from the name of each part to the ascending indices of its examples. The part
    `"train"` has the examples that no other part has.

    Args:
        labels: ints (n,), the class of each example.
        fractions: dict from the name of a part, such as `"dev"`, to its share of each class, a
            positive float. A part gets at least one example of each class.
        seed: int. The same seed returns the same split.
    """
    generator = np.random.default_rng(seed)
    parts = {name: [] for name in ("train", *fractions)}
    for label in np.unique(labels):
        remaining = generator.permutation(np.flatnonzero(labels == label))
        for name, fraction in fractions.items():
            number = max(1, round(fraction * np.sum(labels == label)))
            parts[name].append(remaining[:number])
            remaining = remaining[number:]
        parts["train"].append(remaining)
    return {name: np.sort(np.concatenate(chosen)) for name, chosen in parts.items()}


def hold_out(size, fraction, seed):
    """Choose a random share of `size` examples, for a development split.

    Return (indices of the other examples, indices of the chosen ones), both ascending. At least one
    example is chosen unless `fraction` is 0. The same seed returns the same split. Raise a
    ValueError if `fraction` is not from 0 to below 1, or `size` is less than 2.
    """
    if not 0 <= fraction < 1:
        raise ValueError(f"dev_fraction={fraction}: expected a number from 0 to below 1.")
    if fraction and size < 2:
        raise ValueError(
            f"The training part has {size} example: give more, a dev part, or dev_fraction=0."
        )
    number = max(1, round(size * fraction)) if fraction else 0
    order = np.random.default_rng(seed).permutation(size)
    return np.sort(order[number:]), np.sort(order[:number])
