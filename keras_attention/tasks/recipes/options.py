"""Recipes are chosen by task and data set, and options of users replace single numbers of them."""

import dataclasses

from keras_attention.tasks.recipes import pictures, speech, texts, writing
from keras_attention.tasks.recipes.kinds import WindowData
from keras_attention.tasks.recipes.recipe import CheckpointOptions, ModelSizes, Recipe

RECIPES = {**texts.RECIPES, **writing.RECIPES, **speech.RECIPES, **pictures.RECIPES}

IN_MODEL = tuple(field.name for field in dataclasses.fields(ModelSizes))
OF_CHECKPOINTS = tuple(field.name for field in dataclasses.fields(CheckpointOptions))
PRETRAINED = "pretrained"  # stands for checkpoints of others where others have a data set's name
FILES = "files"  # the same of files
FEWEST_BATCHES, SMALLEST_BATCH = 32, 8  # of an epoch; examples of one
MOST_TIMES = 4  # as many epochs as the recipe says
FINE_TUNING = 0.3  # of the learning rate, where a trained model goes on


def choose_recipe(builder, dataset=None, options=None):
    """Return the recipe for models of `builder` on `dataset`, with `options` put in.

    Args:
        builder: str, a name in `ka.models`.
        dataset: str, one that may have a recipe of its own; or None.
        options: dict, names of fields, of those of `data`, or of `ModelSizes`; those that are
            None are left as they are.
            `intermediate_dim` and `embedding_dim` grow with `hidden_dim`.

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
    known = _list_numbers(recipe)
    for field in dataclasses.fields(ModelSizes):
        if field.metadata["tasks"] is None or builder in field.metadata["tasks"]:
            known.add(field.name)
    if unknown := sorted(set(given) - known):
        raise ValueError(f"{unknown[0]}= is not for {builder}: leave it out.")
    return _replace(recipe, given, IN_MODEL)


def slow_down(recipe):
    """`recipe` for a model that is trained already: its learning rate is lower."""
    return dataclasses.replace(recipe, learning_rate=FINE_TUNING * recipe.learning_rate)


def shrink_batches(recipe, examples, multiple=1):
    """`recipe` with smaller batches where so few `examples` would make few steps of an epoch.

    Their size is a `multiple` of that number, which is of the devices that share a batch.

    ```python
    from keras_attention.tasks import recipes

    recipe = recipes.choose_recipe("seq2seq_transformer")
    assert recipe.batch_size == 256 and recipes.shrink_batches(recipe, 800).batch_size == 25
    assert recipes.shrink_batches(recipe, 800, multiple=4).batch_size == 24
    ```
    """
    size = recipe.batch_size
    if not isinstance(recipe.data, WindowData):  # there are as many windows as one likes
        size = min(size, max(SMALLEST_BATCH, examples // FEWEST_BATCHES))
    return dataclasses.replace(recipe, batch_size=max(multiple, size // multiple * multiple))


def add_epochs(recipe, examples):
    """`recipe` with more epochs where so few `examples` would make fewer steps than it wants.

    ```python
    from keras_attention.tasks import recipes

    recipe = recipes.Recipe(
        model={}, epochs=10, batch_size=50, learning_rate=1e-3, fewest_steps=1000
    )
    found = [recipes.add_epochs(recipe, count).epochs for count in (50_000, 2_500, 100)]
    assert found == [10, 20, 40]
    ```
    """
    steps = -(-examples // recipe.batch_size)
    wanted = -(-recipe.fewest_steps // max(1, steps))
    epochs = max(recipe.epochs, min(wanted, MOST_TIMES * recipe.epochs))
    return dataclasses.replace(recipe, epochs=epochs)


def split_options(recipe, options):
    """`recipe` with `options` in the place of its own numbers; others are for the model.

    ```python
    from keras_attention.tasks import recipes

    recipe = recipes.choose_recipe("sequence_labeler")
    recipe = recipes.split_options(recipe, {"max_length": 64, "position": "rotary"})
    assert recipe.data.max_length == 64 and recipe.model["position"] == "rotary"
    ```
    """
    given = _list_given(options)
    return _replace(recipe, given, set(given) - _list_numbers(recipe))


def replace_numbers(recipe, builder, options):
    """`recipe` with `options` in the place of its own numbers, those of the model left out."""
    given = _list_given(options)
    if unknown := sorted(set(given) - _list_numbers(recipe)):
        known = ", ".join(sorted(_list_numbers(recipe) - set(list_settled())))
        raise ValueError(
            f"{unknown[0]}={given[unknown[0]]!r} is no number of the training of a {builder}: "
            f"expected some of {known}."
        )
    return _replace(recipe, given, ())


def list_options():
    """Return the numbers that commands take: {name: its dataclass field}, with help and bounds."""
    kinds = dict.fromkeys(type(recipe.data) for recipe in RECIPES.values())
    every = (Recipe, ModelSizes, *kinds, CheckpointOptions)
    fields = [field for kind in every for field in dataclasses.fields(kind)]
    return {field.name: field for field in fields if "help" in field.metadata}


def list_settled():
    """Return the numbers of recipes that count only when a model is built."""
    fields = [field for recipe in RECIPES.values() for field in dataclasses.fields(recipe.data)]
    return sorted({field.name for field in fields if field.metadata.get("settled")})


def refuse_settled(options):
    """Refuses `options` for a model that is there, which count only when a model is built."""
    for name in list_settled():
        if (value := options.get(name)) is not None:
            raise ValueError(
                f"{name}={value!r} is settled when a model is built: give it to `from_data`, or "
                "leave it out."
            )


def _list_given(options):
    return {name: value for name, value in options.items() if value is not None}


def _list_names(kind):
    return {field.name for field in dataclasses.fields(kind)}


def _list_numbers(recipe):
    """Return the names of all numbers that a recipe has beside those of the model."""
    return (_list_names(recipe) | _list_names(recipe.data)) - {"model", "data"}


def _replace(recipe, given, in_model):
    """`recipe` with what is `given`; what is named in `in_model` is for the model."""
    given, model = dict(given), dict(recipe.model)
    if "hidden_dim" in given:
        for name in ({"intermediate_dim", "embedding_dim"} & set(model)) - set(given):
            model[name] = model[name] * given["hidden_dim"] // model["hidden_dim"]
        embedding = model.get("embedding")
        if isinstance(embedding, dict) and "embedding_dim" in embedding:
            width = embedding["embedding_dim"] * given["hidden_dim"] // model["hidden_dim"]
            model["embedding"] = embedding | {"embedding_dim": width}
    if given.get("encoder") is not None:  # it has sizes of its own
        for name in (
            "make_encoder",
            "kernel_size",
            "num_layers",
            "num_heads",
            "intermediate_dim",
            "position",
        ):
            model.pop(name, None)
    if given.get("queries", "grid") != "grid":
        model.pop("one_to_many", None)  # learned ones are few: one for each object
        model.pop("position", None)  # and look for places, which vectors are to hold
    if isinstance(given.get("embedding"), dict):
        given["embedding"] = {**model.get("embedding", {}), **given["embedding"]}
    model |= {name: given.pop(name) for name in list(given) if name in in_model}
    names = _list_names(recipe.data)
    data = {name: given.pop(name) for name in list(given) if name in names}
    data = dataclasses.replace(recipe.data, **data)
    return dataclasses.replace(recipe, model=model, data=data, **given)
