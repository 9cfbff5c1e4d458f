"""Encoders for builders of small models, by everyday and by rare settings."""

import dataclasses

import keras_attention as ka

RARE = ("num_blocks", "shared_position", "stochastic_depth", "remat", "scan_layers")


def make_encoder(num_layers, num_heads, hidden_dim, intermediate_dim, **settings):
    """A `TransformerEncoder` of these sizes; settings are those of `of_size`, or in `RARE`."""
    rare = {name: settings.pop(name) for name in RARE if name in settings}
    size = (num_layers, num_heads, hidden_dim, intermediate_dim)
    return dataclasses.replace(ka.models.TransformerEncoder.of_size(*size, **settings), **rare)


def embed_characters(count, word_length=16, **settings):
    """A `TextEmbedding` of words beside their spelling."""
    characters = ka.models.Characters(count, word_length)
    return ka.models.TextEmbedding(characters=characters, **settings)
