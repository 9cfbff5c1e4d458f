"""Pairs of texts, such as sentences and their translations, in three parts."""

import dataclasses
import typing

from keras_attention.data.parts import with_dev


class Pair(typing.NamedTuple):
    """A text and what it is to become: two str."""

    source: str
    target: str


@dataclasses.dataclass(frozen=True, repr=False)
class Pairs:
    """A sequence-to-sequence data set in memory. `from_tfds` and `from_pair_files` make one.

    Args:
        train, dev, test: lists of `Pair`; one that there is not is empty.

    Example:

    ```python
    import keras_attention as ka

    train = [("Hallo", "Hello"), ("Welt", "World"), ("eins", "one")]
    data = ka.data.Pairs.from_lists(train, test=[("zwei", "two")])
    assert len(data.train) == 2 and len(data.dev) == 1 and data.test[0].target == "two"
    ```
    """

    train: list
    dev: list
    test: list

    @classmethod
    def from_lists(cls, train=(), dev=(), test=(), *, dev_fraction=0.1, seed=0):
        """Makes one of lists of (source, target); without `dev`, a part of train becomes it."""
        parts = [[Pair(*pair) for pair in part] for part in (train, dev, test)]
        if not any(parts):
            raise ValueError("No pairs given: pass train, dev or test.")
        train, dev = with_dev(*parts[:2], dev_fraction=dev_fraction, seed=seed)
        return cls(train, dev, parts[2])

    def __repr__(self):
        sizes = ", ".join(f"{name}={len(getattr(self, name))}" for name in ("train", "dev", "test"))
        return f"Pairs({sizes} pairs)"
