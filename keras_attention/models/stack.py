"""The stacks of blocks that the builders share, and how parts are spread over them."""

import keras

from keras_attention import checks, positions
from keras_attention.attention import MultiHeadAttention
from keras_attention.blocks import DecoderBlock, DeepNorm, EncoderBlock, FeedForward, residuals
from keras_attention.blocks.encoder import NORMALIZATIONS


def encoder_stack(x, **settings):
    """`num_layers` encoder layers over (B, T, D), and what ends a stack of this `norm`.

    There are as many blocks as layers, or `num_blocks` of them, each with parts and weights of its
    own: layer i then runs block `i * num_blocks // num_layers`, so that layers in a row share
    weights (Lan et al., 2020, *ALBERT*, section 3.1, with one block; its groups with more). A
    block that runs again records its attention under `block_0/attention:1`, `:2`, ... Stochastic
    depth grows linearly from the first block to the last (Huang et al., 2016).

    The settings are the keywords of `_stack`.
    """
    return _stack(x, **settings)


def decoder_stack(x, encoded, **settings):
    """`num_layers` decoder layers over (B, T, D), each looking at `encoded` (B, S, E) as well.

    The settings are those of `encoder_stack`; mask and position are of the self-attention, and
    `cross_position` is of the cross-attention.
    """
    return _stack(x, encoded, **settings)


def _stack(
    x,
    encoded=None,
    *,
    num_layers,
    num_heads,
    intermediate_dim,
    key_dim=None,
    num_key_value_heads=None,
    num_blocks=None,
    dropout=0.0,
    attention_dropout=0.0,
    stochastic_depth=0.0,
    layer_scale=None,
    norm="pre",
    normalization="layer_norm",
    activation="gelu",
    use_bias=True,
    position=None,
    shared_position=False,
    cross_position=None,
    score="scaled_dot",
    normalizer="softmax",
    mask=None,
    epsilon=1e-6,
    name="block",
):
    key_dim = key_dim or divide_exactly("hidden_dim", x.shape[-1], "num_heads", num_heads)
    num_blocks = _checked(num_blocks, num_layers)
    norm = _residual(norm, num_layers, num_branches=2 if encoded is None else 3)
    position = positions.for_role(positions.get(position), "rotate", "bias")

    def attention(**own_parts):
        return MultiHeadAttention(
            num_heads,
            key_dim,
            num_key_value_heads=num_key_value_heads,
            dropout=attention_dropout,
            use_bias=use_bias,
            score=own(score),
            normalizer=own(normalizer),
            **own_parts,
        )

    def layers():
        inside = position if shared_position else own(position)
        made = {"attention": attention(mask=mask, position=inside, name="attention")}
        if encoded is not None:
            of_source = own(positions.get(cross_position))
            made["cross_attention"] = attention(position=of_source, name="cross_attention")
        made["feed_forward"] = FeedForward(
            intermediate_dim,
            activation=activation,
            dropout=dropout,
            use_bias=use_bias,
            name="feed_forward",
        )
        return made

    blocks = [
        (EncoderBlock if encoded is None else DecoderBlock)(
            **layers(),
            norm=norm,
            normalization=normalization,
            dropout=dropout,
            stochastic_depth=stochastic_depth * i / max(num_blocks - 1, 1),
            layer_scale=layer_scale,
            epsilon=epsilon,
            name=f"{name}_{i}",
        )
        for i in range(num_blocks)
    ]
    source = [] if encoded is None else [encoded]
    for i in range(num_layers):
        x = blocks[i * num_blocks // num_layers](x, *source)
    make = NORMALIZATIONS[normalization]
    return norm.end(x, lambda place: make(epsilon=epsilon, name=f"final_{place}"))


def _residual(norm, num_layers, num_branches):
    """The residual called `norm`, which for one of them depends on the depth of the stack."""
    if norm == "deep_norm":
        return DeepNorm(num_layers, num_branches)
    return residuals.get(norm)


def _checked(num_blocks, num_layers):
    if num_blocks is None:
        return num_layers
    if checks.whole_number("encoder_stack", "num_blocks", num_blocks) > num_layers:
        raise ValueError(
            f"num_blocks={num_blocks} is more than num_layers={num_layers}: every block runs in "
            "one layer or more. Choose at most as many."
        )
    return num_blocks


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


def positioned(position, max_length):
    """The position that a builder is given; by the name "learned", a table of `max_length`."""
    if position != "learned":
        return positions.get(position)
    if max_length is None:
        raise ValueError(
            "position='learned' needs max_length=, the number of positions that are learned. Give "
            "it, or use a position that has no end, such as 'sinusoidal' or 'rotary'."
        )
    return positions.Learned(max_length)
