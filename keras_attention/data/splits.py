"""The parts of a data set: train, dev and test."""

import functools

import numpy as np

from keras_attention.data.problems import Problems


def read_parts(read, paths, on_error=None):
    """Read the examples of train, dev and test.

    Args:
        read: function of a path that gives a list of examples.
        paths: dict of train, dev and test to a path, several, or None.
        on_error: `"raise"` or `"skip"`, of `Problems`, which `read` then takes as `problems=`.

    Returns:
        dict, part -> list of examples.
    """
    if not any(paths.values()):
        raise ValueError("No file given: pass the paths of train, dev or test.")
    if on_error is None:
        return {name: _read_all(read, path) for name, path in paths.items()}
    problems = Problems(on_error)
    read = functools.partial(read, problems=problems)
    parts = {name: _read_all(read, path) for name, path in paths.items()}
    problems.report()
    return parts


def _read_all(read, paths):
    if paths is None:
        return []
    paths = paths if isinstance(paths, list | tuple) else [paths]
    return [example for path in paths for example in read(path)]


def add_dev(train, dev, *, dev_fraction, seed):
    """Return (train, dev), lists or an `ImageSplit`. Without dev, a part of train becomes it."""
    if len(dev) or not len(train):
        return train, dev
    parts = hold_out(len(train), dev_fraction, seed)
    if isinstance(train, list | tuple):
        return tuple([train[i] for i in part] for part in parts)
    return tuple(train[part] for part in parts)


def split_by_class(labels, fractions, seed):
    """Splits examples at random so that every part has its share of each class.

    Args:
        labels: ints (n,).
        fractions: dict, name of a part -> its share of each class, above 0: one example at least.
        seed: int; the same seed gives the same split.

    Returns:
        dict: the same names, and `"train"` for what is left -> indices, in ascending order.
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
    """Splits range(size) at random: (indices kept, indices held out), both in ascending order.

    The same seed gives the same split. At least one example is held out, unless `fraction` is 0.
    """
    if not 0 <= fraction < 1:
        raise ValueError(f"dev_fraction={fraction}: expected a number from 0 to below 1.")
    if fraction and size < 2:
        raise ValueError(
            f"The training part has {size} example, too few to hold some out as a development "
            "part. Give a development part, or dev_fraction=0 for none."
        )
    number = max(1, round(size * fraction)) if fraction else 0
    order = np.random.default_rng(seed).permutation(size)
    return np.sort(order[number:]), np.sort(order[:number])
