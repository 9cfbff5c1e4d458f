"""Checks of arguments that several families share."""

import math
import numbers
import operator


def whole_number(owner, name, value, least=1):
    """`value` as an int of at least `least`; the error says what `owner` was given instead."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        raise ValueError(
            f"{owner}({name}={value!r}): {name} must be a whole number of at least {least}."
        )
    return number


def whole(part, *names, least=1):
    """Makes the attributes `names` of `part` ints of at least `least`, or says what is wrong.

    NumPy integers become ints, so that a config stays plain JSON; works on frozen dataclasses too.
    """
    for name in names:
        number = whole_number(type(part).__name__, name, getattr(part, name), least)
        object.__setattr__(part, name, number)


def one_of(part, name, choices):
    """Refuses a value of attribute `name` that is not among `choices`, naming them."""
    value = getattr(part, name)
    if value not in choices:
        raise ValueError(
            f"{type(part).__name__}({name}={value!r}): {name} must be one of "
            f"{', '.join(map(repr, choices))}."
        )


def number(part, name, above=-math.inf, least=-math.inf, most=math.inf):
    """Refuses a value of attribute `name` that is no finite number within these bounds."""
    value = getattr(part, name)
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not (real and above < value < math.inf and least <= value <= most):
        bounds = {"above": above, "of at least": least, "of at most": most}
        words = [f"{word} {bound}" for word, bound in bounds.items() if abs(bound) != math.inf]
        raise ValueError(
            f"{type(part).__name__}({name}={value!r}): {name} must be "
            f"{' '.join(['a finite number', ' and '.join(words)]).strip()}."
        )
