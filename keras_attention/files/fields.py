"""The fields of a JSON object in a file, each checked when it is read."""

import contextlib
import math
import numbers
import pathlib

from keras_attention.files.io import path_inside, quote_value, read_json
from keras_attention.files.word_pattern import check_pattern

# More than any use of this package needs, and little enough for the memory of a small machine.
MOST_TOKENS = 1 << 20  # of a text, or of what is written
MOST_BEAMS = 1 << 10
MOST_ID = (1 << 31) - 1
MOST_PIXELS = 1 << 14  # of a side
MOST_EPOCHS = 1_000_000
MOST_NUMBER = 1e300

_REQUIRED = object()


class Fields:
    """The values of a JSON object. Errors name the file, the field and what was expected.

    Files come from anywhere: one may be damaged, or written to do harm. So a field has a type, a
    number has bounds, and a name is of a file beside this one.

    Args:
        path: the file.
        values: its content. Anything but an object (a dict) is a ValueError.
        within: str, the name of the field that `values` stands in, or empty for the whole file.

    Example:

    ```python
    from keras_attention.files.fields import Fields

    fields = Fields("model/manifest.json", {"task": "sequence_labeler", "maximum_length": 10**12})
    assert fields.text("task") == "sequence_labeler"
    try:
        fields.whole("maximum_length", most=512)
    except ValueError as error:
        assert "manifest.json: maximum_length is 1000000000000: expected a whole" in str(error)
    ```
    """

    def __init__(self, path, values, within=""):
        self.path, self.within, self.values = pathlib.Path(path), within, values
        if not isinstance(values, dict):
            what = f"{within} is" if within else "it holds"
            raise ValueError(f"{path}: {what} {quote_value(values)}: expected an object, {{...}}.")

    @classmethod
    def read(cls, path):
        """Read the object in the file `path`."""
        return cls(path, read_json(path))

    def __contains__(self, name):
        return name in self.values

    def owner(self, name):
        """Return the name of a field in errors."""
        return f"{self.path}: {self._full(name)}"

    def _full(self, name):
        return f"{self.within}.{name}" if self.within else name

    def error(self, name, expected):
        """Make the ValueError for a field with a wrong value."""
        found = f"is {quote_value(self.values[name])}" if name in self.values else "is not there"
        return ValueError(f"{self.owner(name)} {found}: expected {expected}.")

    def _value(self, name, default, fits, expected):
        value = self.values.get(name)
        if value is None and default is not _REQUIRED:
            return default
        if not fits(value):
            raise self.error(name, expected)
        return value

    def object(self, name):
        """Read the fields of an object in this one."""
        if name not in self.values:
            raise self.error(name, "an object, {...}")
        return Fields(self.path, self.values[name], self._full(name))

    def whole(self, name, *, most, least=1, default=_REQUIRED):
        """Read an int from `least` to `most`."""
        expected = f"a whole number from {least} to {most}"
        return self._value(name, default, lambda x: _is_whole(x) and least <= x <= most, expected)

    def wholes(self, name, count, *, most, least=1):
        """Read a list of `count` ints from `least` to `most`."""
        expected = f"{count} whole numbers from {least} to {most}"

        def fit(value):
            right = isinstance(value, list) and len(value) == count
            return right and all(_is_whole(x) and least <= x <= most for x in value)

        return self._value(name, _REQUIRED, fit, expected)

    def numbers(self, name, count, *, least, most):
        """Read a list of `count` numbers from `least` to `most`."""
        expected = f"{count} numbers from {least} to {most}"

        def fit(value):
            right = isinstance(value, list) and len(value) == count
            return right and all(_is_real(x) and least <= x <= most for x in value)

        return self._value(name, _REQUIRED, fit, expected)

    def number(self, name, *, above=-math.inf, least=None, finite=True, default=_REQUIRED):
        """Read an int or float above `above`, and at least `least`.

        With `finite=False` it may also be NaN or infinite.
        """
        expected = "a number" + ("" if above == -math.inf else f" above {above}")
        expected += "" if least is None else f" of at least {least}"

        def fit(value):
            if not _is_real(value) or not finite:
                return _is_real(value)
            in_range = value > above and (least is None or value >= least)
            return abs(value) <= MOST_NUMBER and in_range

        return self._value(name, default, fit, expected)

    def flag(self, name, default=_REQUIRED):
        """Read a bool."""
        return self._value(name, default, lambda x: isinstance(x, bool), "true or false")

    def text(self, name, default=_REQUIRED):
        """Read a str."""
        return self._value(name, default, lambda x: isinstance(x, str), "a string")

    def pattern(self, name, default=_REQUIRED):
        """Return a regular expression that `check_pattern` accepts."""

        def fit(value):
            with contextlib.suppress(ValueError):
                return isinstance(value, str) and check_pattern("", value) == value

        expected = "a regular expression without capturing groups"
        return self._value(name, default, fit, expected)

    def texts(self, name):
        """Read a list of at least one str, all different."""

        def fit(value):
            right = isinstance(value, list) and value and all(isinstance(x, str) for x in value)
            return right and len(set(value)) == len(value)

        return self._value(name, _REQUIRED, fit, "a list of different strings")

    def one_of(self, name, choices):
        """Read one of `choices`, which are str."""
        expected = f"one of {', '.join(choices)}"
        return self._value(name, _REQUIRED, lambda x: isinstance(x, str) and x in choices, expected)

    def file(self, name, default=_REQUIRED):
        """Read the path of a file in the same folder. See `path_inside`."""
        if self.values.get(name) is None and default is not _REQUIRED:
            return default
        if name not in self.values:
            raise self.error(name, "the plain name of a file beside it")
        return path_inside(self.path.parent, self.values[name], self.owner(name))


def _is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _is_real(value):
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
