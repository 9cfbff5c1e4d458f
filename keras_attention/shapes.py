"""Target shapes of reshapes, for sizes that may be unknown or 0."""

from keras import ops


def prepend_batch(x, *sizes):
    """(B, *sizes), B the first axis of `x`, as the target shape of a reshape.

    B is -1, which costs a graph no operation, unless another size may be 0 and -1 is ambiguous.
    """
    if all(isinstance(size, int) and size > 0 for size in sizes):
        return (-1, *sizes)
    return (ops.shape(x)[0], *sizes)
