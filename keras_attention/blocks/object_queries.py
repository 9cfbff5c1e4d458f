"""`ObjectQueries`: learned vectors that look for objects, each for other ones."""

import keras
from keras import ops

from keras_attention.core import shapes
from keras_attention.core.checks import check_whole_number
from keras_attention.core.part import OwnArguments


@keras.saving.register_keras_serializable(package="keras_attention")
class ObjectQueries(OwnArguments, keras.layers.Layer):
    """The learned queries of a detector's decoder, the same for every image (Carion et al., 2020).

    Args:
        num_queries: int Q.
        hidden_dim: int D.

    Call arguments:
        inputs: any tensor (B, ...), which says how many images there are, and of which type.

    Returns (B, Q, D).

    ```python
    import numpy as np
    import keras_attention as ka

    assert ka.blocks.ObjectQueries(5, 16)(np.ones((2, 9, 8))).shape == (2, 5, 16)
    ```
    """

    own_arguments = ("num_queries", "hidden_dim")
    weight_axes = {"queries": ("rows", "rows", "embed")}

    def __init__(self, num_queries, hidden_dim, **kwargs):
        super().__init__(**kwargs)
        self.num_queries = check_whole_number("ObjectQueries", "num_queries", num_queries)
        self.hidden_dim = check_whole_number("ObjectQueries", "hidden_dim", hidden_dim)

    def build(self, input_shape):
        self.queries = self.add_weight(
            shape=(1, self.num_queries, self.hidden_dim),
            initializer=keras.initializers.RandomNormal(stddev=1.0),
            name="queries",
        )

    def call(self, inputs):
        return shapes.tile(ops.cast(self.queries, self.compute_dtype), (ops.shape(inputs)[0], 1, 1))

    def compute_mask(self, inputs, previous=None):
        return None

    def compute_output_shape(self, input_shape):
        return (input_shape[0], self.num_queries, self.hidden_dim)
