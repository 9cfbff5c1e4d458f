"""Dates as people write them in many languages, and what they are in ISO 8601."""

import datetime
import functools
import hashlib
import typing

import numpy as np

from keras_attention.checks import whole_number
from keras_attention.data.date_forms import date_forms
from keras_attention.data.date_readings import told_apart

LOCALES = tuple(
    "ar bg cs da de el en en_GB es et fi fr he hi hr hu id it ja ko lt lv nb nl pl pt ro ru sv tr "
    "uk vi zh".split()
)
FIRST, LAST = datetime.date(1950, 1, 1), datetime.date(2049, 12, 31)
# Of 100 days, how many are for testing and for development; the others are for training.
_SHARES = {"test": 10, "dev": 5, "train": 85}


class WrittenDate(typing.NamedTuple):
    """A date as somebody wrote it, its ISO 8601 form, and the locale it was written in."""

    written: str
    iso: str
    locale: str


def dates(split="train", num_examples=10_000, *, seed=0, locales=LOCALES):
    """Dates of 1950 to 2049 as people write them, made with Babel from the locale data of CLDR.

    Every example is a day, a locale and one of its forms, drawn at random: full, long, medium or
    short, as in `Montag, 4. März 2024`, `4 mars 2024`, `2024年3月4日` and `04.03.24`. A year of two
    digits means 1950 to 2049. Special spaces and marks of writing direction, which CLDR has and
    nobody types, are spaces and nothing.

    Nothing that is written here means two dates. A form is left out if it could be read as another
    date in a form of any of the locales: with `en` among them, 3/4/24 is, and 4/3/24, and
    04/03/2024; 04.03.24, 2024-03-04 and 2024/3/4 are not (see `date_readings.py`).

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

    Example:

    ```python
    import keras_attention as ka

    for written, iso, locale in ka.data.dates("test", 3, locales=("de", "en", "ja")):
        assert iso[:4] in written or iso[2:4] in written
    ```
    """
    rng = np.random.default_rng([seed, list(_SHARES).index(_known(split))])
    num_examples = whole_number("dates", "num_examples", num_examples)
    days = days_of(split)
    forms = forms_of(tuple(locales))
    chosen = rng.integers([len(days), len(locales), 2**32], size=(num_examples, 3))
    examples = []
    for day, locale, form in chosen.tolist():
        of_locale = forms[locales[locale]]
        form = of_locale[form % len(of_locale)]
        examples.append(WrittenDate(form.write(days[day]), days[day].isoformat(), form.locale))
    return examples


def forms_of(locales):
    """{locale: its forms that can be told apart from all forms of `locales`}."""
    if not locales:
        raise ValueError("locales is empty: expected names of CLDR, such as ('de', 'en_GB').")
    forms = [form for locale in dict.fromkeys(locales) for form in date_forms(locale)]
    kept = told_apart(forms)
    found = {locale: [form for form in kept if form.locale == locale] for locale in locales}
    if without := [locale for locale, of_locale in found.items() if not of_locale]:
        raise ValueError(
            f"locales: every form of {', '.join(without)} can be read as another date in another "
            "of these locales. Leave one of them out."
        )
    return found


def days_of(split):
    """The days of 1950 to 2049 that belong to `split`, in order."""
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
