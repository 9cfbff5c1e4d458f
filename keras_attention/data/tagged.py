"""Sentences with a tag for every token, in three parts."""

import dataclasses
import typing

from keras_attention.data.parts import read_parts, with_dev


class Sentence(typing.NamedTuple):
    """Tokens and, for each, its tag: two tuples of str of the same length."""

    tokens: tuple
    tags: tuple


@dataclasses.dataclass(frozen=True, repr=False)
class Tagged:
    """A tagging data set in memory. `from_tfds`, `from_conllu` and `from_conll` make one.

    Args:
        train, dev, test: lists of `Sentence`; one that there is not is empty.
        labels: tuple of str, every tag of all three, `O` first and the others sorted. A tag that
            only dev or test has is a label too: the model cannot get it right, and the score
            says so.
    """

    train: list
    dev: list
    test: list
    labels: tuple

    def __repr__(self):
        sizes = ", ".join(f"{name}={len(getattr(self, name))}" for name in ("train", "dev", "test"))
        return f"Tagged({sizes} sentences, {len(self.labels)} labels: {', '.join(self.labels)})"


def tagged(train, dev, test, *, dev_fraction, seed):
    """`Tagged` from three lists of sentences; without a dev list, a part of train becomes it."""
    train, dev = with_dev(train, dev, dev_fraction=dev_fraction, seed=seed)
    tags = {tag for split in (train, dev, test) for sentence in split for tag in sentence.tags}
    labels = tuple(sorted(tags, key=lambda tag: (tag != "O", tag)))
    return Tagged(train, dev, test, labels)


def from_files(read, paths, *, dev_fraction, seed):
    """`Tagged` from files: `paths` maps train, dev and test to a path, several, or None."""
    return tagged(**read_parts(read, paths), dev_fraction=dev_fraction, seed=seed)
