"""`Columns`: what a preprocessor makes of examples, from which `batches` gathers batches.

A column holds something of every example: an array (n, ...), or one of the classes here. Its method
`reader` gives a function of the indices (B,) of the examples of a batch, and of those among them
that are wanted, to a tensor whose first axis is that of the latter. Its other axes are as long as
those of the whole batch.
"""

import dataclasses
import typing

import numpy as np


@dataclasses.dataclass
class Columns:
    """Examples as columns.

    Args:
        inputs, labels: a column each, or a dict of columns.
        count: int, how many examples there are, where all have the same length.
        lengths: list of int, of the examples, where lengths differ: those of about the same length
            share a batch.
        are_sounds: bool, whether the lengths are those of sounds, which differ so much that each
            batch is padded to its own longest one.
        draw: function of TensorFlow, `batch_size`, `seed` and `drop_remainder` that gives the
            dataset, for examples that are drawn anew in every epoch. None for all others.
    """

    inputs: object = None
    labels: object = None
    count: int | None = None
    lengths: list | None = None
    are_sounds: bool = False
    draw: typing.Callable | None = None


@dataclasses.dataclass
class Ragged:
    """Rows of different lengths, padded to the next of the edges after the longest of a batch.

    Args:
        rows: list of int arrays (T,), one of each example.
        padding: int, what stands behind a shorter row.
        table: array (k, ...), or None. With a table the rows are places in it, and a batch holds
            what stands there, and 0 as padding.
        exact: bool, whether a batch is as long as its longest row, and not as the edge after it.
    """

    rows: list
    padding: int
    table: np.ndarray | None = None
    exact: bool = False

    def reader(self, tf, edges):
        """Return a function that reads the rows of a batch as a padded tensor."""
        rows = [np.asarray(row, "int32") for row in self.rows]
        locate = locate_tokens(tf, [len(row) for row in rows], None if self.exact else edges)
        values = tf.constant(np.concatenate(rows))
        table = None if self.table is None else tf.constant(self.table)

        def read(indices, chosen):
            positions, inside = locate(indices, chosen)  # (B, T)
            found = tf.gather(values, positions)
            if table is None:
                return tf.where(inside, found, self.padding)
            found = tf.gather(table, found)
            return found * tf.cast(inside[:, :, tf.newaxis], found.dtype)

        return read


@dataclasses.dataclass
class Pixels:
    """Pictures in memory, (n, H, W, C), uint8 or floats from 0 to 1; batches are float32."""

    pixels: np.ndarray

    def reader(self, tf, edges):
        """Return a function that reads the images of a batch."""
        scale = 255.0 if self.pixels.dtype == "uint8" else 1.0
        pixels = tf.constant(self.pixels)
        return lambda indices, chosen: tf.cast(tf.gather(pixels, chosen), "float32") / scale


@dataclasses.dataclass
class Computed:
    """What a Python function makes of a batch while it is needed, such as pictures from files.

    Args:
        compute: function of two arrays of int64, the indices of the examples of a batch and those
            wanted of them, to an array.
        shape: tuple, of what it gives, with None for an axis that differs.
        dtype: str.
    """

    compute: typing.Callable
    shape: tuple
    dtype: str = "float32"

    def reader(self, tf, edges):
        """Return a function that computes the rows of a batch."""

        def read(indices, chosen):
            arguments = [indices, chosen]
            values = tf.numpy_function(self.compute, arguments, self.dtype, stateful=False)
            return tf.ensure_shape(values, self.shape)

        return read


def read_columns(tf, columns, edges):
    """Return the reader of a column, or of a dict of them."""
    if isinstance(columns, dict):
        readers = {name: read_columns(tf, column, edges) for name, column in columns.items()}
        return lambda indices, chosen: {k: read(indices, chosen) for k, read in readers.items()}
    if isinstance(columns, np.ndarray):
        array = tf.constant(columns)
        return lambda indices, chosen: tf.gather(array, chosen)
    return columns.reader(tf, edges)


def locate_tokens(tf, lengths, edges):
    """Return a function of indices that says where the tokens of examples are, which lie end to
    end.

    Args:
        lengths: ints (n,), of the examples.
        edges: ints, ascending; None pads to the longest row of a batch, and to 1 at least.

    Returns:
        A function of the indices of a batch, and of those wanted of them, to int32 (B, T), where
        each token lies, and bool (B, T), whether there is one. T is the edge after the longest.
    """
    lengths = np.asarray(lengths)
    begins = tf.constant(np.cumsum(lengths) - lengths, "int32")
    sizes = tf.constant(lengths, "int32")
    ends = None if edges is None else tf.constant(find_edges(lengths, edges), "int32")

    def locate(indices, chosen):
        longest = tf.reduce_max(tf.gather(sizes, indices), keepdims=True)
        if ends is None:
            length = tf.maximum(longest[0], 1)
        else:
            length = ends[tf.searchsorted(ends, longest)[0]]
        position = tf.range(length)
        inside = position[tf.newaxis] < tf.gather(sizes, chosen)[:, tf.newaxis]  # (B, T)
        positions = tf.gather(begins, chosen)[:, tf.newaxis] + position
        return tf.where(inside, positions, 0), inside

    return locate


def find_edges(lengths, edges):
    """Return the edges below the greatest length, and that."""
    longest = int(np.max(lengths))
    return [edge for edge in edges if edge < longest] + [longest]


def pad_rows(rows, padding=0, length=None, *, least=0, shape=(), dtype="int32"):
    """Stack rows (T, ...) of different lengths, with padding behind the shorter ones.

    Args:
        rows: list of lists of numbers, or of arrays.
        length: int T; None for the longest, or `least` where that is longer.
        shape: tuple, that of an entry of a row.

    Returns:
        (B, T, *shape).
    """
    longest = max(map(len, rows), default=0)
    if length is not None and longest > length:
        raise ValueError(
            f"A text has {longest} tokens, more than sequence_length={length}. Shorten it, or use "
            "a model for longer ones."
        )
    length = max(least, longest) if length is None else length
    padded = np.full((len(rows), length, *shape), padding, dtype)
    for padded_row, row in zip(padded, rows, strict=True):
        padded_row[: len(row)] = row
    return padded


def number_tokens(rows):
    """Return the different tokens of rows of str, and each row as numbers of them.

    Returns:
        (list of str, list of lists of int), for a `Ragged` with a table.
    """
    numbers = {}
    rows = [[numbers.setdefault(token, len(numbers)) for token in row] for row in rows]
    return list(numbers), rows
