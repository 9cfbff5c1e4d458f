"""How tokens lie among devices: what layers and kernels ask of the distribution that is active.

A distribution that splits more than weights, as `ka.distribution.RoleParallel` does, has
`get_token_layout` and `sequence_devices`; without one that has them, nothing is asked.
"""

import keras

SEQUENCE = "sequence"  # the name of the mesh axis along which devices share a sequence


def pin_tokens(x, *roles):
    """`x`, kept split among devices as a batch is, where a distribution is active that says how.

    A compiler that is left alone may gather the whole batch on every device instead.

    Args:
        x: (B, T, ...), or a tuple of such tensors, from the `call` of a layer.
        roles: those of the last axes (`weight_axes.ROLES`), of what a device may have its share.
            All other axes stay whole.
    """
    layout_of = getattr(keras.distribution.distribution(), "get_token_layout", None)
    if layout_of is None:
        return x
    if isinstance(x, (list, tuple)):
        return tuple(pin_tokens(each, *roles) for each in x)
    layout = layout_of(tuple(x.shape), roles)
    return x if layout is None else keras.distribution.distribute_tensor(x, layout)


def count_sequence_devices():
    """Among how many devices the active distribution splits a sequence; None: it cannot."""
    return getattr(keras.distribution.distribution(), "sequence_devices", None)
