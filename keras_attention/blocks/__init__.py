"""Blocks of models: embeddings, spectrograms, encoder and decoder blocks, pooling."""

from keras_attention.blocks.activations import gelu, gelu_tanh, quick_gelu
from keras_attention.blocks.attention_pooling import AttentionPooling
from keras_attention.blocks.biaffine import Biaffine
from keras_attention.blocks.box_head import BoxHead
from keras_attention.blocks.conditional_random_field import ConditionalRandomField
from keras_attention.blocks.contrastive_logits import ContrastiveLogits
from keras_attention.blocks.convolution_module import ConvolutionModule
from keras_attention.blocks.convolution_subsampling import ConvolutionSubsampling, FrameConvolutions
from keras_attention.blocks.decoder import DecoderBlock
from keras_attention.blocks.dropout import PathDropout, TokenDropout
from keras_attention.blocks.encoder import EncoderBlock
from keras_attention.blocks.feed_forward import FeedForward
from keras_attention.blocks.figures import ConformerBlock, MacaronBlock, ParallelBlock
from keras_attention.blocks.filter_augment import FilterAugment
from keras_attention.blocks.learned_vectors import ObjectQueries, PrefixTokens
from keras_attention.blocks.lengths import FixedLength, LengthMask
from keras_attention.blocks.log_mel_spectrogram import LogMelSpectrogram
from keras_attention.blocks.mixture_of_experts import MixtureOfExperts
from keras_attention.blocks.normalization import LayerScale, RMSNormalization
from keras_attention.blocks.outputs import GreedyCTCDecoder, SpanLogits
from keras_attention.blocks.parser_state import AllowedLogits, ParserState
from keras_attention.blocks.patch_embedding import ConvolutionStem, PatchEmbedding
from keras_attention.blocks.pooling import FirstOf, Pooling
from keras_attention.blocks.position_embedding import PositionEmbedding, PositionsInDocuments
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
from keras_attention.blocks.scan import Scan
from keras_attention.blocks.spec_augment import SpecAugment
from keras_attention.blocks.token_embedding import SegmentEmbedding, TokenEmbedding
from keras_attention.blocks.word_embedding import CharacterEmbedding, WordEmbedding
from keras_attention.core.special_ids import Padding

__all__ = [
    "AllowedLogits",
    "AttentionPooling",
    "Biaffine",
    "BoxHead",
    "CharacterEmbedding",
    "ConditionalRandomField",
    "ConformerBlock",
    "ContrastiveLogits",
    "ConvolutionModule",
    "ConvolutionStem",
    "ConvolutionSubsampling",
    "DecoderBlock",
    "DeepNorm",
    "EncoderBlock",
    "FeedForward",
    "FilterAugment",
    "FirstOf",
    "FixedLength",
    "FrameConvolutions",
    "GreedyCTCDecoder",
    "LayerScale",
    "LengthMask",
    "LogMelSpectrogram",
    "MacaronBlock",
    "MixtureOfExperts",
    "ObjectQueries",
    "ParallelBlock",
    "ParserState",
    "Padding",
    "PatchEmbedding",
    "PathDropout",
    "Pooling",
    "PositionEmbedding",
    "PositionsInDocuments",
    "PostNorm",
    "PreNorm",
    "PrefixTokens",
    "RMSNormalization",
    "ReZero",
    "Repeat",
    "ResiDual",
    "Residual",
    "ResidualWeight",
    "SandwichNorm",
    "Scan",
    "SegmentEmbedding",
    "SpanLogits",
    "SpecAugment",
    "TokenDropout",
    "TokenEmbedding",
    "WordEmbedding",
    "gelu",
    "gelu_tanh",
    "quick_gelu",
]
