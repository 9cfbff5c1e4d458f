"""Pooling of a sequence of vectors to one vector."""

import keras
from keras import ops

from keras_attention.attention import attend
from keras_attention.attention.visibility import Visibility
from keras_attention.blocks.inner_layers import revive_layer
from keras_attention.core import scope, shapes
from keras_attention.core.checks import check_whole_number
from keras_attention.core.integer_inputs import IntegerInputs
from keras_attention.core.part import OwnArguments

MODES = ("mean", "max", "root_sum", "cls", "last", "attention", "prefix", "cls_mean")


@keras.saving.register_keras_serializable(package="keras_attention")
class Pooling(OwnArguments, keras.layers.Layer):
    """Makes one vector of a sequence. Padding is left out in every mode.

    Args:
        mode: str, one of

            - `"mean"` or `"max"` over the tokens,
            - `"root_sum"`, their sum divided by the root of their number (Cer et al., 2018),
            - `"cls"`, the first token (Devlin et al., 2019),
            - `"last"`, the last token in front of the padding (Radford et al., 2018),
            - `"attention"`, the mean weighted by a learned query (Lee et al., 2019, section 3.2,
              one seed, without projections),
            - `"prefix"`, the tokens in front one after another, (B, prefix · D), as of a class and
              a distillation token (Touvron et al., 2020, *DeiT*),
            - `"cls_mean"`, the first token and the mean of the others, (B, 2 D) (Oquab et al.,
              2023, *DINOv2*).
        num_prefix_tokens: int, tokens in front that `"mean"`, `"max"`, `"root_sum"` and
            `"cls_mean"` leave out (class token and registers of a vision transformer).

    Call arguments:
        inputs: (B, T, D).
        mask: bool (B, T), True = a token. Keras passes the implicit mask.

    Returns (B, D), or the shape that the mode names. A sequence with nothing but padding gives
    zeros in `"mean"`, `"max"`, `"root_sum"` and `"attention"`. In `"cls"` and `"last"` it gives its
    first vector.

    ```python
    import numpy as np
    import keras_attention as ka

    x = np.array([[[1.0], [3.0], [50.0]]])
    mask = np.array([[True, True, False]])
    assert np.allclose(ka.blocks.Pooling("mean")(x, mask=mask), [[2.0]])
    assert np.allclose(ka.blocks.Pooling("max")(x, mask=mask), [[3.0]])
    ```
    """

    own_arguments = ("mode", "num_prefix_tokens")
    weight_axes = {"query": ("rows", "rows", "rows", "embed")}

    def __init__(self, mode="mean", num_prefix_tokens=0, **kwargs):
        if mode not in MODES:
            raise ValueError(f"mode={mode!r}: expected one of {', '.join(MODES)}.")
        if mode in ("prefix", "cls_mean") and not num_prefix_tokens:
            raise ValueError(f"mode={mode!r} reads tokens in front: give num_prefix_tokens=.")
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.mode, self.num_prefix_tokens = mode, num_prefix_tokens

    def build(self, input_shape):
        if self.mode == "attention":
            self.query = self.add_weight(
                shape=(1, 1, 1, input_shape[-1]), initializer="glorot_uniform", name="query"
            )

    def call(self, inputs, mask=None):
        if self.mode == "prefix":
            x = inputs[:, : self.num_prefix_tokens]
            return ops.reshape(x, (-1, self.num_prefix_tokens * inputs.shape[-1]))
        if self.mode == "cls_mean":
            return ops.concatenate([inputs[:, 0], self._mean_or_max(inputs, mask)], axis=-1)
        if self.mode == "cls":
            return ops.take(inputs, 0, axis=1)
        if self.mode == "last":
            return self._last(inputs, mask)
        if self.mode == "attention":
            return self._attention(inputs, mask)
        return self._mean_or_max(inputs, mask)

    def _mean_or_max(self, inputs, mask):
        greatest = self.mode == "max"
        if self.num_prefix_tokens:
            inputs = inputs[:, self.num_prefix_tokens :]
            mask = mask if mask is None else mask[:, self.num_prefix_tokens :]
        if mask is None:
            pooled = ops.max(inputs, axis=1) if greatest else ops.mean(inputs, axis=1)
            if self.mode == "root_sum":
                length = ops.cast(ops.shape(inputs)[1], "float32")
                pooled = ops.multiply(pooled, ops.cast(ops.sqrt(length), pooled.dtype))
            return pooled
        visible = ops.expand_dims(ops.cast(mask, "float32"), axis=2)  # (B, T, 1)
        x = ops.cast(inputs, "float32")
        if not greatest:
            count = ops.maximum(ops.sum(visible, axis=1), 1.0)
            count = ops.sqrt(count) if self.mode == "root_sum" else count
            pooled = ops.divide(ops.sum(ops.multiply(x, visible), axis=1), count)
        else:
            hidden = ops.multiply(ops.subtract(1.0, visible), scope.mask_constant())
            pooled = ops.max(ops.multiply(x, visible) + hidden, axis=1)
            pooled = ops.multiply(pooled, ops.max(visible, axis=1))
        return ops.cast(pooled, inputs.dtype)

    def _last(self, inputs, mask):
        if mask is None:
            return inputs[:, -1]
        places = ops.expand_dims(ops.arange(ops.shape(inputs)[1], dtype="int32"), axis=0)
        last = ops.max(ops.multiply(places, ops.cast(mask, "int32")), axis=1)
        chosen = ops.cast(ops.equal(places, ops.expand_dims(last, axis=1)), inputs.dtype)
        return ops.sum(ops.multiply(inputs, ops.expand_dims(chosen, axis=2)), axis=1)

    def _attention(self, inputs, mask):
        x = ops.expand_dims(inputs, axis=2)  # (B, T, 1, D)
        query = shapes.tile(ops.cast(self.query, x.dtype), (ops.shape(x)[0], 1, 1, 1))
        output, weights = attend(query, x, x, mask=Visibility(key_mask=mask))
        scope.record_weights(self, weights)
        return ops.reshape(output, (-1, inputs.shape[-1]))

    def compute_mask(self, inputs, previous=None):
        return None

    def compute_output_shape(self, input_shape):
        times = {"prefix": self.num_prefix_tokens, "cls_mean": 2}.get(self.mode, 1)
        return (input_shape[0], times * input_shape[-1])

    def compute_output_spec(self, inputs, mask=None):
        return keras.KerasTensor(self.compute_output_shape(inputs.shape), self.compute_dtype)


