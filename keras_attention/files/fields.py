"""`Fields`: the fields of a JSON object in a file, each validated when it is read."""

import collections.abc
import contextlib
import math
import numbers
import pathlib

from keras_attention.files.io import path_inside, quote_value, read_json
from keras_attention.files.word_pattern import check_pattern

# Limits: more than any use of this package needs, but small enough for little memory.
MOST_TOKENS = 1 << 20  # in one text
MOST_BEAMS = 1 << 10
MOST_ID = (1 << 31) - 1
MOST_PIXELS = 1 << 14  # per side of an image
MOST_EPOCHS = 1_000_000
MOST_NUMBER = 1e300
MOST_LAYERS = 1000  # more than any published model has
OFF = (None, False, {}, [], 0, 0.0)  # values that turn a setting off

_REQUIRED = object()


class Fields:
    """A reader of the fields of a JSON object, whose errors name file, field and expected value.

    A file may be damaged or malicious. So each method checks the type of a field, the bounds of
    numbers, and that file names do not lead out of the folder of the file.

    A method that reads a field has the argument `name`, the name of the field. Many also have the
    argument `default`, which they return if the field is missing or null. Without a default, such a
    field is an error.

    Args:
        path: path of the JSON file, for errors.
        values: dict, the object. Another type raises an error.
        within: str, the name of the field of the file that holds the object, such as
            `"preprocessing.tokenizer"`. Empty if the object is the whole file.
        ignored: names of fields that may stay unread. The method `finish` raises an error if
            another field was not read.
        error_class: ValueError or a subclass, the class of all errors.
    """

    def __init__(self, path, values, within="", *, ignored=(), error_class=ValueError):
        self.path, self.within, self.values = pathlib.Path(path), within, values
        self.ignored, self.seen, self.error_class = {*ignored}, {*ignored}, error_class
        if not isinstance(values, dict):
            subject = f"{within} is" if within else "it holds"
            raise error_class(
                f"{path}: {subject} {quote_value(values)}: expected an object, {{...}}."
            )

    @classmethod
    def read(cls, path):
        """Return the `Fields` of the JSON file `path`, which must hold an object."""
        return cls(path, read_json(path))

    def __contains__(self, name):
        return name in self.values

    def locate(self, name):
        """Return path and full name of a field for errors, such as `"config.json: rope.type"`."""
        return f"{self.path}: {self._full(name)}"

    def _full(self, name):
        return f"{self.within}.{name}" if self.within else name

    def error(self, name, expected):
        """Return an exception for a field with a wrong value.

        `expected` describes a correct value, such as "a list of different strings".
        """
        state = f"is {quote_value(self.values[name])}" if name in self.values else "is not there"
        return self.error_class(f"{self.locate(name)} {state}: expected {expected}.")

    def _value(self, name, default, fits, expected):
        value = self.get(name)
        if value is None and default is not _REQUIRED:
            return default
        if not fits(value):
            raise self.error(name, expected)
        return value

    def get(self, name, default=None):
        """Return the field `name` of any type, or `default` if it is missing or null."""
        self.seen.add(name)
        value = self.values.get(name)
        return default if value is None else value

    def need(self, name):
        """Return the field `name` of any type, or raise an error if it is missing or null."""
        return self._value(name, _REQUIRED, lambda x: x is not None, "a value")

    def object(self, name, default=_REQUIRED, ignored=()):
        """Return the field `name`, which must be a JSON object, as `Fields`.

        `ignored` are names of fields of this object that may stay unread (see `finish`).
        """
        value = self.get(name, {} if default is _REQUIRED else default)
        if name not in self.values and default is _REQUIRED:
            raise self.error(name, "an object, {...}")
        return self._make(value, self._full(name), self.ignored | {*ignored})

    def entries(self, name):
        """Return the field `name`, which must be a list. `entry` reads an object in the list."""
        return self._value(name, _REQUIRED, lambda x: isinstance(x, list), "a list")

    def entry(self, name, k):
        """Return object `k` (0-based) in the list `name` as `Fields`."""
        return self._make(self.values[name][k], f"{self._full(name)}[{k}]", ())

    def part(self, values):
        """Return `Fields` of another dict, `values`, whose errors name the same file and object."""
        return self._make(values, self.within, self.seen)

    def _make(self, values, within, ignored):
        return Fields(self.path, values, within, ignored=ignored, error_class=self.error_class)

    def refuse(self, *names):
        """Raise an error if one of the fields `names` has a value that turns a setting on.

        A setting is off if its field is missing or in `OFF`, such as false or 0.
        """
        for name in names:
            if self.get(name) not in OFF:
                raise self.error(name, "none. Another value is not supported")

    def finish(self):
        """Raise an error if a field was not read, because its setting might change the model.

        Fields in `ignored`, and fields that are off (see `refuse`), need not be read.
        """
        unread = {k: v for k, v in self.values.items() if k not in self.seen and v not in OFF}
        if unread:
            name = min(unread)
            kind = self.values.get("model_type") or self.values.get("architecture")
            raise self.error_class(
                f"{self.path} says {name}={unread[name]!r:.80}, a setting that the loader of a "
                f"{kind} does not support. The model might differ from the original."
            )

    def token_id(self, name, default=_REQUIRED):
        """Return the field `name`, which must be the id of a token, an int of at least 0."""
        return self.whole(name, default, least=0)

    def layers(self, name, default=_REQUIRED):
        """Return the field `name`, which must be a number of layers, from 1 to `MOST_LAYERS`."""
        return self.whole(name, default, most=MOST_LAYERS)

    def whole(self, name, default=_REQUIRED, *, least=1, most=MOST_ID):
        """Return the field `name`, which must be an int from `least` to `most`."""
        expected = f"a whole number from {least} to {most}"
        return self._value(name, default, lambda x: _is_whole(x) and least <= x <= most, expected)

    def wholes(self, name, count, *, most, least=1):
        """Return the field `name`, which must be a list of `count` ints from `least` to `most`."""
        expected = f"{count} whole numbers from {least} to {most}"
        return self._list(name, count, lambda x: _is_whole(x) and least <= x <= most, expected)

    def numbers(self, name, count, *, least, most):
        """Return the field `name`, a list of `count` numbers from `least` to `most`."""
        expected = f"{count} numbers from {least} to {most}"
        return self._list(name, count, lambda x: _is_real(x) and least <= x <= most, expected)

    def _list(self, name, count, fits, expected):
        def fit(value):
            return isinstance(value, list) and len(value) == count and all(map(fits, value))

        return self._value(name, _REQUIRED, fit, expected)

    def number(
        self, name, default=_REQUIRED, *, above=-math.inf, least=None, most=MOST_NUMBER, finite=True
    ):
        """Return the field `name`, a number within the bounds.

        `above` is an exclusive bound, `least` and `most` are inclusive. With `finite=False` any
        number is allowed, also infinity.
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
        """Return the field `name`, which must be a bool."""
        return self._value(name, default, lambda x: isinstance(x, bool), "true or false")

    def text(self, name, default=_REQUIRED):
        """Return the field `name`, which must be a string."""
        return self._value(name, default, lambda x: isinstance(x, str), "a string")

    def pattern(self, name, default=_REQUIRED):
        """Return the field `name`, a regular expression whose matches are the words of a text.

        It must have no capturing groups and must not match the empty string.
        """

        def fit(value):
            with contextlib.suppress(ValueError):
                return isinstance(value, str) and check_pattern("", value) == value

        expected = "a regular expression without capturing groups"
        return self._value(name, default, fit, expected)

    def texts(self, name):
        """Return the field `name`, which must be a list of one or more different strings."""

        def fit(value):
            right = isinstance(value, list) and value and all(isinstance(x, str) for x in value)
            return right and len(set(value)) == len(value)

        return self._value(name, _REQUIRED, fit, "a list of different strings")

    def one_of(self, name, choices, default=_REQUIRED):
        """Return the value of the field `name`, which must be in the list `choices`.

        If `choices` is a dict, the value must be one of its keys, and `choices[value]` is returned.
        """
        expected = f"one of {', '.join(map(str, choices))}"

        def fit(value):
            return isinstance(value, collections.abc.Hashable) and value in choices

        value = self._value(name, default, fit, expected)
        return choices[value] if isinstance(choices, dict) else value

    def each_of(self, name, choices, default):
        """Return the field `name`, a list of strings. Each string must be in `choices`."""
        values = self.get(name, default)
        for value in values:
            if value not in choices:
                expected = f"some of {', '.join(choices)}"
                raise self.error_class(
                    f"{self.locate(name)} holds {quote_value(value)}: expected {expected}."
                )
        return values

    def file(self, name, default=_REQUIRED):
        """Return the path of the file that the field `name` names.

        The file must be in the folder of the JSON file.
        """
        if self.values.get(name) is None and default is not _REQUIRED:
            return default
        if name not in self.values:
            raise self.error(name, "the plain name of a file in the same folder")
        return path_inside(self.path.parent, self.values[name], self.locate(name))


def _is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _is_real(value):
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
