"""Tokenizers: texts to ids and back, by words, characters, subwords or those of a checkpoint."""
