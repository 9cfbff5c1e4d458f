"""Which forms of dates can be told apart, so that what is written means one date only."""

import collections
import datetime

from keras_attention.data.date_forms import written


def told_apart(forms):
    """The forms none of whose dates can be read as another date in any of `forms`.

    Readers are taken to be forgiving: they mind neither leading zeros, nor capitals, nor dots and
    commas at the ends, nor whether a year has two digits or four. So two forms look the same where
    the same words and separators stand between their numbers. Then a date of one is another date
    in the other

    - where the words name another month there;
    - where the numbers have another order and nothing gives it away. What gives it away is a year
      of four digits where the other form has its day or month: 2024/3/4 is not misread by those
      who write 4/3/24, but 4/3/2024 and 3/4/24 are by those who write 3/4/24 for the fourth.

    So of 4/3/24 (Spain) and 3/4/24 (United States) neither remains, 4.3.24 does while everybody
    who puts dots in this way begins with the day, and 2024-03-04 does in any company.

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
    """Whether a date of `form` is another date to who reads its numbers in `other_order`."""
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
            texts = ["#" if p.is_number else written(form.locale, p, date) for p in form.pieces]
            yield _plain("".join(texts)), month if "month" in kinds else None


def _plain(look):
    return look.strip(" .,").casefold()
