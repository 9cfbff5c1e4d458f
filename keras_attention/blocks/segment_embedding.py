"""Tokens with what kind of segment they are of."""

import keras
from keras import ops

from keras_attention import checks


@keras.saving.register_keras_serializable(package="keras_attention")
class SegmentEmbedding(keras.layers.Layer):
    """Adds to each token a learned vector for its segment (Devlin et al., 2019, figure 2).

    Args:
        num_segments: int, how many kinds of segments there are, such as 2 for pairs of sentences.
        embeddings_initializer: a Keras initializer.

    Call arguments:
        inputs: (B, T, D).
        segment_ids: int (B, T), from 0 to num_segments - 1.

    Returns (B, T, D), with the mask of the inputs.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    layer = ka.blocks.SegmentEmbedding(2)
    x, segments = np.zeros((1, 4, 8), "float32"), np.array([[0, 0, 1, 1]])
    y = layer(x, segments)
    assert np.array_equal(y[:, 0], y[:, 1]) and not np.array_equal(y[:, 1], y[:, 2])
    ```
    """

    def __init__(self, num_segments, embeddings_initializer="uniform", **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_segments = num_segments
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        checks.whole(self, "num_segments")

    def build(self, inputs_shape, segment_ids_shape):
        self._table = keras.layers.Embedding(
            self.num_segments,
            inputs_shape[-1],
            embeddings_initializer=self.embeddings_initializer,
            dtype=self.dtype_policy,
            name="table",
        )
        self._table.build(segment_ids_shape)

    def call(self, inputs, segment_ids):
        return ops.add(inputs, self._table(segment_ids))

    def compute_output_shape(self, inputs_shape, segment_ids_shape):
        return inputs_shape

    def compute_output_spec(self, inputs, segment_ids):
        return keras.KerasTensor(inputs.shape, self.compute_dtype)

    def get_config(self):
        initializer = keras.initializers.serialize(self.embeddings_initializer)
        config = {"num_segments": self.num_segments, "embeddings_initializer": initializer}
        return {**super().get_config(), **config}
