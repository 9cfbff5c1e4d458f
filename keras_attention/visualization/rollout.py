"""`rollout` and `relevance`: how much each input contributed, through all attention layers."""

import functools
import typing

import keras
import numpy as np
from keras import ops

from keras_attention.visualization.record import RecordEvery, record_attention

CROSS = "cross_attention"  # in the paths of a decoder's layers that attend to the source
HEADS = {"mean": np.mean, "max": np.max, "min": np.min}
STEPS = 5  # number of gradients that `relevance` averages


def rollout(maps, heads="mean"):
    """Follow attention through all layers, from each position of the output to the inputs.

    `heads` says how the weights of a layer's heads become one matrix A. The residual connection
    passes each position on unchanged, so the layer counts as A + I, with its rows divided by their
    sums: A' = (A + I) / 2 for the mean over heads. The result is the product A'_L ... A'_2 A'_1 of
    all layers (Abnar and Zuidema, 2020, https://arxiv.org/abs/2005.00928). It does not depend on
    the prediction: see `relevance`.

    In an encoder-decoder, `maps` holds all layers of both. In a cross-attention, A reads from the
    source and I from the target, so rows still sum to 1. A layer is a cross-attention if its path
    contains `cross_attention`, and a self-attention of the decoder if it lies in the same block as
    a cross-attention. All others belong to the encoder.

    Args:
        maps: dict of self-attention weights (B, N, T, T), as recorded by `record_attention`, or a
            list of them, from the first layer to the last. The last may be a pooling with Q queries
            of its own, (B, N, Q, T), which has no residual connection.
        heads: `"mean"`, `"max"` or `"min"`, how the weights of the heads become one.

    Returns:
        float64 array (B, T, T), (B, Q, T) after a pooling, or (B, T, S + T) for a target of length
        T and a source of length S. Row i holds the shares of all inputs in output i.

    Raises:
        ValueError: the maps do not belong to one model, or are not equally long.

    ```python
    import numpy as np
    import keras_attention as ka

    first = np.array([[[[0.0, 1.0], [0.0, 1.0]]]])  # both positions attend to position 1
    second = np.array([[[[0.5, 0.5], [1.0, 0.0]]]])
    shares = ka.visualization.rollout([first, second])
    np.testing.assert_allclose(shares[0], [[0.375, 0.625], [0.25, 0.75]])
    ```
    """
    if heads not in HEADS:
        raise ValueError(f"rollout(heads={heads!r}): expected one of {', '.join(HEADS)}.")
    layers = read_layers(maps, "rollout")
    shares = _start(layers)
    for _, weights, queries, keys, residual in layers:
        weights = HEADS[heads](weights, axis=1)
        total = weights.sum(axis=-1, keepdims=True) + residual
        shares[queries] = (weights @ shares[keys] + residual * shares[queries]) / total
    return shares[layers[-1].queries]


