"""Dates as people write them in many languages, and what they are in ISO 8601."""

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
# Of 100 days, how many are for testing and for development; the others are for training.
_SHARES = {"test": 10, "dev": 5, "train": 85}


class WrittenDate(typing.NamedTuple):
    """A date as people write it, its ISO 8601 form, and the locale that it is written in."""

    written: str
    iso: str
    locale: str


def dates(split="train", num_examples=10_000, *, seed=0, locales=LOCALES):
    """Dates of 1950 to 2049 as people write them, made with Babel from the locale data of CLDR.

    Every example is a day, a locale and one of its forms, drawn at random: full, long, medium or
    short, as in `Montag, 4. März 2024`, `4 mars 2024`, `2024年3月4日` and `04.03.24`. A year of two
    digits means 1950 to 2049. Special spaces, which CLDR has and people do not type, become plain
    ones; marks of writing direction are removed.

    Nothing that is written here means two dates. A form is left out if it could be read as another
    date in a form of any of the locales: with `en` among them, 3/4/24 is, and 4/3/24, and
    04/03/2024; 04.03.24, 2024-03-04 and 2024/3/4 are not.

    Args:
        split: `"train"`, `"dev"` or `"test"`. Every day belongs to one of them, whatever the
            seed: 85 %, 5 % and 10 % of all days. So the days of one are new to a model that was
            trained on another; languages and forms are not.
        num_examples: int, how many are drawn; two may be equal.
        seed: int; the same seed and version of Babel give the same examples.
        locales: tuple of str, CLDR's names. Which forms can be told apart depends on all of them:
            give the same to every split.

    Returns:
        A list of `WrittenDate`.

    ```python
    import keras_attention as ka

    for written, iso, locale in ka.data.dates("test", 3, locales=("de", "en", "ja")):
        assert iso[:4] in written or iso[2:4] in written
    ```
    """
    rng = np.random.default_rng([seed, list(_SHARES).index(_known(split))])
    num_examples = check_whole_number("dates", "num_examples", num_examples)
    days = list_days(split)
    forms = select_forms(tuple(locales))
    chosen = rng.integers([len(days), len(locales), 2**32], size=(num_examples, 3))
    examples = []
    for day, locale, form in chosen.tolist():
        of_locale = forms[locales[locale]]
        form = of_locale[form % len(of_locale)]
        examples.append(WrittenDate(form.write(days[day]), days[day].isoformat(), form.locale))
    return examples


def select_forms(locales):
    """{locale: its forms that can be told apart from all forms of `locales`}."""
    if not locales:
        raise ValueError("locales is empty: expected names of CLDR, such as ('de', 'en_GB').")
    forms = [form for locale in dict.fromkeys(locales) for form in date_forms(locale)]
    distinct = keep_distinct(forms)
    forms_of_locale = {
        locale: [form for form in distinct if form.locale == locale] for locale in locales
    }
    if without := [locale for locale, of_locale in forms_of_locale.items() if not of_locale]:
        raise ValueError(
            f"locales: every form of {', '.join(without)} can be read as another date in another "
            "of these locales. Leave one of them out."
        )
    return forms_of_locale


def list_days(split):
    """Return the days of 1950 to 2049 that belong to `split`, in order."""
    return _days()[_known(split)]


@functools.cache
def _days():
    days = {split: [] for split in _SHARES}
    for ordinal in range(FIRST.toordinal(), LAST.toordinal() + 1):
        day = datetime.date.fromordinal(ordinal)
        # A hash and not a random generator: no seed and no version of NumPy moves a day.
        place = int(hashlib.sha256(day.isoformat().encode()).hexdigest(), 16) % 100
        test, dev = _SHARES["test"], _SHARES["dev"]
        days["test" if place < test else "dev" if place < test + dev else "train"].append(day)
    return days


def _known(split):
    if split not in _SHARES:
        raise ValueError(f"split={split!r}: expected one of {', '.join(map(repr, _SHARES))}.")
    return split


STYLES = ("full", "long", "medium", "short")
_KINDS = {
    "d": "day",
    "M": "month",
    "L": "month",
    "y": "year",
    "E": "weekday",
    "c": "weekday",
    "G": "era",
}
# People do not type what CLDR puts between words: narrow and unbreakable spaces become spaces,
# marks of writing direction are removed.
_TYPED = str.maketrans({"\u202f": " ", "\u00a0": " ", "\u200e": "", "\u200f": "", "\u061c": ""})


class Piece(typing.NamedTuple):
    """A piece of a form: the text `code`, or what CLDR's `code` (`MMMM`, `d`) says of the date."""

    kind: str  # "text", or one of _KINDS
    code: str

    @property
    def is_number(self):
        """Return whether it is written in digits alone; month names have three letters or more."""
        return self.kind in ("day", "year") or (self.kind == "month" and len(self.code) < 3)


