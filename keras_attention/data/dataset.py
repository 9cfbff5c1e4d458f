"""`DataSet`: examples of one kind, in parts for training, choosing and testing."""

import dataclasses
import typing

from keras_attention.data.splits import add_dev

Example = typing.TypeVar("Example")


@dataclasses.dataclass(frozen=True, repr=False)
class DataSet(typing.Generic[Example]):
    """Examples of one kind in three parts, in memory.

    Readers make one, such as `ka.data.from_conllu`. So does the method `collect` of each class of
    examples, from lists: it checks them and finds their labels.

    Args:
        kind: class of the examples, such as `ka.data.Text`; `str` for running text.
        train, dev, test: list of examples; a missing part is empty. Pictures with a class are an
            `ImageSplit`, and running text is a str.
        labels: tuple of str, the labels of all parts in the order of their ids. None for examples
            without labels. A label that only dev or test has is one too: the model cannot get it
            right, and the score says so.
        notes: tuple of str, what a model's card is to say about the data.
        about: dict, what holds for all examples. Recordings have a `"sampling_rate"`, samples a
            second, or None for features. Pictures with boxes or texts have an `"image_size"` that
            they are to be resized to, (height, width), or an int for the longer side, or None;
            texts that name objects have their `"bins"`, places along a side. Pairs from dialogues
            have `"turns"`, of a context at most, and running text from dialogues `"dialogues"`.

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
        """Make one of lists of checked examples. Without `dev`, a part of train becomes it.

        Args:
            record: the other fields.
        """
        if not (train or dev or test):
            raise ValueError(f"No {kind.__name__} given: pass train, dev or test.")
        train, dev = add_dev(train, dev, dev_fraction=dev_fraction, seed=seed)
        return cls(kind, train, dev, test, **record)

    @property
    def parts(self):
        """dict, `"train"`, `"dev"` and `"test"` -> their examples."""
        return {"train": self.train, "dev": self.dev, "test": self.test}

    def __repr__(self):
        sizes = ", ".join(f"{name}={len(part)}" for name, part in self.parts.items())
        labels = "" if self.labels is None else f", {len(self.labels)} labels"
        return f"DataSet({self.kind.__name__}: {sizes}{labels})"
