"""Checks of arguments. Errors name the class, the argument and the value."""

import math
import numbers
import operator
import os

import numpy as np

INTEGERS = ("int16", "int32")  # of samples, as files have them


def check_whole_number(owner, name, value, least=1, most=math.inf):
    """Return `value` as an int from `least` to `most`. The error names `owner` and the value."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        bound = f"least {least}" if number is None or number < least else f"most {most}"
        raise ValueError(f"{owner}({name}={value!r}): {name} must be a whole number of at {bound}.")
    return number


def divide_exactly(name, size, by_name, by):
    """Return `size / by` as an int. The error says which `by` would divide it."""
    if size % by:
        divisors = ", ".join(str(d) for d in range(1, min(size, 64) + 1) if size % d == 0)
        raise ValueError(f"{by_name}={by} does not divide {name}={size}. Choose one of {divisors}.")
    return size // by


def check_padding_id(owner, value):
    """Return a padding id as an int, or None where every id is a token."""
    return None if value is None else check_whole_number(owner, "padding_id", value, least=0)


def check_height_and_width(owner, name, size):
    """Return `size`, an int or a pair of ints in pixels, as (height, width)."""
    pair = (size, size) if not isinstance(size, (tuple, list)) else tuple(size)
    if len(pair) != 2:
        raise ValueError(
            f"{owner}({name}={size!r}): {name} must be a whole number or (height, width) in pixels;"
            " channels are no part of it."
        )
    return tuple(check_whole_number(owner, name, side) for side in pair)


def check_rows_and_columns(owner, name, value, least=1):
    """Return `value` as a pair of ints of at least `least`."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ValueError(f"{owner}({name}={value!r}): {name} must be (rows, columns).")
    return tuple(check_whole_number(owner, name, side, least) for side in value)


def check_whole_numbers(part, *names, least=1, optional=False):
    """Make the attributes `names` of `part` ints of at least `least`, or None if `optional`.

    NumPy integers become ints, so that configs are plain JSON. Frozen dataclasses are changed, too.
    """
    for name in names:
        if not (optional and getattr(part, name) is None):
            number = check_whole_number(type(part).__name__, name, getattr(part, name), least)
            object.__setattr__(part, name, number)


def check_choice(part, name, choices):
    """Refuse a value of attribute `name` that is not in `choices`."""
    value = getattr(part, name)
    if value not in choices:
        raise ValueError(
            f"{type(part).__name__}({name}={value!r}): {name} must be one of "
            f"{', '.join(map(repr, choices))}."
        )


def check_number(
    part, name, above=-math.inf, below=math.inf, least=-math.inf, most=math.inf, optional=False
):
    """Refuse a value of attribute `name` that is not a finite number within the bounds."""
    value = getattr(part, name)
    if optional and value is None:
        return
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not (real and above < value < below and least <= value <= most):
        bounds = {"above": above, "below": below, "of at least": least, "of at most": most}
        words = [f"{word} {bound}" for word, bound in bounds.items() if abs(bound) != math.inf]
        raise ValueError(
            f"{type(part).__name__}({name}={value!r}): {name} must be "
            f"{' '.join(['a finite number', ' and '.join(words)]).strip()}."
        )


def check_token_count(part, count, length, exact, more=""):
    """Refuse a number of tokens other than `places`, or a larger one if not `exact`."""
    if not isinstance(length, int) or length == count or (length < count and not exact):
        return
    (rows, columns), prefix = part.grid, part.prefix
    raise ValueError(
        f"A sequence of length {length} is {'longer' if length > count else 'shorter'} than "
        f"{type(part).__name__}(grid={part.grid}, prefix={prefix}), which has {prefix} + {rows} · "
        f"{columns} places. Give the grid and prefix of this image, {more}or say with "
        "positions where the tokens are."
    )


def refuse_ragged(owner, *inputs):
    """Raise a ValueError for a `tf.RaggedTensor`, or a `keras.Input` of one."""
    for x in inputs:
        if hasattr(x, "row_splits") or getattr(x, "ragged", False):
            raise ValueError(
                f"{owner} got a ragged tensor of shape {tuple(x.shape)}: expected a dense one. Pad "
                "it with x.to_tensor(padding_id), 0 in most models. Pad labels with the class that "
                "the loss ignores."
            )


class TrainsAnother:
    """Base of a model that trains another one, and whose outputs are not those of that one."""


def check_gives_logits(model):
    """Refuse a model that only trains another one."""
    if isinstance(model, TrainsAnother):
        raise ValueError(
            f"A {type(model).__name__} gives the vectors before the last layer: it is for training "
            "alone. Generate with the model that it was made of, save and export that one."
        )


def check_many(inputs, noun, of="them", ndim=None):
    """Refuse a text, a path or one array in place of a list of inputs.

    Args:
        noun: str, the word for one input: "text", "recording".
        of: str, the word for several.
        ndim: int, the axes of one array, or None if inputs are not arrays.
    """
    shown = None
    if isinstance(inputs, str | os.PathLike):
        shown = repr(str(inputs)[:40])
    elif ndim is not None and getattr(inputs, "ndim", None) == ndim:
        shown = f"An array of shape {tuple(inputs.shape)}"
    if shown is not None:
        raise ValueError(f"{shown} is one {noun}: pass a list of {of}.")


def check_sound(noun, sound, frame_shape=(), instead=""):
    """Return `sound` as float32: samples (T,), or features (T, F) if `frame_shape` is (F,).

    Samples are floats from -1 to 1. Those of int16 and int32, as in files, are divided by 2^15 and
    2^31. Features are floats.

    Args:
        noun: str, its name in the error.
        instead: str, another accepted input, such as "a path, or ".
    """
    expected = "samples (T,), floats from -1 to 1, int16 or int32"
    mend = "Of several channels pass one; divide other whole numbers by their largest."
    if frame_shape:
        expected, mend = f"features (T, {frame_shape[0]}), floats", "Convert it first."
    try:
        array = np.asarray(sound)
    except ValueError as error:
        types = f"a {type(sound).__name__} of {', '.join(type(part).__name__ for part in sound)}"
        raise ValueError(
            f"{noun} is {types}: expected {instead}an array of {expected}. Where a rate is beside "
            "them, leave it out."
        ) from error
    scaled = not frame_shape and array.dtype.name in INTEGERS
    is_number = scaled or np.issubdtype(array.dtype, np.floating)
    if not array.ndim or array.shape[1:] != tuple(frame_shape) or not is_number:
        raise ValueError(
            f"{noun} has the shape {array.shape} and the dtype {array.dtype}: expected {instead}"
            f"an array of {expected}. {mend}"
        )
    if scaled:
        array = array / -float(np.iinfo(array.dtype).min)
    return array.astype("float32")
