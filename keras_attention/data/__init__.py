"""Data: readers of files, datasets, tokenizers, preprocessors, and batches for training."""

from keras_attention.data.batches import batches
from keras_attention.data.columns import Columns, Computed, Pixels, Ragged
from keras_attention.data.dataset import DataSet
from keras_attention.data.made_up.dates import WrittenDate, dates
from keras_attention.data.made_up.facts import facts
from keras_attention.data.made_up.spoken_digits import connected_digits, spoken_numbers
from keras_attention.data.preprocessors.answer_spans import (
    EncodedQuestion,
    QuestionWindow,
    Span,
    search_span,
)
from keras_attention.data.preprocessors.detection import DetectionPreprocessor
from keras_attention.data.preprocessors.detection_augmentation import detection_augmentation
from keras_attention.data.preprocessors.image import ImagePreprocessor
from keras_attention.data.preprocessors.image_text import ImageTextPreprocessor
from keras_attention.data.preprocessors.image_text_pairs import ImageTextPairPreprocessor
from keras_attention.data.preprocessors.masked_language import MaskedLMPreprocessor
from keras_attention.data.preprocessors.masking import MaskedWindows
from keras_attention.data.preprocessors.objects_as_text import describe_objects, find_objects
from keras_attention.data.preprocessors.pixel_levels import PixelLevelsPreprocessor
from keras_attention.data.preprocessors.question import QuestionPreprocessor
from keras_attention.data.preprocessors.resizing import Resizing
from keras_attention.data.preprocessors.sequence import SequencePreprocessor
from keras_attention.data.preprocessors.speech import SpeechPreprocessor
from keras_attention.data.preprocessors.speech_prompt import SpeechPrompt
from keras_attention.data.preprocessors.speech_text import SpeechTextPreprocessor
from keras_attention.data.preprocessors.tagger import TaggerPreprocessor
from keras_attention.data.preprocessors.text import TextPreprocessor
from keras_attention.data.preprocessors.text_pairs import TextPairPreprocessor
from keras_attention.data.readers.boxed_images import BoxedImage
from keras_attention.data.readers.bracketed_trees import (
    ConstituencyTree,
    build_tree,
    linearize_tree,
    parse_brackets,
)
from keras_attention.data.readers.captioned_images import (
    CaptionedImage,
    caption_objects,
    from_captions,
)
from keras_attention.data.readers.coco import from_coco, list_coco_results
from keras_attention.data.readers.constituency_trees import (
    from_bracketed_files,
    read_bracketed_trees,
)
from keras_attention.data.readers.corpus import TextWindows, contiguous_segments, from_plain_text
from keras_attention.data.readers.dependency_trees import (
    DependencyTree,
    from_conllu_trees,
    from_tfds_trees,
    read_conllu_trees,
)
from keras_attention.data.readers.dialogues import (
    Dialogue,
    from_dialogue_files,
    join_dialogues,
    pair_dialogues,
    read_dialogues,
)
from keras_attention.data.readers.image_folders import from_image_folder, read_image
from keras_attention.data.readers.images import ImageSplit, image_augmentation
from keras_attention.data.readers.matching_texts import (
    MatchingTexts,
    from_matching_files,
    read_matching_texts,
)
from keras_attention.data.readers.multi_label_texts import (
    MultiLabelText,
    from_multi_label_files,
    read_multi_label_texts,
)
from keras_attention.data.readers.pairs import Pair, from_pair_files, read_pairs
from keras_attention.data.readers.pascal_voc import from_voc
from keras_attention.data.readers.questions import (
    Answer,
    Question,
    from_question_files,
    read_questions,
)
from keras_attention.data.readers.recordings import Recording, from_recordings
from keras_attention.data.readers.sentence_polarity import sentence_polarity
from keras_attention.data.readers.sounds import read_sound
from keras_attention.data.readers.sphinx import read_features
from keras_attention.data.readers.tagged import (
    Sentence,
    from_conll,
    from_conllu,
    read_conll,
    read_conllu,
)
from keras_attention.data.readers.texts import Text, from_text_files, read_texts
from keras_attention.data.readers.tfds import from_tfds
from keras_attention.data.readers.tfds_boxes import from_tfds_boxes
from keras_attention.data.tokenizers.entries import Characters, Words
from keras_attention.data.tokenizers.pretrained import PretrainedTokenizer
from keras_attention.data.tokenizers.subwords import Subwords
from keras_attention.data.tokenizers.vocabulary import Labels, Vocabulary, split_words

__all__ = [
    "Answer",
    "BoxedImage",
    "CaptionedImage",
    "Characters",
    "Columns",
    "Computed",
    "ConstituencyTree",
    "DataSet",
    "DependencyTree",
    "DetectionPreprocessor",
    "Dialogue",
    "EncodedQuestion",
    "ImagePreprocessor",
    "ImageSplit",
    "ImageTextPairPreprocessor",
    "ImageTextPreprocessor",
    "Labels",
    "MaskedLMPreprocessor",
    "MaskedWindows",
    "MatchingTexts",
    "MultiLabelText",
    "Pair",
    "PixelLevelsPreprocessor",
    "Pixels",
    "PretrainedTokenizer",
    "Question",
    "QuestionPreprocessor",
    "QuestionWindow",
    "Ragged",
    "Recording",
    "Resizing",
    "Sentence",
    "SequencePreprocessor",
    "Span",
    "SpeechPreprocessor",
    "SpeechPrompt",
    "SpeechTextPreprocessor",
    "Subwords",
    "TaggerPreprocessor",
    "Text",
    "TextPairPreprocessor",
    "TextPreprocessor",
    "TextWindows",
    "Vocabulary",
    "Words",
    "WrittenDate",
    "batches",
    "build_tree",
    "caption_objects",
    "connected_digits",
    "contiguous_segments",
    "dates",
    "describe_objects",
    "detection_augmentation",
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
    "from_matching_files",
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
    "join_dialogues",
    "linearize_tree",
    "list_coco_results",
    "pair_dialogues",
    "parse_brackets",
    "read_bracketed_trees",
    "read_conll",
    "read_conllu",
    "read_conllu_trees",
    "read_dialogues",
    "read_features",
    "read_image",
    "read_matching_texts",
    "read_multi_label_texts",
    "read_pairs",
    "read_questions",
    "read_sound",
    "read_texts",
    "search_span",
    "sentence_polarity",
    "split_words",
    "spoken_numbers",
]
