"""Functions that build a functional `keras.Model` for a task, and the parts to build it from.

`replace_head` and `extend_vocabulary` return a changed copy of a trained model.
"""

from keras_attention.models.causal_language_model import SIZES as _LANGUAGE_SIZES
from keras_attention.models.causal_language_model import causal_language_model
from keras_attention.models.conformer import ConformerEncoder
from keras_attention.models.constituency_parser import constituency_parser
from keras_attention.models.dependency_parser import dependency_parser
from keras_attention.models.encoder_decoder import SIZES as _ENCODER_DECODER_SIZES
from keras_attention.models.encoder_decoder import encoder_decoder
from keras_attention.models.head import replace_head
from keras_attention.models.image_embedding import ImageEmbedding
from keras_attention.models.image_to_sequence import SIZES as _CAPTIONER_SIZES
from keras_attention.models.image_to_sequence import image_to_sequence
from keras_attention.models.masked_language_model import SIZES as _MASKED_SIZES
from keras_attention.models.masked_language_model import masked_language_model
from keras_attention.models.object_detector import SIZES as _DETECTOR_SIZES
from keras_attention.models.object_detector import object_detector
from keras_attention.models.question_answerer import SIZES as _ANSWERER_SIZES
from keras_attention.models.question_answerer import question_answerer
from keras_attention.models.recurrent_stack import RecurrentStack
from keras_attention.models.seq2seq_recurrent import SIZES as _RECURRENT_SIZES
from keras_attention.models.seq2seq_recurrent import seq2seq_recurrent
from keras_attention.models.seq2seq_transformer import SIZES as _TRANSFORMER_SIZES
from keras_attention.models.seq2seq_transformer import seq2seq_transformer
from keras_attention.models.sequence_labeler import SIZES as _LABELER_SIZES
from keras_attention.models.sequence_labeler import sequence_labeler
from keras_attention.models.speech_embedding import SpeechEmbedding
from keras_attention.models.speech_recognizer import SIZES as _SPEECH_SIZES
from keras_attention.models.speech_recognizer import speech_recognizer
from keras_attention.models.speech_to_text import SIZES as _TRANSCRIBER_SIZES
from keras_attention.models.speech_to_text import speech_to_text
from keras_attention.models.text_classifier import SIZES as _CLASSIFIER_SIZES
from keras_attention.models.text_classifier import text_classifier
from keras_attention.models.text_embedding import Characters, TextEmbedding
from keras_attention.models.text_encoder import SIZES as _ENCODER_SIZES
from keras_attention.models.text_encoder import text_encoder
from keras_attention.models.transformer import TransformerEncoder
from keras_attention.models.transformer_decoder import TransformerDecoder
from keras_attention.models.vision_transformer import ENCODER_SIZES as _IMAGE_SIZES
from keras_attention.models.vision_transformer import SIZES as _VISION_SIZES
from keras_attention.models.vision_transformer import image_encoder, vision_transformer
from keras_attention.models.vocabulary import extend_vocabulary

SIZES = {
    "causal_language_model": _LANGUAGE_SIZES,
    "constituency_parser": {},
    "dependency_parser": {},
    "encoder_decoder": _ENCODER_DECODER_SIZES,
    "image_encoder": _IMAGE_SIZES,
    "image_to_sequence": _CAPTIONER_SIZES,
    "masked_language_model": _MASKED_SIZES,
    "object_detector": _DETECTOR_SIZES,
    "question_answerer": _ANSWERER_SIZES,
    "seq2seq_recurrent": _RECURRENT_SIZES,
    "seq2seq_transformer": _TRANSFORMER_SIZES,
    "sequence_labeler": _LABELER_SIZES,
    "speech_recognizer": _SPEECH_SIZES,
    "speech_to_text": _TRANSCRIBER_SIZES,
    "text_classifier": _CLASSIFIER_SIZES,
    "text_encoder": _ENCODER_SIZES,
    "vision_transformer": _VISION_SIZES,
}


def sizes(builder):
    """Return the arguments with which a function of `ka.models` builds the models of papers.

    Args:
        builder: str, the name of a function of `ka.models`, such as `"vision_transformer"`.

    Returns:
        A dict {name of the published model: dict of keyword arguments}. Add the arguments without
        a default, such as the vocabulary size: `builder(vocabulary_size, **arguments)`. Every call
        makes new layers for the arguments that are layers.

    Raises:
        ValueError: the name is unknown.

    ```python
    import keras_attention as ka

    deit = ka.models.sizes("vision_transformer")["DeiT-Ti"]
    assert deit["hidden_dim"] == 192 and deit["num_heads"] == 3
    ```
    """
    if builder not in SIZES:
        raise ValueError(f"No sizes for {builder!r}. Known builders: {', '.join(SIZES)}.")
    # Sizes with parts are functions, which make new layers in each call.
    return {name: size() if callable(size) else dict(size) for name, size in SIZES[builder].items()}


__all__ = [
    "Characters",
    "ImageEmbedding",
    "SpeechEmbedding",
    "TextEmbedding",
    "ConformerEncoder",
    "RecurrentStack",
    "TransformerDecoder",
    "TransformerEncoder",
    "causal_language_model",
    "constituency_parser",
    "dependency_parser",
    "encoder_decoder",
    "extend_vocabulary",
    "image_encoder",
    "image_to_sequence",
    "masked_language_model",
    "object_detector",
    "question_answerer",
    "replace_head",
    "seq2seq_recurrent",
    "seq2seq_transformer",
    "sequence_labeler",
    "sizes",
    "speech_recognizer",
    "speech_to_text",
    "text_classifier",
    "text_encoder",
    "vision_transformer",
]
