"""Load, copy, build and call the inner layers of blocks.

A block passes a mask or another argument to an inner layer only if the layer's `call` has it.
"""

import keras
from keras import ops

from keras_attention.core import keras_internals


def revive_layer(name, layer):
    """Return `layer` itself, or a new layer if `layer` is the config of a saved model.

    Anything else raises a ValueError, in which `name` is the name of the argument.
    """
    if isinstance(layer, dict):
        layer = keras.saving.deserialize_keras_object(layer)
    if not isinstance(layer, keras.layers.Layer):
        raise ValueError(f"{name}={layer!r}: expected a layer, such as those of keras_attention.")
    return layer


def copy_part(part, **changes):
    """Return a copy of a layer, with new weights. Anything else is returned unchanged.

    Args:
        part: a Keras layer. Or an object without weights (such as a mask), a name or None.
        changes: constructor arguments of the copy that differ from the layer's, such as `name`.
    """
    if isinstance(part, keras.layers.Layer):
        return part.__class__.from_config({**part.get_config(), **changes})
    return part


def serialize_inner(layer):
    """Return the serialized config of a block's inner layer, without its key `build_config`.

    Keras must not build a loaded inner layer, because the block builds it.
    """
    config = keras.saving.serialize_keras_object(layer)
    config.pop("build_config", None)
    return config


def build_attention(attention, query_shape, value_shape):
    """Build an attention layer for inputs of `query_shape` (B, T, D) and `value_shape` (B, S, E).

    `attention` is the layer. It is built by a symbolic call, because the arguments of `build`
    differ between attention layers.
    """
    attention(keras.KerasTensor(query_shape), keras.KerasTensor(value_shape))


def find_mask(inputs, mask):
    """Return `mask`, or the implicit mask of `inputs` if `mask` is None.

    If `inputs` or `mask` is a pair, the first element counts. Layers need this function because
    Keras fills in the argument `mask` only if a layer is called on one tensor, or on one pair.
    """
    inputs, mask = (x[0] if isinstance(x, (list, tuple)) else x for x in (inputs, mask))
    return keras_internals.get_mask(inputs) if mask is None else mask


def call_attention(attention, query, training, value=None, optional=(), **arguments):
    """Call `attention` on `query` and `value`, and return its output.

    Args:
        attention: an attention layer, called as `attention(query, value)`.
        query: (B, T, D).
        training: bool, as in Keras.
        value: (B, S, E). None for self-attention, in which the value is the query, with the same
            mask and positions.
        optional: names of arguments that are left out if the layer's `call` does not have them.
            `query_mask` always is.
        arguments: other arguments of the layer's `call`, such as `query_mask`. Values of None are
            not passed.

    Raises:
        ValueError: the layer's `call` does not have an argument that is not optional.
    """
    query = _without_mask(query)
    if value is None:
        value = query  # the same tensor, which marks self-attention
        arguments["value_mask"] = arguments["query_mask"]
        arguments["value_positions"] = arguments["query_positions"]
    arguments = {name: value for name, value in arguments.items() if value is not None}
    taken = {
        name: value
        for name, value in arguments.items()
        if keras_internals.takes_argument(attention, name)
    }
    if refused := sorted(arguments.keys() - taken.keys() - {"query_mask", *optional}):
        raise ValueError(
            f"The call of {type(attention).__name__} has no {', '.join(refused)}. Leave it out, or "
            "use an attention layer that has it."
        )
    return attention(query, _without_mask(value), training=training, **taken)


def call_with_mask(layer, x, mask, training):
    """Call `layer` on `x`, with `mask` if `call` has this argument, and return the output.

    `mask` is bool (B, T) or None. `training` is passed if the layer has this argument.
    """
    masks = {}
    if mask is not None and keras_internals.takes_argument(layer, "mask"):
        masks["mask"] = mask
    return layer(_without_mask(x), training=training, **masks)


def _without_mask(x):
    """Return `x` without its implicit mask, because the mask is passed as an argument.

    Keras's attention layers would remove the mask from the caller's tensor, and layers that do not
    support masking would warn.
    """
    return x if keras_internals.get_mask(x) is None else ops.copy(x)
