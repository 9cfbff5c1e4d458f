"""The hyperparameters that depend on the kind of data, with a dataclass for each kind.

Hyperparameters with `settled=True` are only used when a model is built. All others are used in
every training run. Recipes for Hugging Face checkpoints contain only the others.
"""

import dataclasses
from functools import partial
from typing import Literal

from keras_attention.tasks.recipes.recipe import LONGEST, Data, option

# All kinds with a hyperparameter of the same name share one command line option.
tokens_option = partial(
    option,
    help="Tokens of pairs, recordings and running text: characters, words or subwords.",
    settled=True,
)
vocabulary_option = partial(
    option,
    help="Number of subwords to learn, or with --from to add.",
    least=5,
    most=1 << 20,
    settled=True,
)
length_option = partial(
    option,
    help="Maximum number of tokens of an example. Longer ones are left out or cut.",
    least=1,
    most=LONGEST,
    settled=True,
)
Tokens = Literal["characters", "words", "subwords"]


def settled(default):
    """Return a dataclass field for a hyperparameter that is only used when a model is built.

    `default` is its default value. The field is not a command line option.
    """
    return dataclasses.field(default=default, metadata={"settled": True})


@dataclasses.dataclass(frozen=True)
class LabelData(Data):
    """Hyperparameters for labeled data. A larger `balance` gives rare labels more weight.

    `tasks.labels.make_balanced_loss` has the formula for one label per example.
    `ka.tasks.MultiLabelClassifier` has the formula for any number of labels.
    """

    balance: float = option(
        0.0,
        "Weight of rare labels. 0: as all others. 1: the same total for each label.",
        least=0.0,
        most=1.0,
    )


@dataclasses.dataclass(frozen=True)
class VocabularyData(Data):
    """Hyperparameters for whole texts: the arguments of `TextPreprocessor.build`.

    `max_length` is the maximum number of words in a text.
    """

    min_count: int = settled(2)
    max_size: int | None = settled(None)
    lowercase: bool = settled(True)
    max_length: int = length_option(256)


@dataclasses.dataclass(frozen=True)
class TextData(VocabularyData, LabelData):
    """Hyperparameters for labeled text."""


@dataclasses.dataclass(frozen=True)
class VectorData(Data):
    """Hyperparameters for vectors of texts. `dimensions` are the sizes of shorter vectors."""

    dimensions: tuple | None = option(
        None, "Vectors: sizes that also work as shorter vectors, such as 128,64."
    )


@dataclasses.dataclass(frozen=True)
class MatchingData(VocabularyData, VectorData):
    """All hyperparameters for texts with matching texts."""


@dataclasses.dataclass(frozen=True)
class SentenceData(Data):
    """Hyperparameters for words in sentences: arguments of `ka.data.TaggerPreprocessor.build`.

    `max_length` is the maximum number of tokens in a sentence.
    """

    characters: bool = settled(True)
    min_count: int = settled(2)
    lowercase: bool = settled(True)
    word_length: int = settled(16)
    max_length: int = length_option(512)


@dataclasses.dataclass(frozen=True)
class TaggedData(SentenceData, LabelData):
    """Hyperparameters for sentences with a label for every token.

    With `crf`, the last layer is a `ka.blocks.ConditionalRandomField`, and `label_smoothing` is not
    used.
    """

    crf: bool = option(
        False, "Tags of words: predict only sequences that the tag scheme allows.", settled=True
    )


@dataclasses.dataclass(frozen=True)
class QuestionData(SentenceData):
    """Hyperparameters for questions with contexts: arguments of `QuestionPreprocessor.build`."""

    word_length: int = settled(12)
    max_length: int = length_option(384)
    maximum_question: int = settled(64)
    maximum_answer: int = settled(30)
    stride: int = settled(128)


@dataclasses.dataclass(frozen=True)
class WindowData(Data):
    """Hyperparameters for running text. `steps` is the number of batches (of windows) per epoch."""

    steps: int = option(250, "Running text: batches in an epoch.", least=1, most=10_000_000)


@dataclasses.dataclass(frozen=True)
class MaskedTextData(WindowData):
    """Hyperparameters for masked language models. A window has `max_length` tokens."""

    tokens: Tokens = tokens_option("subwords")
    vocabulary_size: int = vocabulary_option(4000)
    max_length: int = length_option(64)


