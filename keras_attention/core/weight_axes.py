"""The roles of the axes of weights, declared beside each layer: `weight_axes` and `name_axes`.

A layer declares what the axes of its weights are, and so how they may be split among devices.
`ka.distribution.RoleParallel` reads it. The class has the attribute

    weight_axes = {"query_kernel": ("heads", "head_dim", "units")}

name of a weight -> a role of `ROLES` for each of its axes. `...` repeats the role in front of it. A
subclass adds to those of its bases. A layer that makes another one, whose class does not determine
its use, gives it roles with `name_axes`.
"""

import dataclasses

import keras

ROLES = {
    "batch": "the examples of a batch, in a state that is kept between calls",
    "embed": "the width D of the model, or of other input and output vectors",
    "latent": "a narrow vector between two projections",
    "units": "the width of a recurrent cell, or of the layer within a score",
    "heads": "heads of queries, N",
    "key_value_heads": "heads of keys and values, K",
    "mlp": "the width between the projections of a feed-forward network",
    "vocabulary": "a row or a logit for each token",
    "features": "output features, when no more specific role applies",
    "head_dim": "the size of a head, H",
    "gates": "the gates of a recurrent cell, one after another",
    "experts": "the experts among which a router chooses",
    "rows": "entries of a small table: places, distances, segments, slots, learned tokens",
    "window": "the extent of a convolution",
    "channels": "the channels of images and of convolutions of one channel each",
    "rank": "the narrow side of LoRA's matrices",
    "inner": "any other size within a layer",
}

_CELL = {
    "kernel": ("embed", "gates"),
    "recurrent_kernel": ("units", "gates"),
    "bias": ("gates", ...),
}
# Class of Keras -> the axes of its weights, where the layer that made it does not say more.
STOCK = {
    keras.layers.Dense: {"kernel": ("embed", "features")},
    keras.layers.EinsumDense: {"kernel": ("embed", "features", ...)},
    keras.layers.Embedding: {"embeddings": ("vocabulary", "embed")},
    keras.layers.Conv1D: {"kernel": ("window", "embed", "features")},
    keras.layers.Conv2D: {"kernel": ("window", "window", "embed", "features")},
    keras.layers.Conv3D: {"kernel": ("window", "window", "window", "embed", "features")},
    keras.layers.DepthwiseConv1D: {"kernel": ("window", "channels", "inner")},
    keras.layers.DepthwiseConv2D: {"kernel": ("window", "window", "channels", "inner")},
    keras.layers.SimpleRNNCell: _CELL,
    keras.layers.GRUCell: _CELL,
    keras.layers.LSTMCell: _CELL,
}


@dataclasses.dataclass(frozen=True)
class _Named:
    """Roles given to one layer. Not a dict, which Keras would track as part of its state."""

    axes: tuple  # pairs (name of a weight, roles)


def name_axes(layer, **axes):
    """Give the axes of the weights of one layer their roles, before or after it is built.

    It is for the layers of Keras that a layer makes: only the maker of a `Dense` knows whether it
    widens or narrows. Weights that are not named stay as the class has them: see `STOCK` for those
    of Keras. The roles are not in the layer's config, so name them in the `__init__` or `build` of
    your layer.

    Args:
        layer: a Keras layer.
        axes: name of a weight = tuple of roles, one of `ROLES` for each axis. `...` repeats the
            role in front of it. Those of a `bias` are the last ones of its `kernel`.

    Returns:
        The layer.

    ```python
    import keras
    import keras_attention as ka

    narrow = ka.distribution.name_axes(keras.layers.Dense(8), kernel=("mlp", "embed"))
    assert ka.distribution.find_axes(narrow, "kernel", (32, 8)) == ("mlp", "embed")
    assert ka.distribution.find_axes(narrow, "bias", (8,)) == ("embed",)
    ```
    """
    for name, roles in axes.items():
        _check_roles(layer, name, roles)
    named = layer.__dict__.get("named_axes", _Named(()))
    layer.named_axes = _Named((*named.axes, *axes.items()))
    return layer


def find_axes(layer, name, shape):
    """Return the roles of the axes of a weight as a tuple, or None if it has none.

    Args:
        layer: the Keras layer that the weight belongs to.
        name: the name of the weight, such as `"kernel"`.
        shape: its shape, a tuple.

    Raises:
        ValueError: a role is not in `ROLES`, or their number differs from that of the axes.

    ```python
    import keras
    import keras_attention as ka

    assert ka.distribution.find_axes(keras.layers.Dense(5), "kernel", (8, 5)) == (
        "embed",
        "features",
    )
    assert ka.distribution.find_axes(keras.layers.LayerNormalization(), "gamma", (8,)) is None
    ```
    """
    declared = _declared(layer)
    if name in declared:
        _check_roles(layer, name, declared[name])
    axes = declared.get(name) or _derive(declared, name, len(shape))
    if axes is None:
        return None
    axes = _repeat(axes, len(shape))
    if len(axes) == len(shape):
        return axes
    if layer.quantization_mode is not None:  # several numbers in one
        return None
    raise ValueError(
        f"{type(layer).__name__} {layer.name!r} names {len(axes)} axes of its weight {name!r}, "
        f"{axes}, which has the shape {tuple(shape)}. Give a role for each axis."
    )


def _declared(layer):
    """Return name of a weight -> roles. Those of the layer come before those of its classes."""
    declared = {}
    for cls in reversed(type(layer).__mro__):
        declared |= STOCK.get(cls, {})
        declared |= vars(cls).get("weight_axes", {})
    return declared | dict(layer.__dict__.get("named_axes", _Named(())).axes)


def _derive(declared, name, rank):
    """Derive the roles of a bias, and of LoRA's matrices, from those of a kernel."""
    if name == "bias" and "kernel" in declared:
        kernel = declared["kernel"]
        return kernel[kernel.index(...) - 1 :] if ... in kernel[-rank:] else kernel[-rank:]
    if not name.startswith("lora_"):
        return None
    matrix, side = name.removeprefix("lora_")[:-2], name[-2:]
    if matrix not in declared or side not in ("_a", "_b"):
        return None
    axes = _repeat(declared[matrix], rank)
    return (*axes[:-1], "rank") if side == "_a" else ("rank", axes[-1])


def _repeat(axes, rank):
    """Repeat the role in front of `...` as often as a weight of `rank` axes needs."""
    if ... not in axes:
        return tuple(axes)
    i = axes.index(...)
    return (*axes[: i - 1], *axes[i - 1 : i] * (rank - len(axes) + 2), *axes[i + 1 :])


def _check_roles(layer, name, roles):
    unknown = [role for role in roles if role is not ... and role not in ROLES]
    if isinstance(roles, str) or unknown or roles[:1] == (...,):
        raise ValueError(
            f"{type(layer).__name__} {layer.name!r}: the axes of {name!r} are {roles!r}. Expected "
            f"a tuple with a role for each axis, of {', '.join(ROLES)}."
        )
