"""`IntegerInputs`: keeps ids and positions exact under mixed precision."""

import keras
from keras import ops

from keras_attention.core import checks, keras_internals

NAMES = {
    *("characters", "document_ids", "target_ids", "token_ids", "tokens", "lengths"),
    *("segment_ids", "value_segment_ids", "encoded_segment_ids"),
    *("positions", "query_positions", "key_positions", "value_positions", "encoded_positions"),
}


class IntegerInputs:
    """A mixin for layers that casts ids and positions given as floats to int32.

    Otherwise Keras would cast these floats to the compute dtype, and in bfloat16 id 257 would
    become id 256. The class attribute `integer_inputs` is the set of the arguments of `call` that
    are integers, by default `NAMES`, such as "token_ids" and "positions". The mixin must come
    before `keras.layers.Layer` in the bases.
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
        """Return the arguments of a call as a dict {argument of `call`: value}.

        `args` is the tuple of positional arguments, and `kwargs` the dict of keyword arguments.
        """
        names = keras_internals.list_call_arguments(self)[: len(args)]
        return {**dict(zip(names, args, strict=True)), **kwargs}

    def get_integer_inputs(self, arguments):
        """Return the set of names in the dict `arguments` whose values must be integers."""
        return self.integer_inputs & set(arguments)


def to_integers(x):
    """Cast a float tensor or array to int32, and keep its mask. Return anything else unchanged."""
    dtype = getattr(x, "dtype", None)
    if dtype is None or not keras.backend.is_float_dtype(keras.backend.standardize_dtype(dtype)):
        return x
    mask, x = keras_internals.get_mask(x), ops.cast(x, "int32")
    if mask is not None:
        keras_internals.set_mask(x, mask)
    return x