def relevance(model, inputs, target=None, layers=None):
    """Score how much each input raised one output of a model, through all attention layers.

    The scores R begin as the identity, and each layer adds A' R (Chefer et al., 2021,
    https://arxiv.org/abs/2103.15679, eq. 6). A' says which keys raise the output y. A key counts by
    how far y falls without it. Then the weights A of the other keys grow until the row has its old
    sum (as in Serrano and Smith, 2019, https://arxiv.org/abs/1906.03731). To first order, y falls
    by A_j (G_j - mean of G over the other keys, weighted by A), with G = ∂y/∂A. Unlike A_j G_j, it
    does not change if a constant is added to G: the weights of a row cannot all grow.

    A' is the mean over heads of the positive part. Its rows are then divided by their sums, as in
    eq. 8 and 9 of Chefer et al. So attention counts as much as the residual connection, whatever
    the scale of y. The gradient at the weights A themselves misleads where y is flat. So G is a
    mean over 5 points on the way from equal weights to A, in all layers at once (integrated
    gradients, Sundararajan et al., 2017, https://arxiv.org/abs/1703.01365, for attention weights in
    Hao et al., 2021, https://arxiv.org/abs/2004.11207). Unlike `rollout`, the result differs
    between the classes of a classifier.

    Args:
        model: a built `keras.Model` with attention layers of this package. It runs six times,
            without dropout. For encoder-decoders see `rollout`.
        inputs: the inputs of one call of the model, B examples.
        target: int, the index of the output in outputs (B, number of outputs). Or a function that
            returns a score (B,) from the outputs of the model, such as `lambda tags: tags[:, 3,
            7]`. None takes the largest output of each example. Use logits: probabilities near 1
            have small gradients.
        layers: list of the paths of the layers to follow, from the first to the last, as
            `record_attention` names them. None takes all. They must fit together as in `rollout`.

    Returns:
        float64 array of the shape of `rollout`. Row i holds the relevance of all inputs to position
        i of the last layer. If the model reads its output from a class token,
        look at row 0. If it takes the mean of all positions, take the mean of the rows.

    Raises:
        ValueError: the layers do not belong to one model, or are not equally long, or the target
            does not fit the outputs.

    ```python
    import numpy as np
    import keras_attention as ka

    size = dict(num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32)
    classifier = ka.models.text_classifier(50, 3, **size)
    scores = ka.visualization.relevance(classifier, np.array([[5, 7, 11, 2]]), target=1)
    assert scores.shape == (1, 4, 4) and np.all(scores >= np.eye(4))
    ```
    """
    with record_attention(model) as maps:
        unchanged = model(inputs, training=False)
    maps = maps if layers is None else {path: maps[path] for path in layers}
    layers = read_layers(maps, "relevance")

    def score(added, share):
        with _ChangeWeights(model, dict(zip(maps, added, strict=True)), share) as changing:
            value = _choose_score(model(inputs, training=False), target, unchanged)
        if changing.unused:
            raise ValueError(
                f"relevance cannot differentiate the weights of {', '.join(changing.unused)}: this"
                " kind of layer computes its output in another way. Choose other layers by layers=,"
                " or look at the weights by record_attention."
            )
        return value

    differentiate = _BY_BACKEND[keras.backend.backend()]
    zeros, total = [ops.zeros_like(each) for each in maps.values()], [0.0] * len(maps)
    for step in range(STEPS):
        gradients = differentiate(functools.partial(score, share=(step + 0.5) / STEPS), zeros)
        gradients = [ops.convert_to_numpy(each).astype("float64") for each in gradients]
        total = [each + gradient for each, gradient in zip(total, gradients, strict=True)]
    scores = _start(layers)
    for (_, weights, queries, keys, residual), gradient in zip(layers, total, strict=True):
        raising = np.mean(np.maximum(_fall_without(weights, gradient / STEPS), 0), axis=1)
        sums = raising.sum(axis=-1, keepdims=True)
        passed = raising / np.where(sums > 0, sums, 1) @ scores[keys]
        scores[queries] = passed + residual * scores[queries]
    return scores[layers[-1].queries]


def _fall_without(weights, gradient):
    """Return how far the output falls without each key (B, N, T, S), to first order.

    `weights` and `gradient` are float64 arrays (B, N, T, S). Without a key that has all the weight
    of its row, the row becomes 0, because no other key can take the weight.
    """
    raised = weights * gradient
    rest = weights.sum(axis=-1, keepdims=True) - weights
    only = rest < 1e-6  # weights are rounded to float32
    mean = (raised.sum(axis=-1, keepdims=True) - raised) / np.where(only, 1, rest)
    return raised - weights * np.where(only, 0, mean)


class _ChangeWeights(RecordEvery):
    """Changes the weights A of each layer before the layer uses them.

    Args:
        model: the model.
        added: dict, path of a layer -> tensor (B, N, T, S), added to the changed weights.
        share: float from 0 to 1, the share of A in the changed weights. The rest is equal weights
            for all keys whose weight is not 0.
    """

    def __init__(self, model, added, share):
        super().__init__(model)
        self.added, self.share, self.unused = added, share, list(added)

    def change_of(self, layer):
        path = self.next_key(layer) if id(layer) in self.layers else None
        if path not in self.added:
            return None
        self.unused.remove(path)
        return functools.partial(self.change, path)

    def change(self, path, weights):
        visible = ops.cast(weights > 0, weights.dtype)
        count = ops.maximum(ops.sum(visible, axis=-1, keepdims=True), 1)
        equal = visible * ops.sum(weights, axis=-1, keepdims=True) / count
        return self.share * weights + (1 - self.share) * equal + self.added[path]


class Layer(typing.NamedTuple):
    """The weights of a layer, and the sequences that it reads, for `rollout` and `relevance`.

    Attributes:
        path: str, the path of the layer in the model.
        weights: float64 array (B, N, T, S).
        queries, keys: 0 for the input sequence (the source in an encoder-decoder), and 1 for the
            target, or for the queries of a pooling.
        residual: 1 with a residual connection, and 0 for a pooling.
    """

    path: str
    weights: np.ndarray
    queries: int
    keys: int
    residual: int


