"""Language modelling: each token from those before it."""

import keras

from keras_attention.blocks import TokenEmbedding
from keras_attention.blocks.packed_documents import document_inputs, name_inputs
from keras_attention.models.head import token_logits
from keras_attention.models.keywords import takes_keywords_of
from keras_attention.models.stack_keywords import EncoderKeywords
from keras_attention.models.transformer import causal_mask


def _gpt_2(num_layers, num_heads, hidden_dim):
    return dict(
        num_layers=num_layers,
        num_heads=num_heads,
        hidden_dim=hidden_dim,
        intermediate_dim=4 * hidden_dim,
        position="learned",
        max_length=1024,
        activation="gelu_tanh",
        epsilon=1e-5,
    )


SIZES = {
    # Radford et al. (2019), table 2; with vocabulary_size=50257 the released models
    "GPT-2": _gpt_2(12, 12, 768),
    "GPT-2-medium": _gpt_2(24, 16, 1024),
    "GPT-2-large": _gpt_2(36, 20, 1280),
    "GPT-2-XL": _gpt_2(48, 25, 1600),
}


@takes_keywords_of(
    EncoderKeywords,
    num_layers=6,
    num_heads=6,
    hidden_dim=384,
    intermediate_dim=1536,
    dropout=0.1,
    position="rotary",
)
def causal_language_model(
    vocabulary_size,
    *,
    mask=None,
    tie_embeddings=True,
    scale_embeddings=False,
    logit_soft_cap=None,
    packed=False,
    padding_id=0,
    name="causal_language_model",
    **decoder,
):
    """Decoder-only Transformer: logits of the next token (Radford et al., 2019, section 2.3).

    Args:
        vocabulary_size: int, number of token ids.
        mask: what the tokens may attend to of those before them, such as `Window(128)`, or None
            for all: the future stays hidden, whatever it allows.
        tie_embeddings: bool, whether the logits are inner products with the tokens' embeddings
            (Press and Wolf, 2017), or have a matrix of their own.
        scale_embeddings: bool, whether tokens are multiplied by √hidden_dim (Vaswani et al., 2017,
            section 3.4).
        logit_soft_cap: float above 0, or None: logits become `cap · tanh(logits / cap)` (Gemma 2,
            2024, section 2); of tied ones. For attention there is `Softmax(soft_cap=...)`.
        packed: bool, whether rows hold several documents each: a second input tells them apart, so
            that tokens see their own document alone and count from its first token.
            For training: a model built without, which has the same weights, generates.
        padding_id: int, the id that is no token and is masked inside; None where every id is one.
        name: str.
        decoder: keywords of `TransformerEncoder`, which documents them: sizes, `dropout` (here of
            embeddings too), norms, and the parts `score`, `normalizer` and `position`. Published
            sizes: `ka.models.sizes("causal_language_model")`.

    Returns:
        A functional `keras.Model`. Input `"token_ids"` int32 (B, T); packed a dict with
        `"document_ids"` int32 (B, T) too, the number of each token's document, 1, 2, ..., and 0 for
        padding. Output: logits (B, T, vocabulary_size), float32, at each place those of the token
        that follows.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    model = ka.models.causal_language_model(
        100,
        num_layers=1,
        num_heads=4,
        hidden_dim=16,
        intermediate_dim=32,
        num_key_value_heads=2,
        mask=ka.masks.Window(3),
    )
    ids = np.array([[5, 7, 9, 4]])
    assert model(ids).shape == (1, 4, 100)
    assert "GPT-2" in ka.models.sizes("causal_language_model")
    ```
    """
    if logit_soft_cap is not None and not tie_embeddings:
        raise ValueError(
            f"logit_soft_cap={logit_soft_cap} with tie_embeddings=False: it is of logits that are "
            "inner products with the tokens' embeddings. Leave one of them out."
        )
    if decoder.get("layer_masks") is not None:
        decoder["layer_masks"] = [causal_mask(one) for one in decoder["layer_masks"]]
    decoder = EncoderKeywords(mask=causal_mask(mask), **decoder)
    tokens = keras.Input((None,), dtype="int32", name="token_ids")
    embedding = TokenEmbedding(
        vocabulary_size,
        decoder.hidden_dim,
        position=decoder.embedding_position(),
        embeddings_initializer=keras.initializers.RandomNormal(stddev=0.02),
        scale=scale_embeddings,
        padding_id=padding_id,
        padding=decoder.padding,
        logit_soft_cap=logit_soft_cap,
        name="embedding",
    )
    inputs, documents = document_inputs(packed)
    x = embedding(tokens, positions=documents.get("positions"))
    x = keras.layers.Dropout(decoder.dropout, name="dropout")(x)
    x = decoder(x, **documents)
    logits = token_logits(x, embedding, tie_embeddings)
    return keras.Model(name_inputs(tokens, **inputs), logits, name=name)
