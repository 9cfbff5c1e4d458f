"""`Columns`: the arrays that a preprocessor makes from examples, as the source of batches.

A column has one entry for each example. It is an array (n, ...) or an instance of a class in this
file. The method `reader` of these classes returns a function that reads one batch. (`tf` is the
module `tensorflow`, and `edges` are the lengths to pad batches to.) The function's arguments are
two tensors of indices: of all examples in the batch, and of the examples that the current process
reads in distributed training. It returns a row for each of the latter, padded to the length of the
whole batch.
"""

import dataclasses
import typing

import numpy as np


@dataclasses.dataclass
class Columns:
    """The inputs and labels of a list of examples, which `ka.data.batches` turns into batches.

    Args:
        inputs, labels: a column, or a dict of columns. A column is an array with a row for each
            example, a `Ragged`, a `Pixels` or a `Computed`.
        count: int, the number of examples, if all have the same length.
        lengths: list of int, the length of each example, if lengths differ. Examples of similar
            lengths share a batch.
        are_sounds: bool, whether the examples are recordings. Each batch is then padded only to its
            longest recording.
        draw: function that returns the whole dataset of batches, for examples that are drawn at
            random in each epoch. Its arguments are the module `tensorflow`, `batch_size`, `seed`
            and `drop_remainder`. None if the fields above contain the examples.
    """

    inputs: object = None
    labels: object = None
    count: int | None = None
    lengths: list | None = None
    are_sounds: bool = False
    draw: typing.Callable | None = None


@dataclasses.dataclass
class Ragged:
    """A column of rows of different lengths, such as token ids.

    A batch is padded to the first of the lengths `edges` that is at least its longest row.

    Args:
        rows: list of int arrays (T,), one for each example.
        padding: int, the value after the end of a shorter row.
        table: array (k, ...), or None. If given, rows contain indices into this array, and batches
            contain the array's entries, padded with 0.
        exact: bool, whether to pad a batch only to its longest row and ignore the edges.
    """

    rows: list
    padding: int
    table: np.ndarray | None = None
    exact: bool = False

    def reader(self, tf, edges):
        """Return a function that reads the rows of a batch as one padded tensor.

        `tf` is the module tensorflow, and `edges` are the lengths to pad to. The function takes two
        int64 tensors: the indices of all examples in the batch, and the indices of the examples
        that this process reads.
        """
        rows = [np.asarray(row, "int32") for row in self.rows]
        lengths = np.array([len(row) for row in rows], "int32")
        ragged = tf.RaggedTensor.from_row_lengths(np.concatenate(rows), lengths, validate=False)
        ends = None if self.exact else tf.constant(find_edges(lengths, edges), "int32")
        table, padding = self.table, self.padding
        if table is not None:  # padding is the index of a row of zeros added to the table
            padding = len(table)
            table = tf.constant(np.concatenate([table, np.zeros_like(table[:1])]))

        def read(indices, chosen):
            length = tf.reduce_max(tf.gather(lengths, indices), keepdims=True)
            if ends is None:
                length = tf.maximum(length, 1)
            else:
                length = tf.gather(ends, tf.searchsorted(ends, length))
            shape = tf.concat([[-1], length], axis=0)
            padded = tf.gather(ragged, chosen).to_tensor(padding, shape=shape)  # (B, T)
            return padded if table is None else tf.gather(table, padded)

        return read


@dataclasses.dataclass
class Pixels:
    """A column of images in memory, (n, H, W, C), uint8 or floats from 0 to 1.

    Batches are float32 from 0 to 1.
    """

    pixels: np.ndarray

    def reader(self, tf, edges):
        """Return a function that reads the images of a batch.

        The function takes two int64 tensors: the indices of all examples in the batch, and the
        indices of the examples that this process reads. `tf` is the module tensorflow. `edges` are
        not used.
        """
        scale = 255.0 if self.pixels.dtype == "uint8" else 1.0
        pixels = tf.constant(self.pixels)
        return lambda indices, chosen: tf.cast(tf.gather(pixels, chosen), "float32") / scale


@dataclasses.dataclass
class Computed:
    """A column that a Python function computes batch by batch, such as images read from files.

    Args:
        compute: function that returns an array. Its arguments are two int64 arrays: the indices of
            all examples in a batch, and the indices of those examples that the current process
            reads.
        shape: tuple, the shape of that array, with None for axes that vary.
        dtype: str, the dtype of that array.
    """

    compute: typing.Callable
    shape: tuple
    dtype: str = "float32"

    def reader(self, tf, edges):
        """Return a function that computes the rows of a batch.

        The function takes two int64 tensors: the indices of all examples in the batch, and the
        indices of the examples that this process reads. `tf` is the module tensorflow. `edges` are
        not used.
        """

        def read(indices, chosen):
            arguments = [indices, chosen]
            values = tf.numpy_function(self.compute, arguments, self.dtype, stateful=False)
            return tf.ensure_shape(values, self.shape)

        return read


def read_columns(tf, columns, edges):
    """Return a function that reads one batch of a column, or of a dict of columns.

    The function takes two int64 tensors: the indices of all examples in the batch, and the indices
    of the examples that this process reads. `tf` is the module tensorflow. `edges` are the lengths
    to pad `Ragged` columns to.
    """
    if isinstance(columns, dict):
        readers = {name: read_columns(tf, column, edges) for name, column in columns.items()}
        return lambda indices, chosen: {k: read(indices, chosen) for k, read in readers.items()}
    if isinstance(columns, np.ndarray):
        array = tf.constant(columns)
        return lambda indices, chosen: tf.gather(array, chosen)
    return columns.reader(tf, edges)


def find_edges(lengths, edges):
    """Return the lengths to pad to: the `edges` below the maximum length, and this maximum."""
    longest = int(np.max(lengths))
    return [edge for edge in edges if edge < longest] + [longest]


def pad_rows(rows, padding=0, length=None, *, least=0, shape=(), dtype="int32"):
    """Stack rows (T, *shape) into one array (B, T, *shape), padding the shorter rows at the end.

    Args:
        rows: list of lists of numbers, or of arrays.
        padding: the value of the padding.
        length: int, the T of the result. None uses the length of the longest row, or `least` if
            that is greater.
        least: int, the minimum T if `length` is None.
        shape: tuple, the shape of one entry of a row, or () for numbers.
        dtype: str, the dtype of the result.

    Raises:
        ValueError: a row is longer than `length`.
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
    """Replace tokens by indices, to save memory. Return (list of distinct tokens, new rows).

    `rows` is a list with a list of str for each example. A new row has the index of each token in
    the first list.
    """
    numbers = {}
    rows = [[numbers.setdefault(token, len(numbers)) for token in row] for row in rows]
    return list(numbers), rows
