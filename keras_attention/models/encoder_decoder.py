"""`encoder_decoder`: builds encoder-decoders with the structures of T5 and BART."""

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
    """Return a dict of arguments of `seq2seq_transformer` that build T5 (Raffel et al., 2020, 2.1).

    With `gated` the feed-forward networks are gated and the logits have their own matrix, as in T5
    1.1. `key_dim` is the size of a head.
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
    """Return a dict of arguments of `seq2seq_transformer` that build BART (Lewis et al., 2020).

    `key_dim` is the size of a head.
    """
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
    # Raffel et al. (2020), section 3.7. The released models have vocabulary_size=32128.
    "T5-small": _size("t5", 6, 8, 512, 2048),
    "T5-base": _size("t5", 12, 12, 768, 3072),
    "T5-large": _size("t5", 24, 16, 1024, 4096),
    "T5-3B": _size("t5", 24, 32, 1024, 16384, 128),
    "T5-1.1-small": _size("t5_1.1", 8, 6, 512, 1024, 64),
    "T5-1.1-base": _size("t5_1.1", 12, 12, 768, 2048),
    "T5-1.1-large": _size("t5_1.1", 24, 16, 1024, 2816),
    # Lewis et al. (2020), section 2.1. The released models have vocabulary_size=50265.
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
    """Build an encoder-decoder Transformer with the structure of T5 or BART, without weights.

    The model generates a target text from a source text, which share one vocabulary. For other
    structures use `seq2seq_transformer`. `ka.models.sizes("encoder_decoder")` lists published
    sizes.

    Args:
        vocabulary_size: int, number of token ids of source and target.
        structure: `"t5"` (Raffel et al., 2020, section 2.1) has relative position biases that all
            layers share, an RMS norm before each attention and feed-forward network, projections
            without biases, and unscaled scores. `"t5_1.1"` (Shazeer, 2020) also has gated
            feed-forward networks, and a separate matrix for logits. `"bart"` (Lewis et al., 2020,
            section 2.1) has learned positions, norms after each residual sum, and GELU.
        num_layers, num_heads, hidden_dim, intermediate_dim: ints, sizes of encoder and decoder.
        key_dim: int H, the size of a head. None is `hidden_dim / num_heads`.
        dropout: float, the dropout rate for the embeddings and inside the stacks.
        padding_id: int, the id of padding, which is masked. None if every id is a token.
        name: str, the name of the model.

    Returns:
        A functional `keras.Model`, with the inputs and outputs of `seq2seq_transformer`.

    Raises:
        ValueError: `structure` is not one of the three names.

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
