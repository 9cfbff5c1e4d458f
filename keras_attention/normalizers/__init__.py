"""Normalizers: from scores to weights. `normalizer(scores, mask)` keeps the shape (B, N, T, S)."""

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
    """Return the normalizer that `identifier` means: a normalizer, its name, its config, or None.

    ```python
    import keras_attention as ka

    assert ka.normalizers.get("sparsemax") == ka.normalizers.Sparsemax()
    ```
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
