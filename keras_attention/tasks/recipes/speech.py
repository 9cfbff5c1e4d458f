"""Recipes of tasks that listen."""

from keras_attention.tasks.recipes.recipe import Recipe, fine_tuned

CONFORMER = dict(
    num_mel_bins=40,
    num_layers=3,
    num_heads=4,
    hidden_dim=96,
    intermediate_dim=384,
    kernel_size=15,
    subsampling_filters=32,
    dropout=0.1,
    filter_augment=dict(gain=13.0, band_gain=6.5),
    spec_augment=dict(time_mask_size=20, time_mask_ratio=0.1, frequency_mask_size=8),
)

RECIPES = {
    # A small Conformer for small vocabularies.
    "speech_recognizer": Recipe(
        model=CONFORMER,
        epochs=20,
        batch_size=32,
        learning_rate=2e-3,
        weight_decay=0.01,
        clip_norm=5.0,
        data=dict(tokens="characters"),
        jit_compile=False,  # XLA has no kernel of the fast loss
    ),
    # The same while someone speaks: it sees the 320 ms that a word is in, and what was before.
    "speech_recognizer/spoken_digit": Recipe(
        model=CONFORMER | dict(chunk_size=8, filter_augment=None),
        epochs=40,
        batch_size=32,
        learning_rate=2e-3,
        weight_decay=0.01,
        clip_norm=5.0,
        data=dict(tokens="characters"),
        jit_compile=False,
    ),
    # Whisper, on recordings of one language.
    "speech_to_text/pretrained": fine_tuned(epochs=3, batch_size=8, learning_rate=1e-5),
    # The model of `benchmarks/speech_translation.py`: the same encoder, and a small decoder. By
    # distances alone it takes one of two equal digits for the other: so there are places, too.
    "speech_to_text": Recipe(
        model=CONFORMER | dict(num_decoder_layers=2, position=["sinusoidal", "rotary"]),
        epochs=30,
        batch_size=32,
        learning_rate=2e-3,
        weight_decay=0.01,
        clip_norm=5.0,
        data=dict(
            tokens="characters",
            vocabulary_size=1000,
            maximum_length=160,
            ctc_weight=0.3,
            beam=1,
            length_penalty=1.0,
        ),
        jit_compile=False,
    ),
}