def read_layers(maps, function):
    """Return recorded attention weights as a list of `Layer`, with checked shapes.

    Args:
        maps: dict of weights (B, N, T, S), or a list of them, the argument of `rollout`.
        function: str, the calling function, for the error message.
    """
    maps = maps if isinstance(maps, dict) else {f"map {i}": each for i, each in enumerate(maps)}
    maps = {str(path): ops.convert_to_numpy(each).astype("float64") for path, each in maps.items()}
    blocks = {path.rpartition("/")[0] for path in maps if CROSS in path}
    layers = []
    for path, weights in maps.items():
        queries = keys = int(path.rpartition("/")[0] in blocks)
        residual = 1
        if CROSS in path:
            keys = 0
        elif not blocks and len(layers) == len(maps) - 1 and len({*weights.shape[2:]}) == 2:
            queries, residual = 1, 0
        layers.append(Layer(path, weights, queries, keys, residual))
    if not layers or not _fit(layers):
        given = ", ".join(f"{each.path} {each.weights.shape}" for each in layers) or "no maps"
        raise ValueError(
            f"{function} got {given}: expected weights (B, N, T, T) of self-attention layers over"
            " one sequence, and at most a pooling (B, N, Q, T) after them, or the weights of an"
            f" encoder-decoder with {CROSS} in the paths. Choose the layers of one model."
        )
    return layers


def _fit(layers):
    """Return whether all layers have the same batch size and the same length of each sequence."""
    if any(each.weights.ndim != 4 for each in layers):
        return False
    lengths = {(each.queries, each.weights.shape[2]) for each in layers}
    lengths |= {(each.keys, each.weights.shape[3]) for each in layers}
    sequences = {sequence for sequence, _ in lengths}
    return len(lengths) == len(sequences) and len({len(each.weights) for each in layers}) == 1


def _start(layers):
    """Return what each sequence has of each input before the first layer, a list of arrays."""
    length = max(each.weights.shape[3] for each in layers if each.keys == 0)
    target = [each.weights.shape[2] for each in layers if each.queries == 1 and each.residual]
    inputs = np.eye(length + max(target, default=0))
    return [inputs[:length], inputs[length:] if target else 0.0]


def _choose_score(outputs, target, unchanged):
    """Return the sum over the examples of the output that `target` names.

    `outputs` are those of the model with changed attention weights. If `target` is None, it is the
    largest output in `unchanged`, the outputs of the model itself.
    """
    if callable(target):
        return ops.sum(target(outputs))
    shape = None if isinstance(outputs, (dict, list, tuple)) else tuple(outputs.shape)
    if shape is None or len(shape) != 2:
        given = sorted(outputs) if isinstance(outputs, dict) else type(outputs).__name__
        raise ValueError(
            f"relevance(target={target!r}): the outputs of the model are {shape or given}, expected"
            " (B, L). Pass a function that returns one score for each example, such as"
            " `lambda outputs: outputs[:, 3, 7]`."
        )
    if target is None:
        best = ops.argmax(unchanged, axis=-1)
        return ops.sum(outputs * ops.one_hot(best, shape[-1], dtype=outputs.dtype))
    if not 0 <= target < shape[-1]:
        raise ValueError(
            f"relevance(target={target}): the model has {shape[-1]} outputs. Expected an index from"
            f" 0 to {shape[-1] - 1}."
        )
    return ops.sum(outputs[:, target])


def _differentiate_in_tensorflow(compute, tensors):
    import tensorflow as tf

    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(tensors)
        value = compute(tensors)
    return tape.gradient(value, tensors, unconnected_gradients="zero")


def _differentiate_in_jax(compute, tensors):
    import jax

    return jax.grad(compute)(tensors)


def _differentiate_in_torch(compute, tensors):
    import torch

    tensors = [tensor.detach().requires_grad_() for tensor in tensors]
    with torch.enable_grad():
        value = compute(tensors)
    return torch.autograd.grad(value, tensors, materialize_grads=True)


_BY_BACKEND = {
    "tensorflow": _differentiate_in_tensorflow,
    "jax": _differentiate_in_jax,
    "torch": _differentiate_in_torch,
}
