"""Speech recognition by CTC: sound as frames, subsampled and encoded, with a label for each."""

import keras

from keras_attention import masks, positions
from keras_attention.models.conformer import ConformerEncoder
from keras_attention.models.speech_embedding import SpeechEmbedding
from keras_attention.models.stack_choice import check_unused


def _conformer(num_layers, num_heads, hidden_dim):
    return dict(
        num_layers=num_layers,
        num_heads=num_heads,
        hidden_dim=hidden_dim,
        intermediate_dim=4 * hidden_dim,
        kernel_size=32,
        dropout=0.1,
        position="transformer_xl",
    )


# Gulati et al. (2020), table 1, the encoders: the paper decodes with an LSTM.
SIZES = {
    "Conformer-S": _conformer(16, 4, 144),
    "Conformer-M": _conformer(16, 4, 256),
    "Conformer-L": _conformer(17, 8, 512),
}


def speech_recognizer(
    vocabulary_size,
    *,
    num_layers=4,
    num_heads=4,
    hidden_dim=144,
    intermediate_dim=576,
    kernel_size=31,
    dropout=0.1,
    score="scaled_dot",
    normalizer="softmax",
    mask=None,
    position="rotary",
    chunk_size=None,
    embedding=None,
    encoder=None,
    name="speech_recognizer",
):
    """Conformer or Transformer with a CTC output (Gulati et al., 2020; Graves et al., 2006).

    Train it with `ka.training.MaskedCTC()`, for which the logits carry the mask of their frames.
    `ka.blocks.GreedyCTCDecoder` behind it gives labels, in exported files as well.

    Args:
        vocabulary_size: int V, labels and the blank, which is 0 and pads labels.
        num_layers, num_heads, hidden_dim, intermediate_dim, kernel_size: ints, sizes of the
            encoder, as in `ConformerEncoder.of_size`. `hidden_dim` is also that of the embedding.
        dropout: float, of the embedding and in the encoder.
        score, normalizer, mask: parts of the attention.
        position: a part, its name, its config or a list. What rotates or biases goes into the
            attention, what is added into the embedding.
        chunk_size: int, for streaming. A vector sees those of its chunk of so many and earlier
            ones, and convolutions see no later ones: `ka.generation.SpeechStream` then reads chunk
            by chunk. With 10 ms a frame and a subsampling of 4, 8 are 320 ms. None sees everything.
        embedding: `SpeechEmbedding`: features or waveforms, the subsampling, augmentation and more.
        encoder: what makes vectors (B, T, hidden_dim) of vectors: a `ConformerEncoder`, a
            `TransformerEncoder`, or any function, layer or model. The sizes but `hidden_dim`, and
            the parts of the attention, are then stated in it; with `chunk_size` it sees no later
            chunks by itself.
        name: str.

    Returns:
        A functional `keras.Model`. Inputs, a dict: `"features"` float32 (B, T, F), or `"waveform"`
        float32 (B, samples); and `"lengths"` int32 (B,), how many frames or samples each row has.
        Output: logits (B, ⌈T / subsampling⌉, V), float32. Published sizes:
        `ka.models.sizes("speech_recognizer")`.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    size = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32, kernel_size=5)
    features = ka.models.SpeechEmbedding(num_mel_bins=40)
    model = ka.models.speech_recognizer(28, embedding=features, **size)
    inputs = {"features": np.ones((2, 50, 40)), "lengths": np.array([50, 31])}
    assert model(inputs).shape == (2, 13, 28)

    sound = ka.models.SpeechEmbedding(input="waveform", num_mel_bins=40)
    model = ka.models.speech_recognizer(28, embedding=sound, **size)
    inputs = {"waveform": np.zeros((2, 16000)), "lengths": np.array([16000, 9000])}
    assert model(inputs).shape == (2, 25, 28)
    assert "Conformer-M" in ka.models.sizes("speech_recognizer")
    ```
    """
    if chunk_size is not None and mask is not None:
        raise ValueError(
            f"chunk_size={chunk_size} is a mask, and mask={mask!r} another one: give one of them."
        )
    position = positions.get(position)
    sizes = dict(
        num_layers=num_layers,
        num_heads=num_heads,
        intermediate_dim=intermediate_dim,
        kernel_size=kernel_size,
        score=score,
        normalizer=normalizer,
        mask=mask,
        position=positions.for_role(position, "rotate", "bias"),
    )
    check_unused(speech_recognizer, "encoder", encoder, **sizes)
    streams = chunk_size is not None
    if encoder is None:
        if streams:
            sizes["mask"] = masks.Blockwise(masks.Causal(), chunk_size)
        encoder = ConformerEncoder.of_size(
            hidden_dim=hidden_dim, dropout=dropout, causal=streams, **sizes
        )
    embedding = SpeechEmbedding() if embedding is None else embedding
    inputs = embedding.inputs()
    added = positions.for_role(position, "embed")
    x = embedding(inputs, hidden_dim, added, dropout, causal=streams)
    x = encoder(x)
    logits = keras.layers.Dense(vocabulary_size, dtype="float32", name="logits")(x)
    return keras.Model(inputs, logits, name=name)
