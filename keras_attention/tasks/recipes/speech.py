"""Recipes of tasks whose inputs are recordings of speech."""

import dataclasses

from keras_attention.tasks.recipes.kinds import JointData, RecordedTextData, RecordingData
from keras_attention.tasks.recipes.recipe import Recipe, fine_tune, size

EMBEDDING = dict(
    num_mel_bins=40,
    filters=32,
    filter_augment=dict(gain=13.0, band_gain=6.5),
    spec_augment=dict(time_mask_size=20, time_mask_ratio=0.1, frequency_mask_size=8),
)
CONFORMER = size(3, 4, 96, 384) | dict(kernel_size=15, dropout=0.1, embedding=EMBEDDING)
# A small Conformer for small vocabularies.
RECOGNIZER = Recipe(
    model=CONFORMER,
    epochs=20,
    batch_size=32,
    learning_rate=2e-3,
    weight_decay=0.01,
    clip_norm=5.0,
    data=RecordingData(),
    jit_compile=False,  # because XLA has no kernel for the fast loss
)

RECIPES = {
    "speech_recognizer": RECOGNIZER,
    # For streaming: a chunk of 320 ms, about a word, attends to itself and to earlier chunks.
    "speech_recognizer/spoken_digit": dataclasses.replace(
        RECOGNIZER,
        model=CONFORMER | dict(chunk_size=8, embedding=EMBEDDING | dict(filter_augment=None)),
        epochs=40,
    ),
    # For Whisper, on recordings of one language.
    "speech_to_text/pretrained": fine_tune(3, 8, 1e-5, JointData()),
    # The model in `benchmarks/speech_translation.py`, with the same encoder and a small decoder. It
    # needs absolute positions, too. With only relative ones it confuses repeated digits.
    "speech_to_text": dataclasses.replace(
        RECOGNIZER,
        model=CONFORMER | dict(num_decoder_layers=2, position=["sinusoidal", "rotary"]),
        epochs=30,
        data=RecordedTextData(tokens="characters", vocabulary_size=1000, max_length=160, beam=1),
    ),
}
