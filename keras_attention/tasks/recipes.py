"""Recipes: the hyperparameters of every task, in one table that all commands read.

A task has a recipe, and a data set may have a better one, under `task/data set`. Options of
`keras-attention train`, and keywords of `Task.from_data` and `Task.fit`, replace single numbers.
"""

import dataclasses
import inspect

from keras_attention.tasks.registry import get_builder


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How to build and train one kind of model.

    Attributes:
        model: dict, keywords of the builder.
        epochs, batch_size, learning_rate (the peak), weight_decay, label_smoothing: as in Keras.
        warmup: float, the share of all steps in which the learning rate grows; a cosine follows.
        clip_norm: float, the largest norm of the gradient of all weights together.
        data: dict, of images the keywords of `ka.data.image_augmentation`; of pictures with boxes
            those of `ka.data.detection_augmentation`, and `image_size`, (height, width) or the
            longer side; of texts those of
            `TextPreprocessor.build`; of sentences those of `TaggerPreprocessor.build`, and
            `maximum_length`, the tokens of a sentence at most; of pairs of texts

            - `tokens`: `"characters"` of each side, or `"subwords"` of both together,
            - `vocabulary_size`: how many subwords,
            - `maximum_length`: the tokens of a text to train on, and of one that is written,
            - `max_tokens`: of a batch, on its longer side, or None,
            - `beam`: how many texts the search holds at a time; 1 is greedy,
            - `length_penalty`: of `ka.generation.Beam`, so that short texts are not preferred,
            - `score`: `"exact_match"`, `"bleu"` or `"rouge"`.
            of texts with any number of labels `balance`, too, the power of the false ones by the
            true ones that a label weighs where it is true; and of running text `tokens` and
            `vocabulary_size` as of pairs,

            - `maximum_length`: the tokens of a window, which is what the model sees at once,
            - `steps`: batches of windows at random places in an epoch,
            - `temperature`: of the chance with which it writes.
            and of pictures that are drawn `num_levels` of brightness, `window`, the rows and
            columns that a pixel looks back on, its own included, and `temperature`.
        average: float, the epochs that a running average of the weights looks back on, which is
            then evaluated and kept (Polyak and Juditsky, 1992); or None.
        minutes: float, ends training when they are over, or None.
        lora_rank: int, of `ka.training.enable_lora`, of queries and values; None trains kernels.
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
    warmup: float = 0.1
    clip_norm: float = 1.0
    data: dict = dataclasses.field(default_factory=dict)
    average: float | None = None
    minutes: float | None = None
    lora_rank: int | None = None
    freeze: int | str | None = None
    layer_decay: float | None = None
    jit_compile: bool | str = "auto"
    seed: int = 0


PAIRS = dict(
    tokens="subwords",
    vocabulary_size=4000,
    maximum_length=64,
    max_tokens=4096,
    beam=5,
    length_penalty=1.0,
    score="bleu",
)
DATES = dict(
    tokens="characters",
    vocabulary_size=None,
    maximum_length=48,
    max_tokens=None,
    beam=1,
    length_penalty=0.0,
    score="exact_match",
)

