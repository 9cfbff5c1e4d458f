"""Normalizers by their definitions: NumPy functions of the visible scores of a row."""

import keras
import numpy as np
from keras import ops

from keras_attention import normalizers

B, N, T, S = 2, 3, 5, 7


@keras.saving.register_keras_serializable(package="tests")
def bent(scores):
    return scores / (2 + abs(scores))


def softmax(z):
    e = np.exp(z - z.max())
    return e / e.sum()


def soft_capped_plus_one(z):
    e = np.exp(3 * np.tanh(z / 3) / 2)
    return e / (1 + e.sum())


def sparsemax(z):
    """Compute algorithm 1 of Martins & Astudillo (2016)."""
    ordered = np.sort(z)[::-1]
    ranks = np.arange(1, len(z) + 1)
    size = ranks[1 + ranks * ordered > np.cumsum(ordered)].max()
    return np.maximum(z - (ordered[:size].sum() - 1) / size, 0)


def entmax(alpha):
    """Compute entmax by its definition, with the threshold from bisection."""

    def weights(z, tau):
        return np.maximum((alpha - 1) * z - tau, 0) ** (1 / (alpha - 1))

    def normalize(z):
        low, high = (alpha - 1) * z.max() - 1, (alpha - 1) * z.max()
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if weights(z, middle).sum() > 1 else (low, middle)
        return weights(z, low)

    return normalize


def sigmoid(z):
    return np.exp(-np.logaddexp(0, -z))


def top(k):
    def normalize(z):
        return softmax(np.where(z >= np.sort(z)[-min(k, len(z))], z, -np.inf))

    return normalize


# name: (normalizer, its definition)
EXAMPLES = {
    "softmax": (normalizers.Softmax(), softmax),
    "temperature": (normalizers.Softmax(temperature=0.5), lambda z: softmax(2 * z)),
    "soft cap": (normalizers.Softmax(soft_cap=2.0), lambda z: softmax(2 * np.tanh(z / 2))),
    "plus one": (normalizers.Softmax(plus_one=True), lambda z: np.exp(z) / (1 + np.exp(z).sum())),
    "all three": (normalizers.Softmax(2.0, 3.0, True), soft_capped_plus_one),
    "sparsemax": (normalizers.Sparsemax(), sparsemax),
    "entmax": (normalizers.Entmax(), entmax(1.5)),
    "entmax 1.2": (normalizers.Entmax(1.2), entmax(1.2)),
    "entmax 2": (normalizers.Entmax(2.0), sparsemax),
    "entmax 3": (normalizers.Entmax(3.0), entmax(3.0)),
    "sigmoid": (normalizers.Sigmoid(), sigmoid),
    "sigmoid, bias": (normalizers.Sigmoid(0.7), lambda z: sigmoid(z + 0.7)),
    "sigmoid, length": (
        normalizers.Sigmoid("-log_length"),
        lambda z: sigmoid(z - np.log(len(z))),
    ),
    "relu": (normalizers.ReLU(), lambda z: np.maximum(z, 0)),
    "relu, length": (normalizers.ReLU(True), lambda z: np.maximum(z, 0) / len(z)),
    "top 3": (normalizers.TopK(3), top(3)),
    "top 100": (normalizers.TopK(100), softmax),
    "softplus": (normalizers.Activation("softplus"), lambda z: np.log1p(np.exp(z))),
    "bent": (normalizers.Activation(bent), bent),
}
# Normalizers with rows that sum to one, whatever number is added to all scores.
SIMPLEX = ["softmax", "temperature", "sparsemax", "entmax", "entmax 1.2", "entmax 2", "entmax 3"]
SIMPLEX += ["top 3", "top 100"]


def scores(dtype="float32", scale=2.0, seed=0):
    random = np.random.default_rng(seed)
    return ops.cast(scale * random.normal(size=(B, N, T, S)), dtype)


def mask(shape=(B, 1, T, S)):
    """Return a mask, True = may attend, with one empty row."""
    allowed = np.random.default_rng(1).random(shape) < 0.6
    allowed[0, 0, 0] = False
    return allowed


def array(x):
    return np.asarray(ops.convert_to_numpy(ops.cast(x, "float32")), "float64")


def table(normalize, scores, allowed=True):
    """Apply `normalize` to the visible scores of each row. Other weights are zero."""
    scores = array(scores)
    allowed = np.broadcast_to(allowed, scores.shape)
    weights = np.zeros(scores.shape)
    for row in np.ndindex(scores.shape[:-1]):
        if allowed[row].any():
            weights[row][allowed[row]] = normalize(scores[row][allowed[row]])
    return weights


def gradient(function, x):
    """Compute the gradient of the scalar `function(x)`."""
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(x)
        value = function(x)
    return array(tape.gradient(value, x))


def slope(function, x, step=1e-6):
    """Compute the gradient of a NumPy function by central differences."""
    result = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        moved = np.zeros(x.shape)
        moved[index] = step
        result[index] = (function(x + moved) - function(x - moved)) / (2 * step)
    return result
