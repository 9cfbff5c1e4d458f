"""Constructor arguments of attention layers, resolved and checked, with Keras's messages."""

import keras

from keras_attention import normalizers, positions


def check_positive(optional=(), **sizes):
    """Refuses sizes that are not positive ints. Those named in `optional` may be None."""
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
    """Refuses a sink beside a normalizer in which scores do not share a denominator."""
    if not isinstance(normalizer, normalizers.Softmax):
        raise ValueError(
            f"sink=True with normalizer={normalizer!r}: a sink is a term of the softmax's "
            "denominator, which only Softmax has. Leave out one of the two."
        )
    if normalizer.plus_one:
        raise ValueError(
            f"sink=True with normalizer={normalizer!r}: plus_one is a sink fixed at 0. "
            "Leave out one of the two."
        )


def require_dense(name):
    """Return `"dense"`, or an error where another kernel is named."""
    if name not in (None, "dense"):
        raise ValueError(
            f"implementation={name!r}: memory slots, and scores that are handed on, need the dense "
            "kernel. Leave implementation out."
        )
    return "dense"


def use_flash(flash_attention, implementation, dropout):
    """Return whether the backend's flash attention is asked for: True, False, or None.

    None follows `keras.config.disable_flash_attention()`.
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
            f"flash_attention=True asks for the fused kernel, but implementation="
            f"{implementation!r} is named, or needed by memory slots or scores that are handed on. "
            "Leave out one of the two."
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
    """Return `part` of the family called `family`, which may not be None."""
    if part is None:
        raise ValueError(
            f"{family}=None: attention needs a {family}. Leave it out for the default."
        )
    return part


def get_position(identifier, dtype):
    """Return the position that `identifier` means, one that attention sees, or None."""
    part = positions.get(identifier, dtype=dtype)
    if part is not None and not part.roles & {"rotate", "bias"}:
        raise ValueError(
            f"position={part!r} is added to tokens, which attention does not see. "
            "Give it to the embedding, or use one that rotates or biases: rotary, alibi, ..."
        )
    return part


def check_rotates_only(part):
    """Refuses a position that does more than rotate, for a layer whose scores take no bias."""
    if part is not None and part.roles != {"rotate"}:
        raise ValueError(
            f"position={part!r} does more than rotate ({', '.join(sorted(part.roles))}), and only "
            "rotation finds room in this layer's compressed keys. Use one that rotates: rotary."
        )