RECIPES = {
    "seq2seq_recurrent": Recipe(
        model=dict(hidden_dim=512, embedding_dim=256, dropout=0.3),
        epochs=20,
        batch_size=256,
        learning_rate=1e-3,
        average=1.0,
        data=PAIRS,
        jit_compile=False,  # as for text_classifier
    ),
    "seq2seq_recurrent/dates": Recipe(
        model=dict(hidden_dim=128, embedding_dim=64, dropout=0.0),
        epochs=2,
        batch_size=128,
        learning_rate=4e-3,
        weight_decay=0.01,
        label_smoothing=0.0,
        data=DATES,
        jit_compile=False,
    ),
    "seq2seq_transformer": Recipe(
        model=dict(
            num_layers=3,
            num_heads=4,
            hidden_dim=256,
            intermediate_dim=512,
            dropout=0.3,
            norm="pre",
        ),
        epochs=26,
        batch_size=256,
        learning_rate=1e-3,
        average=1.0,
        data=PAIRS,
        jit_compile=False,
    ),
    "seq2seq_transformer/dates": Recipe(
        model=dict(
            num_layers=2,
            num_heads=4,
            hidden_dim=128,
            intermediate_dim=256,
            dropout=0.0,
            norm="pre",
            tie_embeddings=False,
        ),
        epochs=3,
        batch_size=128,
        learning_rate=3e-3,
        weight_decay=0.01,
        label_smoothing=0.0,
        data=DATES,
        jit_compile=False,
    ),
    "causal_language_model": Recipe(
        model=dict(
            num_layers=6,
            num_heads=6,
            hidden_dim=192,
            intermediate_dim=768,
            dropout=0.1,
            use_bias=False,
            mask={"class_name": "window", "config": {"size": 64}},
            position="rotary",
        ),
        epochs=10,
        batch_size=16,
        learning_rate=2e-3,
        weight_decay=0.1,
        label_smoothing=0.0,
        data=dict(
            tokens="characters",
            vocabulary_size=4000,
            maximum_length=256,
            steps=250,
            temperature=0.8,
        ),
    ),
    "image_generator": Recipe(
        model=dict(
            num_layers=4,
            num_heads=4,
            hidden_dim=128,
            intermediate_dim=512,
            dropout=0.2,
        ),
        epochs=40,
        batch_size=32,
        learning_rate=2e-3,
        weight_decay=0.1,
        label_smoothing=0.0,
        average=2.0,
        data=dict(num_levels=16, window=5, temperature=1.0),
    ),
    "image_generator/digits": Recipe(
        model=dict(
            num_layers=3,
            num_heads=4,
            hidden_dim=128,
            intermediate_dim=256,
            dropout=0.3,
        ),
        epochs=50,
        batch_size=32,
        learning_rate=2e-3,
        weight_decay=0.1,
        label_smoothing=0.0,
        average=2.0,
        data=dict(num_levels=17, window=4, temperature=1.0),
    ),
    "masked_language_model": Recipe(
        model=dict(
            num_layers=4,
            num_heads=4,
            hidden_dim=192,
            intermediate_dim=768,
            dropout=0.1,
            position="rotary",
        ),
        epochs=10,
        batch_size=32,
        learning_rate=2e-3,
        weight_decay=0.1,
        label_smoothing=0.0,
        data=dict(
            tokens="subwords",
            vocabulary_size=4000,
            maximum_length=64,
            steps=250,
        ),
        jit_compile=False,
    ),
    "sequence_labeler": Recipe(
        model=dict(
            num_layers=3,
            num_heads=6,
            hidden_dim=192,
            intermediate_dim=768,
            dropout=0.3,
            token_dropout=0.25,
            position=["alibi", "relative_bias"],
        ),
        epochs=12,
        batch_size=32,
        learning_rate=1e-3,
        data=dict(characters=True, min_count=2, lowercase=True, word_length=16, maximum_length=512),
    ),
    "dependency_parser": Recipe(
        model=dict(
            num_layers=4,
            num_heads=8,
            hidden_dim=256,
            intermediate_dim=1024,
            dropout=0.3,
            token_dropout=0.25,
            position=["alibi", "relative_bias"],
        ),
        epochs=24,
        batch_size=32,
        learning_rate=1e-3,
        data=dict(characters=True, min_count=2, lowercase=True, word_length=16, maximum_length=512),
    ),
    "constituency_parser": Recipe(
        model=dict(
            num_layers=3,
            num_decoder_layers=2,
            num_heads=6,
            hidden_dim=192,
            intermediate_dim=768,
            dropout=0.3,
            token_dropout=0.2,
            position=["alibi", "relative_bias"],
        ),
        epochs=40,
        batch_size=32,
        learning_rate=1e-3,
        label_smoothing=0.0,  # the logits of what may not come are no part of it
        average=1.0,
        data=dict(characters=True, min_count=2, lowercase=True, word_length=16, maximum_length=128),
        jit_compile=False,
    ),
    # What `benchmarks/connected_digits.py` trains: a small Conformer for small vocabularies.
    "speech_recognizer": Recipe(
        model=dict(
            num_mel_bins=40,
            num_layers=3,
            num_heads=4,
            hidden_dim=96,
            intermediate_dim=384,
            kernel_size=15,
            subsampling_filters=32,
            dropout=0.1,
            spec_augment=dict(time_mask_size=20, time_mask_ratio=0.1, frequency_mask_size=8),
        ),
        epochs=20,
        batch_size=32,
        learning_rate=2e-3,
        weight_decay=0.01,
        clip_norm=5.0,
        jit_compile=False,  # XLA has no kernel of the fast loss
    ),
    # What `benchmarks/blood_cells.py` trains: a stem of stride 16, and a query in each cell.
    "object_detector": Recipe(
        model=dict(
            stem_filters=(32, 64, 128, 128),
            patch_size=1,
            num_layers=3,
            num_heads=4,
            hidden_dim=128,
            intermediate_dim=256,
            dropout=0.0,
        ),
        epochs=120,
        batch_size=8,
        learning_rate=1e-3,
        weight_decay=0.01,
        label_smoothing=0.0,
        average=1.0,
        data=dict(
            image_size=320,
            flip=True,
            vertical_flip=True,
            crop=0.3,
            brightness=0.2,
            contrast=0.2,
        ),
        jit_compile=False,  # objects are matched to queries by SciPy
    ),
    # What `benchmarks/speech_translation.py` trains: the same encoder, and a small decoder.
    "speech_to_text": Recipe(
        model=dict(
            num_mel_bins=40,
            num_layers=3,
            num_decoder_layers=2,
            num_heads=4,
            hidden_dim=96,
            intermediate_dim=384,
            kernel_size=15,
            subsampling_filters=32,
            dropout=0.1,
            spec_augment=dict(time_mask_size=20, time_mask_ratio=0.1, frequency_mask_size=8),
        ),
        epochs=30,
        batch_size=32,
        learning_rate=2e-3,
        weight_decay=0.01,
        clip_norm=5.0,
        data=dict(
            tokens="characters",
            vocabulary_size=1000,
            maximum_length=160,
            ctc_weight=0.3,
            beam=1,
            length_penalty=1.0,
        ),
        jit_compile=False,  # XLA has no kernel of the fast loss
    ),
    # Chosen by cross-validation on sentence_polarity without its test part.
    "text_classifier": Recipe(
        model=dict(
            num_layers=1,
            num_heads=4,
            hidden_dim=64,
            intermediate_dim=128,
            dropout=0.5,
            token_dropout=0.3,
            pooling="mean",
        ),
        epochs=6,
        batch_size=64,
        learning_rate=2e-3,
        data=dict(min_count=2, lowercase=True, maximum_length=512),
        # Measured on a CPU, with a table of 9,000 words: a step with XLA takes four times as long.
        jit_compile=False,
    ),
    "multi_label_classifier": Recipe(
        model=dict(
            num_layers=2,
            num_heads=4,
            hidden_dim=128,
            intermediate_dim=256,
            dropout=0.4,
            token_dropout=0.1,
            pooling="attention",
        ),
        epochs=6,
        batch_size=64,
        learning_rate=2e-3,
        label_smoothing=0.0,
        average=1.0,
        data=dict(min_count=2, lowercase=True, maximum_length=512, balance=0.0),
        jit_compile=False,  # as for text_classifier
    ),
    "question_answerer": Recipe(
        model=dict(
            num_layers=3,
            num_heads=4,
            hidden_dim=128,
            intermediate_dim=256,
            dropout=0.3,
            token_dropout=0.1,
            character_filters=32,
            position=["alibi", "relative_bias"],
        ),
        epochs=18,
        batch_size=64,
        learning_rate=1.5e-3,
        label_smoothing=0.0,  # the logits of places that cannot be are no part of it
        average=1.0,
        data=dict(
            characters=True,
            min_count=2,
            lowercase=True,
            word_length=12,
            maximum_length=384,
            maximum_question=64,
            maximum_answer=30,
            stride=128,
        ),
        jit_compile=False,  # as for text_classifier
    ),
    # Of a checkpoint that others have trained, such as BERT's.
    "sequence_labeler/pretrained": Recipe(
        model={},
        epochs=4,
        batch_size=16,
        learning_rate=3e-4,
        weight_decay=0.01,
        label_smoothing=0.0,
        jit_compile=False,
    ),
    "question_answerer/pretrained": Recipe(
        model={},
        epochs=3,
        batch_size=32,
        learning_rate=1e-4,
        weight_decay=0.01,
        label_smoothing=0.0,
        jit_compile=False,
    ),
    "text_classifier/pretrained": Recipe(
        model={},
        epochs=3,
        batch_size=32,
        learning_rate=1e-4,
        weight_decay=0.01,
        label_smoothing=0.0,
        jit_compile=False,
    ),
    "multi_label_classifier/pretrained": Recipe(
        model={},
        epochs=3,
        batch_size=32,
        learning_rate=1e-4,
        weight_decay=0.01,
        label_smoothing=0.0,
        data=dict(balance=0.0),
        jit_compile=False,
    ),
    "causal_language_model/pretrained": Recipe(
        model={},
        epochs=3,
        batch_size=8,
        learning_rate=5e-5,
        weight_decay=0.01,
        label_smoothing=0.0,
        data=dict(steps=100),
        jit_compile=False,
    ),
    "masked_language_model/pretrained": Recipe(
        model={},
        epochs=3,
        batch_size=16,
        learning_rate=5e-5,
        weight_decay=0.01,
        label_smoothing=0.0,
        data=dict(steps=100),
        jit_compile=False,
    ),
    "seq2seq_transformer/pretrained": Recipe(
        model={},
        epochs=3,
        batch_size=16,
        learning_rate=1e-4,
        weight_decay=0.01,
        label_smoothing=0.0,
        data=dict(max_tokens=2048),
        jit_compile=False,
    ),
    "vision_transformer/pretrained": Recipe(
        model={},
        epochs=3,
        batch_size=16,
        learning_rate=1e-4,
        weight_decay=0.01,
        label_smoothing=0.0,
        data=dict(shift=0.0, flip=True),
        jit_compile=False,
    ),
    "vision_transformer": Recipe(
        model=dict(
            patch_size=4,
            num_layers=4,
            num_heads=4,
            hidden_dim=96,
            intermediate_dim=192,
            dropout=0.1,
        ),
        epochs=20,
        batch_size=128,
        learning_rate=1e-3,
        data=dict(shift=0.08, flip=True),
    ),
    # Of pictures in class folders, which are resized to 48 x 48.
    "vision_transformer/files": Recipe(
        model=dict(
            patch_size=1,
            stem_filters=(32, 64, 128),
            num_layers=4,
            num_heads=4,
            hidden_dim=128,
            intermediate_dim=256,
            pooling="mean",
        ),
        epochs=30,
        batch_size=32,
        learning_rate=1e-3,
        data=dict(shift=0.08, flip=True),
    ),
    "vision_transformer/fashion_mnist": Recipe(
        model=dict(
            patch_size=1,
            stem_filters=(32, 64, 128),
            num_layers=4,
            num_heads=4,
            hidden_dim=128,
            intermediate_dim=256,
            pooling="mean",
        ),
        epochs=12,
        batch_size=128,
        learning_rate=1.5e-3,
        data=dict(shift=0.08, flip=True),
    ),
    # Chosen by cross-validation on the training part alone.
    "vision_transformer/digits": Recipe(
        model=dict(
            patch_size=1,
            stem_filters=(32, 64),
            stem_strides=(1, 2),
            num_layers=2,
            num_heads=4,
            hidden_dim=64,
            intermediate_dim=128,
            pooling="mean",
        ),
        epochs=40,
        batch_size=32,
        learning_rate=2e-3,
        data=dict(shift=0.09, flip=False),  # 0.72 pixels, rounded: half of them move by one
    ),
}

