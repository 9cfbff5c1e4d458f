"""Attention layers, the function `attend`, and the kernels that compute it."""

from keras_attention.attention import feature_maps, kernels
from keras_attention.attention.attend import Equation, attend
from keras_attention.attention.attention import Attention
from keras_attention.attention.base import AttentionLayer
from keras_attention.attention.differential import DifferentialAttention
from keras_attention.attention.explain import explain
from keras_attention.attention.faiss_memory import FaissMemory
from keras_attention.attention.kernels import Choice, choose
from keras_attention.attention.latent import LatentAttention
from keras_attention.attention.linear import LinearAttention
from keras_attention.attention.memorizing import MemorizingAttention
from keras_attention.attention.multi_head import MultiHeadAttention
from keras_attention.attention.projection import HeadProjection
from keras_attention.attention.residual import ResidualAttention
from keras_attention.attention.segment_recurrence import SegmentRecurrence, with_memory
from keras_attention.attention.visibility import Visibility

__all__ = [
    "Attention",
    "AttentionLayer",
    "Choice",
    "DifferentialAttention",
    "Equation",
    "FaissMemory",
    "HeadProjection",
    "LatentAttention",
    "LinearAttention",
    "MemorizingAttention",
    "MultiHeadAttention",
    "ResidualAttention",
    "SegmentRecurrence",
    "Visibility",
    "attend",
    "choose",
    "explain",
    "feature_maps",
    "kernels",
    "with_memory",
]
