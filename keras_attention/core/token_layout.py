"""How the tokens of a batch lie among devices, by the distribution that is active."""

import keras

SEQUENCE = "sequence"  # the name of the mesh axis along which devices share a sequence


class BatchLayout:
    """Base of a `keras.distribution.Distribution` that also lays out batches and their tokens."""

    sequence_devices = None  # among how many devices a sequence is split; None: it is not

    def get_token_layout(self, shape, roles=()):
        """Return the `keras.distribution.TensorLayout` of vectors of tokens, or None."""
        raise NotImplementedError(f"{type(self).__name__}.get_token_layout")

    def lay_out_batch(self, batch):
        """Return a batch as arrays on devices, in place of what Keras would make of it."""
        raise NotImplementedError(f"{type(self).__name__}.lay_out_batch")

    def gather_outputs(self, outputs):
        """Return what `predict` computed for a batch, whole in every process."""
        raise NotImplementedError(f"{type(self).__name__}.gather_outputs")


def get_batch_layout():
    """Return the active distribution if it is a `BatchLayout`, else None."""
    distribution = keras.distribution.distribution()
    return distribution if isinstance(distribution, BatchLayout) else None


def pin_tokens(x, *roles):
    """Keep `x` split among devices as the active `BatchLayout` lays tokens out.

    Without this a compiler may gather the whole batch on every device.

    Args:
        x: (B, T, ...), or a tuple of such tensors, from the `call` of a layer.
        roles: those of the last axes (`weight_axes.ROLES`) that devices may share. All other axes
            stay whole.
    """
    distribution = get_batch_layout()
    if distribution is None:
        return x
    if isinstance(x, (list, tuple)):
        return tuple(pin_tokens(each, *roles) for each in x)
    layout = distribution.get_token_layout(tuple(x.shape), roles)
    return x if layout is None else keras.distribution.distribute_tensor(x, layout)


def count_sequence_devices():
    """Return among how many devices the active distribution splits a sequence, or None."""
    distribution = get_batch_layout()
    return None if distribution is None else distribution.sequence_devices
