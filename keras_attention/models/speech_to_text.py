"""Sound to text by an encoder and a decoder: recognition, and translation of what is said."""

import keras

from keras_attention.blocks import (
    ConvolutionSubsampling,
    FilterAugment,
    FixedLength,
    FrameConvolutions,
    LengthMask,
    LogMelSpectrogram,
    PositionEmbedding,
    SpecAugment,
)
from keras_attention.blocks.log_mel_spectrogram import STRIDE
from keras_attention.models.keywords import get_position, takes_keywords_of
from keras_attention.models.speech_recognizer import ConformerKeywords, check_logarithm
from keras_attention.models.stack_keywords import DecoderKeywords
from keras_attention.models.text_decoder import build_text_decoder, join

STEMS = ("2d", "1d")
OF_ENCODER = ("block", "kernel_size", "convolution_norm", "causal", "mask", "layer_masks",
              "layer_positions", "num_blocks")  # fmt: skip


def _whisper(num_layers, num_heads, hidden_dim, num_mel_bins=80):
    """Radford et al. (2022), section 2.2: Transformers of learned positions, of 30 seconds."""
    return dict(
        num_layers=num_layers,
        num_heads=num_heads,
        hidden_dim=hidden_dim,
        intermediate_dim=4 * hidden_dim,
        dropout=0.0,
        num_mel_bins=num_mel_bins,
        spectrogram="whisper",
        num_frames=3000,
        normalize_features=False,
        stem="1d",
        subsampling=2,
        block="encoder",
        activation="gelu",
        key_bias=False,
        position="learned",
        max_length=448,
        scale_embeddings=False,
        target_padding_id=None,
        epsilon=1e-5,
    )


SIZES = {
    # Radford et al. (2022), table 1; with vocabulary_size=51865 (large-v3: 51866) as released
    "Whisper-tiny": _whisper(4, 6, 384),
    "Whisper-base": _whisper(6, 8, 512),
    "Whisper-small": _whisper(12, 12, 768),
    "Whisper-medium": _whisper(24, 16, 1024),
    "Whisper-large": _whisper(32, 20, 1280),
    "Whisper-large-v3": _whisper(32, 20, 1280, num_mel_bins=128),
}


