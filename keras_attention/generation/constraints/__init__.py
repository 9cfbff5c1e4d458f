"""Constraints: which tokens may come next. `allows(written) -> bool (B, V)`, True = may come."""

from keras_attention.generation.constraints.allowed import Allowed, Forbidden, whole_ids
from keras_attention.generation.constraints.base import Constraint, Rule, get
from keras_attention.generation.constraints.minimum_length import MinimumLength
from keras_attention.generation.constraints.no_repeat_n_grams import NoRepeatNGrams
from keras_attention.generation.constraints.one_of import OneOf

__all__ = [
    "Allowed",
    "Constraint",
    "Forbidden",
    "MinimumLength",
    "NoRepeatNGrams",
    "OneOf",
    "Rule",
    "get",
    "whole_ids",
]
