"""Tokenizers: strings to ids and back, by words, characters, subwords or a checkpoint's rules."""
