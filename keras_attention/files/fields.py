"""The fields of a JSON object in a file, each checked when it is read."""

import collections.abc
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
MOST_LAYERS = 1000  # of a model; no published one has as many
OFF = (None, False, {}, [], 0, 0.0)  # what a setting is that asks for nothing

_REQUIRED = object()


class Fields:
    """The values of a JSON object. Errors name the file, the field and what was expected.

    Files come from anywhere: one may be damaged, or written to do harm. So a field has a type, a
    number has bounds, and a name is of a file beside this one.

    Args:
        path: the file.
        values: its content. Anything but an object (a dict) is an error.
        within: str, the name of the field that `values` stands in, or empty for the whole file.
        ignored: names of fields that do not matter, for `finish`.
        error_class: ValueError, or a class of it.

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

    def __init__(self, path, values, within="", *, ignored=(), error_class=ValueError):
        self.path, self.within, self.values = pathlib.Path(path), within, values
        self.ignored, self.seen, self.error_class = {*ignored}, {*ignored}, error_class
        if not isinstance(values, dict):
            what = f"{within} is" if within else "it holds"
            raise error_class(f"{path}: {what} {quote_value(values)}: expected an object, {{...}}.")

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
        """Make the error for a field with a wrong value."""
        found = f"is {quote_value(self.values[name])}" if name in self.values else "is not there"
        return self.error_class(f"{self.owner(name)} {found}: expected {expected}.")

    def _value(self, name, default, fits, expected):
        value = self.get(name)
        if value is None and default is not _REQUIRED:
            return default
        if not fits(value):
            raise self.error(name, expected)
        return value

    def get(self, name, default=None):
        """Read any value; `default` where it is missing or null."""
        self.seen.add(name)
        value = self.values.get(name)
        return default if value is None else value

    def need(self, name):
        """Read any value, which has to be there."""
        return self._value(name, _REQUIRED, lambda x: x is not None, "a value")

    def object(self, name, default=_REQUIRED, ignored=()):
        """Read the fields of an object in this one."""
        value = self.get(name, {} if default is _REQUIRED else default)
        if name not in self.values and default is _REQUIRED:
            raise self.error(name, "an object, {...}")
        ignored = self.ignored | {*ignored}
        return Fields(
            self.path, value, self._full(name), ignored=ignored, error_class=self.error_class
        )

    def entries(self, name):
        """Read a list of anything. `entry` gives the fields of one that is an object."""
        return self._value(name, _REQUIRED, lambda x: isinstance(x, list), "a list")

    def entry(self, name, k):
        """Read the fields of the object number `k` in a list."""
        where = f"{self._full(name)}[{k}]"
        return Fields(self.path, self.values[name][k], where, error_class=self.error_class)

    def part(self, values):
        """Return `values`, some of the fields, as `Fields` of the same name."""
        return Fields(
            self.path, values, self.within, ignored=self.seen, error_class=self.error_class
        )

    def refuse(self, *names):
        """Refuse settings that are anything but off."""
        for name in names:
            if self.get(name) not in OFF:
                raise self.error(name, "none, which is all that is loaded")

    def finish(self):
        """Refuse a field that nothing has read, for it may matter."""
        unread = {k: v for k, v in self.values.items() if k not in self.seen and v not in OFF}
        if unread:
            name = min(unread)
            kind = self.values.get("model_type") or self.values.get("architecture")
            raise self.error_class(
                f"{self.path} says {name}={unread[name]!r:.80}, which no loader of a {kind} knows: "
                "it may mean another model than would be built."
            )

    def token_id(self, name, default=_REQUIRED):
        """Read the id of a token."""
        return self.whole(name, default, least=0)

    def layers(self, name, default=_REQUIRED):
        """Read a number of layers, each of which takes time and memory."""
        return self.whole(name, default, most=MOST_LAYERS)

    def whole(self, name, default=_REQUIRED, *, least=1, most=MOST_ID):
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

    def number(
        self, name, default=_REQUIRED, *, above=-math.inf, least=None, most=MOST_NUMBER, finite=True
    ):
        """Read an int or float above `above`, from `least` to `most`.

        With `finite=False` it may also be NaN or infinite.
        """
        expected = "a number" + ("" if above == -math.inf else f" above {above}")
        expected += "" if least is None else f" of at least {least}"
        expected += "" if most == MOST_NUMBER else f" of at most {most}"

        def fit(value):
            if not _is_real(value) or not finite:
                return _is_real(value)
            in_range = value > above and (least is None or value >= least)
            return abs(value) <= MOST_NUMBER and value <= most and in_range

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

    def one_of(self, name, choices, default=_REQUIRED):
        """Read one of `choices`. Of a dict it is a key, and its entry is returned."""
        expected = f"one of {', '.join(map(str, choices))}"

        def fit(value):
            return isinstance(value, collections.abc.Hashable) and value in choices

        value = self._value(name, default, fit, expected)
        return choices[value] if isinstance(choices, dict) else value

    def each_of(self, name, choices, default):
        """Read a list, each entry of which is one of `choices`, which are str."""
        values = self.get(name, default)
        for value in values:
            if value not in choices:
                expected = f"some of {', '.join(choices)}"
                raise self.error_class(
                    f"{self.owner(name)} holds {quote_value(value)}: expected {expected}."
                )
        return values

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
