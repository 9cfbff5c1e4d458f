"""`Recipe`: the hyperparameters for building and training one kind of model."""

import dataclasses
from dataclasses import MISSING

from keras_attention.core.lazy import models, positions
from keras_attention.tasks.registry import TASKS

LONGEST = 1 << 18  # upper bound of `max_length`


def option(default, help, *, least=None, most=None, tasks=None, settled=False):
    """Return a dataclass field for a hyperparameter that is also a command line option.

    Args:
        default: the default value.
        help: str, the help text of the option.
        least, most: bounds of the value, both inclusive. None sets no bound.
        tasks: tuple of str, the tasks that the option applies to. None stands for all tasks.
        settled: bool, whether the value is only used when a model is built.
    """
    metadata = {"help": help, "least": least, "most": most, "tasks": tasks, "settled": settled}
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class Data:
    """Base class of the hyperparameters for one kind of data. The subclasses are in `kinds.py`."""


@dataclasses.dataclass(frozen=True)
class Recipe:
    """The hyperparameters for building and training one kind of model.

    Attributes:
        model: dict of arguments of the function in `ka.models`. `embedding` may be a dict of
            arguments of `ka.models.TextEmbedding`, `ImageEmbedding` or `SpeechEmbedding`.
            `make_encoder` may be a function that makes the encoder from its sizes.
        epochs, batch_size, weight_decay, label_smoothing: as in Keras.
        learning_rate: float, the peak of the learning rate schedule.
        fewest_steps: int, the minimum number of batches in a training run. To reach it, small
            datasets are trained for up to four times as many epochs.
        warmup: float, the share of steps with a linearly rising learning rate. A cosine decay
            follows.
        clip_norm: float, the maximum global norm of the gradients.
        data: `Data`, the hyperparameters for the kind of data.
        average: float, the number of epochs in an exponential moving average of the weights, which
            is evaluated and saved (Polyak and Juditsky, 1992). None does not average the weights.
        minutes: float, the time limit of the training run. None for no limit.
        lora_rank: int, the rank of LoRA updates, which are trained instead of the weights
            (`ka.training.enable_lora`). None trains the weights.
        lora_targets: list of names of the projections with LoRA updates, such as `"query"`, or
            `"all"`. None selects queries and values.
        freeze: int, the number of blocks that are frozen, counted from the bottom, or `"all"`. None
            freezes no block.
        layer_decay: float, the factor of the learning rate from each block to the one below. None
            trains all layers with the same learning rate.
        jit_compile: bool or `"auto"`, as in `keras.Model.compile`.
        seed: int, the seed for weights, shuffling and dropout.
    """

    model: dict
    epochs: int = option(MISSING, "Passes over the training data.", least=1, most=1_000_000)
    batch_size: int = option(MISSING, "Examples in a batch.", least=1, most=1 << 20)
    learning_rate: float = option(MISSING, "Peak of the learning rate.", least=0.0)
    weight_decay: float = 0.05
    label_smoothing: float = 0.1
    fewest_steps: int = 0
    warmup: float = 0.1
    clip_norm: float = 1.0
    data: Data = Data()
    average: float | None = None
    minutes: float | None = option(
        None, "Time limit for the whole command, which may take a minute more.", least=0.0
    )
    lora_rank: int | None = option(
        None, "Train only low-rank updates (LoRA) of this rank.", least=1, most=1 << 12
    )
    lora_targets: list | str | None = option(
        None,
        "Projections with low-rank updates, such as query,key,value, or all. Default query,value.",
    )
    freeze: int | str | None = option(
        None, "Number of blocks from the bottom that are not trained, or all."
    )
    layer_decay: float | None = option(
        None, "Factor of the learning rate from each block to the one below.", least=0.0, most=1.0
    )
    jit_compile: bool | str = "auto"
    seed: int = option(0, "Seed for reproducible results.", least=0, most=2**32 - 1)

    def __post_init__(self):
        if self.lora_targets is not None and self.lora_rank is None:
            raise ValueError(
                f"lora_targets={self.lora_targets!r} needs low-rank updates: give lora_rank, too."
            )

    def list_keywords(self, make_embedding=None, **embedding):
        """Return a dict, the arguments for building a model, with its embedding and its encoder.

        Args:
            make_embedding: the class of the embedding. None uses `ka.models.TextEmbedding`.
            **embedding: arguments of the embedding that depend on the data. `characters` is a dict
                of arguments of `ka.models.Characters`, or None for no characters.
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
    """Arguments of the functions in `ka.models` that are also command line options."""

    num_layers: int | None = option(
        None, "Blocks of the encoder, and of the decoder.", least=1, most=1000
    )
    num_heads: int | None = option(
        None,
        "Attention heads.",
        least=1,
        most=1000,
        tasks=tuple(name for name in TASKS if name != "seq2seq_recurrent"),
    )
    hidden_dim: int | None = option(None, "Size of token vectors.", least=1, most=1 << 16)
    dropout: float | None = option(
        None, "Share of activations set to zero in training.", least=0.0, most=0.9
    )
    chunk_size: int | None = option(
        None,
        "Recordings: number of 40 ms vectors in a chunk, for streaming.",
        least=1,
        most=1 << 12,
        tasks=("speech_recognizer",),
    )


@dataclasses.dataclass(frozen=True)
class CheckpointOptions:
    """Command line options that are arguments of `from_preset` for Hugging Face checkpoints."""

    prefix: str | None = option(None, "Checkpoints: text before every source, as for T5.")
    language: str | None = option(
        None, "Whisper: the spoken language, such as de or german. Default English."
    )
    task: str | None = option(None, "Whisper: transcribe, or translate into English.")


def fine_tune(epochs, batch_size, learning_rate, data=Data()):
    """Make a `Recipe` for fine-tuning a checkpoint.

    `data` is a `Data`, the hyperparameters for the kind of data. The other arguments are fields of
    the `Recipe`.
    """
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
    """Return a dict of the four arguments, the sizes of a Transformer in `ka.models`."""
    return dict(
        num_layers=num_layers,
        num_heads=num_heads,
        hidden_dim=hidden_dim,
        intermediate_dim=intermediate_dim,
    )
