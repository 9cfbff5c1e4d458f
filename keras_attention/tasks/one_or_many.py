"""Refuses one example where `predict` takes a list of them."""

import os

import numpy as np


def check_many(inputs, noun, of="them", ndim=None):
    """Refuses a text, a path or one array in the place of a list of inputs.

    Args:
        noun: str, what one input is: "text", "recording".
        of: str, what a list is to hold.
        ndim: int, the axes that one array has; None where an input is no array.
    """
    shown = None
    if isinstance(inputs, str | os.PathLike):
        shown = repr(str(inputs)[:40])
    elif isinstance(inputs, np.ndarray) and inputs.ndim == ndim:
        shown = f"An array of shape {inputs.shape}"
    if shown is not None:
        raise ValueError(f"{shown} is one {noun}: pass a list of {of}.")
