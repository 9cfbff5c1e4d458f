"""The stack of encoder blocks that the builders share, and how parts are spread over it."""

import keras

from keras_attention import positions
from keras_attention.attention import MultiHeadAttention
from keras_attention.blocks import EncoderBlock, FeedForward
from keras_attention.blocks.encoder import NORMALIZATIONS


def encoder_stack(
    x,
    *,
    num_layers,
    num_heads,
    intermediate_dim,
    dropout=0.0,
    attention_dropout=0.0,
    stochastic_depth=0.0,
    layer_scale=None,
    norm="pre",
    normalization="layer_norm",
    activation="gelu",
    position=None,
    score="scaled_dot",
    normalizer="softmax",
    mask=None,
    epsilon=1e-6,
):
    """`num_layers` encoder blocks over (B, T, D), and the norm that ends a pre-norm stack.

    Blocks share no weights: each gets parts of its own. Stochastic depth grows linearly from the
    first block to the last (Huang et al., 2016).
    """
    key_dim = divide_exactly("hidden_dim", x.shape[-1], "num_heads", num_heads)
    for i in range(num_layers):
        x = EncoderBlock(
            attention=MultiHeadAttention(
                num_heads,
                key_dim,
                dropout=attention_dropout,
                score=own(score),
                normalizer=own(normalizer),
                mask=mask,
                position=own(positions.for_role(positions.get(position), "rotate", "bias")),
                name="attention",
            ),
            feed_forward=FeedForward(
                intermediate_dim, activation=activation, dropout=dropout, name="feed_forward"
            ),
            norm=norm,
            normalization=normalization,
            dropout=dropout,
            stochastic_depth=stochastic_depth * i / max(num_layers - 1, 1),
            layer_scale=layer_scale,
            epsilon=epsilon,
            name=f"block_{i}",
        )(x)
    if norm == "post":
        return x
    return NORMALIZATIONS[normalization](epsilon=epsilon, name="final_norm")(x)


def own(part):
    """A copy of a part that has weights, so that blocks do not share them; others as they are."""
    if isinstance(part, keras.layers.Layer):
        return part.__class__.from_config(part.get_config())
    return part


def divide_exactly(name, size, by_name, by):
    if size % by:
        divisors = ", ".join(str(d) for d in range(1, size + 1) if size % d == 0 and d <= 64)
        raise ValueError(f"{by_name}={by} does not divide {name}={size}. Choose one of {divisors}.")
    return size // by
