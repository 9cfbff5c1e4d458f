"""Grids and draws of cases that are too many to run each time."""

import itertools
import os

import pytest

# Three tiers: the default tests and the slow ones hold every choice and every pair of choices;
# `make test-all` also runs the other combinations, and tests that are marked as a sweep.
ALL = os.environ.get("KERAS_ATTENTION_TESTS") == "all"


def sampled(values, count=1):
    """Values as pytest's parameters: the first `count` of them as they are, the others a sweep."""
    values = list(values)
    sweeps = [pytest.param(value, marks=pytest.mark.sweep) for value in values[count:]]
    return [*values[:count], *sweeps]


def quick(values, *chosen):
    """Values as pytest's parameters: `chosen` run by default, the others are slow."""
    values = list(values)
    if missing := [value for value in chosen if value not in values]:
        raise ValueError(f"quick: {missing} are not among {values}.")
    return [v if v in chosen else pytest.param(v, marks=pytest.mark.slow) for v in values]


def thinned(shortest, *longer, every=ALL):
    """Return combinations of values as pytest's parameters, most of them slow. `every` gives all.

    The combinations that are not slow hold every value of two lists, and every pair of values of
    three lists: for any choice in all lists but one there is a combination. Their indices add up
    to a multiple of the shortest list's length.
    For three lists, without `every`, only some of the slow combinations run: those whose indices
    add up to one more. They hold each such choice once again, with another value of the shortest
    list.
    """
    axes = (shortest, *longer)
    if len(shortest) > min(map(len, longer)):
        raise ValueError(f"thinned({', '.join(map(str, axes))}): name the shortest list first.")
    parameters = []
    for combination in itertools.product(*map(enumerate, axes)):
        indices, values = zip(*combination, strict=True)
        tier = sum(indices) % len(shortest)
        if every or tier < 2 or len(axes) < 3:
            parameters.append(pytest.param(*values, marks=[pytest.mark.slow] if tier else []))
    return parameters
