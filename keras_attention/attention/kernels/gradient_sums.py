"""Sums of the gradients of all slices, for TensorFlow: added up as they come, never padded.

Each has `add(gradient, columns)`, for the slices in order, and `result()`.
"""

import tensorflow as tf


class Rows:
    """Gradients for tensors of queries: side by side."""

    def __init__(self, operand):
        self.axis, self.pieces = operand.row_axis, []

    def add(self, gradient, columns):
        self.pieces.append(gradient)

    def result(self):
        return tf.concat(self.pieces, axis=self.axis)


class Columns:
    """Gradients for tensors of keys: columns overlap, and what no later slice sees is finished."""

    def __init__(self, operand):
        self.axis, self.length = operand.column_axis, operand.tensor.shape[operand.column_axis]
        self.finished, self.start, self.end, self.open = [], 0, 0, None

    def add(self, gradient, columns):
        if self.open is None:
            self._skip(gradient, columns.start)
            self.open = gradient
        elif columns.start >= self.end:  # what lies between is seen by nobody
            self.finished.append(self.open)
            self._skip(gradient, columns.start - self.end)
            self.open = gradient
        else:
            done = columns.start - self.start
            shared = self.end - columns.start
            if done:
                self.finished.append(self._part(self.open, 0, done))
                self.open = self._part(self.open, done, done + shared)
            added = self.open + self._part(gradient, 0, shared)
            rest = self._part(gradient, shared, columns.size)
            self.open = added if shared == columns.size else tf.concat([added, rest], self.axis)
        self.start, self.end = columns.start, columns.end

    def result(self):
        self.finished.append(self.open)
        self._skip(self.open, self.length - self.end)
        return tf.concat(self.finished, axis=self.axis)

    def _skip(self, like, size):
        if size:
            shape = tf.tensor_scatter_nd_update(tf.shape(like), [[self.axis]], [size])
            self.finished.append(tf.zeros(shape, like.dtype))

    def _part(self, x, start, end):
        if start == 0 and end == x.shape[self.axis]:
            return x
        return x[(slice(None),) * self.axis + (slice(start, end),)]


class Both:
    """Gradients for tensors with an axis of queries and one of keys: padded and side by side."""

    def __init__(self, operand):
        self.axis, self.row_axis = operand.column_axis, operand.row_axis
        self.length, self.pieces = operand.tensor.shape[self.axis], []

    def add(self, gradient, columns):
        margins = [[0, 0]] * len(gradient.shape)
        margins[self.axis] = [columns.start, self.length - columns.end]
        self.pieces.append(tf.pad(gradient, margins))

    def result(self):
        return tf.concat(self.pieces, axis=self.row_axis)


class Shared:
    """Gradients for tensors that every slice sees whole: a sum."""

    def __init__(self, operand):
        self.total = 0

    def add(self, gradient, columns):
        self.total = self.total + gradient

    def result(self):
        return self.total


def sum_for(operand):
    if operand.row_axis is None:
        return (Shared if operand.column_axis is None else Columns)(operand)
    return (Rows if operand.column_axis is None else Both)(operand)
