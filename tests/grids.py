"""Grids of cases that are too large to run each time."""

import itertools

import pytest


def thinned(shortest, *others):
    """All combinations of values as pytest's parameters, most of them slow.

    Those that are not hold every value of two lists, every pair of values of three: whatever all
    lists but one say, one of them says it. Their indices add up to a multiple of the shortest
    length, so the value that `others` leave open in `shortest` is one, and in another at least one.
    """
    axes = (shortest, *others)
    if len(shortest) > min(map(len, others)):
        raise ValueError(f"thinned({', '.join(map(str, axes))}): name the shortest list first.")
    return [
        pytest.param(*values, marks=[pytest.mark.slow] if sum(indices) % len(shortest) else [])
        for indices, values in (
            zip(*combination, strict=True)
            for combination in itertools.product(*map(enumerate, axes))
        )
    ]
