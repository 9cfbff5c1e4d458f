"""Checks of the constructor arguments of attention layers, and their conversion to parts."""

import keras

from keras_attention import normalizers, positions


def check_positive(optional=(), **sizes):
    """Raise a ValueError if a size, an argument of a layer, is not a positive int.

    Args:
        optional: names of the sizes that may be None.
        sizes: the sizes to check, keyed by argument name.
    """
    for name, size in sizes.items():
        if name in optional and size is None:
            continue
        if not isinstance(size, int) or size <= 0:
            raise ValueError(
                f"Received an invalid value for argument `{name}`, expected a positive integer. "
                f"Received: {name}={size}"
            )


def check_same_keys(value_shape, key_shape):
    if value_shape[1:-1] != key_shape[1:-1]:
        raise ValueError(
            "All dimensions of `value` and `key`, except the last one, must be equal. "
            f"Received: value_shape={value_shape} and key_shape={key_shape}"
        )


def check_groups(num_heads, num_key_value_heads):
    if num_key_value_heads and num_heads % num_key_value_heads:
        raise ValueError(
            f"num_key_value_heads={num_key_value_heads} does not divide num_heads={num_heads}. "
            f"Choose a divisor of {num_heads}."
        )


def check_sink(normalizer):
    """Raise a ValueError unless a normalizer can have a sink, a learned score in its denominator.

    Only a `Softmax` without `plus_one` can.
    """
    if not isinstance(normalizer, normalizers.Softmax):
        raise ValueError(
            f"sink=True with normalizer={normalizer!r}: a sink is a term of the denominator of "
            "Softmax. Leave out one of the two."
        )
    if normalizer.plus_one:
        raise ValueError(
            f"sink=True with normalizer={normalizer!r}: plus_one is a sink fixed at 0. "
            "Leave out one of the two."
        )


def require_dense(name):
    """Return `"dense"`, the only kernel for `ResidualAttention` and memory slots (learned keys).

    Raise a ValueError if `name`, the `implementation` of the layer, is another kernel.
    """
    if name not in (None, "dense"):
        raise ValueError(
            f"implementation={name!r}: memory slots and ResidualAttention need the dense kernel. "
            "Leave implementation out."
        )
    return "dense"


def use_flash(flash_attention, implementation, dropout):
    """Return `flash_attention`, a bool, or Keras's global setting if it is None.

    Raise a ValueError if flash attention is required together with `dropout` (float) or with a
    kernel (`implementation`) other than `"fused"`.
    """
    if flash_attention not in (True, False, None):
        raise ValueError(f"flash_attention={flash_attention!r}: expected True, False or None.")
    if flash_attention and dropout > 0.0:
        raise ValueError(
            "Dropout is not supported when flash attention is enabled. Please set dropout to 0.0 "
            f"to use flash attention. Received: dropout={dropout}"
        )
    if flash_attention and implementation not in (None, "fused"):
        raise ValueError(
            f"flash_attention=True needs the fused kernel, but implementation={implementation!r} "
            "is named, or needed by memory slots or ResidualAttention. Leave out one of the two."
        )
    if flash_attention is None:
        return keras.config.is_flash_attention_enabled()
    return flash_attention


def as_axes(attention_axes):
    if isinstance(attention_axes, int):
        return (attention_axes,)
    if attention_axes and not isinstance(attention_axes, (list, tuple)):
        raise ValueError(
            "`attention_axes` must be an int, list, or tuple. "
            f"Received: attention_axes={attention_axes}"
        )
    return attention_axes


def as_shape(output_shape):
    if output_shape is None:
        return None
    sizes = (output_shape,) if isinstance(output_shape, int) else output_shape
    if not isinstance(sizes, (list, tuple)) or not all(isinstance(size, int) for size in sizes):
        raise ValueError(
            f"Invalid `output_shape`: {output_shape}. When specified, the `output_shape` should be "
            "of type tuple, list, or int."
        )
    return tuple(sizes)


def require_part(family, part):
    """Return `part`, or raise a ValueError if it is None. `family` is "score" or "normalizer"."""
    if part is None:
        raise ValueError(
            f"{family}=None: attention needs a {family}. Leave it out for the default."
        )
    return part


def get_position(identifier, dtype):
    """Return the position encoding that a layer's argument `position` describes, or None.

    `identifier` is an encoding, its name, its config or None. Raise a ValueError for encodings that
    can only be added to embeddings, because attention layers have no embeddings.
    """
    part = positions.get(identifier, dtype=dtype)
    if part is not None and not part.roles & {"rotate", "bias"}:
        raise ValueError(
            f"position={part!r} is added to tokens, which is the work of an embedding. Give it to "
            "the embedding, or use one that rotates or biases: rotary, alibi, ..."
        )
    return part


def check_rotates_only(part):
    """Raise a ValueError if a position encoding does not only rotate queries and keys.

    `part` is the `Position` of a layer, or None. Rotary encodings are valid, biases are not.
    """
    if part is not None and part.roles != {"rotate"}:
        raise ValueError(
            f"position={part!r} has the roles {', '.join(sorted(part.roles))}, but this layer only "
            "rotates its keys. Use a position that only rotates: rotary."
        )
