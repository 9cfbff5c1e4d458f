"""`DataSet`: examples of one class in three splits, train, dev and test."""

import dataclasses
import typing

from keras_attention.data.splits import add_dev

Example = typing.TypeVar("Example")


@dataclasses.dataclass(frozen=True, repr=False)
class DataSet(typing.Generic[Example]):
    """Examples of one class in three splits, in memory.

    The readers, such as `ka.data.from_conllu`, return a `DataSet`. To make one from lists, use the
    method `collect` of the class of the examples. It checks the examples and collects their labels.

    Args:
        kind: class of the examples, such as `ka.data.Text`, or `str` for running text.
        train, dev, test: list of examples, empty if the split does not exist. For images with a
            class label, each split is one `ImageSplit`. For running text, each split is one str.
        labels: tuple of str, the labels of all splits in the order of their ids, including those
            that occur only in dev or test. None if the examples have no labels.
        notes: tuple of str, remarks about the data for a model card.
        about: dict of facts that hold for all examples. For recordings, `"sampling_rate"` is the
            rate in Hz, or None for features. For images with boxes or captions, `"image_size"` is
            the size to resize them to: (height, width), an int for the longer side, or None. For
            captions that list objects, `"bins"` is the number of positions along a side. For pairs
            from dialogues, `"turns"` is the maximum number of turns in a context. For running text
            from dialogues, `"dialogues"` is True.

    ```python
    import keras_attention as ka

    train = [ka.data.Text("a joy", "good"), ka.data.Text("a bore", "bad")]
    data = ka.data.Text.collect(train, dev_fraction=0.5)
    assert data.labels == ("bad", "good") and len(data.train) == len(data.dev) == 1
    ```
    """

    kind: type
    train: typing.Sequence[Example]
    dev: typing.Sequence[Example]
    test: typing.Sequence[Example]
    labels: tuple | None = None
    notes: tuple = ()
    about: dict = dataclasses.field(default_factory=dict)

    @classmethod
    def from_parts(cls, kind, train, dev, test, *, dev_fraction, seed, **record):
        """Make a dataset from lists of examples of the class `kind`, which have been checked.

        If `dev` is empty, a random share `dev_fraction` of `train`, chosen by the int `seed`, is
        moved to it. `test` is a list of examples, like `train` and `dev`. `record` are the
        remaining fields, such as `labels`. Raise a ValueError if all three lists are empty.
        """
        if not (train or dev or test):
            raise ValueError(f"No {kind.__name__} given: pass train, dev or test.")
        train, dev = add_dev(train, dev, dev_fraction=dev_fraction, seed=seed)
        return cls(kind, train, dev, test, **record)

    @property
    def parts(self):
        """dict from "train", "dev" and "test" to the examples of this split."""
        return {"train": self.train, "dev": self.dev, "test": self.test}

    def __repr__(self):
        sizes = ", ".join(f"{name}={len(part)}" for name, part in self.parts.items())
        labels = "" if self.labels is None else f", {len(self.labels)} labels"
        return f"DataSet({self.kind.__name__}: {sizes}{labels})"
