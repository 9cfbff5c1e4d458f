"""How blocks call layers of which they know no more than what `call` takes."""

import inspect

import keras
from keras import ops
from keras.src.backend import get_keras_mask


def build_attention(attention, query_shape, value_shape):
    """Makes the weights of an attention layer, also of one that has no `build` of two shapes."""
    if len(inspect.signature(attention.build).parameters) > 1:
        attention.build(query_shape, value_shape)
    else:  # Keras then finds out by a symbolic call what is to be built
        attention(keras.KerasTensor(query_shape), keras.KerasTensor(value_shape))


def attend(attention, query, training, value=None, optional=(), **given):
    """`attention` of `query` to `value`, or to itself, with whatever of `given` is not None.

    An argument that the layer does not take is refused, but for `query_mask`, as what padding
    attends to is looked at by nobody, and for those named in `optional`.
    """
    given = {name: value for name, value in given.items() if value is not None}
    taken = {name: value for name, value in given.items() if takes(attention, name)}
    if refused := sorted(given.keys() - taken.keys() - {"query_mask", *optional}):
        raise ValueError(
            f"The block was given what its attention does not take: {type(attention).__name__} "
            f"has no {', '.join(refused)}. Leave it out, or use an attention layer that takes it."
        )
    query = _bare(query)
    value = query if value is None else _bare(value)  # the same tensor says self-attention
    return attention(query, value, training=training, **taken)


def feed(layer, x, mask, training):
    """`layer` on `x`, with the padding mask if there is one and the layer takes it."""
    given = {"mask": mask} if mask is not None and takes(layer, "mask") else {}
    return layer(_bare(x), training=training, **given)


def takes(layer, name):
    """Whether the `call` of `layer` has an argument `name`, or takes any."""
    parameters = inspect.signature(layer.call).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _bare(x):
    """`x` without its implicit mask, which is given as an argument.

    Keras's attention layers take it off the caller's tensor; layers that know none warn.
    """
    return x if get_keras_mask(x) is None else ops.copy(x)
