"""Running text for language models, in three parts."""

import dataclasses
import pathlib

from keras_attention.data.lines import read_lines


@dataclasses.dataclass(frozen=True, repr=False)
class Corpus:
    """Running text in memory. `from_tfds` and `from_plain_text` make one.

    Args:
        train, dev, test: str; one that there is not is empty.
    """

    train: str
    dev: str
    test: str

    def __repr__(self):
        sizes = ", ".join(f"{name}={len(getattr(self, name))}" for name in ("train", "dev", "test"))
        return f"Corpus({sizes} characters)"


def from_plain_text(train=None, dev=None, test=None, *, dev_fraction=0.1):
    """Running text from files, such as books.

    Args:
        train, dev, test: a path, a list of paths whose texts are joined by an empty line, or None;
            gzipped files are read as well.
        dev_fraction: float, the share of train that becomes dev where no dev file is given: the
            end of the text, for what stands beside it says too much of a part of the middle.

    Returns:
        A `Corpus`. Ends of lines are `\\n`, whatever they are in the files.

    Example:

    ```python
    import pathlib
    import tempfile
    import keras_attention as ka

    path = pathlib.Path(tempfile.mkdtemp()) / "input.txt"
    path.write_text("All the world's a stage,\\nand all the men and women merely players.\\n")
    data = ka.data.from_plain_text(path, dev_fraction=0.125)
    assert data.train.startswith("All the world") and data.dev == "players.\\n"
    ```
    """
    if not (train or dev or test):
        raise ValueError("No file given: pass the paths of train, dev or test.")
    parts = [_joined(map(_text, _paths(given))) for given in (train, dev, test)]
    return corpus(*parts, dev_fraction=dev_fraction)


def corpus(train, dev, test, *, dev_fraction):
    """`Corpus` of three texts; without dev, the end of train becomes it."""
    if not 0 <= dev_fraction < 1:
        raise ValueError(f"dev_fraction={dev_fraction}: expected a number from 0 to below 1.")
    if train and not dev:
        kept = int(len(train) * (1 - dev_fraction))
        train, dev = train[:kept], train[kept:]
    return Corpus(train, dev, test)


def _paths(given):
    return given if isinstance(given, list | tuple) else [] if given is None else [given]


def _text(path):
    text = "\n".join(line for _, line in read_lines(path))
    if not text.strip():
        raise ValueError(f"{pathlib.Path(path)} holds no text.")
    return text


def _joined(texts):
    return "\n\n".join(texts)
