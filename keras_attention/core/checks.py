"""Argument checks. Their errors name the class, the argument and the value."""

import math
import numbers
import operator
import os

import numpy as np

INTEGERS = ("int16", "int32")  # dtypes of integer samples in audio files


def check_whole_number(caller, name, value, least=1, most=math.inf):
    """Return `value` as an int, or raise a ValueError unless it is an integer within the bounds.

    The bounds `least` and `most` are inclusive. The message starts with `caller`, the name of a
    class or function, and `name`, the name of its argument.
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        bound = f"least {least}" if number is None or number < least else f"most {most}"
        raise ValueError(
            f"{caller}({name}={value!r}): {name} must be a whole number of at {bound}."
        )
    return number


def divide_exactly(name, size, by_name, by):
    """Return `size / by` as an int. If `by` is not a divisor, the ValueError lists the divisors.

    `name` and `by_name` are the names of the two arguments in the message, such as `"hidden_dim"`
    and `"num_heads"`.
    """
    if size % by:
        divisors = ", ".join(str(d) for d in range(1, min(size, 64) + 1) if size % d == 0)
        raise ValueError(f"{by_name}={by} does not divide {name}={size}. Choose one of {divisors}.")
    return size // by


def check_padding_id(caller, value):
    """Return the argument `padding_id` as an int or None, or raise a ValueError.

    `caller` is the name of the class with this argument, for the message. None means that every id
    is a token.
    """
    return None if value is None else check_whole_number(caller, "padding_id", value, least=0)


def check_height_and_width(caller, name, size):
    """Return an image size, an int or a pair of ints in pixels, as (height, width).

    For other values, a ValueError names `caller`, the name of a class or function, and `name`, the
    name of its argument.
    """
    pair = (size, size) if not isinstance(size, (tuple, list)) else tuple(size)
    if len(pair) != 2:
        raise ValueError(
            f"{caller}({name}={size!r}): {name} must be a whole number or (height, width) in "
            "pixels, without channels."
        )
    return tuple(check_whole_number(caller, name, side) for side in pair)


def check_rows_and_columns(caller, name, value, least=1):
    """Return `value` as a pair (rows, columns) of ints of at least `least`, or raise a ValueError.

    The message names `caller`, the name of a class, and `name`, the name of its argument.
    """
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ValueError(f"{caller}({name}={value!r}): {name} must be (rows, columns).")
    return tuple(check_whole_number(caller, name, side, least) for side in value)


def check_whole_numbers(part, *names, least=1, optional=False):
    """Raise a ValueError unless some attributes of an object are integers of at least `least`.

    `part` is the object, such as a layer, and `names` are the names of the attributes. If
    `optional`, the attributes may also be None. NumPy integers are replaced by ints, even in a
    frozen dataclass, so that configs are plain JSON.
    """
    for name in names:
        if not (optional and getattr(part, name) is None):
            number = check_whole_number(type(part).__name__, name, getattr(part, name), least)
            object.__setattr__(part, name, number)


def check_choice(part, name, choices):
    """Raise a ValueError if the attribute `name` of an object is not in the list `choices`.

    `part` is the object, such as a layer.
    """
    value = getattr(part, name)
    if value not in choices:
        raise ValueError(
            f"{type(part).__name__}({name}={value!r}): {name} must be one of "
            f"{', '.join(map(repr, choices))}."
        )


def check_number(
    part, name, above=-math.inf, below=math.inf, least=-math.inf, most=math.inf, optional=False
):
    """Raise a ValueError if the attribute `name` of an object is not a finite number within bounds.

    `part` is the object, such as a layer. `above` and `below` are exclusive bounds, `least` and
    `most` inclusive ones. If `optional`, the attribute may also be None.
    """
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


def check_token_count(part, count, length, exact, advice=""):
    """Raise a ValueError if a sequence does not fit the image grid of a position encoding or mask.

    Args:
        part: the encoding or mask. Its attribute `grid` is (rows, columns), and `prefix` the number
            of tokens before the grid.
        count: int, the number of positions: prefix + rows · columns.
        length: int, the number of tokens. None, for an unknown length, is not checked.
        exact: bool, whether shorter sequences are errors, too.
        advice: str, another way to fix the error, for the middle of the message. It ends with ", ".
    """
    if not isinstance(length, int) or length == count or (length < count and not exact):
        return
    (rows, columns), prefix = part.grid, part.prefix
    raise ValueError(
        f"A sequence of length {length} is {'longer' if length > count else 'shorter'} than "
        f"{type(part).__name__}(grid={part.grid}, prefix={prefix}), which has {prefix} + {rows} · "
        f"{columns} positions. Give the grid and prefix of this image, {advice}or give the "
        "positions of the tokens."
    )


def refuse_ragged(caller, *inputs):
    """Raise a ValueError if an input is a `tf.RaggedTensor` or a ragged `keras.Input`.

    `caller` is the name of the class that got the inputs, for the message.
    """
    for x in inputs:
        if hasattr(x, "row_splits") or getattr(x, "ragged", False):
            raise ValueError(
                f"{caller} got a ragged tensor of shape {tuple(x.shape)}: expected a dense one. "
                "Pad it with x.to_tensor(padding_id), 0 in most models. Pad labels with the class "
                "that the loss ignores."
            )


class TrainsAnother:
    """Base class of models that only train another model. Their own outputs are not logits."""


def check_gives_logits(model):
    """Raise a ValueError if a model only trains another model and does not return logits."""
    if isinstance(model, TrainsAnother):
        raise ValueError(
            f"A {type(model).__name__} is only for training. It returns the vectors before the "
            "last layer. Generate with, save and export the model that it was made from."
        )


def check_many(inputs, noun, of="them", ndim=None):
    """Raise a ValueError if `inputs` is a single input (a str, a path or one array), not a list.

    Args:
        noun: str, what to call one input in the message, such as "text" or "recording".
        of: str, what to call several inputs in the message, such as "str" in "a list of str".
        ndim: int, the rank of one input if inputs are arrays, otherwise None.
    """
    shown = None
    if isinstance(inputs, str | os.PathLike):
        shown = repr(str(inputs)[:40])
    elif ndim is not None and getattr(inputs, "ndim", None) == ndim:
        shown = f"An array of shape {tuple(inputs.shape)}"
    if shown is not None:
        raise ValueError(f"{shown} is one {noun}: pass a list of {of}.")


def check_not_a_path(examples):
    """Raise a ValueError if `examples` is a path or another string, not a list or a dataset."""
    if isinstance(examples, str | os.PathLike):
        raise ValueError(
            f"{str(examples)[:40]!r} is a string or a path, expected examples or a dataset. Read "
            "files with ka.data, for instance ka.data.from_text_files(test=...)."
        )


def check_sound(noun, sound, frame_shape=(), instead=""):
    """Return audio as a float32 array: samples (T,), or features (T, F) if `frame_shape` is (F,).

    Samples must be floats from -1 to 1, or int16 or int32, which are divided by 2^15 or 2^31.
    Anything else raises a ValueError.

    Args:
        noun: str, what to call the audio in the message.
        sound: array or list, the audio.
        frame_shape: () for samples, (F,) for features.
        instead: str, another accepted input for the message, such as "a path, or ".
    """
    expected = "samples (T,), floats from -1 to 1, int16 or int32"
    mend = "Pass one channel. Divide other whole numbers by their largest value."
    if frame_shape:
        expected, mend = f"features (T, {frame_shape[0]}), floats", "Convert it first."
    try:
        array = np.asarray(sound)
    except ValueError as error:
        types = f"a {type(sound).__name__} of {', '.join(type(part).__name__ for part in sound)}"
        raise ValueError(
            f"{noun} is {types}: expected {instead}an array of {expected}. Do not pass a sampling "
            "rate with it."
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