IN_MODEL = ("num_layers", "num_heads", "hidden_dim", "dropout")
PRETRAINED = "pretrained"  # the same, of checkpoints of others
FILES = "files"  # stands for them where others have a data set's name
FEWEST_BATCHES, SMALLEST_BATCH = 32, 8  # of an epoch; examples of one
FINE_TUNING = 0.3  # of the learning rate, where a trained model goes on
RENAMED = {"max_length": "maximum_length"}  # as users say it: as recipes and manifests do


def choose_recipe(builder, dataset=None, options=None):
    """The recipe for models of `builder` on `dataset`, with the numbers in `options` in its place.

    Args:
        builder: str, a name in `ka.models`.
        dataset: str, one that may have a recipe of its own; or None.
        options: dict, names of fields, of `data`, or `num_layers`, `num_heads`, `hidden_dim` and
            `dropout` of the model; those that are None are left as they are. `intermediate_dim` and
            `embedding_dim` grow with `hidden_dim`.

    Raises:
        ValueError: the recipe has no such number.

    ```python
    from keras_attention.tasks import recipes

    options = {"epochs": 3, "hidden_dim": 96, "num_heads": None}
    recipe = recipes.choose_recipe("sequence_labeler", options=options)
    assert recipe.epochs == 3 and recipe.model["hidden_dim"] == 96
    ```
    """
    recipe = RECIPES.get(f"{builder}/{dataset}") or RECIPES[builder]
    given = _list_given(options or {})
    _refuse_unused(given, recipe, builder)
    return _replace(recipe, given, IN_MODEL)


