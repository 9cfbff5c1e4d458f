"""`speech_to_text`: builds encoder-decoders that transcribe or translate speech."""

import keras

from keras_attention import positions
from keras_attention.attention import MultiHeadAttention
from keras_attention.blocks import FeedForward
from keras_attention.models.conformer import ConformerEncoder
from keras_attention.models.seq2seq_transformer import build_decoder, join
from keras_attention.models.speech_embedding import SpeechEmbedding
from keras_attention.models.stack_choice import check_unused, name_blocks
from keras_attention.models.text_embedding import TextEmbedding
from keras_attention.models.transformer import TransformerEncoder
from keras_attention.models.transformer_decoder import TransformerDecoder


def _whisper(num_layers, num_heads, hidden_dim, num_mel_bins=80):
    """Return a dict of arguments of `speech_to_text` for Whisper (Radford et al., 2022)."""
    attention = MultiHeadAttention(num_heads, hidden_dim // num_heads, key_bias=False)
    stack = dict(
        attention=attention,
        feed_forward=FeedForward(4 * hidden_dim, activation="gelu"),
        epsilon=1e-5,
    )
    return dict(
        hidden_dim=hidden_dim,
        dropout=0.0,
        position=positions.Learned(1500),
        decoder_position=positions.Learned(448),
        embedding=SpeechEmbedding(
            num_mel_bins=num_mel_bins,
            spectrogram="whisper",
            num_frames=3000,
            normalize=False,
            stem="1d",
            subsampling=2,
        ),
        target_embedding=TextEmbedding(scale=False, padding_id=None),
        encoder=TransformerEncoder(num_layers, **stack),
        decoder=TransformerDecoder(num_layers, cross_attention=attention, **stack),
    )


SIZES = {
    # with vocabulary_size=51865 (large-v3: 51866) as released
    "Whisper-tiny": lambda: _whisper(4, 6, 384),
    "Whisper-base": lambda: _whisper(6, 8, 512),
    "Whisper-small": lambda: _whisper(12, 12, 768),
    "Whisper-medium": lambda: _whisper(24, 16, 1024),
    "Whisper-large": lambda: _whisper(32, 20, 1280),
    "Whisper-large-v3": lambda: _whisper(32, 20, 1280, num_mel_bins=128),
}


def speech_to_text(
    vocabulary_size,
    *,
    num_layers=4,
    num_decoder_layers=None,
    num_heads=4,
    hidden_dim=144,
    intermediate_dim=576,
    kernel_size=31,
    dropout=0.1,
    score="scaled_dot",
    normalizer="softmax",
    mask=None,
    position="rotary",
    decoder_position=None,
    embedding=None,
    target_embedding=None,
    encoder=None,
    decoder=None,
    tie_embeddings=True,
    ctc_head=False,
    name="speech_to_text",
):
    """Build an encoder-decoder that transcribes speech, or translates it into another language.

    Such models are fairseq S2T (Wang et al., 2020) and Whisper (Radford et al., 2022, figure 1). To
    generate, call `ka.generation.generate` with a dict of the encoder's inputs as the prompt.

    Args:
        vocabulary_size: int V, number of target ids.
        num_layers, num_heads, hidden_dim, intermediate_dim: ints, sizes of encoder and decoder.
            `hidden_dim` is also the size of the embeddings.
        kernel_size: int, the kernel size of the convolution in the encoder's blocks.
        dropout: float, the dropout rate for the embeddings and inside the stacks.
        score, normalizer: how encoder and decoder compute attention scores and turn them into
            weights, explained in `MultiHeadAttention`.
        mask: the mask of the encoder's attention.
        embedding: a `SpeechEmbedding`, to choose features or waveforms, augmentation and more.
        num_decoder_layers, position, ..., tie_embeddings: further parts of encoder and decoder,
            explained in `seq2seq_transformer`. The source of the decoder is the encoded sound. The
            default encoder is a `ConformerEncoder`.
        ctc_head: bool, whether to also compute CTC logits from the encoder's output. With the loss
            `ka.training.CTCAttention` (Watanabe et al., 2017) the model then learns sooner where in
            the sound each token is.
        name: str, the name of the model.

    Returns:
        A functional `keras.Model`. Inputs, a dict:

        - `"features"` float32 (B, T, F), F features for each of T frames, or `"waveform"` float32
          (B, samples).
        - `"lengths"` int32 (B,), the number of frames or samples of each row. Features with
          `num_frames` have no lengths.
        - `"target_ids"` int32 (B, U), U target tokens, which begin with a start token.

        Output: logits of the next target token (B, U, V), float32. With `ctc_head` the output is a
        dict of these `"logits"` and of `"ctc_logits"` (B, ⌈T / subsampling⌉, V), whose blank is
        id 0. To generate, use `keras.Model(model.input, model.output["logits"])`.

        `get_layer` returns the model's two functional models: `"encoder"`, from sound to `encoded`
        (B, ⌈T / subsampling⌉, D), and `"decoder"`, from `{"target_ids", "encoded"}` to logits.

    ```python
    import numpy as np
    import keras_attention as ka

    size = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32, kernel_size=5)
    features = ka.models.SpeechEmbedding(num_mel_bins=40)
    model = ka.models.speech_to_text(30, embedding=features, **size)
    sound = {"features": np.ones((2, 50, 40), "float32"), "lengths": np.array([50, 31])}
    assert model({**sound, "target_ids": np.array([[1, 4], [1, 5]])}).shape == (2, 2, 30)
    ids = ka.generation.generate(model, sound, 4, start_token_id=1)
    assert ids.shape == (2, 4)
    tiny = ka.models.sizes("speech_to_text")["Whisper-tiny"]
    assert tiny["embedding"].num_frames == 3000 and tiny["hidden_dim"] == 384
    ```
    """
    position = positions.get(position)
    rotation = positions.for_role(positions.get(decoder_position), "rotate", "bias")
    decoder_position = positions.get(decoder_position) or position
    sizes = dict(num_heads=num_heads, intermediate_dim=intermediate_dim)
    sizes |= dict(score=score, normalizer=normalizer)
    rotating = positions.for_role(position, "rotate", "bias")
    own = dict(kernel_size=kernel_size, mask=mask, position=rotating)
    check_unused(speech_to_text, "encoder", encoder, **own)
    check_unused(speech_to_text, "decoder", encoder and decoder, **sizes)
    changed = dict(num_decoder_layers=num_decoder_layers, decoder_position=rotation)
    check_unused(speech_to_text, "decoder", decoder, **changed)
    sizes |= dict(hidden_dim=hidden_dim, dropout=dropout, activation="silu")
    if encoder is None:
        encoder = ConformerEncoder.of_size(num_layers, **sizes, **own)
    if decoder is None:
        decoder = TransformerDecoder.of_size(
            num_decoder_layers or num_layers,
            position=positions.for_role(decoder_position, "rotate", "bias"),
            **sizes,
        )
    embedding = SpeechEmbedding() if embedding is None else embedding
    target_embedding = TextEmbedding() if target_embedding is None else target_embedding

    sound = embedding.inputs()
    x = embedding(sound, hidden_dim, positions.for_role(position, "embed"), dropout)
    x = name_blocks(encoder, "encoder_block")(x)
    encoder_model = keras.Model(sound, x, name="encoder")

    decoder_model = build_decoder(
        *(vocabulary_size, hidden_dim, dropout, decoder_position),
        *(target_embedding, decoder, x, tie_embeddings),
        keras.initializers.RandomNormal(stddev=hidden_dim**-0.5),
    )
    inputs, encoded, logits = join(encoder_model, decoder_model)
    if not ctc_head:
        return keras.Model(inputs, logits, name=name)
    head = keras.layers.Dense(vocabulary_size, dtype="float32", name="ctc_logits")
    return keras.Model(inputs, {"logits": logits, "ctc_logits": head(encoded)}, name=name)
