"""`record_attention`: records the attention weights of a model while it runs."""

import contextlib

from keras import ops

from keras_attention.core import keras_internals, scope
from keras_attention.core.paths import paths_in


class Maps(dict):
    """A dict {layer path: weights (B, N, T, S)}. For a missing path the error lists all paths."""

    def __missing__(self, path):
        raise KeyError(
            f"No attention was recorded under {path!r}. Recorded: {', '.join(self) or 'nothing'}. "
            "Call the model itself, `model(x)`. `predict`, `fit` and functions compiled with "
            "tf.function record nothing."
        )


@contextlib.contextmanager
def record_attention(model):
    """Context manager that records the attention weights of each call of a model in a dict.

    This works for any model with attention layers of this package, and does not change the model.
    The weights are the same as with `return_attention_scores=True`: after the normalizer, before
    dropout, in the layer's compute dtype. If a query may not attend to a key, the weight is 0.

    Call the model itself, `model(x)`. `predict`, `fit`, `evaluate` and calls inside a `tf.function`
    run a traced graph without values, so they record nothing. `generation.generate` records the
    weights of all new tokens when it ends, (B, N, limit, S), as with `return_attention=True`.

    Args:
        model: a built `keras.Model` or layer. Only attention layers inside it are recorded.

    Yields:
        A dict {layer path: weights (B, N, T, S)}, in the order of the calls. If a layer runs again,
        because it is shared or because the model is called twice, it adds `path:1`, `path:2`, ...

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
    """Records the attention weights of one model, by layer paths that a saved model has too."""

    def __init__(self, model):
        super().__init__(keras_internals.all_layers(model))
        self.paths = paths_in(model)

    def path_of(self, layer):
        return self.paths[id(layer)]


class _Values(RecordEvery):
    """Records only weights that have values, not symbolic tensors."""

    def record(self, layer, weights):
        if id(layer) in self.layers and _has_values(weights):
            super().record(layer, weights)


def _has_values(weights):
    """Return whether `weights` have values, and are not symbolic tensors of a traced graph."""
    try:
        float(ops.sum(weights))
    except TypeError:  # every backend raises it for a symbolic tensor
        return False
    return True
