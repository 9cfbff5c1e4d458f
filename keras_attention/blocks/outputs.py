"""Last layers of models: logits of answer spans, and greedy CTC decoding."""

import keras
from keras import ops

from keras_attention.core import checks
from keras_attention.core.integer_inputs import IntegerInputs
from keras_attention.core.part import OwnArguments

IMPOSSIBLE = -100.0  # a logit with probability 0, not so low that int8 loses all other logits


@keras.saving.register_keras_serializable(package="keras_attention")
class SpanLogits(OwnArguments, IntegerInputs, keras.layers.Layer):
    """Restricts the start and end logits of an answer to the second text of a pair.

    In question answering, the first text is the question, and the second contains the answer
    (Devlin et al., 2019, sections 4.2 and 4.3).

    Args:
        no_answer: bool, whether the first token is allowed too. A span at the first token means
            that there is no answer.

    Call arguments:
        inputs: (B, T, 2), the start logit and the end logit of each token.
        segment_ids: int (B, T), 0 in the first text and in padding, 1 in the second text.

    Returns two tensors (B, T), start and end logits, which are -100 in the first text and in
    padding.

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
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.no_answer = no_answer

    def call(self, inputs, segment_ids, inputs_mask=None):
        allowed = ops.cast(ops.minimum(segment_ids, 1), inputs.dtype)  # (B, T)
        if inputs_mask is not None:
            allowed = ops.multiply(allowed, ops.cast(inputs_mask, inputs.dtype))
        if self.no_answer:
            index = ops.expand_dims(ops.arange(ops.shape(inputs)[1], dtype="int32"), axis=0)
            allowed = ops.maximum(allowed, ops.cast(ops.equal(index, 0), inputs.dtype))
        impossible = ops.multiply(ops.subtract(1.0, allowed), IMPOSSIBLE)
        start_and_end = ops.split(inputs, 2, axis=-1)  # (B, T, 1) each
        return tuple(ops.squeeze(x, -1) * allowed + impossible for x in start_and_end)

    def compute_mask(self, inputs, previous=None):
        return None

    def compute_output_shape(self, inputs_shape, segment_ids_shape=None):
        return (tuple(inputs_shape[:2]), tuple(inputs_shape[:2]))


@keras.saving.register_keras_serializable(package="keras_attention")
class GreedyCTCDecoder(OwnArguments, keras.layers.Layer):
    """Decodes CTC logits greedily to labels: the best path (Graves et al., 2006, section 3.2).

    The layer chooses the label with the largest logit in each frame, merges equal neighbors, and
    removes blanks. It has no weights. Add it to a speech recognizer to export a model from sound to
    labels. In Python, `ka.generation.search_ctc_prefixes` finds more probable label sequences.

    Args:
        blank_id: int, the id of the blank, which separates equal labels. It also pads the result.

    Call arguments:
        inputs: logits (B, T, V), V labels with the blank.
        mask: bool (B, T), True = a frame. Keras fills it from the implicit mask.

    Returns int32 (B, T): the labels of each row, followed by `blank_id` as padding.

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
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.blank_id = blank_id
        checks.check_whole_numbers(self, "blank_id", least=0)

    def call(self, inputs, mask=None):
        # `ops.argmax` of floats is exported to an operation that LiteRT lacks.
        path = ops.cast(ops.top_k(inputs, 1)[1][..., 0], "int32")  # (B, T)
        if mask is not None:
            path = ops.where(mask, path, self.blank_id)
        before = ops.pad(path[:, :-1], ((0, 0), (1, 0)), constant_values=self.blank_id)
        is_label = ops.logical_and(path != self.blank_id, path != before)
        target = ops.cumsum(ops.cast(is_label, "int32"), axis=1) - 1  # index in the result
        index = ops.arange(ops.shape(path)[1], dtype="int32")
        moves = ops.logical_and(
            ops.expand_dims(target, axis=1) == ops.reshape(index, (1, -1, 1)),
            ops.expand_dims(is_label, axis=1),
        )  # (B, S, T): whether frame t contains label s of the result
        labels = ops.where(moves, ops.expand_dims(path - self.blank_id, axis=1), 0)
        return ops.sum(labels, axis=2) + self.blank_id

    def compute_mask(self, inputs, previous=None):
        return None

    def compute_output_shape(self, input_shape):
        return input_shape[:2]

    def compute_output_spec(self, inputs, mask=None):
        return keras.KerasTensor(inputs.shape[:2], "int32")
