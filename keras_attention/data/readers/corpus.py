"""Running text: in memory, from files, and as batches for language models."""

import dataclasses
import functools
import pathlib

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.data.columns import Columns
from keras_attention.data.dataset import DataSet
from keras_attention.data.readers.columns import UTF_8, read_lines
from keras_attention.data.shares import gather_batches
from keras_attention.data.splits import read_parts


def from_plain_text(train=None, dev=None, test=None, *, dev_fraction=0.1, encoding=UTF_8):
    """Running text from files, such as books.

    Args:
        train, dev, test: a path, a list of paths, or None. A path is that of a text file, gzipped
            or not, or of a folder: its files that end in `.txt` or `.txt.gz` are read, also those
            in folders in it, in the order of their paths. The texts of several files are joined by
            an empty line.
        dev_fraction: float, the share of train that becomes dev where no dev file is given: the
            end of the text, for what stands beside it says too much of a part of the middle.
        encoding: str, of the files, as Python names it: `"cp1252"`, `"utf-16"`, ...

    Returns:
        A `DataSet` of running text, whose parts are str. Lines end with `\\n`, also where those of
        the files end with `\\r\\n`. A file of a folder that holds no text is left out.

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
    read = functools.partial(_read_texts, encoding=encoding)
    parts = read_parts(lambda path: [read(path)], {"train": train, "dev": dev, "test": test})
    texts = {name: _join(part) for name, part in parts.items()}
    return split_text(**texts, dev_fraction=dev_fraction)


def split_text(train, dev="", test="", *, dev_fraction):
    """Return a `DataSet` of three texts. Without dev, the end of train becomes it."""
    if not 0 <= dev_fraction < 1:
        raise ValueError(f"dev_fraction={dev_fraction}: expected a number from 0 to below 1.")
    if train and not dev:
        end = int(len(train) * (1 - dev_fraction))
        train, dev = train[:end], train[end:]
    return DataSet(str, train, dev, test)


def _read_texts(path, encoding):
    """Return the text of a file, or of all text files in a folder."""
    path = pathlib.Path(path)
    if path.is_dir():
        text = _join(_text(file, encoding) for file in _files(path))
    else:
        text = _text(path, encoding)
    if not text.strip():
        raise ValueError(f"{path} holds no text.")
    return text


def _files(folder):
    """Return the text files in a folder and in those in it; hidden ones are none."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    names = {path: path.relative_to(folder).parts for path in files}
    files = [path for path in files if not any(part.startswith(".") for part in names[path])]
    texts = [path for path in files if path.name.endswith((".txt", ".txt.gz"))]
    if not texts:
        hint = f"; it has {files[0].relative_to(folder)}, for example" if files else ""
        raise ValueError(
            f"{folder} holds no text file: expected names that end in .txt or .txt.gz{hint}."
        )
    return texts


def _join(texts):
    """Return the texts with an empty line between each two.

    Those that hold nothing are left out.
    """
    *first, last = [*filter(str.strip, texts)] or [""]
    return "\n\n".join([*(text.rstrip("\n") for text in first), last])


def _text(path, encoding):
    return "\n".join(line for _, line in read_lines(path, encoding))


