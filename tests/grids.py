"""Grids and draws of cases that are too many to run each time."""

import itertools
import os

import pytest

# Three tiers: the default tests and the slow ones hold every choice and every pair of choices;
# `make test-all` also runs what repeats them in other combinations, and what is marked as a sweep.
ALL = os.environ.get("KERAS_ATTENTION_TESTS") == "all"


def sampled(values, count=1):
    """Values as pytest's parameters: the first `count` of them as they are, the others a sweep."""
    values = list(values)
    others = [pytest.param(value, marks=pytest.mark.sweep) for value in values[count:]]
    return [*values[:count], *others]


def quick(values, *chosen):
    """Values as pytest's parameters: `chosen` run by default, the others are slow."""
    values = list(values)
    if missing := [value for value in chosen if value not in values]:
        raise ValueError(f"quick: {missing} are not among {values}.")
    return [v if v in chosen else pytest.param(v, marks=pytest.mark.slow) for v in values]


def thinned(shortest, *others, every=ALL):
    """Combinations of values as pytest's parameters, most of them slow; all of them with `every`.

    Those that are not slow hold every value of two lists, every pair of values of three: whatever
    all lists but one say, one of them says it. Their indices add up to a multiple of the shortest
    length, so the value that `others` leave open in `shortest` is one, and in another at least one.
    Of three lists, not all of the slow ones are run without `every`, but those whose indices add up
    to one more: they hold every such choice once again, with another value in `shortest`.
    """
    axes = (shortest, *others)
    if len(shortest) > min(map(len, others)):
        raise ValueError(f"thinned({', '.join(map(str, axes))}): name the shortest list first.")
    found = []
    for combination in itertools.product(*map(enumerate, axes)):
        indices, values = zip(*combination, strict=True)
        tier = sum(indices) % len(shortest)
        if every or tier < 2 or len(axes) < 3:
            found.append(pytest.param(*values, marks=[pytest.mark.slow] if tier else []))
    return found
