"""Recipes of text-to-text tasks and of language models."""

import dataclasses

from keras_attention.tasks.recipes.encoders import TransformerOfSize
from keras_attention.tasks.recipes.kinds import (
    BatchData,
    MaskedTextData,
    PairData,
    RunningTextData,
    WindowData,
)
from keras_attention.tasks.recipes.recipe import Recipe, fine_tune, size

DATES = PairData(
    tokens="characters",
    vocabulary_size=None,
    max_length=48,
    max_tokens=None,
    beam=1,
    length_penalty=0.0,
    score="exact_match",
)
RECURRENT = Recipe(
    model=dict(hidden_dim=512, embedding_dim=256, dropout=0.3),
    epochs=20,
    batch_size=256,
    learning_rate=1e-3,
    average=1.0,
    data=PairData(),
    jit_compile=False,  # as for text_classifier
)
RECURRENT_DATES = Recipe(
    model=dict(hidden_dim=128, embedding_dim=64, dropout=0.0),
    epochs=2,
    batch_size=128,
    learning_rate=4e-3,
    weight_decay=0.01,
    label_smoothing=0.0,
    data=DATES,
    jit_compile=False,
)

RECIPES = {
    "seq2seq_recurrent": RECURRENT,
    "seq2seq_recurrent/dates": RECURRENT_DATES,
    "seq2seq_transformer": dataclasses.replace(
        RECURRENT, model=size(3, 4, 256, 512) | dict(dropout=0.3, norm="pre"), epochs=26
    ),
    "seq2seq_transformer/dates": dataclasses.replace(
        RECURRENT_DATES,
        model=size(2, 4, 128, 256) | dict(dropout=0.0, norm="pre", tie_embeddings=False),
        epochs=3,
        learning_rate=3e-3,
    ),
    "seq2seq_transformer/pretrained": fine_tune(3, 16, 1e-4, BatchData(max_tokens=2048)),
    "causal_language_model": Recipe(
        model=size(6, 6, 192, 768)
        | dict(
            dropout=0.1,
            make_encoder=TransformerOfSize(use_bias=False),
            mask={"class_name": "window", "config": {"size": 64}},
            position="rotary",
        ),
        epochs=10,
        batch_size=16,
        learning_rate=2e-3,
        weight_decay=0.1,
        label_smoothing=0.0,
        data=RunningTextData(),
    ),
    "causal_language_model/pretrained": fine_tune(3, 8, 5e-5, WindowData(steps=100)),
    "masked_language_model": Recipe(
        model=size(4, 4, 192, 768) | dict(dropout=0.1, position="rotary"),
        epochs=10,
        batch_size=32,
        learning_rate=2e-3,
        weight_decay=0.1,
        label_smoothing=0.0,
        data=MaskedTextData(),
        jit_compile=False,
    ),
    "masked_language_model/pretrained": fine_tune(3, 16, 5e-5, WindowData(steps=100)),
}
