"""Encoder-decoders with the structures of published ones: T5 and BART."""

import dataclasses

from keras_attention import positions
from keras_attention.attention import MultiHeadAttention
from keras_attention.blocks import FeedForward
from keras_attention.core import checks
from keras_attention.models.seq2seq_transformer import seq2seq_transformer
from keras_attention.models.text_embedding import TextEmbedding
from keras_attention.models.transformer import TransformerEncoder
from keras_attention.models.transformer_decoder import TransformerDecoder


def _t5(num_layers, num_heads, hidden_dim, intermediate_dim, key_dim, dropout, gated=False):
    """Raffel et al. (2020), section 2.1: biases of distance, no others, and scores not scaled.

    Gated as Shazeer (2020): T5 1.1, with an output matrix of its own.
    """

    def attend(position=None):
        return MultiHeadAttention(
            num_heads, key_dim, score="dot", use_bias=False, position=position
        )

    activation = "geglu_tanh" if gated else "relu"
    stack = dict(
        feed_forward=FeedForward(intermediate_dim, activation, dropout, use_bias=False),
        normalization="rms_norm",
        dropout=dropout,
        shared_position=True,
    )
    encoder = TransformerEncoder(num_layers, attention=attend(positions.RelativeBias()), **stack)
    decoder = TransformerDecoder(
        num_layers,
        attention=attend(positions.RelativeBias(bidirectional=False)),
        cross_attention=attend(),
        **stack,
    )
    return dict(
        position=None,
        embedding=TextEmbedding(scale=False, logit_scale=1.0 if gated else hidden_dim**-0.5),
        encoder=encoder,
        decoder=decoder,
        tie_embeddings=not gated,
    )


def _bart(num_layers, num_heads, hidden_dim, intermediate_dim, key_dim, dropout):
    """Lewis et al. (2020), section 2.1: learned positions, norms after sums and on the input."""
    attention = MultiHeadAttention(num_heads, key_dim)
    stack = dict(
        attention=attention,
        feed_forward=FeedForward(intermediate_dim, "gelu", dropout),
        norm="post",
        epsilon=1e-5,
        dropout=dropout,
    )
    return dict(
        position=positions.Learned(1024),
        embedding=TextEmbedding(scale=False, normalization="layer_norm", epsilon=1e-5),
        encoder=TransformerEncoder(num_layers, **stack),
        decoder=TransformerDecoder(num_layers, cross_attention=attention, **stack),
    )


STRUCTURES = ("t5", "t5_1.1", "bart")


def _size(structure, num_layers, num_heads, hidden_dim, intermediate_dim, key_dim=None):
    return dict(
        structure=structure,
        num_layers=num_layers,
        num_heads=num_heads,
        hidden_dim=hidden_dim,
        intermediate_dim=intermediate_dim,
        key_dim=key_dim,
    )


SIZES = {
    # Raffel et al. (2020), section 3.7; with vocabulary_size=32128 the released models
    "T5-small": _size("t5", 6, 8, 512, 2048),
    "T5-base": _size("t5", 12, 12, 768, 3072),
    "T5-large": _size("t5", 24, 16, 1024, 4096),
    "T5-3B": _size("t5", 24, 32, 1024, 16384, 128),
    "T5-1.1-small": _size("t5_1.1", 8, 6, 512, 1024, 64),
    "T5-1.1-base": _size("t5_1.1", 12, 12, 768, 2048),
    "T5-1.1-large": _size("t5_1.1", 24, 16, 1024, 2816),
    # Lewis et al. (2020), section 2.1; with vocabulary_size=50265 the released models
    "BART-base": _size("bart", 6, 12, 768, 3072),
    "BART-large": _size("bart", 12, 16, 1024, 4096),
}


def encoder_decoder(
    vocabulary_size,
    *,
    structure="t5",
    num_layers=6,
    num_heads=8,
    hidden_dim=512,
    intermediate_dim=2048,
    key_dim=None,
    dropout=0.1,
    padding_id=0,
    name="encoder_decoder",
):
    """The Transformer of one vocabulary, built as T5 or as BART is.

    Args:
        vocabulary_size: int, number of token ids of source and target.
        structure: `"t5"` (Raffel et al., 2020, section 2.1): relative biases that all layers share,
            RMS norms before each branch, no biases in projections, scores that are not scaled;
            `"t5_1.1"` (Shazeer, 2020): with gates, and an output matrix of its own; or `"bart"`
            (Lewis et al., 2020, section 2.1): learned positions, norms after each sum, GELU.
        num_layers, num_heads, hidden_dim, intermediate_dim: ints, sizes of encoder and decoder.
        key_dim: int H, the size of a head, or None for `hidden_dim / num_heads`.
        dropout: float, of the embeddings and in the stacks.
        padding_id: int, the id that is no token and is masked inside; None where every id is one.
        name: str.

    For other structures call `seq2seq_transformer`. Published sizes:
    `ka.models.sizes("encoder_decoder")`.

    Returns:
        A functional `keras.Model`, as `seq2seq_transformer`.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    model = ka.models.encoder_decoder(
        100, structure="bart", num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32
    )
    ids = {"source_ids": np.array([[5, 7, 9, 0]]), "target_ids": np.array([[1, 4]])}
    assert model(ids).shape == (1, 2, 100)
    small = ka.models.sizes("encoder_decoder")["T5-small"]
    assert small["structure"] == "t5" and small["hidden_dim"] == 512
    ```
    """
    if structure not in STRUCTURES:
        raise ValueError(f"structure={structure!r}: expected one of {', '.join(STRUCTURES)}.")
    if key_dim is None:
        key_dim = checks.divide_exactly("hidden_dim", hidden_dim, "num_heads", num_heads)
    sizes = (num_layers, num_heads, hidden_dim, intermediate_dim, key_dim, dropout)
    if structure == "bart":
        parts = _bart(*sizes)
    else:
        parts = _t5(*sizes, gated=structure == "t5_1.1")
    parts["embedding"] = dataclasses.replace(parts["embedding"], padding_id=padding_id)
    return seq2seq_transformer(
        vocabulary_size, hidden_dim=hidden_dim, dropout=dropout, name=name, **parts
    )
