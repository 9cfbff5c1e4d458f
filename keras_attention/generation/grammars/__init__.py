"""Constraints that allow only texts of a regular language: `Regex` and `JSONSchema`."""

from keras_attention.generation.grammars.json_schema import JSONSchema
from keras_attention.generation.grammars.regex import Regex
from keras_attention.generation.grammars.token_texts import TokenTexts

__all__ = ["JSONSchema", "Regex", "TokenTexts"]