class DateForm(typing.NamedTuple):
    """One way of writing a date: the locale, in CLDR's name for it, and the pieces in order."""

    locale: str
    pieces: tuple

    def write(self, date):
        """Return the `datetime.date` in this form."""
        return "".join(write_piece(self.locale, piece, date) for piece in self.pieces)

    @property
    def order(self):
        """Return the numbers, from left to right: `("day", "month", "year")` for 4.3.2024."""
        return tuple(piece.kind for piece in self.pieces if piece.is_number)

    @property
    def has_short_year(self):
        """Return whether the year has two digits only."""
        return Piece("year", "yy") in self.pieces


def date_forms(locale):
    """Return the forms of a locale, full, long, medium and short; each once."""
    babel = import_babel("dates")
    try:
        patterns = babel.Locale.parse(locale).date_formats
    except (babel.UnknownLocaleError, ValueError) as error:
        raise ValueError(
            f"There is no locale {locale!r} in CLDR: expected one such as 'de' or 'en_GB'."
        ) from error
    forms = (DateForm(locale, _pieces(babel, patterns[style].pattern)) for style in STYLES)
    return tuple(dict.fromkeys(forms))


def _pieces(babel, pattern):
    """Return the pieces of a pattern such as `EEEE, d. MMMM y`."""
    pieces = []
    for kind, value in babel.dates.tokenize_pattern(pattern):
        if kind == "chars":
            pieces.append(Piece("text", value.translate(_TYPED)))
        else:
            letter, times = value
            pieces.append(Piece(_KINDS[letter], letter * times))
    return tuple(pieces)


def write_piece(locale, piece, date):
    """Return the text of `piece` for `date`, a `datetime.date`."""
    kind, code = piece
    if kind == "text":
        return code
    # Babel is slow: it is asked once for every month, day, weekday and year.
    if kind == "weekday":
        return _look_up(locale, code, datetime.date(2001, 1, 1 + date.weekday()))  # 1 is a Monday
    if kind == "month":
        return _look_up(locale, code, datetime.date(2001, date.month, 1))
    if kind == "day":
        return _look_up(locale, code, datetime.date(2001, 1, date.day))
    return _look_up(locale, code, datetime.date(date.year, 1, 1))


@functools.lru_cache(maxsize=2**16)
def _look_up(locale, code, date):
    return import_babel("dates").dates.DateTimeFormat(date, locale)[code].translate(_TYPED)


def keep_distinct(forms):
    """Return the forms none of whose dates can be read as another date in any of `forms`.

    Readers are assumed to be tolerant: they mind neither leading zeros, nor capitals, nor dots and
    commas at the ends, nor whether a year has two digits or four. So two forms look the same where
    the same words and separators stand between their numbers. Then a date of one is another date
    in the other

    - where the words name another month there;
    - where the numbers have another order and nothing gives it away. What gives it away is a year
      of four digits where the other form has its day or month: 2024/3/4 is not misread by those
      who write 4/3/24, but 4/3/2024 and 3/4/24 are by those who write 3/4/24 for the fourth.

    So neither 4/3/24 (Spain) nor 3/4/24 (United States) remains. 4.3.24 does as long as all
    locales with such dots begin with the day, and 2024-03-04 remains beside any others.

    Args:
        forms: list of `DateForm`, of all locales.
    """
    readings = collections.defaultdict(set)  # what it looks like: what it can mean
    for form in forms:
        for look, month in _looks(form):
            readings[look].add((form.order, month))
    return [
        form
        for form in forms
        if not any(
            _misread(form, month, *reading)
            for look, month in _looks(form)
            for reading in readings[look]
        )
    ]


def _misread(form, month, other_order, other_month):
    """Return whether reading the numbers of `form` in `other_order` gives another date."""
    if month != other_month:
        return True
    year = form.order.index("year")
    return form.order != other_order and (form.has_short_year or other_order[year] == "year")


def _looks(form):
    """Yields (what a date in this form looks like, the number of its month or None).

    A # stands for every number, so that there is one look for a form without names, with None for
    its month, and one for every month, and weekday, of a form with their names.
    """
    kinds = {piece.kind for piece in form.pieces if not piece.is_number}
    for month in range(1, 13) if "month" in kinds else [1]:
        for day in range(1, 8) if "weekday" in kinds else [1]:  # any week has all weekdays
            date = datetime.date(2001, month, day)
            texts = ["#" if p.is_number else write_piece(form.locale, p, date) for p in form.pieces]
            look = "".join(texts).strip(" .,").casefold()
            yield look, month if "month" in kinds else None