def slow_down(recipe):
    """`recipe` for a model that is trained already: its learning rate is lower."""
    return dataclasses.replace(recipe, learning_rate=FINE_TUNING * recipe.learning_rate)


def shrink_batches(recipe, examples):
    """`recipe` with smaller batches where so few `examples` would make few steps of an epoch.

    ```python
    from keras_attention.tasks import recipes

    recipe = recipes.choose_recipe("seq2seq_transformer")
    assert recipe.batch_size == 256 and recipes.shrink_batches(recipe, 800).batch_size == 25
    ```
    """
    if "steps" in recipe.data:  # windows at random places: as many as one likes
        return recipe
    size = max(SMALLEST_BATCH, examples // FEWEST_BATCHES)
    return dataclasses.replace(recipe, batch_size=min(recipe.batch_size, size))


def split_options(recipe, options):
    """`recipe` with `options` in the place of its own numbers; others are for the model.

    ```python
    from keras_attention.tasks import recipes

    recipe = recipes.choose_recipe("sequence_labeler")
    recipe = recipes.split_options(recipe, {"max_length": 64, "position": "rotary"})
    assert recipe.data["maximum_length"] == 64 and recipe.model["position"] == "rotary"
    ```
    """
    given = _list_given(options)
    fields = {field.name for field in dataclasses.fields(Recipe)}
    return _replace(recipe, given, set(given) - fields - set(recipe.data))


def replace_numbers(recipe, builder, options):
    """`recipe` with `options` in the place of its own numbers, those of the model left out."""
    given = _list_given(options)
    fields = {field.name for field in dataclasses.fields(Recipe)} - {"model", "data"}
    if unknown := sorted(set(given) - fields - set(recipe.data)):
        known = ", ".join(sorted(fields | set(recipe.data)))
        raise ValueError(
            f"{unknown[0]}={given[unknown[0]]!r} is no number of the training of a {builder}: "
            f"expected some of {known}."
        )
    return _replace(recipe, given, ())


def _list_given(options):
    return {RENAMED.get(name, name): value for name, value in options.items() if value is not None}


def _replace(recipe, given, in_model):
    """`recipe` with what is `given`; what is named in `in_model` is for the model."""
    given, model = dict(given), dict(recipe.model)
    if "hidden_dim" in given:
        for name in ({"intermediate_dim", "embedding_dim"} & set(model)) - set(given):
            model[name] = model[name] * given["hidden_dim"] // model["hidden_dim"]
    model |= {name: given.pop(name) for name in list(given) if name in in_model}
    data = recipe.data | {name: given.pop(name) for name in list(given) if name in recipe.data}
    return dataclasses.replace(recipe, model=model, data=data, **given)


def _refuse_unused(given, recipe, builder):
    """Refuses options that models of this builder have no use for."""
    from keras_attention import models

    fields = {field.name for field in dataclasses.fields(Recipe)}
    parameters = inspect.signature(getattr(models, get_builder(builder))).parameters
    known = fields | set(recipe.data) | {name for name in IN_MODEL if name in parameters}
    if unknown := sorted(set(given) - known):
        name = {new: old for old, new in RENAMED.items()}.get(unknown[0], unknown[0])
        raise ValueError(f"--{name.replace('_', '-')} is not for {builder}: leave it out.")
