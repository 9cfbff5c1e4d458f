"""The forms in which people write dates, from the locale data of Unicode (CLDR)."""

import datetime
import functools
import typing

from keras_attention.data.extras import import_babel

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
# What CLDR puts between words and nobody types: narrow and unbreakable spaces become spaces, the
# marks of writing direction go.
_TYPED = str.maketrans({"\u202f": " ", "\u00a0": " ", "\u200e": "", "\u200f": "", "\u061c": ""})


class Piece(typing.NamedTuple):
    """A piece of a form: the text `code`, or what CLDR's `code` (`MMMM`, `d`) says of the date."""

    kind: str  # "text", or one of _KINDS
    code: str

    @property
    def is_number(self):
        """Whether it is written in digits alone; month names have three letters or more."""
        return self.kind in ("day", "year") or (self.kind == "month" and len(self.code) < 3)


class DateForm(typing.NamedTuple):
    """One way of writing a date: the locale, in CLDR's name for it, and the pieces in order."""

    locale: str
    pieces: tuple

    def write(self, date):
        """The `datetime.date` in this form."""
        return "".join(written(self.locale, piece, date) for piece in self.pieces)

    @property
    def order(self):
        """The numbers, from left to right: `("day", "month", "year")` for 4.3.2024."""
        return tuple(piece.kind for piece in self.pieces if piece.is_number)

    @property
    def has_short_year(self):
        """Whether the year has two digits only."""
        return Piece("year", "yy") in self.pieces


def date_forms(locale):
    """The forms of a locale, full, long, medium and short; each once."""
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
    """The pieces of a pattern such as `EEEE, d. MMMM y`."""
    pieces = []
    for kind, value in babel.dates.tokenize_pattern(pattern):
        if kind == "chars":
            pieces.append(Piece("text", value.translate(_TYPED)))
        else:
            letter, times = value
            pieces.append(Piece(_KINDS[letter], letter * times))
    return tuple(pieces)


def written(locale, piece, date):
    """What `piece` is in `date`, a `datetime.date`."""
    kind, code = piece
    if kind == "text":
        return code
    # Babel takes its time: it is asked once for every month, day, weekday and year.
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
