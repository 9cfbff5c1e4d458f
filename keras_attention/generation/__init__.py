"""Functions and classes that generate text from a model: `generate`, samplers, constraints, ..."""

from keras_attention.generation import constraints, penalties, samplers
from keras_attention.generation.cache import decoding_scope, initial_cache
from keras_attention.generation.config import GenerationConfig
from keras_attention.generation.ctc_search import search_ctc_prefixes
from keras_attention.generation.decoder import Decoder
from keras_attention.generation.generate import GenerationOutput, generate
from keras_attention.generation.grammars import JSONSchema, Regex, TokenTexts
from keras_attention.generation.samplers import Beam, Greedy, Sample
from keras_attention.generation.speech_stream import SpeechStream
from keras_attention.generation.streaming import stream
from keras_attention.generation.time_warping import (
    align_attention,
    find_warping_path,
    rate_heads,
)
from keras_attention.generation.token_history import TokenHistory

__all__ = [
    "Beam",
    "Decoder",
    "GenerationConfig",
    "GenerationOutput",
    "Greedy",
    "JSONSchema",
    "Regex",
    "Sample",
    "SpeechStream",
    "TokenHistory",
    "TokenTexts",
    "align_attention",
    "constraints",
    "decoding_scope",
    "find_warping_path",
    "generate",
    "initial_cache",
    "penalties",
    "rate_heads",
    "samplers",
    "search_ctc_prefixes",
    "stream",
]
