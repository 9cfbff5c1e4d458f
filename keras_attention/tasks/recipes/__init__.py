"""Recipes: the default hyperparameters of every task.

Each task has a recipe. Some datasets have a recipe of their own, with the name `task/dataset`.
Options of `keras-attention train` and arguments of `Task.from_data` and `Task.fit` replace single
values.
"""

import dataclasses

from keras_attention.tasks.recipes import pictures, speech, texts, writing
from keras_attention.tasks.recipes.kinds import WindowData
from keras_attention.tasks.recipes.recipe import (
    CheckpointOptions,
    ModelSizes,
    Recipe,
)

RECIPES = {**texts.RECIPES, **writing.RECIPES, **speech.RECIPES, **pictures.RECIPES}

IN_MODEL = tuple(field.name for field in dataclasses.fields(ModelSizes))
OF_CHECKPOINTS = tuple(field.name for field in dataclasses.fields(CheckpointOptions))
PRETRAINED = "pretrained"  # used instead of a dataset name in the recipes for checkpoints
FILES = "files"  # used instead of a dataset name in the recipes for data from files
FEWEST_BATCHES, SMALLEST_BATCH = 32, 8  # batches per epoch and examples per batch
MOST_TIMES = 4  # maximum factor for the increase of epochs in `add_epochs`
FINE_TUNING = 0.3  # factor of the learning rate for a model that is already trained


def choose_recipe(builder, dataset=None, options=None):
    """Return the `Recipe` (hyperparameters) for a task and a dataset, with some values replaced.

    Args:
        builder: str, the name of a task.
        dataset: str, the name of a dataset. If it has no recipe, or if `dataset` is None, the
            recipe of the task is returned.
        options: dict of new values. Its keys are names of fields of `Recipe`, of its `data`, or of
            `ModelSizes`. A value of None keeps the value in the recipe. If `hidden_dim` changes,
            `intermediate_dim` and `embedding_dim` change in proportion.

    Raises:
        ValueError: a name in `options` does not apply to this task.

    ```python
    from keras_attention.tasks import recipes

    options = {"epochs": 3, "hidden_dim": 96, "num_heads": None}
    recipe = recipes.choose_recipe("sequence_labeler", options=options)
    assert recipe.epochs == 3 and recipe.model["hidden_dim"] == 96
    ```
    """
    recipe = RECIPES.get(f"{builder}/{dataset}") or RECIPES[builder]
    numbers = _drop_none(options or {})
    names = _list_numbers(recipe)
    for field in dataclasses.fields(ModelSizes):
        if field.metadata["tasks"] is None or builder in field.metadata["tasks"]:
            names.add(field.name)
    if unknown := sorted(set(numbers) - names):
        raise ValueError(f"{unknown[0]}= does not apply to {builder}: leave it out.")
    return _replace(recipe, numbers, IN_MODEL)


def slow_down(recipe):
    """Return a copy of a recipe with a lower learning rate, to train a trained model further."""
    return dataclasses.replace(recipe, learning_rate=FINE_TUNING * recipe.learning_rate)


