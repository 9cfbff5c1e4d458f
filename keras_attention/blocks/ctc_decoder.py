"""Greedy decoding of CTC logits, of ops that every exported file may hold."""

import keras
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import OwnArguments


@keras.saving.register_keras_serializable(package="keras_attention")
class GreedyCTCDecoder(OwnArguments, keras.layers.Layer):
    """The labels of the best path (Graves et al., 2006, section 3.2).

    The largest logit of each frame, equal neighbours taken as one, blanks left out. It has no
    weights: put behind a recognizer, it makes a file that takes sound and gives labels.
    `ka.generation.search_ctc_prefixes` finds more likely ones, outside of files.

    Args:
        blank_id: int, the class between labels, and the padding of what is returned.

    Call arguments:
        inputs: logits (B, T, V).
        mask: bool (B, T), True = a frame; from the implicit mask.

    Returns int32 (B, T): the labels in the order in which they are heard, then `blank_id`.

    ```python
    import numpy as np
    import keras_attention as ka

    path = np.array([[0, 3, 3, 0, 3, 1]])
    labels = ka.blocks.GreedyCTCDecoder()(np.eye(4)[path])
    assert np.array_equal(labels, [[3, 3, 1, 0, 0, 0]])
    ```
    """

    own_arguments = ("blank_id",)

    def __init__(self, blank_id=0, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.blank_id = blank_id
        checks.check_whole_numbers(self, "blank_id", least=0)

    def call(self, inputs, mask=None):
        # Converters make of `ops.argmax` of floats an op that LiteRT lacks.
        path = ops.cast(ops.top_k(inputs, 1)[1][..., 0], "int32")  # (B, T)
        if mask is not None:
            path = ops.where(mask, path, self.blank_id)
        before = ops.pad(path[:, :-1], ((0, 0), (1, 0)), constant_values=self.blank_id)
        heard = ops.logical_and(path != self.blank_id, path != before)
        place = ops.cumsum(ops.cast(heard, "int32"), axis=1) - 1
        places = ops.arange(ops.shape(path)[1], dtype="int32")
        goes = ops.logical_and(
            ops.expand_dims(place, axis=1) == ops.reshape(places, (1, -1, 1)),
            ops.expand_dims(heard, axis=1),
        )  # (B, S, T): whether place s of the result is the label of frame t
        labels = ops.where(goes, ops.expand_dims(path - self.blank_id, axis=1), 0)
        return ops.sum(labels, axis=2) + self.blank_id

    def compute_mask(self, inputs, previous=None):
        return None  # its labels are as long as they are

    def compute_output_shape(self, input_shape):
        return input_shape[:2]

    def compute_output_spec(self, inputs, mask=None):
        return keras.KerasTensor(inputs.shape[:2], "int32")
