"""Text token by token: caches, and what chooses the next token."""

from keras_attention.generation import constraints, penalties, samplers
from keras_attention.generation.cache import decoding_scope, initial_cache
from keras_attention.generation.decoder import Decoder
from keras_attention.generation.generate import generate
from keras_attention.generation.result import Generated
from keras_attention.generation.samplers import Beam, Greedy, Sample
from keras_attention.generation.streaming import stream
from keras_attention.generation.written import Written

__all__ = [
    "Beam",
    "Decoder",
    "Generated",
    "Greedy",
    "Sample",
    "Written",
    "constraints",
    "decoding_scope",
    "generate",
    "initial_cache",
    "penalties",
    "samplers",
    "stream",
]
