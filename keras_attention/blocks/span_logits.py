"""`SpanLogits`: where a span of a second text begins and ends, as for answers in a context."""

import keras
from keras import ops

from keras_attention.core.integer_inputs import IntegerInputs
from keras_attention.core.part import OwnArguments

NOWHERE = -100.0  # of places that cannot be; e^-100 is nothing, and 8 bits can still hold the rest


@keras.saving.register_keras_serializable(package="keras_attention")
class SpanLogits(OwnArguments, IntegerInputs, keras.layers.Layer):
    """Splits logits into those of a span's start and of its end, in the second segment alone.

    (Devlin et al., 2019, section 4.2; no answer: section 4.3.)

    Args:
        no_answer: bool, whether the first place counts, too: it stands for no span at all.

    Call arguments:
        inputs: (B, T, 2), the logits of each place to be the start, and the end.
        segment_ids: int (B, T), 0 in the first text and in padding, 1 in the second.

    Returns two tensors (B, T); places of the first text and padding have -100.

    ```python
    import numpy as np
    import keras_attention as ka

    logits = np.array([[[3.0, 1.0], [2.0, 5.0], [1.0, 4.0]]])
    start, end = map(np.array, ka.blocks.SpanLogits()(logits, np.array([[0, 1, 1]])))
    assert start.tolist() == [[-100, 2, 1]] and end.tolist() == [[-100, 5, 4]]
    ```
    """

    own_arguments = ("no_answer",)

    def __init__(self, no_answer=False, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.no_answer = no_answer

    def call(self, inputs, segment_ids, inputs_mask=None):
        counts = ops.cast(ops.minimum(segment_ids, 1), inputs.dtype)  # (B, T)
        if inputs_mask is not None:
            counts = ops.multiply(counts, ops.cast(inputs_mask, inputs.dtype))
        if self.no_answer:
            places = ops.expand_dims(ops.arange(ops.shape(inputs)[1], dtype="int32"), axis=0)
            counts = ops.maximum(counts, ops.cast(ops.equal(places, 0), inputs.dtype))
        nowhere = ops.multiply(ops.subtract(1.0, counts), NOWHERE)
        both = ops.split(inputs, 2, axis=-1)  # (B, T, 1) each
        return tuple(ops.squeeze(x, -1) * counts + nowhere for x in both)

    def compute_mask(self, inputs, previous=None):
        return None

    def compute_output_shape(self, inputs_shape, segment_ids_shape=None):
        return (tuple(inputs_shape[:2]), tuple(inputs_shape[:2]))
