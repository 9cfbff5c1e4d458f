"""Each layer declares a role, such as "heads", for each axis of its weights.

The roles decide how `ka.distribution.RoleParallel` splits weights over devices. A layer class
declares them in a class attribute

    weight_axes = {"query_kernel": ("heads", "head_dim", "units")}

with one of `ROLES` for each axis. `...` repeats the role before it. The attribute of a subclass
extends those of its base classes. For a sublayer, such as a `Dense`, call `name_axes` instead.
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
    "rows": "entries of a small table: positions, distances, segments, learned tokens",
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
# {class of Keras: roles of its weights}, unless `name_axes` overrides them.
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
    """The roles that `name_axes` declared for one layer.

    Keras would track a dict in an attribute of a layer as state. So this is not a dict.
    """

    axes: tuple  # pairs (name of a weight, roles)


def name_axes(layer, **axes):
    """Declare the roles of the axes of one layer's weights, such as "embed" for the width D.

    The roles decide how `RoleParallel` splits the weights over devices. Call this function in the
    `__init__` or `build` of your own layer, for the Keras layers inside it, because the roles are
    not saved in their configs. Weights that you do not name keep the roles of their class.

    Args:
        layer: a Keras layer.
        **axes: the name of a weight = tuple of roles, one of `ROLES` for each axis. `...` repeats
            the role before it. A `bias` has the last roles of its `kernel`.

    Returns:
        `layer` itself.

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
    """Return a tuple with a role, such as "heads", for each axis of a weight, or None.

    None means that no roles are declared for this weight.

    Args:
        layer: the Keras layer that owns the weight.
        name: str, the name of the weight, such as `"kernel"`.
        shape: tuple, the shape of the weight.

    Raises:
        ValueError: a role is not in `ROLES`, or the weight has more or fewer axes than roles.
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
    if layer.quantization_mode is not None:  # packed values
        return None
    raise ValueError(
        f"{type(layer).__name__} {layer.name!r} names {len(axes)} axes of its weight {name!r}, "
        f"{axes}, which has the shape {tuple(shape)}. Give a role for each axis."
    )


def _declared(layer):
    """Return a dict {name of a weight: roles} of a layer. `name_axes` overrides `weight_axes`."""
    declared = {}
    for cls in reversed(type(layer).__mro__):
        declared |= STOCK.get(cls, {})
        declared |= vars(cls).get("weight_axes", {})
    return declared | dict(layer.__dict__.get("named_axes", _Named(())).axes)


def _derive(declared, name, rank):
    """Return the roles of a bias or a LoRA matrix, derived from those of the kernel, or None.

    Args:
        declared: dict {name of a weight: roles} of the layer.
        name: str, the name of the bias or matrix, such as `"lora_kernel_a"`.
        rank: int, its number of axes.
    """
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
    """Replace `...` in a tuple of roles by copies of the role before it, to get `rank` roles."""
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
