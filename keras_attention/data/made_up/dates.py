"""Dates as people write them in many languages, and in ISO 8601."""

import collections
import datetime
import functools
import hashlib
import typing

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.files.extras import import_babel

LOCALES = tuple(
    "ar bg cs da de el en en_GB es et fi fr he hi hr hu id it ja ko lt lv nb nl pl pt ro ru sv tr "
    "uk vi zh".split()
)
FIRST, LAST = datetime.date(1950, 1, 1), datetime.date(2049, 12, 31)
_SHARES = {"test": 10, "dev": 5, "train": 85}  # percent of all days


class WrittenDate(typing.NamedTuple):
    """A date as people write it (`written`), in ISO 8601 (`iso`), and its `locale` (`en_GB`)."""

    written: str
    iso: str
    locale: str


def dates(split="train", num_examples=10_000, *, seed=0, locales=LOCALES):
    """Return generated dates as people write them, a list of `WrittenDate`.

    Babel formats the dates with the locale data of CLDR. Each example has a random day from 1950 to
    2049, a random locale and a random format of that locale: full, long, medium or short. Examples
    are `Montag, 4. März 2024`, `4 mars 2024`, `2024年3月4日` and `04.03.24`. Special spaces become
    plain ones, and marks of writing direction are removed.

    Every string has exactly one meaning. A format is excluded if a date in it could be read as
    another date in a format of any of the locales. If the locales include `en`, this excludes
    3/4/24, 4/3/24 and 04/03/2024, but not 04.03.24, 2024-03-04 and 2024/3/4.

    Args:
        split: `"train"`, `"dev"` or `"test"`, which contain 85 %, 5 % and 10 % of all days. The
            split does not depend on the seed. A model trained on one split has never seen the days
            of another, but it has seen the languages and formats.
        num_examples: int, the number of examples, which may repeat.
        seed: int. The same seed and version of Babel return the same examples.
        locales: tuple of str, CLDR's locale names. Which formats are excluded depends on all of
            them, so use the same tuple for every split.

    ```python
    import keras_attention as ka

    for written, iso, locale in ka.data.dates("test", 3, locales=("de", "en", "ja")):
        assert iso[:4] in written or iso[2:4] in written
    ```
    """
    rng = np.random.default_rng([seed, list(_SHARES).index(_check_split(split))])
    num_examples = check_whole_number("dates", "num_examples", num_examples)
    days = list_days(split)
    forms = select_forms(tuple(locales))
    chosen = rng.integers([len(days), len(locales), 2**32], size=(num_examples, 3))
    examples = []
    for day, locale, form in chosen.tolist():
        form = forms[locales[locale]][form % len(forms[locales[locale]])]
        examples.append(WrittenDate(form.write(days[day]), days[day].isoformat(), form.locale))
    return examples


def select_forms(locales):
    """Return a dict from each of `locales` to its date formats, without ambiguous formats.

    A format is ambiguous if one of its dates can be read as another date in a format of any of the
    `locales`. Raise a ValueError if `locales` is empty, or all formats of a locale are ambiguous.
    """
    if not locales:
        raise ValueError("locales is empty: expected names of CLDR, such as ('de', 'en_GB').")
    forms = [form for locale in dict.fromkeys(locales) for form in date_forms(locale)]
    distinct = keep_distinct(forms)
    forms_of = {locale: [form for form in distinct if form.locale == locale] for locale in locales}
    if without := [locale for locale, own in forms_of.items() if not own]:
        raise ValueError(
            f"locales: no form of {', '.join(without)} has only one meaning. Leave one locale out."
        )
    return forms_of


def list_days(split):
    """Return the days from 1950 to 2049 that belong to `split`, a list of `datetime.date`."""
    return _split_days()[_check_split(split)]


@functools.cache
def _split_days():
    days = {split: [] for split in _SHARES}
    for ordinal in range(FIRST.toordinal(), LAST.toordinal() + 1):
        day = datetime.date.fromordinal(ordinal)
        # A hash, because random numbers may differ between versions of NumPy.
        percent = int(hashlib.sha256(day.isoformat().encode()).hexdigest(), 16) % 100
        test, dev = _SHARES["test"], _SHARES["dev"]
        days["test" if percent < test else "dev" if percent < test + dev else "train"].append(day)
    return days


def _check_split(split):
    if split not in _SHARES:
        raise ValueError(f"split={split!r}: expected one of {', '.join(map(repr, _SHARES))}.")
    return split


STYLES = ("full", "long", "medium", "short")
_KINDS = dict(d="day", M="month", L="month", y="year", E="weekday", c="weekday", G="era")
# CLDR has narrow and non-breaking spaces and marks of writing direction, which nobody types.
_TYPED = str.maketrans({"\u202f": " ", "\u00a0": " ", "\u200e": "", "\u200f": "", "\u061c": ""})


