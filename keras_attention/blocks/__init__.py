"""Blocks: embeddings, encoder, feed-forward, pooling."""

from keras_attention.blocks.activations import gelu_tanh
from keras_attention.blocks.character_embedding import CharacterEmbedding
from keras_attention.blocks.conformer import ConformerBlock
from keras_attention.blocks.convolution_module import ConvolutionModule
from keras_attention.blocks.convolution_stem import ConvolutionStem
from keras_attention.blocks.decoder import DecoderBlock
from keras_attention.blocks.encoder import EncoderBlock
from keras_attention.blocks.feed_forward import FeedForward
from keras_attention.blocks.layer_scale import LayerScale
from keras_attention.blocks.macaron import MacaronBlock
from keras_attention.blocks.mixture_of_experts import MixtureOfExperts
from keras_attention.blocks.parallel import ParallelBlock
from keras_attention.blocks.patch_embedding import PatchEmbedding
from keras_attention.blocks.pooling import Pooling
from keras_attention.blocks.prefix_tokens import PrefixTokens
from keras_attention.blocks.repeat import Repeat
from keras_attention.blocks.residuals import (
    DeepNorm,
    PostNorm,
    PreNorm,
    ResiDual,
    Residual,
    ResidualWeight,
    ReZero,
    SandwichNorm,
)
from keras_attention.blocks.rms_normalization import RMSNormalization
from keras_attention.blocks.segment_embedding import SegmentEmbedding
from keras_attention.blocks.token_dropout import TokenDropout
from keras_attention.blocks.token_embedding import TokenEmbedding
from keras_attention.blocks.word_embedding import WordEmbedding

__all__ = [
    "CharacterEmbedding",
    "ConformerBlock",
    "ConvolutionModule",
    "ConvolutionStem",
    "DecoderBlock",
    "DeepNorm",
    "EncoderBlock",
    "FeedForward",
    "LayerScale",
    "MacaronBlock",
    "MixtureOfExperts",
    "ParallelBlock",
    "PatchEmbedding",
    "Pooling",
    "PostNorm",
    "PreNorm",
    "PrefixTokens",
    "ReZero",
    "RMSNormalization",
    "Repeat",
    "ResiDual",
    "Residual",
    "ResidualWeight",
    "SandwichNorm",
    "SegmentEmbedding",
    "TokenDropout",
    "TokenEmbedding",
    "WordEmbedding",
    "gelu_tanh",
]
