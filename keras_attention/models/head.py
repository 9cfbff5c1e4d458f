"""The last layers of models: token logits, and `replace_head` to change the number of classes."""

import keras

from keras_attention.blocks.activations import get_activation
from keras_attention.blocks.normalization import NORMALIZATIONS
from keras_attention.core import keras_internals
from keras_attention.core.checks import check_whole_number
from keras_attention.core.weight_axes import name_axes


def replace_head(model, num_classes):
    """Return a copy of a model whose last layer is a new one with `num_classes` outputs.

    Use it to fine-tune a `sequence_labeler`, `text_classifier`, `vision_transformer` or your own
    functional model on other labels. The new `Dense` layer has the settings and the name of the
    old layer, but new weights. The two models share all other layers, so training one changes both.
    To keep the old model, load its file twice.

    Args:
        model: functional `keras.Model` with one output, which a `keras.layers.Dense` computes.
        num_classes: int, number of outputs of the new layer.

    Returns:
        A functional `keras.Model` with the inputs and the name of `model`, not compiled.

    Raises:
        ValueError: the last layer of `model` is not a `Dense` layer, as in a language model with
            tied embeddings, or there are several outputs.

    ```python
    import numpy as np
    import keras_attention as ka

    size = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    tagger = ka.models.sequence_labeler(1000, 17, **size)  # parts of speech
    entities = ka.models.replace_head(tagger, 13)
    assert entities(np.array([[5, 7, 9]])).shape == (1, 3, 13)
    assert entities.get_layer("embedding") is tagger.get_layer("embedding")
    ```
    """
    num_classes = check_whole_number("replace_head", "num_classes", num_classes)
    head, features = _find_head(model)
    outputs = [_make_head(head, num_classes)(features)]
    outputs = keras.tree.pack_sequence_as(model.output, outputs)
    return keras.Model(model.input, outputs, name=model.name)


def _find_head(model):
    """Return the last layer of a model, which must be a `Dense`, and its symbolic input."""
    if not keras_internals.is_functional(model):
        raise ValueError(
            f"replace_head got {model!r}: expected a functional model. Build it with "
            "keras.Model(inputs, outputs)."
        )
    if len(model.outputs) != 1:
        raise ValueError(
            f"replace_head: {model.name} has {len(model.outputs)} outputs: expected one. First "
            "make a model with one output: keras.Model(model.input, model.outputs[0])."
        )
    head = keras_internals.producer(model.outputs[0])
    if not isinstance(head, keras.layers.Dense):
        raise ValueError(
            f"replace_head: the last layer of {model.name} is {head.name}, of class "
            f"{type(head).__name__}: expected a keras.layers.Dense. Add such a layer: "
            "keras.Model(model.input, keras.layers.Dense(num_classes)(...))."
        )
    (features,) = keras_internals.inputs_of(model.outputs[0])
    return head, features


def _make_head(head, num_classes):
    """Return a new layer with the settings of `head`, but not quantized and without LoRA."""
    config = head.get_config()
    for name in ("lora_rank", "lora_alpha", "quantization_config"):
        config.pop(name, None)
    if head.quantization_mode is not None:
        config["dtype"] = head.compute_dtype
    return type(head).from_config({**config, "units": num_classes})


def make_transform(
    units, activation="gelu", *, normalization="layer_norm", epsilon=1e-6, use_bias=True
):
    """Make a dense layer and a norm, which precede the logits of BERT (Devlin et al., 2019).

    Args:
        units: int, number of outputs of the dense layer.
        activation: a Keras activation, its name, or the name of a gated activation.
        normalization: `"layer_norm"`, `"layer_norm_no_bias"` or `"rms_norm"`.
        epsilon: float, the epsilon of the norm.
        use_bias: bool, whether the dense layer has a bias.

    Returns a list of two layers, a dense layer and a norm.
    """
    activation = get_activation(activation)
    dense = keras.layers.Dense(units, activation=activation, use_bias=use_bias, name="transform")
    norm = NORMALIZATIONS[normalization](epsilon=epsilon, name="transform_norm")
    return [name_axes(dense, kernel=("embed", "embed")), norm]


def token_logits(x, embedding, tied):
    """Compute float32 logits (B, T, vocabulary_size) from x (B, T, D).

    Args:
        x: symbolic tensor.
        embedding: the `TokenEmbedding` layer of the model.
        tied: bool, whether the logits are inner products of x with the rows of the embedding table.
            False adds a `Dense` layer.
    """
    if tied:
        return name_logits(embedding(x, reverse=True))
    if embedding.logit_soft_cap is not None:
        raise ValueError(
            f"logit_soft_cap={embedding.logit_soft_cap} with tie_embeddings=False has no effect. "
            "Leave out logit_soft_cap, or set tie_embeddings=True."
        )
    size = embedding.vocabulary_size
    return keras.layers.Dense(size, use_bias=False, dtype="float32", name="logits")(x)


def name_logits(logits):
    """Return the same tensor under the name `logits`, which exported files also show."""
    return keras.layers.Identity(dtype="float32", name="logits")(logits)
