"""How the active Keras distribution splits the tokens of a batch over devices."""

import keras

SEQUENCE = "sequence"  # the mesh axis that splits the tokens of a sequence


class BatchLayout:
    """A mixin for a Keras distribution that also splits batches and tokens over devices."""

    sequence_devices = None  # number of devices that each sequence is split over, or None

    def get_token_layout(self, shape, roles=()):
        """Return the `keras.distribution.TensorLayout` of a tensor (B, T, ...) inside a model.

        `shape` is the tensor's shape. `roles` is a tuple of str that say what its last axes are,
        such as `"vocabulary"` (see `weight_axes.ROLES`). If the result is None, the compiler
        chooses a layout.
        """
        raise NotImplementedError(f"{type(self).__name__}.get_token_layout")

    def lay_out_batch(self, batch):
        """Place a batch, a structure of arrays, on the devices, and return it."""
        raise NotImplementedError(f"{type(self).__name__}.lay_out_batch")

    def gather_outputs(self, outputs):
        """Gather the outputs of a batch in `predict`, so that every process has all rows.

        `outputs` is a structure of arrays. Return the same structure.
        """
        raise NotImplementedError(f"{type(self).__name__}.gather_outputs")


def get_batch_layout():
    """Return the active distribution if it is a `BatchLayout`, else None."""
    distribution = keras.distribution.distribution()
    return distribution if isinstance(distribution, BatchLayout) else None


def pin_tokens(x, *roles):
    """Return `x` with a constraint that keeps its batch and its tokens split over devices.

    Without the constraint the compiler may gather the whole batch on every device. The active
    Keras distribution chooses the split if it is a `BatchLayout`. Otherwise `x` is returned
    unchanged.

    Args:
        x: tensor (B, T, ...), or a tuple of such tensors.
        *roles: str, what the last axes of x are, such as `"vocabulary"` (see `weight_axes.ROLES`).
            These axes may be split, too. Axes other than these, B and T are not split.
    """
    distribution = get_batch_layout()
    if distribution is None:
        return x
    if isinstance(x, (list, tuple)):
        return tuple(pin_tokens(each, *roles) for each in x)
    layout = distribution.get_token_layout(tuple(x.shape), roles)
    return x if layout is None else keras.distribution.distribute_tensor(x, layout)


def count_sequence_devices():
    """Return the number of devices that each sequence is split over, or None if it is not split."""
    distribution = get_batch_layout()
    return None if distribution is None else distribution.sequence_devices
