"""`record_attention`: the attention weights of a model while it runs."""

import contextlib

from keras import ops

from keras_attention.core import keras_internals, scope
from keras_attention.core.paths import paths_in


class Maps(dict):
    """{layer path: weights (B, N, T, S)}. The error for a missing path lists those recorded."""

    def __missing__(self, path):
        raise KeyError(
            f"No attention was recorded under {path!r}. Recorded: {', '.join(self) or 'nothing'}. "
            "Weights are recorded while the model itself is called, `model(x)`; `predict`, "
            "`fit` and functions compiled with tf.function run traced code and record nothing."
        )


@contextlib.contextmanager
def record_attention(model):
    """Yield a dict that fills with the attention weights of `model` whenever it is called.

    This works for every functional or sequential model of this package's attention layers, without
    changing it. The weights are those of `return_attention_scores=True`: after the normalizer,
    before dropout, in the layer's compute dtype.

    Call the model itself, `model(x)`: `predict`, `fit`, `evaluate` and calls inside a `tf.function`
    run a traced graph, whose tensors have no values, and record nothing. `generation.generate`
    records the weights of every token at its end, (B, N, limit, S), like its `return_attention`.

    Args:
        model: a built `keras.Model` (or layer). Attention layers outside it are not recorded.

    Yields:
        dict, {layer path: weights (B, N, T, S)}, in the order in which the layers ran. A layer that
        runs again (shared in the model, or the model called twice) adds `path:1`, `path:2`, ...

    Masking: positions that may not be attended to have weight 0.

    ```python
    import keras
    import keras_attention as ka

    tokens = keras.Input((None, 8))
    attention = ka.attention.MultiHeadAttention(num_heads=2, key_dim=4, name="look")
    model = keras.Model(tokens, attention(tokens, tokens))

    with ka.visualization.record_attention(model) as maps:
        model(keras.random.normal((1, 5, 8)))

    assert list(maps) == ["look"]
    assert maps["look"].shape == (1, 2, 5, 5)
    ```
    """
    with _Values(model) as recording:
        recording.maps = Maps()
        yield recording.maps


class RecordEvery(scope.Recording):
    """Records the layers of one model, under paths that stay the same when it is saved."""

    def __init__(self, model):
        super().__init__(keras_internals.all_layers(model))
        self.paths = paths_in(model)

    def path_of(self, layer):
        return self.paths[id(layer)]


class _Values(RecordEvery):
    """Records weights that have values."""

    def record(self, layer, weights):
        if id(layer) in self.layers and _has_values(weights):
            super().record(layer, weights)


def _has_values(weights):
    """Return False for the symbolic tensors of a graph that is being traced."""
    try:
        float(ops.sum(weights))
    except TypeError:  # what every backend raises for a symbolic tensor
        return False
    return True
