"""Encoder-decoders with the structures of published ones: T5 and BART."""

import inspect

from keras_attention import positions
from keras_attention.models.keywords import check_keywords
from keras_attention.models.seq2seq_transformer import seq2seq_transformer


def _t5():
    """Raffel et al. (2020), section 2.1: biases of distance, no others, and scores not scaled."""
    return dict(
        norm="pre",
        normalization="rms_norm",
        activation="relu",
        use_bias=False,
        position=positions.RelativeBias(),
        decoder_position=positions.RelativeBias(bidirectional=False),
        shared_position=True,
        score="dot",
        scale_embeddings=False,
        scale_logits=True,
    )


def _t5_1_1():
    """Shazeer (2020): T5 with gated feed-forward networks and an output matrix of its own."""
    return {
        **_t5(),
        "activation": "geglu_tanh",
        "tie_embeddings": False,
        "scale_logits": False,
    }


def _bart():
    """Lewis et al. (2020), section 2.1: learned positions, norms after sums and on the input."""
    return dict(
        norm="post",
        activation="gelu",
        position="learned",
        max_length=1024,
        scale_embeddings=False,
        normalize_embeddings=True,
        epsilon=1e-5,
    )


STRUCTURES = {"t5": _t5, "t5_1.1": _t5_1_1, "bart": _bart}


def _size(structure, num_layers, num_heads, hidden_dim, intermediate_dim, key_dim=None):
    return dict(
        structure=structure,
        num_layers=num_layers,
        num_heads=num_heads,
        hidden_dim=hidden_dim,
        intermediate_dim=intermediate_dim,
        **({} if key_dim is None else {"key_dim": key_dim}),
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


def encoder_decoder(vocabulary_size, *, structure="t5", name="encoder_decoder", **settings):
    """The Transformer of one vocabulary, built as T5 or as BART is.

    Args:
        vocabulary_size: int, number of token ids of source and target.
        structure: `"t5"` (Raffel et al., 2020, section 2.1): relative biases that all layers share,
            RMS norms before each branch, no biases in projections, scores that are not scaled;
            `"t5_1.1"` (Shazeer, 2020): with gates, and an output matrix of its own; or `"bart"`
            (Lewis et al., 2020, section 2.1): learned positions, norms after each sum, GELU.
        name: str.
        settings: keywords of `seq2seq_transformer`, which documents them: sizes, and where it is to
            differ from the structure. Published sizes: `ka.models.sizes("encoder_decoder")`.

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
    # here, so that the error names this function and not `seq2seq_transformer`
    check_keywords("encoder_decoder", settings, inspect.signature(seq2seq_transformer).parameters)
    settings = {**STRUCTURES[structure](), **settings}
    return seq2seq_transformer(vocabulary_size, name=name, **settings)