@dataclasses.dataclass(eq=False)
class TextWindows:
    """Windows of running text, to train a language model: the label of a token is the next one.

    Args:
        tokens: ints (L,), a text such as `characters.encode([text])[0]`.
        window_length: int T, the tokens that a model sees at once.
        steps: int, how many batches of windows at random places make an epoch, as in nanoGPT: for
            training. Every epoch has others. None for windows one after another, from the first
            token to the last, so that every token but the first is asked for once: for scoring.
            What the last window lacks is 0 then, with label -1.

    For models with a memory, whose batches go on where the last one stopped, there is
    `contiguous_segments`.

    ```python
    import numpy as np
    import keras_attention as ka

    tokens = np.arange(1, 9)
    ids, labels = next(iter(ka.data.batches(ka.data.TextWindows(tokens, window_length=4))))
    assert ids.numpy().tolist() == [[1, 2, 3, 4], [5, 6, 7, 0]]
    assert labels.numpy().tolist() == [[2, 3, 4, 5], [6, 7, 8, -1]]
    windows = ka.data.TextWindows(tokens, window_length=4, steps=10)
    ids, labels = next(iter(ka.data.batches(windows, batch_size=2)))
    assert (labels.numpy() == ids.numpy() + 1).all()
    ```
    """

    tokens: np.ndarray
    window_length: int
    steps: int | None = None

    def __post_init__(self):
        self.tokens = check_tokens("TextWindows", self.tokens)
        check_whole_number("TextWindows", "window_length", self.window_length)
        if self.steps is None:
            return
        check_whole_number("TextWindows", "steps", self.steps)
        if len(self.tokens) <= self.window_length:
            raise ValueError(
                f"The text has {len(self.tokens)} tokens: too few for a window of "
                f"{self.window_length} and the token after it. Choose a smaller window_length."
            )

    def __len__(self):
        """Return how many windows there are in order, or batches of those at random places."""
        return self.steps or -(-(len(self.tokens) - 1) // self.window_length)

    def columns(self):
        """Return `Columns`: ids and labels, int32 (B, T)."""
        if self.steps is not None:
            return Columns(draw=self._draw)
        size = len(self), self.window_length
        ids, labels = np.zeros(size, "int32"), np.full(size, -1, "int32")
        ids.ravel()[: len(self.tokens) - 1] = self.tokens[:-1]
        labels.ravel()[: len(self.tokens) - 1] = self.tokens[1:]
        return Columns(ids, labels, count=len(self))

    def _draw(self, tf, batch_size, seed, drop_remainder):
        text, offsets = tf.constant(self.tokens), tf.range(self.window_length + 1)
        num_starts = len(self.tokens) - self.window_length

        def draw(seed):
            return tf.random.stateless_uniform((batch_size,), seed, 0, num_starts, "int32")

        def gather(_, begins):
            windows = tf.gather(text, begins[:, tf.newaxis] + offsets)  # (B, T + 1)
            return windows[:, :-1], windows[:, 1:]

        # Two numbers seed a batch; every pass over the data set draws new ones.
        seeds = tf.data.Dataset.random(seed, rerandomize_each_iteration=True).batch(2)
        return gather_batches(tf, seeds.take(self.steps).map(draw), gather)


def check_tokens(owner, tokens):
    """Return `tokens` as int32 (L,), two or more; the error names `owner`."""
    tokens = np.asarray(tokens)
    if tokens.ndim != 1 or tokens.dtype.kind not in "iu" or len(tokens) < 2:
        raise ValueError(
            f"{owner}: tokens of shape {tokens.shape} and dtype {tokens.dtype}: "
            "expected ints (L,), two or more. Make them of a text with encode([text])[0]."
        )
    return tokens.astype("int32")


def contiguous_segments(tokens, batch_size, segment_length):
    """Cuts a text into B streams side by side, and each stream into segments of T tokens.

    Batch k holds segment k of every stream, so that row b of a batch goes on where row b of the
    batch before it stopped. Tokens at the end that do not fill a segment of every stream are left
    out.

    Args:
        tokens: ints (L,), L more than B · T.
        batch_size: int B, the number of streams.
        segment_length: int T.

    Returns:
        int32 arrays (batches · B, T): the tokens, and for each the token that follows it. For
        `fit(tokens, following, batch_size=B, shuffle=False)`.

    ```python
    import numpy as np
    import keras_attention as ka

    tokens, following = ka.data.contiguous_segments(np.arange(13), batch_size=2, segment_length=3)
    assert tokens.tolist() == [[0, 1, 2], [6, 7, 8], [3, 4, 5], [9, 10, 11]]
    assert following[2].tolist() == [4, 5, 6]
    ```
    """
    tokens = np.asarray(tokens, "int32")
    owner = "contiguous_segments"
    batch_size = check_whole_number(owner, "batch_size", batch_size)
    segment_length = check_whole_number(owner, "segment_length", segment_length)
    count = (tokens.size - 1) // (batch_size * segment_length)
    if tokens.ndim != 1 or count < 1:
        raise ValueError(
            f"contiguous_segments: tokens of shape {tokens.shape} do not fill {batch_size} streams "
            f"of one segment of {segment_length} and its next token: expected shape (L,) with L of "
            f"at least {batch_size * segment_length + 1}."
        )
    whole = count * batch_size * segment_length

    def cut(text):
        streams = text.reshape(batch_size, count, segment_length)
        return np.ascontiguousarray(streams.swapaxes(0, 1)).reshape(-1, segment_length)

    return cut(tokens[:whole]), cut(tokens[1 : whole + 1])
