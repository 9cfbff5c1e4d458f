"""Masked language modelling: tokens from those on both sides."""

import keras

from keras_attention.models.embeddings import embed_tokens
from keras_attention.models.head import name_logits, transform_hidden
from keras_attention.models.keywords import takes_keywords_of
from keras_attention.models.stack_keywords import EncoderKeywords


def _bert(num_layers, num_heads, hidden_dim):
    return dict(
        num_layers=num_layers,
        num_heads=num_heads,
        hidden_dim=hidden_dim,
        intermediate_dim=4 * hidden_dim,
        position="learned",
        max_length=512,
        num_segments=2,
        norm="post",
        epsilon=1e-12,
    )


SIZES = {
    # Devlin et al. (2019), section 3; with vocabulary_size=30522 the released models
    "BERT-Base": _bert(12, 12, 768),
    "BERT-Large": _bert(24, 16, 1024),
    # Turc et al. (2019), table 1, the released compact models
    "BERT-Tiny": _bert(2, 2, 128),
    "BERT-Mini": _bert(4, 4, 256),
    "BERT-Small": _bert(4, 8, 512),
    "BERT-Medium": _bert(8, 8, 512),
}


@takes_keywords_of(
    EncoderKeywords,
    num_layers=6,
    num_heads=6,
    hidden_dim=384,
    intermediate_dim=1536,
    dropout=0.1,
    norm="post",
    position="rotary",
)
def masked_language_model(
    vocabulary_size,
    *,
    num_segments=None,
    embedding_dim=None,
    packed=False,
    padding_id=0,
    transform_activation=None,
    transform_bias=True,
    logit_bias=True,
    name="masked_language_model",
    **encoder,
):
    """Bidirectional encoder with logits for every place (Devlin et al., 2019, task 1 of 3.1).

    The embeddings are normalized; the head is a dense layer, an activation and a norm, the
    transform, and inner products with the tokens' embeddings, plus a bias.

    Args:
        vocabulary_size: int, number of token ids.
        num_segments: int, kinds of segments, such as 2 for pairs of sentences, or None for none.
        embedding_dim: int, the width of the embeddings and of the head, where it is not that of the
            stack (Lan et al., 2020, *ALBERT*, section 3.1): a projection is between; or None.
        packed: bool, whether rows hold several documents each: a second input tells them apart, so
            that tokens see their own document alone and count from its first token.
        padding_id: int, the id that is no token and is masked inside; None where every id is one.
        transform_activation: an activation of the transform, None for that of the blocks, or of
            their gates. transform_bias: bool, whether its dense layer has a bias.
        logit_bias: bool, whether the logits have one.
        name: str.
        encoder: keywords of `TransformerEncoder`, which documents them: sizes, `dropout` (here of
            embeddings too), norms, and the parts `score`, `normalizer`, `mask` and `position`.
            Published sizes: `ka.models.sizes("masked_language_model")`.

    Returns:
        A functional `keras.Model`. Input `"token_ids"` int32 (B, T); with `num_segments` a dict
        with `"segment_ids"` int32 (B, T) too, from 0, and packed one with `"document_ids"` int32
        (B, T), the number of each token's document, 1, 2, ..., and 0 for padding. Output: logits
        (B, T, vocabulary_size), float32.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    model = ka.models.masked_language_model(
        100, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32, num_segments=2
    )
    pair = {"token_ids": np.array([[5, 7, 9, 0]]), "segment_ids": np.array([[0, 1, 1, 0]])}
    assert model(pair).shape == (1, 4, 100)
    assert "BERT-Base" in ka.models.sizes("masked_language_model")
    ```
    """
    encoder = EncoderKeywords(**encoder)
    x, inputs, embedding, documents = embed_tokens(
        encoder,
        vocabulary_size,
        num_segments=num_segments,
        embedding_dim=embedding_dim,
        normalize_embeddings=True,
        packed=packed,
        initializer=keras.initializers.TruncatedNormal(stddev=0.02),
        logit_bias=logit_bias,
        padding_id=padding_id,
    )
    x = encoder(x, **documents)
    x = transform_hidden(
        x,
        encoder,
        encoder.activation if transform_activation is None else transform_activation,
        units=embedding.hidden_dim,
        use_bias=transform_bias,
    )
    logits = name_logits(embedding(x, reverse=True))
    return keras.Model(inputs, logits, name=name)
