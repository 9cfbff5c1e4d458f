"""Text encoders without a head: a vector for each token, or one for each text."""

import keras

from keras_attention.blocks import FirstOf, Pooling, PrefixTokens, TokenDropout
from keras_attention.blocks.feed_forward import get_activation
from keras_attention.models.embeddings import embed_tokens
from keras_attention.models.head import transform_hidden
from keras_attention.models.keywords import takes_keywords_of
from keras_attention.models.stack_keywords import TextKeywords


def _mini_lm(num_layers):
    """Wang et al. (2020), table 1, as sentence encoders (Reimers and Gurevych, 2019)."""
    return dict(
        num_layers=num_layers,
        num_heads=12,
        hidden_dim=384,
        intermediate_dim=1536,
        position="learned",
        max_length=512,
        num_segments=2,
        normalize_embeddings=True,
        norm="post",
        epsilon=1e-12,
        pooling="mean",
    )


SIZES = {"MiniLM-L6": _mini_lm(6), "MiniLM-L12": _mini_lm(12)}


def _put_class_token(x):
    return PrefixTokens(1, name="class_token")(x)


@takes_keywords_of(
    TextKeywords,
    without=["causal"],
    block="encoder",
    num_layers=6,
    num_heads=6,
    hidden_dim=384,
    intermediate_dim=1536,
    dropout=0.1,
    position="rotary",
)
def encode_text(
    vocabulary_size,
    *,
    pooling=None,
    end_token_id=None,
    pooler_activation=None,
    transform_activation=None,
    transform_bias=True,
    num_segments=None,
    embedding_dim=None,
    normalize_embeddings=False,
    scale_embeddings=False,
    token_dropout=0.0,
    packed=False,
    padding_id=0,
    unknown_id=1,
    embed=None,
    **encoder,
):
    """The inputs of a `text_encoder`, a tensor or a dict, and its symbolic output.

    Args: as there, and `embed` of `embed_tokens`.
    """
    if pooling is None and pooler_activation is not None:
        raise ValueError(
            f"pooler_activation={pooler_activation!r} follows a pooling: give pooling=, such as "
            "'first', or leave it out."
        )
    if (pooling == "end") != (end_token_id is not None):
        raise ValueError(
            f"pooling={pooling!r} and end_token_id={end_token_id!r}: the id is for pooling='end', "
            "which needs it."
        )
    if packed and pooling is not None:
        raise ValueError(
            f"pooling={pooling!r} makes one vector of a row, and packed=True has several documents "
            "in it: leave one of them out."
        )
    if pooling == "cls" and num_segments is not None:
        raise ValueError(
            "pooling='cls' puts a token of no segment in front, and num_segments= gives each a "
            "segment: begin texts with a token of your own, and read it with pooling='first'."
        )
    encoder = TextKeywords(**encoder)
    if packed and encoder.block != "encoder":
        how = "by recurrence" if encoder.block in ("lstm", "gru") else "by a convolution"
        raise ValueError(
            f"block={encoder.block!r} joins neighbouring tokens {how}, and packed=True puts those "
            "of other documents beside them: leave one of them out."
        )
    dropped = None
    if token_dropout:
        dropped = TokenDropout(
            token_dropout, unknown_id, padding_id=padding_id, name="token_dropout"
        )
    x, inputs, _, documents = embed_tokens(
        encoder,
        vocabulary_size,
        before_tokens=dropped,
        embed=embed,
        after_tokens=_put_class_token if pooling == "cls" else None,
        num_segments=num_segments,
        embedding_dim=embedding_dim,
        normalize_embeddings=normalize_embeddings,
        scale=scale_embeddings,
        packed=packed,
        padding_id=padding_id,
    )
    x = encoder(x, **documents)
    if pooling == "end":
        ids = inputs["token_ids"] if isinstance(inputs, dict) else inputs
        x = FirstOf(end_token_id, name="pooling")(x, ids)
    elif pooling == "map":
        x = encoder.make_pooling("pooling")(x)
    elif pooling is not None:
        x = Pooling("cls" if pooling == "first" else pooling, name="pooling")(x)
    if pooler_activation is not None:
        activation = get_activation(pooler_activation)
        x = keras.layers.Dense(encoder.hidden_dim, activation=activation, name="pooler")(x)
    if transform_activation is not None:
        x = transform_hidden(x, encoder, transform_activation, use_bias=transform_bias)
    return inputs, x