@takes_keywords_of(
    ConformerKeywords,
    without=["causal", "padding"],
    num_layers=4,
    num_heads=4,
    hidden_dim=144,
    intermediate_dim=576,
    dropout=0.1,
    activation="silu",
    position="rotary",
)
def speech_to_text(
    vocabulary_size,
    *,
    inputs="features",
    num_mel_bins=80,
    sampling_rate=16000,
    spectrogram="kaldi",
    num_frames=None,
    normalize_features=True,
    stem="2d",
    subsampling=4,
    subsampling_filters=None,
    filter_augment=None,
    spec_augment=None,
    num_decoder_layers=None,
    decoder_position=None,
    cross_position=None,
    scale_embeddings=True,
    tie_embeddings=True,
    target_padding_id=0,
    ctc_head=False,
    name="speech_to_text",
    **transformer,
):
    """From sound to text, in the language that is spoken or in another one.

    An encoder-decoder over spectrograms (Wang et al., 2020, *fairseq S2T*; Radford et al., 2022,
    *Whisper*, figure 1), with Transformer or Conformer blocks. It generates with a cache:
    `ka.generation.generate` takes a dict of its sounds, and exported files hold the whole loop.

    Args:
        vocabulary_size: int V, number of target ids.
        inputs: `"features"`, such as log-mel spectrograms, or `"waveform"`, of which a
            `LogMelSpectrogram` in the model makes them.
        num_mel_bins: int F, features of a frame.
        sampling_rate: int, samples a second of a waveform.
        spectrogram: `"kaldi"` or `"whisper"`, of a waveform, as in `LogMelSpectrogram`.
        num_frames: int, to which every sound is cut or filled up with silence, which is then heard
            as sound is (Whisper: 3000, which are 30 seconds); None for sounds of any length, whose
            padding is masked.
        normalize_features: bool, whether features are brought to mean 0 and variance 1, over all
            frames of the training, by a `BatchNormalization` without weights.
        stem: what makes few vectors of many frames: `"2d"`, a `ConvolutionSubsampling`, or `"1d"`,
            `FrameConvolutions` as Whisper has them.
        subsampling: int, a power of two, how many frames make one vector.
        subsampling_filters: int, of the convolutions of `"2d"`; None is `hidden_dim`.
        filter_augment: dict, keywords of `FilterAugment` for training, of features that are
            natural logarithms; None or an empty one for none.
        spec_augment: dict, keywords of `SpecAugment` for training; None or an empty one for none.
        num_decoder_layers: int, if it differs from `num_layers`.
        decoder_position: `position` of the decoder, where it differs from the encoder's.
        cross_position: a position that rotates or biases in cross-attention, or None.
        scale_embeddings: bool, whether tokens are multiplied by √hidden_dim.
        tie_embeddings: bool, whether the logits are inner products with the target tokens'
            embeddings, or have a matrix of their own.
        target_padding_id: int, the target id that is no token; None where every id is one.
        ctc_head: bool, whether the encoder has logits of its own for `ka.training.CTCAttention`,
            which trains both (Watanabe et al., 2017): alignments are learnt sooner.
        name: str.
        transformer: `block` (`"conformer"` or `"encoder"`), `kernel_size` (31) and
            `convolution_norm` (`"batch_norm"`) of a Conformer's convolution; and keywords of
            `TransformerEncoder`, which documents them, for encoder and decoder. `mask`,
            `layer_masks`, `layer_positions` and `num_blocks` are the encoder's alone, and
            `max_length` is of the learned positions of the decoder: the encoder has as many as
            `num_frames` make. Published sizes: `ka.models.sizes("speech_to_text")`.

    Returns:
        A functional `keras.Model`. Inputs, a dict: `"features"` float32 (B, T, F), or `"waveform"`
        float32 (B, samples); `"lengths"` int32 (B,), how many frames or samples each row has,
        which features of `num_frames` do not need; and `"target_ids"` int32 (B, U), which
        begin with a start token of your own. Output: logits (B, U, V), float32, at each place those
        of the target token that follows; or with `ctc_head` a dict of these `"logits"` and of
        `"ctc_logits"` (B, ⌈T / subsampling⌉, V), whose blank is id 0.
        It consists of two functional models, available by `get_layer`: `"encoder"`, from sound to
        `encoded` (B, ⌈T / subsampling⌉, D), and `"decoder"`, from `{"target_ids", "encoded"}` to
        logits. To generate and to export needs no CTC head: `keras.Model(model.input,
        model.output["logits"])` is the model without.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    size = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32, kernel_size=5)
    model = ka.models.speech_to_text(30, num_mel_bins=40, **size)
    sound = {"features": np.ones((2, 50, 40), "float32"), "lengths": np.array([50, 31])}
    assert model({**sound, "target_ids": np.array([[1, 4], [1, 5]])}).shape == (2, 2, 30)
    ids = ka.generation.generate(model, sound, 4, start_token_id=1)
    assert ids.shape == (2, 4)
    tiny = ka.models.sizes("speech_to_text")["Whisper-tiny"]
    assert tiny["num_frames"] == 3000 and tiny["hidden_dim"] == 384
    ```
    """
    if inputs not in ("features", "waveform"):
        raise ValueError(f"inputs={inputs!r}: expected 'features' or 'waveform'.")
    if stem not in STEMS:
        raise ValueError(f"stem={stem!r}: expected '2d' or '1d'.")
    if stem == "1d" and subsampling_filters is not None:
        raise ValueError(
            f"subsampling_filters={subsampling_filters} is of stem='2d': convolutions over frames "
            "alone have hidden_dim channels. Leave it out."
        )
    encoder, decoder = _make_stacks(
        transformer, num_frames, subsampling, num_decoder_layers, decoder_position, cross_position
    )
    sound, x = _read_sound(inputs, num_mel_bins, sampling_rate, spectrogram, num_frames)
    if filter_augment:
        check_logarithm(inputs, spectrogram)
        x = FilterAugment(**filter_augment, dtype="float32", name="filter_augment")(x)
    if normalize_features:
        x = keras.layers.BatchNormalization(
            center=False, scale=False, momentum=0.9, dtype="float32", name="feature_norm"
        )(x)
    if spec_augment:
        x = SpecAugment(**spec_augment, name="spec_augment")(x)
    if stem == "1d":
        subsample = FrameConvolutions(encoder.hidden_dim, subsampling, name="subsampling")
    else:
        subsample = ConvolutionSubsampling(
            encoder.hidden_dim, subsampling, filters=subsampling_filters, name="subsampling"
        )
    x = subsample(x)
    if (added := encoder.embedding_position()) is not None:
        x = PositionEmbedding(added, name="position")(x)
    x = keras.layers.Dropout(encoder.dropout, name="subsampling_dropout")(x)
    encoder_model = keras.Model(sound, encoder(x, name="encoder_block"), name="encoder")

    decoder_model = build_text_decoder(
        vocabulary_size,
        decoder,
        encoder_model.output,
        scale_embeddings=scale_embeddings,
        tie_embeddings=tie_embeddings,
        padding_id=target_padding_id,
    )
    inputs, encoded, logits = join(encoder_model, decoder_model)
    if not ctc_head:
        return keras.Model(inputs, logits, name=name)
    head = keras.layers.Dense(vocabulary_size, dtype="float32", name="ctc_logits")
    return keras.Model(inputs, {"logits": logits, "ctc_logits": head(encoded)}, name=name)


def _make_stacks(transformer, num_frames, subsampling, num_layers, position, cross_position):
    """The stacks of both sides: the decoder has Transformer blocks, whatever the encoder has."""
    own = dict(transformer)
    if own["position"] == "learned":
        if num_frames is None:
            raise ValueError(
                "position='learned' needs num_frames=, of which the encoder's positions are. Give "
                "it, or use a position that has no end, such as 'sinusoidal' or 'rotary'."
            )
        own["max_length"] = -(-num_frames // subsampling)
    encoder = ConformerKeywords(**own)
    shared = {key: value for key, value in transformer.items() if key not in OF_ENCODER}
    position = get_position(position, transformer.get("max_length")) or get_position(
        transformer["position"], transformer.get("max_length")
    )
    shared |= {"position": position, "cross_position": cross_position}
    shared["num_layers"] = num_layers or transformer["num_layers"]
    return encoder, DecoderKeywords(**shared)


def _read_sound(inputs, num_mel_bins, sampling_rate, spectrogram, num_frames):
    """The inputs of the encoder, a dict, and features (B, T, F) of them."""
    if inputs == "features" and num_frames is not None:
        features = keras.Input((num_frames, num_mel_bins), dtype="float32", name="features")
        return {"features": features}, features
    lengths = keras.Input((), dtype="int32", name="lengths")
    shape = (None, num_mel_bins) if inputs == "features" else (None,)
    sound = keras.Input(shape, dtype="float32", name=inputs)
    x = LengthMask(name="length_mask")(sound, lengths)
    if inputs == "waveform":
        if num_frames is not None:
            samples = num_frames * round(STRIDE * sampling_rate)
            x = FixedLength(samples, name="fixed_length")(x)
        x = LogMelSpectrogram(num_mel_bins, spectrogram, sampling_rate, name="spectrogram")(x)
    return {inputs: sound, "lengths": lengths}, x