@keras.saving.register_keras_serializable(package="keras_attention")
class FirstOf(OwnArguments, IntegerInputs, keras.layers.Layer):
    """The vector at the first place that holds a token, such as the end of a text.

    Args:
        token_id: int.

    Call arguments:
        inputs: (B, T, D). token_ids: int (B, T).

    Returns (B, D); the first vector of a text that does not hold the token.

    ```python
    import numpy as np
    import keras_attention as ka

    x = np.array([[[1.0], [2.0], [3.0], [4.0]]])
    assert ka.blocks.FirstOf(9)(x, np.array([[5, 7, 9, 9]])) == [[3.0]]
    ```
    """

    own_arguments = ("token_id",)

    def __init__(self, token_id, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.token_id = check_whole_number(type(self).__name__, "token_id", token_id, least=0)

    def call(self, inputs, token_ids):
        ends = ops.cast(ops.equal(token_ids, self.token_id), "int32")
        place = ops.argmax(ends, axis=1)
        places = ops.expand_dims(ops.arange(ops.shape(inputs)[1], dtype="int32"), axis=0)
        place = ops.expand_dims(ops.cast(place, "int32"), axis=1)
        chosen = ops.cast(ops.equal(places, place), inputs.dtype)
        return ops.sum(ops.multiply(inputs, ops.expand_dims(chosen, axis=2)), axis=1)

    def compute_mask(self, inputs, previous=None):
        return None

    def compute_output_shape(self, inputs_shape, token_ids_shape=None):
        return (inputs_shape[0], inputs_shape[-1])


def get_pooling(pooling, num_prefix_tokens=0):
    """Return a pooling layer: the one that is given, or a `Pooling` by its mode.

    Args:
        pooling: a layer such as `AttentionPooling` or `FirstOf`, a mode of `Pooling`, or `"first"`
            for its mode `"cls"` where no class token was put in front.
        num_prefix_tokens: int, of the `Pooling`.
    """
    if not isinstance(pooling, str):
        return revive_layer("pooling", pooling)
    mode = "cls" if pooling == "first" else pooling
    return Pooling(mode, num_prefix_tokens=num_prefix_tokens, name="pooling")
