"""Running text from files, and windows of it for language models."""

import dataclasses
import pathlib

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.data.columns import Columns
from keras_attention.data.dataset import DataSet
from keras_attention.data.readers.tables import read_lines
from keras_attention.data.shares import gather_batches
from keras_attention.data.splits import read_parts


def from_plain_text(train=None, dev=None, test=None, *, dev_fraction=0.1, encoding="utf-8"):
    """Read a `DataSet` of running text, such as books, from files. Each split is one str.

    Line ends are converted to `\\n`. The contents of several files are joined with an empty line
    between them. Empty files in a folder are left out.

    Args:
        train, dev, test: a path, a list of paths, or None. A path names a text file, gzipped or
            not, or a folder. All `.txt` and `.txt.gz` files at any depth of a folder are read,
            sorted by path.
        dev_fraction: float, the share of train that becomes dev if `dev` is None. It is taken from
            the end of the text, because the text around a part from the middle would reveal too
            much about that part.
        encoding: str, the name of the encoding in Python: `"cp1252"`, `"utf-16"`, ...

    ```python
    import pathlib
    import keras_attention as ka

    path = pathlib.Path("input.txt")
    path.write_text("All the world's a stage,\\nand all the men and women merely players.\\n")
    data = ka.data.from_plain_text(path, dev_fraction=0.125)
    assert data.train.startswith("All the world") and data.dev == "players.\\n"
    ```
    """
    parts = read_parts(lambda path: [_read_texts(path, encoding)], train, dev, test)
    texts = {name: _join(part) for name, part in parts.items()}
    return split_text(**texts, dev_fraction=dev_fraction)


def split_text(train, dev="", test="", *, dev_fraction):
    """Make a `DataSet` of running text from three str, `train`, `dev` and `test`.

    If `dev` is empty, the last part of `train`, a share `dev_fraction`, is moved to it.
    """
    if not 0 <= dev_fraction < 1:
        raise ValueError(f"dev_fraction={dev_fraction}: expected a number from 0 to below 1.")
    if train and not dev:
        end = int(len(train) * (1 - dev_fraction))
        train, dev = train[:end], train[end:]
    return DataSet(str, train, dev, test)


def _read_texts(path, encoding):
    """Return the text in the file `path`, or in all text files if `path` is a folder."""
    path = pathlib.Path(path)
    if path.is_dir():
        text = _join(_text(file, encoding) for file in _files(path))
    else:
        text = _text(path, encoding)
    if not text.strip():
        raise ValueError(f"{path} contains only spaces: expected a text.")
    return text


def _files(folder):
    """Return the text files in a folder at any depth, without hidden files."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    names = {path: path.relative_to(folder).parts for path in files}
    files = [path for path in files if not any(part.startswith(".") for part in names[path])]
    texts = [path for path in files if path.name.endswith((".txt", ".txt.gz"))]
    if not texts:
        hint = f", found {files[0].relative_to(folder)}, for example" if files else ""
        raise ValueError(
            f"{folder} holds no text file: expected names that end in .txt or .txt.gz{hint}."
        )
    return texts


def _join(texts):
    """Join strings with an empty line between them. Strings without text are left out."""
    *first, last = [*filter(str.strip, texts)] or [""]
    return "\n\n".join([*(text.rstrip("\n") for text in first), last])


def _text(path, encoding):
    return "\n".join(line for _, line in read_lines(path, encoding))


@dataclasses.dataclass(eq=False)
class TextWindows:
    """Windows of running text, for training a language model: each label is the next token.

    For models with a memory, such as Transformer-XL, each batch must continue the previous batch.
    Use `contiguous_segments` for them.

    Args:
        tokens: ints (n,), the ids of the whole text, such as `characters.encode([text])[0]`.
        window_length: int T, the number of tokens in a window.
        steps: int, the number of batches in an epoch, with windows at random positions as in
            nanoGPT, for training. None means consecutive windows, for evaluation. Each token but
            the first is then a label exactly once. The last window is padded with 0, and its labels
            with -1.

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
        """Return the number of batches in an epoch.

        If `steps` is None, it is the number of windows.
        """
        return self.steps or -(-(len(self.tokens) - 1) // self.window_length)

    def columns(self):
        """Return `Columns` with ids and labels, int32 (B, T) each."""
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

        # Two numbers seed a batch. Every pass over the dataset draws new ones.
        seeds = tf.data.Dataset.random(seed, rerandomize_each_iteration=True).batch(2)
        return gather_batches(tf, seeds.take(self.steps).map(draw), gather)


def check_tokens(caller, tokens):
    """Convert the n ids `tokens` of a text to int32 (n,).

    Raise a ValueError that names `caller`, a function, if there are fewer than two ids.
    """
    tokens = np.asarray(tokens)
    if tokens.ndim != 1 or tokens.dtype.kind not in "iu" or len(tokens) < 2:
        raise ValueError(
            f"{caller}: tokens of shape {tokens.shape} and dtype {tokens.dtype}: "
            "expected ints (L,), two or more. Make them of a text with encode([text])[0]."
        )
    return tokens.astype("int32")


def contiguous_segments(tokens, batch_size, segment_length):
    """Cut a text into batches such that row b of each batch continues row b of the batch before.

    Models with a memory, such as Transformer-XL, are trained on such batches. The text is cut into
    B streams, and each stream into segments of T tokens. Batch k contains segment k of every
    stream. Tokens at the end that do not fill a segment in every stream are dropped.

    Args:
        tokens: ints (L,), the ids of the text, with L greater than B · T.
        batch_size: int B, the number of streams.
        segment_length: int T.

    Returns:
        Two int32 arrays (batches · B, T): the tokens, and the token that follows each of them. Pass
        them to `fit(tokens, following, batch_size=B, shuffle=False)`.

    Raises:
        ValueError: the text does not fill one segment in each of the B streams.

    ```python
    import numpy as np
    import keras_attention as ka

    tokens, following = ka.data.contiguous_segments(np.arange(13), batch_size=2, segment_length=3)
    assert tokens.tolist() == [[0, 1, 2], [6, 7, 8], [3, 4, 5], [9, 10, 11]]
    assert following[2].tolist() == [4, 5, 6]
    ```
    """
    tokens = np.asarray(tokens, "int32")
    caller = "contiguous_segments"
    batch_size = check_whole_number(caller, "batch_size", batch_size)
    segment_length = check_whole_number(caller, "segment_length", segment_length)
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
