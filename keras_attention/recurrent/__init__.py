"""Recurrent encoders and decoders with the attention of Bahdanau et al. or Luong et al."""

from keras_attention.core.recur import recur
from keras_attention.recurrent.attention_cell import AttentionCell
from keras_attention.recurrent.cells import get_cell, state_sizes
from keras_attention.recurrent.decoder import RecurrentDecoder
from keras_attention.recurrent.encoder import Bridge, RecurrentEncoder
from keras_attention.recurrent.feedback import FeedbackDecoder
from keras_attention.recurrent.local_window import LocalWindow

__all__ = [
    "AttentionCell",
    "Bridge",
    "FeedbackDecoder",
    "LocalWindow",
    "RecurrentDecoder",
    "RecurrentEncoder",
    "get_cell",
    "recur",
    "state_sizes",
]
