"""Encoders for builders of small models, by everyday and by rare settings."""

import dataclasses

import keras_attention as ka
from keras_attention.blocks.inner_layers import copy_part

OF_STACK = ("num_blocks", "shared_position", "stochastic_depth", "remat", "scan_layers")
OF_ATTENTION = ("num_key_value_heads", "padding")


def make_encoder(num_layers, num_heads, hidden_dim, intermediate_dim, **settings):
    """Make a `TransformerEncoder` by settings of `of_size`, of the stack or of the attention."""
    of_stack, of_attention = (
        {name: settings.pop(name) for name in names if name in settings}
        for names in (OF_STACK, OF_ATTENTION)
    )
    size = (num_layers, num_heads, hidden_dim, intermediate_dim)
    encoder = ka.models.TransformerEncoder.of_size(*size, **settings)
    attention = copy_part(encoder.attention, **of_attention)
    return dataclasses.replace(encoder, attention=attention, **of_stack)


def make_writer(
    vocabulary_size,
    num_layers=1,
    num_heads=2,
    hidden_dim=16,
    intermediate_dim=24,
    *,
    dropout=0.1,
    position="rotary",
    embedding=None,
    tie_embeddings=True,
    **settings,
):
    """Make a `causal_language_model` whose encoder has settings of `make_encoder`."""
    position = ka.positions.get(position)
    attend = ka.positions.for_role(position, "rotate", "bias")
    size = (num_layers, num_heads, hidden_dim, intermediate_dim)
    return ka.models.causal_language_model(
        vocabulary_size,
        hidden_dim=hidden_dim,
        dropout=dropout,
        position=ka.positions.for_role(position, "embed"),
        embedding=embedding,
        encoder=make_encoder(*size, dropout=dropout, position=attend, **settings),
        tie_embeddings=tie_embeddings,
    )


def embed_characters(count, word_length=16, **settings):
    """Make a `TextEmbedding` of words beside their spelling."""
    characters = ka.models.Characters(count, word_length)
    return ka.models.TextEmbedding(characters=characters, **settings)
