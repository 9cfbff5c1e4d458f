"""Normalizers: they convert scores (B, N, T, S) and a mask to attention weights (B, N, T, S)."""

from keras_attention.core import part
from keras_attention.normalizers.activation import Activation
from keras_attention.normalizers.base import Normalizer
from keras_attention.normalizers.entmax import Entmax
from keras_attention.normalizers.relu import ReLU
from keras_attention.normalizers.sigmoid import Sigmoid
from keras_attention.normalizers.softmax import Softmax
from keras_attention.normalizers.sparsemax import Sparsemax
from keras_attention.normalizers.top_k import TopK

NAMES = {
    "softmax": Softmax,
    "sparsemax": Sparsemax,
    "entmax": Entmax,
    "sigmoid": Sigmoid,
    "relu": ReLU,
    "top_k": TopK,
    "activation": Activation,
}


def get(identifier, dtype=None):
    """Return the normalizer that `identifier` describes. It turns scores into attention weights.

    Args:
        identifier: a normalizer, a name in `NAMES`, or the dict of
            `keras.saving.serialize_keras_object`. None returns None.
        dtype: dtype policy for a normalizer of your own with weights, if it is created from a name.

    Example: `ka.normalizers.get("sparsemax") == ka.normalizers.Sparsemax()`
    """
    return part.get(identifier, names=NAMES, family="normalizer", base=Normalizer, dtype=dtype)


__all__ = [
    "NAMES",
    "Activation",
    "Entmax",
    "Normalizer",
    "ReLU",
    "Sigmoid",
    "Softmax",
    "Sparsemax",
    "TopK",
    "get",
]
