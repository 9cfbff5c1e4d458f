"""What the arguments of multi-head attention may be; messages that Keras has are Keras's."""

from keras_attention import normalizers
from keras_attention.attention import kernels


def check_positive(**sizes):
    for name, size in sizes.items():
        if not isinstance(size, int) or size <= 0:
            raise ValueError(
                f"Received an invalid value for argument `{name}`, expected a positive integer. "
                f"Received: {name}={size}"
            )


def check_positive_or_none(**sizes):
    check_positive(**{name: size for name, size in sizes.items() if size is not None})


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


def kernel(name, dense_only):
    """The kernel to ask for, a name or None, where something may need the dense one."""
    if name is not None:
        kernels.module(name)
    if not dense_only:
        return name
    if name not in (None, "dense"):
        raise ValueError(
            f"kernel={name!r}: memory slots, and scores that are handed on, need the dense kernel. "
            "Leave kernel out."
        )
    return "dense"


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