@takes_keywords_of(encode_text, without=["embed"])
def text_encoder(
    vocabulary_size,
    *,
    pooling=None,
    projection_dim=None,
    projection_bias=False,
    unit_length=False,
    name="text_encoder",
    **encoder,
):
    """Transformer encoder of texts (Vaswani et al., 2017, figure 1, left; Devlin et al., 2019).

    What `text_classifier` and others put a head on; alone it gives vectors, for search or for a
    head of your own.

    Args:
        vocabulary_size: int, number of token ids.
        pooling: None for a vector of each token; or how one is made of them: `"mean"`, `"max"` or
            `"attention"` over the tokens; `"map"` by an `AttentionPooling` with heads and a
            feed-forward network as in the blocks (Zhai et al., 2022); `"first"` or `"last"`, the
            token of that place, where `"last"` skips padding; `"end"`,
            the first `end_token_id` (Radford et al., 2021, *CLIP*); `"cls"` puts a class token in
            front, place 0 of every mask and position in attention, and reads it.
        end_token_id: int, of `pooling="end"`.
        projection_dim: int, the size of the vector of a text, by a linear layer; or None.
        projection_bias: bool, whether that layer has a bias (Zhai et al., 2023, *SigLIP*).
        pooler_activation: an activation: a dense layer with it follows the pooling, such as
            `"tanh"` (Devlin et al., 2019, the released models); None for no such layer.
        transform_activation: an activation: a dense layer with it and a norm follow, the transform
            that precedes the logits of a `masked_language_model` (Warner et al., 2024,
            *ModernBERT*, keeps it before labels); None for no such layers.
        transform_bias: bool, whether that dense layer has a bias.
        unit_length: bool, whether the vector of a text gets the length 1, so that inner products
            are cosines (Reimers and Gurevych, 2019).
        num_segments: int, kinds of segments, such as 2 for pairs of sentences, or None for none.
        embedding_dim: int, the width of the embeddings, where it is not that of the stack (Lan et
            al., 2020, *ALBERT*, section 3.1): a projection follows; or None.
        normalize_embeddings: bool, whether a norm follows the embeddings (Devlin et al., 2019).
        scale_embeddings: bool, whether tokens are multiplied by √hidden_dim (Vaswani et al., 2017,
            section 3.4): without it they start small beside `"sinusoidal"` positions, and a small
            model learns little of them.
        token_dropout: float, the share of tokens that become unknown in training.
        packed: bool, whether rows hold several documents each: a second input tells them apart, so
            that tokens see their own document alone and count from its first token.
        padding_id: int, the id that is no token and is masked inside; None where every id is one.
        unknown_id: int, the id of unknown words, for `token_dropout`.
        name: str.
        encoder: `block`, `"encoder"` or `"conformer"`, a convolution of neighbouring tokens in
            each block, with its `kernel_size` (31) and `convolution_norm` (`"batch_norm"`), or
            `"lstm"` or `"gru"`, recurrent layers that read both ways in the place of blocks that
            attend (Ma and Hovy, 2016), `hidden_dim / 2` units each way; and
            keywords of `TransformerEncoder`, which documents them: sizes, `dropout` (here of
            embeddings too), norms, and the parts `score`, `normalizer`, `mask` and `position`.
            Published sizes: `ka.models.sizes("text_encoder")`.

    Returns:
        A functional `keras.Model`. Input `"token_ids"` int32 (B, T); with `num_segments` a dict
        with `"segment_ids"` int32 (B, T) too, from 0, and packed one with `"document_ids"` int32
        (B, T), the number of each token's document, 1, 2, ..., and 0 for padding. Output:
        `hidden_states` (B, T, hidden_dim); with `pooling` `text_embedding` (B, hidden_dim), or
        (B, projection_dim).

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    size = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    texts = np.array([[5, 8, 2, 0], [7, 2, 9, 4]])
    assert ka.models.text_encoder(10, **size)(texts).shape == (2, 4, 16)
    assert ka.models.text_encoder(10, pooling="mean", **size)(texts).shape == (2, 16)
    assert ka.models.sizes("text_encoder")["MiniLM-L6"]["hidden_dim"] == 384
    ```
    """
    if pooling is None and (projection_dim is not None or unit_length):
        raise ValueError("projection_dim= and unit_length= are for one vector: give pooling= too.")
    inputs, x = encode_text(vocabulary_size, pooling=pooling, **encoder)
    if projection_dim is not None:
        x = keras.layers.Dense(projection_dim, use_bias=projection_bias, name="projection")(x)
    if unit_length:
        x = keras.layers.UnitNormalization(name="unit_length")(x)
    x = keras.layers.Identity(name="hidden_states" if pooling is None else "text_embedding")(x)
    return keras.Model(inputs, x, name=name)
