"""`sequence_labeler`: builds a model that predicts a label for every token."""

import keras

from keras_attention.blocks import ConditionalRandomField
from keras_attention.models.stack_choice import choose_encoder
from keras_attention.models.text_embedding import TextEmbedding, unwrap_inputs

# Vaswani et al. (2017), table 3, the base and big encoders
BASE = dict(num_layers=6, num_heads=8, hidden_dim=512, intermediate_dim=2048)
BIG = dict(num_layers=6, num_heads=16, hidden_dim=1024, intermediate_dim=4096, dropout=0.3)

SIZES = {"base": BASE, "big": BIG}

HEADS = {"crf": ConditionalRandomField}


def sequence_labeler(
    vocabulary_size,
    num_labels,
    *,
    num_layers=3,
    num_heads=6,
    hidden_dim=192,
    intermediate_dim=768,
    dropout=0.1,
    score="scaled_dot",
    normalizer="softmax",
    mask=None,
    position="rotary",
    embedding=None,
    encoder=None,
    head=None,
    name="sequence_labeler",
):
    """Build a Transformer encoder that labels every token, for tagging or named entities.

    The encoder follows Vaswani et al. (2017).

    Args:
        vocabulary_size: int, number of token ids.
        num_labels: int, number of labels.
        num_layers, num_heads, ..., encoder: sizes and parts of the encoder, explained in
            `text_encoder`. To also read the characters of words (Ma and Hovy, 2016), set
            `embedding=TextEmbedding(characters=Characters(...))`.
            `ka.models.sizes("sequence_labeler")` lists published sizes.
        head: the layer after the logits. `"crf"` makes a `ka.blocks.ConditionalRandomField`, which
            predicts the best sequence of labels. Train it with `ka.training.CRFLoss`. To forbid
            transitions between tags, pass the layer with its `labels`. Any other layer from logits
            to the same shape is possible, too. None leaves the logits as they are.
        name: str, the name of the model.

    Returns:
        A functional `keras.Model`. Input: `"token_ids"` int32 (B, T), or a dict if the `embedding`
        has further inputs. Output: logits (B, T, num_labels), float32.

    ```python
    import numpy as np
    import keras_attention as ka

    size = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    embedding = ka.models.TextEmbedding(characters=ka.models.Characters(80))
    model = ka.models.sequence_labeler(1000, 17, position="alibi", embedding=embedding, **size)
    words = {"token_ids": np.ones((2, 5), "int32"), "character_ids": np.ones((2, 5, 16), "int32")}
    assert model(words).shape == (2, 5, 17)
    ```
    """
    sizes = dict(num_layers=num_layers, num_heads=num_heads, intermediate_dim=intermediate_dim)
    parts = dict(score=score, normalizer=normalizer, mask=mask, position=position)
    encoder = choose_encoder(sequence_labeler, encoder, hidden_dim, dropout, sizes | parts)
    embedding = TextEmbedding() if embedding is None else embedding
    inputs = embedding.inputs()
    x, documents, _ = embedding(inputs, vocabulary_size, hidden_dim, position, dropout)
    x = encoder(x, **documents)
    if head is None:
        logits = keras.layers.Dense(num_labels, dtype="float32", name="logits")(x)
    else:
        emissions = keras.layers.Dense(num_labels, dtype="float32", name="emissions")(x)
        logits = make_head(head)(emissions)
    return keras.Model(unwrap_inputs(inputs), logits, name=name)


def make_head(head):
    """Return the layer after the logits. `head` is a key of `HEADS`, or the layer itself."""
    if not isinstance(head, str):
        return head
    if head not in HEADS:
        raise ValueError(
            f"head={head!r} is not a head of sequence_labeler: expected {', '.join(HEADS)}, None, "
            "or a layer from logits (B, T, num_labels) to the same shape."
        )
    return HEADS[head](name="logits", dtype="float32")
