"""Sentences, pairs, texts, images and recordings, from TensorFlow Datasets or files, as batches."""

from keras_attention.data.answer_spans import (
    EncodedQuestion,
    QuestionWindow,
    Span,
    search_span,
)
from keras_attention.data.boxed_images import BoxedImage, BoxedImages, detection_batches
from keras_attention.data.bracketed_trees import (
    ConstituencyTree,
    build_tree,
    linearize_tree,
    parse_brackets,
)
from keras_attention.data.captioned_images import (
    CaptionedImage,
    CaptionedImages,
    caption_batches,
    from_captions,
)
from keras_attention.data.coco import from_coco, list_coco_results
from keras_attention.data.constituency_trees import (
    ConstituencyTrees,
    constituency_batches,
    from_bracketed_files,
    read_bracketed_trees,
)
from keras_attention.data.corpus import (
    Corpus,
    contiguous_segments,
    from_plain_text,
    language_model_batches,
)
from keras_attention.data.dates import WrittenDate, dates
from keras_attention.data.dependency_trees import (
    DependencyTree,
    DependencyTrees,
    dependency_batches,
    from_conllu_trees,
    from_tfds_trees,
    read_conllu_trees,
)
from keras_attention.data.detection_augmentation import detection_augmentation
from keras_attention.data.detection_preprocessor import DetectionPreprocessor
from keras_attention.data.dialogues import (
    DialogueCorpus,
    DialoguePairs,
    Dialogues,
    from_dialogue_files,
    read_dialogues,
)
from keras_attention.data.entry_tokenizers import Characters, Words
from keras_attention.data.facts import facts
from keras_attention.data.image_folders import from_image_folder, read_image
from keras_attention.data.image_preprocessor import ImagePreprocessor
from keras_attention.data.image_text_preprocessor import ImageTextPreprocessor
from keras_attention.data.images import Images, ImageSplit, image_augmentation, image_batches
from keras_attention.data.masked_preprocessor import MaskedLMPreprocessor
from keras_attention.data.masking import masked_language_model_batches
from keras_attention.data.multi_label_texts import (
    MultiLabelText,
    MultiLabelTexts,
    from_multi_label_files,
    multi_label_batches,
    read_multi_label_texts,
)
from keras_attention.data.objects_as_text import describe_objects, find_objects
from keras_attention.data.pairs import Pair, Pairs, from_pair_files, read_pairs, seq2seq_batches
from keras_attention.data.pascal_voc import from_voc
from keras_attention.data.pixel_levels import PixelLevelsPreprocessor, pixel_batches
from keras_attention.data.pretrained_tokenizer import PretrainedTokenizer
from keras_attention.data.question_preprocessor import QuestionPreprocessor, question_batches
from keras_attention.data.questions import (
    Answer,
    Question,
    Questions,
    from_question_files,
    read_questions,
)
from keras_attention.data.recordings import (
    Recording,
    Recordings,
    from_recordings,
    recording_batches,
)
from keras_attention.data.resizing import Resizing
from keras_attention.data.sentence_polarity import sentence_polarity
from keras_attention.data.sequence_preprocessor import SequencePreprocessor
from keras_attention.data.sounds import read_sound
from keras_attention.data.speech_preprocessor import SpeechPreprocessor
from keras_attention.data.speech_text_preprocessor import (
    SpeechTextPreprocessor,
    speech_text_batches,
)
from keras_attention.data.sphinx import read_features
from keras_attention.data.spoken_digits import connected_digits, spoken_numbers
from keras_attention.data.subword_masked_preprocessor import SubwordMaskedLMPreprocessor
from keras_attention.data.subword_preprocessors import (
    SubwordQuestionPreprocessor,
    SubwordTaggerPreprocessor,
    SubwordTextPreprocessor,
)
from keras_attention.data.subword_sequence_preprocessor import SubwordSequencePreprocessor
from keras_attention.data.subword_speech_preprocessor import SubwordSpeechPreprocessor
from keras_attention.data.tagged import (
    Sentence,
    Tagged,
    from_conll,
    from_conllu,
    read_conll,
    read_conllu,
    tagging_batches,
)
from keras_attention.data.tagger_preprocessor import TaggerPreprocessor
from keras_attention.data.text_preprocessor import TextPreprocessor
from keras_attention.data.texts import Text, Texts, from_text_files, read_texts, text_batches
from keras_attention.data.tfds import from_tfds
from keras_attention.data.tfds_boxes import from_tfds_boxes
from keras_attention.data.tokenizers import Subwords
from keras_attention.data.vocabulary import Labels, Vocabulary, split_words

__all__ = [
    "Answer",
    "BoxedImage",
    "BoxedImages",
    "CaptionedImage",
    "CaptionedImages",
    "Characters",
    "ConstituencyTree",
    "ConstituencyTrees",
    "Corpus",
    "DependencyTree",
    "DependencyTrees",
    "DetectionPreprocessor",
    "DialogueCorpus",
    "DialoguePairs",
    "Dialogues",
    "EncodedQuestion",
    "ImagePreprocessor",
    "ImageSplit",
    "ImageTextPreprocessor",
    "Images",
    "Labels",
    "MaskedLMPreprocessor",
    "MultiLabelText",
    "MultiLabelTexts",
    "Pair",
    "Pairs",
    "PixelLevelsPreprocessor",
    "PretrainedTokenizer",
    "Question",
    "QuestionPreprocessor",
    "QuestionWindow",
    "Questions",
    "Recording",
    "Recordings",
    "Resizing",
    "Sentence",
    "SequencePreprocessor",
    "Span",
    "SpeechPreprocessor",
    "SpeechTextPreprocessor",
    "SubwordMaskedLMPreprocessor",
    "SubwordQuestionPreprocessor",
    "SubwordSequencePreprocessor",
    "SubwordSpeechPreprocessor",
    "SubwordTaggerPreprocessor",
    "SubwordTextPreprocessor",
    "Subwords",
    "Tagged",
    "TaggerPreprocessor",
    "Text",
    "TextPreprocessor",
    "Texts",
    "Vocabulary",
    "Words",
    "WrittenDate",
    "build_tree",
    "caption_batches",
    "connected_digits",
    "constituency_batches",
    "contiguous_segments",
    "dates",
    "dependency_batches",
    "describe_objects",
    "detection_augmentation",
    "detection_batches",
    "facts",
    "find_objects",
    "from_bracketed_files",
    "from_captions",
    "from_coco",
    "from_conll",
    "from_conllu",
    "from_conllu_trees",
    "from_dialogue_files",
    "from_image_folder",
    "from_multi_label_files",
    "from_pair_files",
    "from_plain_text",
    "from_question_files",
    "from_recordings",
    "from_text_files",
    "from_tfds",
    "from_tfds_boxes",
    "from_tfds_trees",
    "from_voc",
    "image_augmentation",
    "image_batches",
    "language_model_batches",
    "linearize_tree",
    "list_coco_results",
    "masked_language_model_batches",
    "multi_label_batches",
    "parse_brackets",
    "pixel_batches",
    "question_batches",
    "read_bracketed_trees",
    "read_conll",
    "read_conllu",
    "read_conllu_trees",
    "read_dialogues",
    "read_features",
    "read_image",
    "read_multi_label_texts",
    "read_pairs",
    "read_questions",
    "read_sound",
    "read_texts",
    "recording_batches",
    "search_span",
    "sentence_polarity",
    "seq2seq_batches",
    "speech_text_batches",
    "split_words",
    "spoken_numbers",
    "tagging_batches",
    "text_batches",
]
