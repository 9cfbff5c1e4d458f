"""Last layers: logits of tokens, and `replace_head`, for another number of classes."""

import keras

from keras_attention.blocks.feed_forward import get_activation
from keras_attention.blocks.normalization import NORMALIZATIONS
from keras_attention.core import keras_internals
from keras_attention.core.checks import check_whole_number
from keras_attention.core.weight_axes import name_axes


def replace_head(model, num_classes):
    """A model with a new last layer of `num_classes` outputs; the others are those of `model`.

    For other labels than those a model was trained on: `sequence_labeler`, `text_classifier`,
    `vision_transformer`, or a functional model of your own, just built or loaded from a file. The
    new layer is a `Dense` with the settings of the old one, its initializers, activation and name
    included, and with new weights.

    The other layers are shared, not copied: to train one model trains the other. Where both are
    wanted, load the file a second time. The new model is not compiled.

    Args:
        model: functional `keras.Model` with one output, which a `keras.layers.Dense` gives.
        num_classes: int, the outputs of the new layer: classes, or labels of a token.

    Returns:
        A functional `keras.Model` with the inputs and the name of `model`.

    Raises:
        ValueError: `model` has no such output; a language model whose logits are inner products
            with the tokens' embeddings has none, for example.

    Example:

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
    """The `Dense` that gives the output of a functional model, and its symbolic input."""
    if not keras_internals.is_functional(model):
        raise ValueError(
            f"replace_head: {model!r} is no functional model, which knows the layer that gives its "
            "output. Build it with keras.Model(inputs, outputs)."
        )
    if len(model.outputs) != 1:
        raise ValueError(
            f"replace_head: {model.name} has {len(model.outputs)} outputs: expected one. Make a "
            "model of one of them first: keras.Model(model.input, model.outputs[0])."
        )
    head = keras_internals.producer(model.outputs[0])
    if not isinstance(head, keras.layers.Dense):
        raise ValueError(
            f"replace_head: the output of {model.name} is given by {head.name}, of class "
            f"{type(head).__name__}: expected a keras.layers.Dense, whose units are the classes. "
            "Give the model such a layer as its last: "
            "keras.Model(model.input, keras.layers.Dense(num_classes)(...))."
        )
    (features,) = keras_internals.inputs_of(model.outputs[0])
    return head, features


def _make_head(head, num_classes):
    """A new `Dense` like `head`, in the type of its computation where it was quantized."""
    config = head.get_config()
    for name in ("lora_rank", "lora_alpha", "quantization_config"):
        config.pop(name, None)
    if head.quantization_mode is not None:
        config["dtype"] = head.compute_dtype
    return type(head).from_config({**config, "units": num_classes})


def make_transform(
    units, activation="gelu", *, normalization="layer_norm", epsilon=1e-6, use_bias=True
):
    """Make the transform before logits: a dense layer and a norm (Devlin et al., 2019).

    Args:
        units: int, of the dense layer.
        activation: a Keras activation, its name or that of a gate.
        normalization: `"layer_norm"`, `"layer_norm_no_bias"` or `"rms_norm"`.
        epsilon: float, of the norm. use_bias: bool, of the dense layer.

    Returns a list of two layers.
    """
    activation = get_activation(activation)
    dense = keras.layers.Dense(units, activation=activation, use_bias=use_bias, name="transform")
    norm = NORMALIZATIONS[normalization](epsilon=epsilon, name="transform_norm")
    return [name_axes(dense, kernel=("embed", "embed")), norm]


def token_logits(x, embedding, tied):
    """(B, T, D) to logits (B, T, vocabulary_size), float32 whatever the policy.

    Args:
        embedding: a `TokenEmbedding`.
        tied: bool, whether they are inner products with its table, or have a matrix of their own.
    """
    if tied:
        return name_logits(embedding(x, reverse=True))
    if embedding.logit_soft_cap is not None:
        raise ValueError(
            f"logit_soft_cap={embedding.logit_soft_cap} with tie_embeddings=False: it is of logits "
            "that are inner products with the tokens' embeddings. Leave one of them out."
        )
    size = embedding.vocabulary_size
    return keras.layers.Dense(size, use_bias=False, dtype="float32", name="logits")(x)


def name_logits(logits):
    """The tensor as an output that is called `logits`, in exported files as well."""
    return keras.layers.Identity(dtype="float32", name="logits")(logits)
