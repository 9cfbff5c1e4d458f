"""The numbers of recipes that depend on the kind of the data, a dataclass for each kind.

Those of `settled=True` count only when a model is built. The others count in every training, and
are all that the recipe of a checkpoint has.
"""

import dataclasses
from functools import partial
from typing import Literal

from keras_attention.tasks.recipes.recipe import LONGEST, Data, option

# One name is one option of the command line, whichever kinds have it.
tokens_option = partial(
    option,
    help="What is read or written, of pairs, recordings and running text: characters, words or "
    "subwords.",
    settled=True,
)
vocabulary_option = partial(
    option, help="Subwords to learn; of a preset, to add.", least=5, most=1 << 20, settled=True
)
length_option = partial(
    option,
    help="Tokens of an example at most: longer ones are left out or cut.",
    least=1,
    most=LONGEST,
    settled=True,
)
Tokens = Literal["characters", "words", "subwords"]


def settled(default):
    """Make the field of a number that counts only when a model is built, and is no option."""
    return dataclasses.field(default=default, metadata={"settled": True})


@dataclasses.dataclass(frozen=True)
class LabelData(Data):
    """Examples with labels: `balance` says how far rare ones weigh more.

    Of one label each, see `tasks.labels.balance_classes`. Of any number of labels it is the power
    of the false ones by the true ones that a label weighs where it is true.
    """

    balance: float = option(
        0.0, "How far rare classes or labels weigh more: 0 not, 1 fully.", least=0.0, most=1.0
    )


@dataclasses.dataclass(frozen=True)
class TextData(LabelData):
    """Texts with labels, as for `TextPreprocessor.build`; `max_length` is in words."""

    min_count: int = settled(2)
    max_size: int | None = settled(None)
    lowercase: bool = settled(True)
    max_length: int = length_option(256)


@dataclasses.dataclass(frozen=True)
class SentenceData(Data):
    """Sentences, as for `TaggerPreprocessor.build`: words, and the characters of each.

    `max_length` is the tokens of a sentence at most.
    """

    characters: bool = settled(True)
    min_count: int = settled(2)
    lowercase: bool = settled(True)
    word_length: int = settled(16)
    max_length: int = length_option(512)


@dataclasses.dataclass(frozen=True)
class TaggedData(SentenceData, LabelData):
    """Sentences with a label for every token."""


@dataclasses.dataclass(frozen=True)
class QuestionData(SentenceData):
    """Questions with contexts, as for `QuestionPreprocessor.build`."""

    word_length: int = settled(12)
    max_length: int = length_option(384)
    maximum_question: int = settled(64)
    maximum_answer: int = settled(30)
    stride: int = settled(128)


@dataclasses.dataclass(frozen=True)
class WindowData(Data):
    """Running text: `steps` are the batches of windows at random places in an epoch."""

    steps: int = option(250, "Batches of an epoch, of running text.", least=1, most=10_000_000)


@dataclasses.dataclass(frozen=True)
class MaskedTextData(WindowData):
    """Running text; `max_length` is the tokens of a window, which a model sees at once."""

    tokens: Tokens = tokens_option("subwords")
    vocabulary_size: int = vocabulary_option(4000)
    max_length: int = length_option(64)


@dataclasses.dataclass(frozen=True)
class RunningTextData(MaskedTextData):
    """Running text to go on with; `temperature` is that of what is written."""

    tokens: Tokens = tokens_option("characters")
    max_length: int = length_option(256)
    temperature: float = settled(0.8)


@dataclasses.dataclass(frozen=True)
class WritingData(Data):
    """Examples with texts that are written.

    Attributes:
        tokens: what the texts consist of, of pairs characters or words of each side, or subwords
            of both together.
        vocabulary_size: int, how many subwords.
        max_length: int, the tokens of a text to train on, and of one that is written.
        beam: int, how many texts the search holds at a time; 1 is greedy.
        length_penalty: float, of `ka.generation.Beam`, so that short texts are not preferred.
    """

    tokens: Tokens = tokens_option("subwords")
    vocabulary_size: int | None = vocabulary_option(4000)
    max_length: int | None = length_option(64)
    beam: int = option(
        5, "Texts that the search holds; 1 is greedy.", least=1, most=1000, settled=True
    )
    length_penalty: float = option(
        1.0, "Of that search; 0 prefers short texts.", least=0.0, most=10.0, settled=True
    )


@dataclasses.dataclass(frozen=True)
class ScoredData(WritingData):
    """The same, where `score` is `"exact_match"`, `"bleu"` or `"rouge"`."""

    score: str = option("bleu", "Of pairs of texts: bleu, rouge or exact_match.", settled=True)


@dataclasses.dataclass(frozen=True)
class BatchData(Data):
    """Pairs of texts: `max_tokens` are those of a batch on its longer side, or None."""

    max_tokens: int | None = option(
        4096, "Tokens of a batch, of pairs of texts.", least=1, most=1 << 24
    )


@dataclasses.dataclass(frozen=True)
class PairData(ScoredData, BatchData):
    """Pairs of texts, with all that is settled when a model is built."""


@dataclasses.dataclass(frozen=True)
class CaptionData(ScoredData):
    """Pictures with texts; `image_size` is (height, width) or the longer side."""

    image_size: int | tuple = settled(192)


@dataclasses.dataclass(frozen=True)
class JointData(Data):
    """Recordings with texts: the share of CTC in the loss, of a model that has it."""

    ctc_weight: float = 0.3


@dataclasses.dataclass(frozen=True)
class RecordedTextData(WritingData, JointData):
    """Recordings with texts, with all that is settled when a model is built."""


@dataclasses.dataclass(frozen=True)
class RecordingData(Data):
    """Recordings with transcripts of characters or words."""

    tokens: Tokens = tokens_option("characters")


@dataclasses.dataclass(frozen=True)
class ImageData(LabelData):
    """Pictures with classes, as for `ka.data.image_augmentation`."""

    shift: float = 0.08
    flip: bool = True


@dataclasses.dataclass(frozen=True)
class BoxData(Data):
    """Pictures with boxes, as for `ka.data.detection_augmentation`.

    `image_size` is (height, width) or the longer side.
    """

    image_size: int | tuple = settled(320)
    flip: bool = True
    vertical_flip: bool = True
    crop: float = 0.3
    brightness: float = 0.2
    contrast: float = 0.2


@dataclasses.dataclass(frozen=True)
class PixelData(Data):
    """Pictures that are drawn.

    Attributes:
        num_levels: int, of brightness.
        window: int, the rows and columns that a pixel looks back on, its own included.
        temperature: float, of the chance with which pixels are drawn.
    """

    num_levels: int = settled(16)
    window: int = settled(5)
    temperature: float = settled(1.0)
