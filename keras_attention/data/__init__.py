"""Data in: sentences, pairs, texts and images, from TensorFlow Datasets or files, to batches."""

from keras_attention.data.augmentation import image_augmentation
from keras_attention.data.characters import Characters
from keras_attention.data.conll import from_conll, read_conll
from keras_attention.data.conllu import from_conllu, read_conllu
from keras_attention.data.contiguous_segments import contiguous_segments
from keras_attention.data.corpus import Corpus, from_plain_text
from keras_attention.data.dates import WrittenDate, dates
from keras_attention.data.image_batches import image_batches
from keras_attention.data.images import Images, ImageSplit
from keras_attention.data.language_model_batches import language_model_batches
from keras_attention.data.pair_files import from_pair_files, read_pairs
from keras_attention.data.pairs import Pair, Pairs
from keras_attention.data.sentence_polarity import sentence_polarity
from keras_attention.data.seq2seq_batches import seq2seq_batches
from keras_attention.data.sequence_preprocessor import SequencePreprocessor
from keras_attention.data.split_words import split_words
from keras_attention.data.subwords import Subwords
from keras_attention.data.tagged import Sentence, Tagged
from keras_attention.data.tagger_preprocessor import TaggerPreprocessor
from keras_attention.data.tagging_batches import tagging_batches
from keras_attention.data.text_batches import text_batches
from keras_attention.data.text_files import from_text_files, read_texts
from keras_attention.data.text_preprocessor import TextPreprocessor
from keras_attention.data.texts import Text, Texts
from keras_attention.data.tfds import from_tfds
from keras_attention.data.vocabulary import Labels, Vocabulary

__all__ = [
    "Characters",
    "Corpus",
    "ImageSplit",
    "Images",
    "Labels",
    "Pair",
    "Pairs",
    "Sentence",
    "SequencePreprocessor",
    "Subwords",
    "Tagged",
    "TaggerPreprocessor",
    "Text",
    "TextPreprocessor",
    "Texts",
    "Vocabulary",
    "WrittenDate",
    "contiguous_segments",
    "dates",
    "from_conll",
    "from_conllu",
    "from_pair_files",
    "from_plain_text",
    "from_text_files",
    "from_tfds",
    "image_augmentation",
    "image_batches",
    "language_model_batches",
    "read_conll",
    "read_conllu",
    "read_pairs",
    "seq2seq_batches",
    "read_texts",
    "sentence_polarity",
    "split_words",
    "tagging_batches",
    "text_batches",
]
