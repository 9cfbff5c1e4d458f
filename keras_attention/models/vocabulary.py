"""`extend_vocabulary`: adds tokens to the vocabulary of a trained model, to fine-tune it."""

import keras
import numpy as np
from keras import ops

from keras_attention.blocks import TokenEmbedding
from keras_attention.core import keras_internals, sharing


def extend_vocabulary(model, spellings):
    """Return a copy of a model with new tokens, such as frequent words of a new domain.

    The embedding of a new token starts as the mean of the embeddings of the old tokens that spell
    it. If the model has a separate matrix for logits, its new columns also start as means. The
    logits of old tokens do not change.

    Args:
        model: functional `keras.Model` of `ka.models`. All its tokens must share one vocabulary, as
            in `causal_language_model`, or `seq2seq_transformer` with a shared vocabulary.
        spellings: list of lists of ints, the old ids that spell each new token, as returned by
            `ka.data.Subwords.spell`.

    Returns:
        A functional `keras.Model`, not compiled. The ids of new tokens start at the old vocabulary
        size.

    Raises:
        ValueError: `model` does not have exactly one vocabulary size, or a spelling is empty or
            contains an id outside the old vocabulary.

    ```python
    import numpy as np
    import keras_attention as ka

    size = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    model = ka.models.causal_language_model(100, **size)
    larger = ka.models.extend_vocabulary(model, [[5, 7], [9]])
    ids = np.array([[4, 5, 7]])
    assert larger(ids).shape == (1, 3, 102)
    assert np.allclose(larger(ids)[..., :100], model(ids), atol=1e-5)
    ```
    """
    size = _find_size(model)
    for k, ids in enumerate(spellings):
        if not len(ids) or min(ids) < 0 or max(ids) >= size:
            raise ValueError(
                f"extend_vocabulary: spellings[{k}] is {list(ids)}: expected at least one id, each "
                f"from 0 to {size - 1}."
            )
    spellings = [np.asarray(ids, "int32") for ids in spellings]

    def copy_weights(model, copy):
        for weight, longer in zip(model.weights, copy.weights, strict=True):
            longer.assign(_append_means(weight, longer.shape, spellings))

    return sharing.copy_model(
        model, lambda config: _enlarge(config, size, size + len(spellings)), copy_weights
    )


def _find_size(model):
    """Return the vocabulary size that all token embeddings of a model share, or raise an error."""
    layers = keras_internals.all_layers(model) if isinstance(model, keras.Model) else []
    sizes = {layer.vocabulary_size for layer in layers if isinstance(layer, TokenEmbedding)}
    if len(sizes) != 1:
        listed = ", ".join(map(str, sorted(sizes))) or "none"
        name = model.name if isinstance(model, keras.Model) else model
        raise ValueError(
            f"extend_vocabulary: {name!r} has token embeddings of sizes {listed}: expected one "
            "vocabulary. Pass a model of ka.models whose embeddings share one vocabulary."
        )
    return sizes.pop()


def _enlarge(config, old, new):
    """Return the config of a model or layer with vocabulary size `new` instead of `old`.

    Only the configs of `TokenEmbedding` layers and of the `Dense` layer called "logits" change, at
    any depth.
    """
    if isinstance(config, (list, tuple)):
        return type(config)(_enlarge(value, old, new) for value in config)
    if not isinstance(config, dict):
        return config
    config = {key: _enlarge(value, old, new) for key, value in config.items()}
    kind, inner = config.get("class_name"), config.get("config")
    if kind == "TokenEmbedding":
        table = inner["table"]
        table = {**table, "config": {**table["config"], "input_dim": new}}
        config["config"] = {**inner, "vocabulary_size": new, "table": table}
    elif kind == "Dense" and (inner["name"], inner["units"]) == ("logits", old):
        config["config"] = {**inner, "units": new}
    return config


def _append_means(weight, shape, spellings):
    """Return the values of a weight for the model with new tokens, as an array of this `shape`.

    If an axis of `shape` is longer than that of the weight, a mean of old values is appended on
    this axis for each new token. Otherwise the weight is returned unchanged.

    Args:
        weight: the weight of the old model.
        shape: tuple, the shape of the weight in the new model.
        spellings: list of int32 arrays, the old ids whose mean each new token gets.
    """
    changed = [k for k, size in enumerate(shape) if weight.shape[k] != size]
    if not changed:
        return weight
    (axis,) = changed
    values = ops.convert_to_numpy(weight)
    means = [values.take(ids, axis).mean(axis, keepdims=True) for ids in spellings]
    return np.concatenate([values, *means], axis)
