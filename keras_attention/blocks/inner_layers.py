"""The inner layers of blocks: revived from configs, built, and called with what `call` takes.

As Keras fills a mask into a `call` that names it, a block passes on what the inner layer names.
"""

import keras
from keras import ops

from keras_attention.core import keras_internals


def revive_layer(name, layer):
    """`layer`, made from a config if it is one; an error names the argument if it is no layer."""
    if isinstance(layer, dict):
        layer = keras.saving.deserialize_keras_object(layer)
    if not isinstance(layer, keras.layers.Layer):
        raise ValueError(f"{name}={layer!r}: expected a layer, such as those of keras_attention.")
    return layer


def copy_part(part, **changes):
    """Return a copy of a layer with weights of its own. Other parts and names are returned as is.

    Args:
        part: a Keras layer, a part without weights, a name or None.
        changes: constructor arguments of the copy that differ, such as `name`.
    """
    if isinstance(part, keras.layers.Layer):
        return part.__class__.from_config({**part.get_config(), **changes})
    return part


def serialize_inner(layer):
    """The config of an inner layer without its shapes: the block that holds it builds it."""
    config = keras.saving.serialize_keras_object(layer)
    config.pop("build_config", None)
    return config


def build_attention(attention, query_shape, value_shape):
    """Makes the weights of an attention layer by a symbolic call, in which nothing is computed.

    Keras finds out what is to be built, also where `build` takes one shape or there is none.
    """
    attention(keras.KerasTensor(query_shape), keras.KerasTensor(value_shape))


def call_attention(attention, query, training, value=None, optional=(), **given):
    """`attention` of `query` to `value`, or to itself, with those of `given` that are not None.

    An argument that the layer does not take is an error, except `query_mask`, since no
    layer reads what padding attends to, and those named in `optional`.
    """
    given = {name: value for name, value in given.items() if value is not None}
    taken = {
        name: value
        for name, value in given.items()
        if keras_internals.takes_argument(attention, name)
    }
    if refused := sorted(given.keys() - taken.keys() - {"query_mask", *optional}):
        raise ValueError(
            f"The block was given what its attention does not take: {type(attention).__name__} "
            f"has no {', '.join(refused)}. Leave it out, or use an attention layer that takes it."
        )
    query = _without_mask(query)
    value = query if value is None else _without_mask(value)  # one tensor says self-attention
    return attention(query, value, training=training, **taken)


def call_with_mask(layer, x, mask, training):
    """`layer` on `x`, with the padding mask if there is one and the layer takes it."""
    given = {}
    if mask is not None and keras_internals.takes_argument(layer, "mask"):
        given["mask"] = mask
    return layer(_without_mask(x), training=training, **given)


def _without_mask(x):
    """`x` without its implicit mask, which is given as an argument.

    Keras's attention layers remove it from the caller's tensor; layers without masking warn.
    """
    return x if keras_internals.get_mask(x) is None else ops.copy(x)
