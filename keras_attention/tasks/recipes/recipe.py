"""`Recipe`: how one kind of model is built and trained, and which numbers users may replace."""

import dataclasses
from dataclasses import MISSING

from keras_attention.core.lazy import models, positions
from keras_attention.tasks.registry import TASKS

LONGEST = 1 << 18  # tokens of a text


def option(default, help, *, least=None, most=None, tasks=None, settled=False):
    """Make the field of a number that commands take as an option.

    Args:
        default: the value, or `dataclasses.MISSING` without one.
        help: str, what the command line says about it.
        least, most: the bounds of a number, or None.
        tasks: names of the tasks that have it; None for all of the dataclass.
        settled: bool, whether it counts only when a model is built.
    """
    about = {"help": help, "least": least, "most": most, "tasks": tasks, "settled": settled}
    return dataclasses.field(default=default, metadata=about)


@dataclasses.dataclass(frozen=True)
class Data:
    """What a recipe says about the data; the subclasses in `kinds.py` have the numbers."""


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How to build and train one kind of model.

    Attributes:
        model: dict, keywords of the builder. `embedding` may be a dict of settings of
            `ka.models.TextEmbedding`, `ImageEmbedding` or `SpeechEmbedding`, and
            `make_encoder` a function of the sizes that makes the encoder.
        epochs, batch_size, learning_rate (the peak), weight_decay, label_smoothing: as in Keras.
        fewest_steps: int, the batches of the whole training at least. Where examples are few, there
            are more epochs for that, up to four times as many.
        warmup: float, the share of all steps in which the learning rate grows; a cosine follows.
        clip_norm: float, the largest norm of the gradient of all weights together.
        data: `Data`, the numbers of one kind of data.
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
    epochs: int = option(MISSING, "Passes over what is trained on.", least=1, most=1_000_000)
    batch_size: int = option(MISSING, "Examples in a batch.", least=1, most=1 << 20)
    learning_rate: float = option(MISSING, "The peak.", least=0.0)
    weight_decay: float = 0.05
    label_smoothing: float = 0.1
    fewest_steps: int = 0
    warmup: float = 0.1
    clip_norm: float = 1.0
    data: Data = Data()
    average: float | None = None
    minutes: float | None = option(
        None, "End in so many and about one more, with all files made and scored.", least=0.0
    )
    lora_rank: int | None = option(
        None, "Train low-rank changes of this rank alone.", least=1, most=1 << 12
    )
    lora_targets: list | str | None = option(
        None,
        "Projections that these change, such as query,key,value, or all; by default query,value.",
    )
    freeze: int | str | None = option(None, "How many blocks from the bottom stay, or all.")
    layer_decay: float | None = option(
        None, "Of the learning rate from block to block.", least=0.0, most=1.0
    )
    jit_compile: bool | str = "auto"
    seed: int = option(0, "For the same numbers again.", least=0, most=2**32 - 1)

    def __post_init__(self):
        if self.lora_targets is not None and self.lora_rank is None:
            raise ValueError(
                f"lora_targets={self.lora_targets!r} are of low-rank changes: give lora_rank, too."
            )

    def list_keywords(self, make_embedding=None, **embedding):
        """Return the keywords of the builder, with the parts that sizes and data decide.

        Args:
            make_embedding: the class of the embedding, None for `ka.models.TextEmbedding`.
            embedding: settings of the embedding that the data decide; `characters` is a dict of
                settings of `ka.models.Characters`, or None.
        """
        model = dict(self.model)
        if "make_encoder" in model:
            own = ("num_layers", "num_heads", "intermediate_dim", "score", "normalizer", "mask")
            make_encoder = model.pop("make_encoder")
            sizes = {name: model.pop(name) for name in own if name in model}
            sizes |= {name: model[name] for name in ("hidden_dim", "dropout")}
            if "position" in model:
                position = positions.get(model["position"])
                sizes["position"] = positions.for_role(position, "rotate", "bias")
                model["position"] = positions.for_role(position, "embed")
            model["encoder"] = make_encoder(**sizes)
        settings, characters = model.get("embedding", {}), embedding.pop("characters", None)
        own = {}
        if isinstance(settings, dict):
            own, settings = settings.get("characters", {}), dict(settings, characters=None)
        if characters:
            embedding["characters"] = models.Characters(**own | characters)
        if isinstance(settings, dict):
            settings = {name: value for name, value in settings.items() if value is not None}
            if embedding or "embedding" in model:
                make_embedding = make_embedding or models.TextEmbedding
                model["embedding"] = make_embedding(**settings | embedding)
        elif isinstance(settings, make_embedding or models.TextEmbedding):
            model["embedding"] = dataclasses.replace(settings, **embedding)
        return model


@dataclasses.dataclass(frozen=True)
class ModelSizes:
    """The keywords of builders that commands take as options."""

    num_layers: int | None = option(
        None, "Blocks, of an encoder and of a decoder each.", least=1, most=1000
    )
    num_heads: int | None = option(
        None,
        "Heads of each attention.",
        least=1,
        most=1000,
        tasks=tuple(name for name in TASKS if name != "seq2seq_recurrent"),
    )
    hidden_dim: int | None = option(None, "Of tokens between layers.", least=1, most=1 << 16)
    dropout: float | None = option(
        None, "Share of numbers that training leaves out.", least=0.0, most=0.9
    )
    chunk_size: int | None = option(
        None,
        "Of recordings: stream, by so many vectors of 40 ms at a time.",
        least=1,
        most=1 << 12,
        tasks=("speech_recognizer",),
    )


@dataclasses.dataclass(frozen=True)
class CheckpointOptions:
    """The keywords of `from_preset` with a checkpoint that commands take as options."""

    prefix: str | None = option(None, "In front of every source, as T5 of hf:// wants.")
    language: str | None = option(
        None, "That is spoken, of Whisper: de, or german; default English."
    )
    task: str | None = option(None, "Of Whisper: transcribe, or translate into English.")


def fine_tune(epochs, batch_size, learning_rate, data=Data()):
    """Make the recipe of a checkpoint that others have trained, such as BERT's."""
    return Recipe(
        model={},
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        weight_decay=0.01,
        label_smoothing=0.0,
        data=data,
        jit_compile=False,
    )


def size(num_layers, num_heads, hidden_dim, intermediate_dim):
    """Make the keywords of a builder that say how large a Transformer is."""
    return dict(
        num_layers=num_layers,
        num_heads=num_heads,
        hidden_dim=hidden_dim,
        intermediate_dim=intermediate_dim,
    )
