"""`ResetMemory`: a callback that clears the memory of `SegmentRecurrence` layers."""

import keras

from keras_attention.attention import SegmentRecurrence
from keras_attention.core import keras_internals


class ResetMemory(keras.callbacks.Callback):
    """Clears the model's memory of earlier segments before every epoch, evaluation and prediction.

    A model made by `ka.attention.with_memory(model, length, batch_size=...)` attends to text of
    earlier batches. This callback resets its `SegmentRecurrence` layers. Do not evaluate between
    the batches of an epoch, because the remaining batches would attend to text of the evaluation.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    labeler = ka.models.sequence_labeler(
        9, 9, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8, mask="causal"
    )
    model = ka.attention.with_memory(labeler, memory_length=6, batch_size=2)
    text = np.random.default_rng(0).integers(1, 9, size=41)
    tokens, following = ka.data.contiguous_segments(text, batch_size=2, segment_length=5)
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    reset = ka.training.ResetMemory()
    model.fit(tokens, following, batch_size=2, shuffle=False, callbacks=[reset], verbose=0)
    ```
    """

    def on_epoch_begin(self, epoch, logs=None):
        self._reset()

    def on_test_begin(self, logs=None):
        self._reset()

    def on_predict_begin(self, logs=None):
        self._reset()

    def _reset(self):
        for layer in keras_internals.all_layers(self.model):
            if isinstance(layer, SegmentRecurrence) and layer.batch_size is not None:
                layer.reset_state()