class Piece(typing.NamedTuple):
    """One piece of a date format: literal text, or a field of the date.

    For literal text, `code` is the text. For a field, `code` is CLDR's pattern, such as `MMMM` or
    `d`.
    """

    kind: str  # "text", or one of _KINDS
    code: str

    @property
    def is_number(self):
        """bool, whether this field is written in digits.

        A month is in digits if its pattern has 1 or 2 letters (`MM`). Longer patterns (`MMM`) stand
        for the name of the month.
        """
        return self.kind in ("day", "year") or (self.kind == "month" and len(self.code) < 3)


class DateForm(typing.NamedTuple):
    """A date format: CLDR's name of the locale, and a tuple of `Piece`s in order."""

    locale: str
    pieces: tuple

    def write(self, date):
        """Format `date`, a `datetime.date`, as a str."""
        return "".join(write_piece(self.locale, piece, date) for piece in self.pieces)

    @property
    def order(self):
        """tuple of the numeric fields in order, such as `("day", "month", "year")` for 4.3.2024."""
        return tuple(piece.kind for piece in self.pieces if piece.is_number)


def date_forms(locale):
    """Return a list with the different `DateForm`s of a locale: full, long, medium and short.

    Raise a ValueError if CLDR does not have the locale.
    """
    babel = import_babel("dates")
    try:
        patterns = babel.Locale.parse(locale).date_formats
    except (babel.UnknownLocaleError, ValueError) as error:
        raise ValueError(
            f"CLDR lacks the locale {locale!r}: expected one such as 'de' or 'en_GB'."
        ) from error
    forms = (DateForm(locale, _pieces(babel, patterns[style].pattern)) for style in STYLES)
    return tuple(dict.fromkeys(forms))


def _pieces(babel, pattern):
    """Split a CLDR pattern, such as `EEEE, d. MMMM y`, into a tuple of `Piece`."""
    pieces = []
    for kind, value in babel.dates.tokenize_pattern(pattern):
        if kind == "chars":
            pieces.append(Piece("text", value.translate(_TYPED)))
        else:
            letter, times = value
            pieces.append(Piece(_KINDS[letter], letter * times))
    return tuple(pieces)


def write_piece(locale, piece, date):
    """Return the text of `piece`, a `Piece` of a date format, for `date`, a `datetime.date`.

    `locale` is CLDR's name of the language and the country, such as `en_GB`.
    """
    kind, code = piece
    if kind == "text":
        return code
    # Babel is slow. These dates make the cache call it once for each month, day, weekday and year.
    if kind == "weekday":
        return _look_up(locale, code, datetime.date(2001, 1, 1 + date.weekday()))  # a Monday
    if kind == "month":
        return _look_up(locale, code, datetime.date(2001, date.month, 1))
    if kind == "day":
        return _look_up(locale, code, datetime.date(2001, 1, date.day))
    return _look_up(locale, code, datetime.date(date.year, 1, 1))


@functools.lru_cache(maxsize=2**16)
def _look_up(locale, code, date):
    return import_babel("dates").dates.DateTimeFormat(date, locale)[code].translate(_TYPED)


def keep_distinct(forms):
    """Remove the date formats whose dates could be read as another date in any of `forms`.

    `forms` and the result are lists of `DateForm`. Readers are assumed to ignore leading zeros,
    capitals, dots and commas at the ends, and whether a year has two or four digits. Two formats
    therefore look the same if they have the same words and separators between their numbers. In
    that case a date in one format is misread in the other if either of these holds:

    - The words are the name of another month in the other format.
    - The numbers are in another order. An exception is a four-digit year where the other format has
      a day or month: 2024/3/4 is not misread by readers of 4/3/24, but 4/3/2024 and 3/4/24 can be
      confused.

    This removes both 4/3/24 (Spain) and 3/4/24 (United States). It keeps 4.3.24 if all locales that
    use dots in this way put the day first, and it always keeps 2024-03-04.
    """
    readings = collections.defaultdict(set)  # look -> set of (order of numbers, month)
    for form in forms:
        for look, month in _looks(form):
            readings[look].add((form.order, month))

    def is_misread(form, month, other_order, other_month):
        if month != other_month:
            return True
        has_short_year = Piece("year", "yy") in form.pieces
        keeps_year = other_order[form.order.index("year")] == "year"
        return form.order != other_order and (has_short_year or keeps_year)

    return [
        form
        for form in forms
        if not any(
            is_misread(form, month, *reading)
            for look, month in _looks(form)
            for reading in readings[look]
        )
    ]


def _looks(form):
    """Yield (look, month) for all dates in a format, to find formats that can be confused.

    The look is the date as text, with # in place of every number. The month is the number of the
    month whose name is in the text, or None. A format without names of months or weekdays has only
    one look.
    """
    kinds = {piece.kind for piece in form.pieces if not piece.is_number}
    for month in range(1, 13) if "month" in kinds else [1]:
        for day in range(1, 8) if "weekday" in kinds else [1]:  # seven days cover all weekdays
            date = datetime.date(2001, month, day)
            texts = ["#" if p.is_number else write_piece(form.locale, p, date) for p in form.pieces]
            look = "".join(texts).strip(" .,").casefold()
            yield look, month if "month" in kinds else None
