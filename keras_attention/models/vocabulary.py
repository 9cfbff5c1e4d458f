"""`extend_vocabulary`: a model with more tokens than it was trained on, for fine-tuning."""

import keras
import numpy as np
from keras import ops

from keras_attention.blocks import TokenEmbedding
from keras_attention.core import keras_internals, sharing


def extend_vocabulary(model, spellings):
    """A copy of a model of tokens that knows more of them: what it computed it computes still.

    A new token begins as the mean of the tokens that spell it so far: its row in the embeddings,
    and in a matrix of logits its column. So a model goes on from what it learnt where words of new
    texts, which it had to spell, become tokens.

    Args:
        model: functional `keras.Model` of `ka.models`, whose input and output tokens, if it has
            both, share one vocabulary, as those of `seq2seq_transformer` or
            `causal_language_model` do.
        spellings: list of lists of int, for each new token the ids of known ones; such as
            `ka.data.Subwords.spell` gives.

    Returns:
        A functional `keras.Model`, not compiled. Logits of known tokens are those of `model`; new
        ones follow.

    Raises:
        ValueError: `model` embeds no tokens, or those of several vocabularies; or a spelling names
            an id that it does not know, or none.

    Example:

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
    """The number of tokens of a model, by its embeddings."""
    layers = keras_internals.all_layers(model) if isinstance(model, keras.Model) else []
    sizes = {layer.vocabulary_size for layer in layers if isinstance(layer, TokenEmbedding)}
    if len(sizes) != 1:
        found = ", ".join(map(str, sorted(sizes))) or "none"
        raise ValueError(
            f"extend_vocabulary: {getattr(model, 'name', model)!r} has token embeddings of sizes "
            f"{found}: expected one vocabulary. Build a model of ka.models for one."
        )
    return sizes.pop()


def _enlarge(config, old, new):
    """`config` with `new` for `old` tokens in all embeddings, at any depth, and in the logits."""
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
    """The values of a weight, and behind those of each old token the means of the new ones."""
    changed = [k for k, size in enumerate(shape) if weight.shape[k] != size]
    if not changed:
        return weight
    (axis,) = changed
    values = ops.convert_to_numpy(weight)
    means = [values.take(ids, axis).mean(axis, keepdims=True) for ids in spellings]
    return np.concatenate([values, *means], axis)
