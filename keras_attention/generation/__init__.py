"""Text token by token: caches, and what chooses the next token."""

from keras_attention.generation.cache import decoding_scope, initial_cache
from keras_attention.generation.decoder import Decoder

__all__ = ["Decoder", "decoding_scope", "initial_cache"]