def shrink_batches(recipe, examples, multiple=1):
    """Return a copy of a recipe with a smaller batch size, if an epoch would have too few steps.

    Args:
        recipe: `Recipe`.
        examples: int, the number of training examples.
        multiple: int, the number of devices that share a batch. The new batch size is a multiple of
            this number.
    """
    size = recipe.batch_size
    if not isinstance(recipe.data, WindowData):  # the number of windows is not limited
        size = min(size, max(SMALLEST_BATCH, examples // FEWEST_BATCHES))
    return dataclasses.replace(recipe, batch_size=max(multiple, size // multiple * multiple))


def add_epochs(recipe, examples):
    """Return a copy of a recipe with more epochs, if a training run would have too few steps.

    `examples` is the number of training examples. The minimum is `recipe.fewest_steps`.
    """
    steps = -(-examples // recipe.batch_size)
    needed = -(-recipe.fewest_steps // max(1, steps))
    epochs = max(recipe.epochs, min(needed, MOST_TIMES * recipe.epochs))
    return dataclasses.replace(recipe, epochs=epochs)


def split_options(recipe, options):
    """Return a copy of a recipe with new values from the dict `options`.

    Options that are not hyperparameters of the recipe become arguments of the function in
    `ka.models` that makes the model.
    """
    numbers = _drop_none(options)
    return _replace(recipe, numbers, set(numbers) - _list_numbers(recipe))


def replace_numbers(recipe, builder, options):
    """Return a copy of a recipe with new values from the dict `options`, for training a model.

    `builder` is the name of the task, for the error message.

    Raises:
        ValueError: an option is not a hyperparameter of training. Arguments of the model cannot
            change once the model is made.
    """
    numbers = _drop_none(options)
    if unknown := sorted(set(numbers) - _list_numbers(recipe)):
        names = ", ".join(sorted(_list_numbers(recipe) - set(list_settled())))
        raise ValueError(
            f"{unknown[0]}={numbers[unknown[0]]!r} is not a number for training a {builder}: "
            f"expected some of {names}."
        )
    return _replace(recipe, numbers, ())


def list_options():
    """Return the hyperparameters that are command line options, {name: dataclass field}."""
    kinds = dict.fromkeys(type(recipe.data) for recipe in RECIPES.values())
    classes = (Recipe, ModelSizes, *kinds, CheckpointOptions)
    fields = [field for kind in classes for field in dataclasses.fields(kind)]
    return {field.name: field for field in fields if "help" in field.metadata}


def list_settled():
    """Return the names of the hyperparameters that are only used when a model is built."""
    fields = [field for recipe in RECIPES.values() for field in dataclasses.fields(recipe.data)]
    return sorted({field.name for field in fields if field.metadata.get("settled")})


def refuse_settled(options):
    """Raise a ValueError if any of `options` is only used when a model is built."""
    for name in list_settled():
        if (value := options.get(name)) is not None:
            raise ValueError(
                f"{name}={value!r} is fixed when a model is built: pass it to `from_data`, or "
                "leave it out."
            )


def _drop_none(options):
    return {name: value for name, value in options.items() if value is not None}


def _list_names(kind):
    return {field.name for field in dataclasses.fields(kind)}


def _list_numbers(recipe):
    """Return the names of all hyperparameters of a recipe, except the arguments of the model."""
    return (_list_names(recipe) | _list_names(recipe.data)) - {"model", "data"}


def _replace(recipe, numbers, in_model):
    """Return a copy of a recipe with new values from the dict `numbers`.

    The names in `in_model` are arguments of the function in `ka.models` that makes the model.
    """
    numbers, model = dict(numbers), dict(recipe.model)
    if "hidden_dim" in numbers:
        for name in ({"intermediate_dim", "embedding_dim"} & set(model)) - set(numbers):
            model[name] = model[name] * numbers["hidden_dim"] // model["hidden_dim"]
        embedding = model.get("embedding")
        if isinstance(embedding, dict) and "embedding_dim" in embedding:
            width = embedding["embedding_dim"] * numbers["hidden_dim"] // model["hidden_dim"]
            model["embedding"] = embedding | {"embedding_dim": width}
    if numbers.get("encoder") is not None:  # the encoder determines these sizes
        for name in (
            "make_encoder",
            "kernel_size",
            "num_layers",
            "num_heads",
            "intermediate_dim",
            "position",
        ):
            model.pop(name, None)
    if numbers.get("queries", "grid") != "grid":
        model.pop("one_to_many", None)  # requires more queries than there are learned queries
        model.pop("position", None)  # learned queries find positions in the vectors of the cells
    if isinstance(numbers.get("embedding"), dict):
        numbers["embedding"] = {**model.get("embedding", {}), **numbers["embedding"]}
    model |= {name: numbers.pop(name) for name in list(numbers) if name in in_model}
    names = _list_names(recipe.data)
    data = {name: numbers.pop(name) for name in list(numbers) if name in names}
    data = dataclasses.replace(recipe.data, **data)
    return dataclasses.replace(recipe, model=model, data=data, **numbers)
