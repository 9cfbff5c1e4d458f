"""`Recipe`: how one kind of model is built and trained."""

import dataclasses
import functools


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How to build and train one kind of model.

    Attributes:
        model: dict, keywords of the builder.
        epochs, batch_size, learning_rate (the peak), weight_decay, label_smoothing: as in Keras.
        fewest_steps: int, the batches of the whole training at least. Where examples are few, there
            are more epochs for that, up to four times as many.
        warmup: float, the share of all steps in which the learning rate grows; a cosine follows.
        clip_norm: float, the largest norm of the gradient of all weights together.
        data: dict, of images the keywords of `ka.data.image_augmentation`; of pictures with boxes
            those of `ka.data.detection_augmentation`, and `image_size`, (height, width) or the
            longer side; of recordings with transcripts `tokens`, `"characters"` or `"words"`; of
            texts those of `TextPreprocessor.build`; of sentences those of
            `TaggerPreprocessor.build`, and `maximum_length`, the tokens of a sentence at
            most; of pairs of texts

            - `tokens`: `"characters"` of each side, or `"subwords"` of both together,
            - `vocabulary_size`: how many subwords,
            - `maximum_length`: the tokens of a text to train on, and of one that is written,
            - `max_tokens`: of a batch, on its longer side, or None,
            - `beam`: how many texts the search holds at a time; 1 is greedy,
            - `length_penalty`: of `ka.generation.Beam`, so that short texts are not preferred,
            - `score`: `"exact_match"`, `"bleu"` or `"rouge"`.
            of examples with one label each `balance`, from 0 to 1: how far rare classes weigh more
            (`tasks.labels.balance_classes`); of texts with any number of labels `balance`, the
            power of the false ones by the true ones that a label weighs where it is true; and of
            running text `tokens` and
            `vocabulary_size` as of pairs,

            - `maximum_length`: the tokens of a window, which is what the model sees at once,
            - `steps`: batches of windows at random places in an epoch,
            - `temperature`: of the chance with which it writes.
            and of pictures with texts `image_size` and what pairs have; of pictures that
            are drawn `num_levels` of brightness, `window`, the rows and
            columns that a pixel looks back on, its own included, and `temperature`.
        average: float, the epochs that a running average of the weights looks back on, which is
            then evaluated and kept (Polyak and Juditsky, 1992); or None.
        minutes: float, ends training when they are over, or None.
        lora_rank: int, of `ka.training.enable_lora`; None trains kernels.
        lora_targets: list of names of projections, or `"all"`, as there; None for queries and
            values.
        freeze: int, how many blocks from the bottom keep their values, or `"all"`; None for none.
        layer_decay: float, of `ka.training.layer_rates`, or None.
        jit_compile: bool or `"auto"`, as in `keras.Model.compile`.
        seed: int, of weights, shuffling and dropout.
    """

    model: dict
    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float = 0.05
    label_smoothing: float = 0.1
    fewest_steps: int = 0
    warmup: float = 0.1
    clip_norm: float = 1.0
    data: dict = dataclasses.field(default_factory=dict)
    average: float | None = None
    minutes: float | None = None
    lora_rank: int | None = None
    lora_targets: list | str | None = None
    freeze: int | str | None = None
    layer_decay: float | None = None
    jit_compile: bool | str = "auto"
    seed: int = 0

    def __post_init__(self):
        if self.lora_targets is not None and self.lora_rank is None:
            raise ValueError(
                f"lora_targets={self.lora_targets!r} are of low-rank changes: give lora_rank, too."
            )


# Of a checkpoint that others have trained, such as BERT's.
fine_tuned = functools.partial(
    Recipe, model={}, weight_decay=0.01, label_smoothing=0.0, jit_compile=False
)
