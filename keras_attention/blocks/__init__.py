"""Blocks: embeddings, encoder, feed-forward, pooling."""

from keras_attention.blocks.character_embedding import CharacterEmbedding
from keras_attention.blocks.convolution_stem import ConvolutionStem
from keras_attention.blocks.encoder import EncoderBlock
from keras_attention.blocks.feed_forward import FeedForward
from keras_attention.blocks.layer_scale import LayerScale
from keras_attention.blocks.patch_embedding import PatchEmbedding
from keras_attention.blocks.pooling import Pooling
from keras_attention.blocks.token_dropout import TokenDropout
from keras_attention.blocks.token_embedding import TokenEmbedding
from keras_attention.blocks.word_embedding import WordEmbedding

__all__ = [
    "CharacterEmbedding",
    "ConvolutionStem",
    "EncoderBlock",
    "FeedForward",
    "LayerScale",
    "PatchEmbedding",
    "Pooling",
    "TokenDropout",
    "TokenEmbedding",
    "WordEmbedding",
]
