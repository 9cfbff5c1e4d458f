"""Builders: functions that return a functional `keras.Model`; their published sizes, and heads."""

from keras_attention.models.causal_language_model import SIZES as _LANGUAGE_SIZES
from keras_attention.models.causal_language_model import causal_language_model
from keras_attention.models.encoder_decoder import SIZES as _ENCODER_DECODER_SIZES
from keras_attention.models.encoder_decoder import encoder_decoder
from keras_attention.models.head import replace_head
from keras_attention.models.masked_language_model import SIZES as _MASKED_SIZES
from keras_attention.models.masked_language_model import masked_language_model
from keras_attention.models.seq2seq_recurrent import SIZES as _RECURRENT_SIZES
from keras_attention.models.seq2seq_recurrent import seq2seq_recurrent
from keras_attention.models.seq2seq_transformer import SIZES as _TRANSFORMER_SIZES
from keras_attention.models.seq2seq_transformer import seq2seq_transformer
from keras_attention.models.sequence_labeler import SIZES as _LABELER_SIZES
from keras_attention.models.sequence_labeler import sequence_labeler
from keras_attention.models.speech_recognizer import SIZES as _SPEECH_SIZES
from keras_attention.models.speech_recognizer import speech_recognizer
from keras_attention.models.text_classifier import SIZES as _CLASSIFIER_SIZES
from keras_attention.models.text_classifier import text_classifier
from keras_attention.models.text_encoder import SIZES as _ENCODER_SIZES
from keras_attention.models.text_encoder import text_encoder
from keras_attention.models.transformer import TransformerDecoder, TransformerEncoder
from keras_attention.models.vision_transformer import ENCODER_SIZES as _IMAGE_SIZES
from keras_attention.models.vision_transformer import SIZES as _VISION_SIZES
from keras_attention.models.vision_transformer import image_encoder, vision_transformer

SIZES = {
    "causal_language_model": _LANGUAGE_SIZES,
    "encoder_decoder": _ENCODER_DECODER_SIZES,
    "image_encoder": _IMAGE_SIZES,
    "masked_language_model": _MASKED_SIZES,
    "seq2seq_recurrent": _RECURRENT_SIZES,
    "seq2seq_transformer": _TRANSFORMER_SIZES,
    "sequence_labeler": _LABELER_SIZES,
    "speech_recognizer": _SPEECH_SIZES,
    "text_classifier": _CLASSIFIER_SIZES,
    "text_encoder": _ENCODER_SIZES,
    "vision_transformer": _VISION_SIZES,
}


def sizes(builder):
    """The published sizes of `builder`, as {name: keyword arguments}.

    Example:

    ```python
    import keras_attention as ka

    deit = ka.models.sizes("vision_transformer")["DeiT-Ti"]
    assert deit["hidden_dim"] == 192 and deit["num_heads"] == 3
    ```
    """
    if builder not in SIZES:
        raise ValueError(f"No sizes for {builder!r}. Known builders: {', '.join(SIZES)}.")
    return {name: dict(size) for name, size in SIZES[builder].items()}


__all__ = [
    "TransformerDecoder",
    "TransformerEncoder",
    "causal_language_model",
    "encoder_decoder",
    "image_encoder",
    "masked_language_model",
    "replace_head",
    "seq2seq_recurrent",
    "seq2seq_transformer",
    "sequence_labeler",
    "sizes",
    "speech_recognizer",
    "text_classifier",
    "text_encoder",
    "vision_transformer",
]
