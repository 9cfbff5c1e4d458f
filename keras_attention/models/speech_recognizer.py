"""`speech_recognizer`: builds speech recognizers with CTC, which label each encoded vector."""

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


# The encoders of Gulati et al. (2020), table 1. The paper decodes with an LSTM.
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
    """Build a speech recognizer: a Conformer with CTC logits (Gulati et al., 2020).

    Train it with the CTC loss `ka.training.MaskedCTC()` (Graves et al., 2006), which uses the mask
    of the logits. To get labels from the model itself, also in exported files, call a
    `ka.blocks.GreedyCTCDecoder` on its output. `ka.models.sizes("speech_recognizer")` lists
    published sizes.

    Args:
        vocabulary_size: int V, number of labels including the blank. Id 0 is the blank, and also
            pads labels.
        num_layers, num_heads, hidden_dim, intermediate_dim, kernel_size: ints, sizes of the
            encoder. `hidden_dim` is the width of its vectors and of the embedding,
            `intermediate_dim` the width inside the feed-forward networks, `kernel_size` the number
            of vectors that a convolution reads.
        dropout, score, normalizer, mask, position: the dropout rate and the parts of the attention,
            explained in `text_encoder`.
        chunk_size: int, number of vectors in a chunk, to recognize speech while it arrives
            (`ka.generation.SpeechStream`). A vector then attends only to its own and earlier
            chunks, and convolutions are causal. With 10 ms per frame and a subsampling of 4, a
            chunk of 8 vectors lasts 320 ms. None lets each vector attend to the whole sound.
        embedding: a `SpeechEmbedding`, to choose features or waveforms, augmentation and more.
        encoder: a `ConformerEncoder`, a `TransformerEncoder`, or any function, layer or model from
            (B, T, hidden_dim) to the same shape. With it, leave out `num_layers`, `num_heads`,
            `intermediate_dim` and the parts of the attention. With `chunk_size` it must hide later
            chunks itself. None makes a `ConformerEncoder`.
        name: str, the name of the model.

    Returns:
        A functional `keras.Model`. Inputs, a dict: `"features"` float32 (B, T, F) with F features
            for each of T frames, or `"waveform"`
        float32 (B, samples), and `"lengths"` int32 (B,), the number of frames or samples of each
        row. Output: logits (B, ⌈T / subsampling⌉, V), float32.

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
            f"chunk_size={chunk_size} and mask={mask!r} are both masks. Leave one of the two out."
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
