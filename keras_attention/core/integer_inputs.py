"""Inputs that are ids or positions: whole numbers, which mixed precision must not round."""

import keras
from keras import ops

from keras_attention.core import checks, keras_internals

NAMES = {
    *("characters", "document_ids", "target_ids", "token_ids", "tokens", "lengths"),
    *("segment_ids", "value_segment_ids", "encoded_segment_ids"),
    *("positions", "query_positions", "key_positions", "value_positions", "encoded_positions"),
}


class IntegerInputs:
    """A base before `keras.layers.Layer` that casts ids and positions from floats to int32.

    Keras casts every float input to the layer's dtype, and bfloat16 holds no whole number above 256
    exactly: id 257 would be id 256. `integer_inputs` names the arguments of `call` that are whole
    numbers, by default those in `NAMES`.
    """

    integer_inputs = NAMES

    def __call__(self, *args, **kwargs):
        names = keras_internals.list_call_arguments(self)[: len(args)]
        arguments = self.name_arguments(args, kwargs)
        checks.refuse_ragged(type(self).__name__, *arguments.values())
        whole = {name: to_integers(arguments[name]) for name in self.get_integer_inputs(arguments)}
        args = tuple(whole.get(name, x) for name, x in zip(names, args, strict=True))
        kwargs = {name: whole.get(name, x) for name, x in kwargs.items()}
        return super().__call__(*args, **kwargs)

    def name_arguments(self, args, kwargs):
        """Return the arguments of a call of the layer by their names in `call`."""
        names = keras_internals.list_call_arguments(self)[: len(args)]
        return {**dict(zip(names, args, strict=True)), **kwargs}

    def get_integer_inputs(self, arguments):
        """Return the names in `arguments` that are whole numbers."""
        return self.integer_inputs & set(arguments)


def to_integers(x):
    """Cast a float tensor or array to int32 and keep its mask. Return anything else as it is."""
    dtype = getattr(x, "dtype", None)
    if dtype is None or not keras.backend.is_float_dtype(keras.backend.standardize_dtype(dtype)):
        return x
    mask, x = keras_internals.get_mask(x), ops.cast(x, "int32")
    if mask is not None:
        keras_internals.set_mask(x, mask)
    return x
