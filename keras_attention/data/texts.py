"""Texts with a label each, in three parts."""

import dataclasses
import typing

from keras_attention.data.parts import with_dev


class Text(typing.NamedTuple):
    """A text and its label: two str."""

    text: str
    label: str


@dataclasses.dataclass(frozen=True, repr=False)
class Texts:
    """A text classification data set in memory.

    `from_tfds`, `from_text_files` and `sentence_polarity` make one.

    Args:
        train, dev, test: lists of `Text`; one that there is not is empty.
        labels: tuple of str, every label of all three, sorted; whole numbers by their value. A
            label that only dev or test has is one too: the model cannot get it right, and the
            score says so.

    Example:

    ```python
    import keras_attention as ka

    train = [ka.data.Text("a joy", "good"), ka.data.Text("a bore", "bad")]
    data = ka.data.Texts.from_lists(train, dev_fraction=0.5)
    assert data.labels == ("bad", "good") and len(data.train) == len(data.dev) == 1
    ```
    """

    train: list
    dev: list
    test: list
    labels: tuple

    @classmethod
    def from_lists(cls, train=(), dev=(), test=(), *, labels=None, dev_fraction=0.1, seed=0):
        """Makes one of lists of (text, label); without `dev`, a part of train becomes it.

        Args:
            labels: names of the labels in the order of their ids; None sorts those that are there.
        """
        parts = [[Text(*example) for example in part] for part in (train, dev, test)]
        if not any(parts):
            raise ValueError("No texts given: pass train, dev or test.")
        if labels is None:
            labels = sorted({label for part in parts for _, label in part}, key=_in_order)
        train, dev = with_dev(*parts[:2], dev_fraction=dev_fraction, seed=seed)
        return cls(train, dev, parts[2], tuple(labels))

    def __repr__(self):
        sizes = ", ".join(f"{name}={len(getattr(self, name))}" for name in ("train", "dev", "test"))
        return f"Texts({sizes} texts, {len(self.labels)} labels: {', '.join(self.labels)})"


def _in_order(label):
    """2 before 10, and both before words."""
    is_number = label.isascii() and label.isdigit()
    return (not is_number, int(label) if is_number else 0, label)