@dataclasses.dataclass(frozen=True)
class RunningTextData(MaskedTextData):
    """Hyperparameters for causal language models. `temperature` is the sampling temperature."""

    tokens: Tokens = tokens_option("characters")
    max_length: int = length_option(256)
    temperature: float = settled(0.8)


@dataclasses.dataclass(frozen=True)
class WritingData(Data):
    """Hyperparameters for examples with a target text, which the model learns to generate.

    Attributes:
        tokens: str, the kind of tokens. Source and target share subwords.
        vocabulary_size: int, the number of subwords. It is ignored for other tokens.
        max_length: int, the maximum number of tokens of a text for training or generation.
        beam: int, the beam width. 1 is greedy search.
        length_penalty: float, how much the search favors long outputs (`ka.generation.Beam`). With
            0 it prefers short ones.
    """

    tokens: Tokens = tokens_option("subwords")
    vocabulary_size: int | None = vocabulary_option(4000)
    max_length: int | None = length_option(64)
    beam: int = option(
        5,
        "Beam width: number of candidates that the search keeps. 1 is greedy.",
        least=1,
        most=1000,
        settled=True,
    )
    length_penalty: float = option(
        1.0,
        "Length penalty of the search. 0 prefers short outputs.",
        least=0.0,
        most=10.0,
        settled=True,
    )


@dataclasses.dataclass(frozen=True)
class ScoredData(WritingData):
    """Hyperparameters for target text, with the `score` to evaluate, such as `"bleu"`."""

    score: str = option("bleu", "Score of pairs: bleu, rouge or exact_match.", settled=True)


@dataclasses.dataclass(frozen=True)
class BatchData(Data):
    """Hyperparameters for batches of pairs of source and target text.

    `max_tokens` is the maximum number of tokens in a batch, counted with padding on the longer
    side. None uses the same number of pairs in every batch.
    """

    max_tokens: int | None = option(
        4096, "Pairs: maximum tokens in a batch.", least=1, most=1 << 24
    )


@dataclasses.dataclass(frozen=True)
class PairData(ScoredData, BatchData):
    """All hyperparameters for pairs of source and target text."""


@dataclasses.dataclass(frozen=True)
class CaptionData(ScoredData):
    """Hyperparameters for captions. `image_size` is (height, width), or an int, the longer side."""

    image_size: int | tuple = settled(192)


@dataclasses.dataclass(frozen=True)
class MatchedImageData(VocabularyData):
    """Hyperparameters for images with matching texts.

    `image_size` is (height, width), or an int, the longer side.
    """

    image_size: int | tuple = settled(64)


@dataclasses.dataclass(frozen=True)
class JointData(Data):
    """Hyperparameters for recordings with two losses. `ctc_weight` is the weight of CTC."""

    ctc_weight: float = 0.3


@dataclasses.dataclass(frozen=True)
class RecordedTextData(WritingData, JointData):
    """All hyperparameters for recordings with target text."""


@dataclasses.dataclass(frozen=True)
class RecordingData(Data):
    """Hyperparameters for CTC. `tokens` (characters or words) is the unit of transcripts."""

    tokens: Tokens = tokens_option("characters")


@dataclasses.dataclass(frozen=True)
class ImageData(LabelData):
    """Hyperparameters for image classes: arguments of `ka.data.image_augmentation`."""

    shift: float = 0.08
    flip: bool = True


@dataclasses.dataclass(frozen=True)
class BoxData(Data):
    """Hyperparameters for images with boxes.

    `image_size` is (height, width), or an int, the longer side. The other attributes are
    arguments of `ka.data.detection_augmentation`.
    """

    image_size: int | tuple = settled(320)
    flip: bool = True
    vertical_flip: bool = True
    crop: float = 0.3
    brightness: float = 0.2
    contrast: float = 0.2


@dataclasses.dataclass(frozen=True)
class PixelData(Data):
    """Hyperparameters for images that the model learns to generate.

    Attributes:
        num_levels: int, the number of brightness levels.
        window: int. A pixel attends to the earlier pixels that are less than `window` rows and less
            than `window` columns away, on both sides.
        temperature: float, the sampling temperature.
    """

    num_levels: int = settled(16)
    window: int = settled(5)
    temperature: float = settled(1.0)
