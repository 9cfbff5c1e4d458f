"""`Pooling` and `FirstOf`: reduce a sequence to one vector."""

import keras
from keras import ops

from keras_attention.attention import attend
from keras_attention.attention.visibility import Visibility
from keras_attention.blocks.inner_layers import revive_layer
from keras_attention.core import checks, scope, shapes
from keras_attention.core.integer_inputs import IntegerInputs
from keras_attention.core.part import OwnArguments

MODES = ("mean", "max", "root_sum", "cls", "last", "attention", "prefix", "cls_mean")


@keras.saving.register_keras_serializable(package="keras_attention")
class Pooling(OwnArguments, keras.layers.Layer):
    """Reduces a sequence (B, T, D) to one vector for each row, and ignores padding.

    The modes are:

    - `"mean"` or `"max"`: the mean or the maximum over all tokens.
    - `"root_sum"`: the sum of all tokens, divided by the square root of their number (Cer et al.,
      2018).
    - `"cls"`: the first token (Devlin et al., 2019).
    - `"last"`: the last token before the padding (Radford et al., 2018).
    - `"attention"`: the mean weighted by attention from a learned query (Lee et al., 2019, section
      3.2, but without projections).
    - `"prefix"`: the P prefix tokens concatenated, (B, P · D), such as a class token and a
      distillation token (Touvron et al., 2020, *DeiT*).
    - `"cls_mean"`: the first token concatenated with the mean of all tokens after the prefix,
      (B, 2 D) (Oquab et al., 2023, *DINOv2*).

    Args:
        mode: str, one of these modes.
        num_prefix_tokens: int P, number of first tokens that are not part of the sequence, such as
            class token and registers. `"mean"`, `"max"`, `"root_sum"` and the mean of `"cls_mean"`
            ignore these tokens.

    Call arguments:
        inputs: (B, T, D).
        mask: bool (B, T), True = a token. Keras fills it from the implicit mask.

    Returns (B, D), or the shape in the list above. If a sequence has only padding, `"cls"` and
    `"last"` return its first vector, and `"mean"`, `"max"`, `"root_sum"` and `"attention"` return
    zeros.

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
        super().__init__(**kwargs)
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.mode, self.num_prefix_tokens = mode, num_prefix_tokens
        checks.check_choice(self, "mode", MODES)
        if mode in ("prefix", "cls_mean") and not num_prefix_tokens:
            raise ValueError(
                f"Pooling(mode={mode!r}) reads prefix tokens. Set num_prefix_tokens to at least 1."
            )

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
            if mask is None:
                return inputs[:, -1]
            index = ops.arange(ops.shape(inputs)[1], dtype="int32")
            return _take_vector(inputs, ops.max(index * ops.cast(mask, "int32"), axis=1))
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

    def _attention(self, inputs, mask):
        x = ops.expand_dims(inputs, axis=2)  # (B, T, 1, D)
        query = shapes.tile(ops.cast(self.query, x.dtype), (ops.shape(x)[0], 1, 1, 1))
        visibility, change = Visibility(key_mask=mask), scope.change_of_weights(self)
        output, weights = attend(query, x, x, mask=visibility, dropout=change)
        scope.record_weights(self, weights)
        return ops.reshape(output, (-1, inputs.shape[-1]))

    def compute_mask(self, inputs, previous=None):
        return None

    def compute_output_shape(self, input_shape):
        times = {"prefix": self.num_prefix_tokens, "cls_mean": 2}.get(self.mode, 1)
        return (input_shape[0], times * input_shape[-1])


@keras.saving.register_keras_serializable(package="keras_attention")
class FirstOf(OwnArguments, IntegerInputs, keras.layers.Layer):
    """Reduces a sequence to the vector of its first token with a given id, such as end-of-text.

    Args:
        token_id: int, the id to look for.

    Call arguments:
        inputs: (B, T, D), the vectors of the tokens.
        token_ids: int (B, T), their ids.

    Returns (B, D). If a row does not contain the id, its first vector.

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
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.token_id = token_id
        checks.check_whole_numbers(self, "token_id", least=0)

    def call(self, inputs, token_ids):
        is_end = ops.cast(ops.equal(token_ids, self.token_id), "int32")
        return _take_vector(inputs, ops.argmax(is_end, axis=1))

    def compute_mask(self, inputs, previous=None):
        return None

    def compute_output_shape(self, inputs_shape, token_ids_shape=None):
        return (inputs_shape[0], inputs_shape[-1])


def _take_vector(inputs, index):
    """Return the vector of each row of `inputs` (B, T, D) at `index`, int (B,): (B, D).

    The result is computed as a sum with one-hot weights, which every runtime supports.
    """
    numbers = ops.expand_dims(ops.arange(ops.shape(inputs)[1], dtype="int32"), axis=0)
    index = ops.expand_dims(ops.cast(index, "int32"), axis=1)
    one_hot = ops.cast(ops.equal(numbers, index), inputs.dtype)
    return ops.sum(ops.multiply(inputs, ops.expand_dims(one_hot, axis=2)), axis=1)


def get_pooling(pooling, num_prefix_tokens=0):
    """Return the pooling layer that the argument `pooling` of a model describes.

    `pooling` is a layer (returned as it is) or a mode of `Pooling`. `"first"` is `Pooling("cls")`,
    for text whose first token is not an added class token. `num_prefix_tokens` is the number of
    tokens at the beginning that are not part of the sequence, such as the class token.
    """
    if not isinstance(pooling, str):
        return revive_layer("pooling", pooling)
    mode = "cls" if pooling == "first" else pooling
    return Pooling(mode, num_prefix_tokens=num_prefix_tokens, name="pooling")
