"""Recipes: the hyperparameters of every task, in tables that all commands read.

A task has a recipe, and a data set may have a better one, under `task/data set`. Options of
`keras-attention train`, and keywords of `Task.from_data` and `Task.fit`, replace single numbers.
"""

from keras_attention.tasks.recipes.options import (
    FILES,
    IN_MODEL,
    OF_CHECKPOINTS,
    PRETRAINED,
    RECIPES,
    SMALLEST_BATCH,
    add_epochs,
    choose_recipe,
    list_options,
    list_settled,
    refuse_settled,
    replace_numbers,
    shrink_batches,
    slow_down,
    split_options,
)
from keras_attention.tasks.recipes.recipe import LONGEST, Recipe

__all__ = [
    "FILES",
    "IN_MODEL",
    "LONGEST",
    "OF_CHECKPOINTS",
    "PRETRAINED",
    "RECIPES",
    "SMALLEST_BATCH",
    "Recipe",
    "add_epochs",
    "choose_recipe",
    "list_options",
    "list_settled",
    "refuse_settled",
    "replace_numbers",
    "shrink_batches",
    "slow_down",
    "split_options",
]
