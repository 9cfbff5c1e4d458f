"""`ContrastiveLogits`: compares every vector of a batch with every other, for training search."""

import math

import keras
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import OwnArguments

MOST = 100.0  # the largest factor of the cosines in CLIP
LEAST_NORM = 1e-12  # below this squared length a vector is not scaled up to length 1


@keras.saving.register_keras_serializable(package="keras_attention")
class ContrastiveLogits(OwnArguments, keras.layers.Layer):
    """Computes the cosine of every query and every document, divided by a learned temperature.

    It is the last layer of a model that learns which documents match which queries from the other
    pairs of a batch (Radford et al., 2021, figure 3). Train it with `ka.training.InfoNCE`. The
    weight is the logarithm of 1 / temperature. As in CLIP, 1 / temperature never exceeds 100.

    With `bias`, a learned number is added to all logits, as in SigLIP (Zhai et al., 2023). The
    sigmoid of a logit is then the probability that this query and this document match.

    With `dimensions`, there are logits for the first components of the vectors, too, so that short
    vectors also work (Kusupati et al., 2022, *Matryoshka representation learning*).

    Args:
        temperature: float, the initial temperature, at least 0.01.
        dimensions: list of P ints, numbers of first components to compare. None compares whole
            vectors.
        bias: float, the initial value of the number that is added, such as SigLIP's -10. None adds
            nothing.

    Call arguments:
        queries: (B, D).
        documents: (C, D), vectors of C documents.

    Returns (B, C), or with `dimensions` (B, P, C).

    ```python
    import numpy as np
    import keras_attention as ka

    queries, documents = np.array([[3.0, 0.0]]), np.array([[5.0, 0.0], [0.0, 2.0]])
    logits = ka.blocks.ContrastiveLogits(temperature=0.5)(queries, documents)
    assert np.allclose(logits, [[2.0, 0.0]])
    logits = ka.blocks.ContrastiveLogits(0.5, dimensions=[2, 1])(queries, documents)
    assert logits.shape == (1, 2, 2)
    ```
    """

    own_arguments = ("temperature", "dimensions", "bias")
    weight_axes = {"logit_scale": (), "logit_bias": ()}

    def __init__(self, temperature=0.05, dimensions=None, bias=None, **kwargs):
        super().__init__(**kwargs)
        self.input_spec = keras.layers.InputSpec(ndim=2)
        self.temperature = temperature
        checks.check_number(self, "temperature", least=1 / MOST)
        self.bias = bias
        if bias is not None:
            checks.check_number(self, "bias", least=-MOST, most=MOST)
        self.dimensions = None if dimensions is None else list(dimensions)
        if self.dimensions is not None:
            name = type(self).__name__
            for size in self.dimensions or [None]:
                checks.check_whole_number(name, "dimensions", size)

    def build(self, queries_shape, documents_shape=None):
        width = queries_shape[-1]
        if documents_shape is not None and documents_shape[-1] != width:
            raise ValueError(
                f"{self.name} got queries of shape {tuple(queries_shape)} and documents of shape "
                f"{tuple(documents_shape)}: expected vectors of one size. Project one of them."
            )
        if self.dimensions is not None and max(self.dimensions) > width:
            raise ValueError(
                f"{self.name} has dimensions={self.dimensions}, and the vectors have {width} "
                f"components: expected numbers of at most {width}."
            )
        self.logit_scale = self.add_weight(
            shape=(),
            initializer=keras.initializers.Constant(math.log(1 / self.temperature)),
            constraint=_bound,
            name="logit_scale",
        )
        self.logit_bias = None
        if self.bias is not None:
            self.logit_bias = self.add_weight(
                shape=(), initializer=keras.initializers.Constant(self.bias), name="logit_bias"
            )

    def call(self, queries, documents):
        sizes = [queries.shape[-1]] if self.dimensions is None else self.dimensions
        logits = [
            ops.matmul(scale_to_unit(queries[:, :size]),
                       ops.transpose(scale_to_unit(documents[:, :size])))
            for size in sizes
        ]  # fmt: skip
        logits = logits[0] if self.dimensions is None else ops.stack(logits, axis=1)
        logits = ops.multiply(logits, ops.cast(ops.exp(self.logit_scale), logits.dtype))
        if self.logit_bias is None:
            return logits
        return ops.add(logits, ops.cast(self.logit_bias, logits.dtype))

    def compute_output_shape(self, queries_shape, documents_shape):
        sizes = () if self.dimensions is None else (len(self.dimensions),)
        return (queries_shape[0], *sizes, documents_shape[0])


def _bound(logit_scale):
    """Return the weight after a training step, as CLIP bounds it."""
    return ops.minimum(logit_scale, math.log(MOST))


def scale_to_unit(x):
    """Scale vectors x (..., D) to length 1. Vectors of zeros stay zeros."""
    squares = ops.sum(ops.square(x), axis=-1, keepdims=True)
    return ops.divide(x, ops.sqrt(ops.maximum(squares, LEAST_NORM)))
