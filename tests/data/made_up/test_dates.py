"""Written dates: equal to Babel's, and without two meanings."""

import datetime
import re
import sys

import pytest

import keras_attention as ka
from keras_attention.data.made_up.dates import (
    LOCALES,
    date_forms,
    keep_distinct,
    list_days,
    select_forms,
)

babel_dates = pytest.importorskip("babel.dates")
FOURTH_OF_MARCH = datetime.date(2024, 3, 4)
SPLITS = ("train", "dev", "test")


def written(locales):
    """Map locales to the fourth of March 2024 in each remaining form."""
    forms = select_forms(tuple(locales))
    return {locale: [form.write(FOURTH_OF_MARCH) for form in forms[locale]] for locale in locales}


def with_two_meanings(forms, days):
    """Map each text of several days to these days."""
    first, days_of_text = {}, {}
    for form in forms:
        for day in days:
            text = form.write(day)
            if first.setdefault(text, day) != day:
                days_of_text.setdefault(text, {first[text]}).add(day)
    return days_of_text


# Days whose day, month and two-digit year can all be taken for one another.
EASILY_MISTAKEN = [
    datetime.date(year, month, day)
    for year in range(2001, 2008)
    for month in range(1, 13)
    for day in range(1, 8)
]


@pytest.mark.slow
def test_no_text_means_two_dates():
    forms = [form for of_locale in select_forms(LOCALES).values() for form in of_locale]
    assert len(LOCALES) >= 30 and len(forms) > 100
    assert not with_two_meanings(forms, EASILY_MISTAKEN)


def test_many_texts_mean_two_dates_without_the_rule():
    forms = [form for locale in LOCALES for form in date_forms(locale)]
    days_of_text = with_two_meanings(forms, EASILY_MISTAKEN)
    # 3/4/05 in es and el is the third of April, in en the fourth of March.
    assert {datetime.date(2005, 3, 4), datetime.date(2005, 4, 3)} <= days_of_text["3/4/05"]
    assert len(days_of_text) > 250


@pytest.mark.sweep
def test_no_text_of_a_hundred_years_means_two_dates():
    forms = [form for of_locale in select_forms(LOCALES).values() for form in of_locale]
    days = [day for split in SPLITS for day in list_days(split)]
    assert len(days) == 36_525 and not with_two_meanings(forms, days)


@pytest.mark.parametrize("locale", LOCALES)
def test_forms_are_babels(locale):
    """Compare every form of every locale with Babel, except for special spaces and marks."""
    for day in (FOURTH_OF_MARCH, datetime.date(1999, 12, 31)):
        expected = {babel_dates.format_date(day, style, locale) for style in ("full", "short")}
        expected |= {babel_dates.format_date(day, style, locale) for style in ("long", "medium")}
        plain = {re.sub("[\u202f\u00a0]", " ", re.sub("[\u200e\u200f]", "", t)) for t in expected}
        assert {form.write(day) for form in date_forms(locale)} == plain


def test_only_unambiguous_short_forms_remain():
    forms = written(LOCALES)
    for locale, short in [
        ("en", "3/4/24"),
        ("en_GB", "04/03/2024"),
        ("es", "4/3/24"),
        ("ar", "4/3/2024"),
        ("ko", "24. 3. 4."),  # to those who write 4. 3. 2024, the 24th of March
    ]:
        assert short in {form.write(FOURTH_OF_MARCH) for form in date_forms(locale)}
        assert short not in forms[locale] and len(forms[locale]) >= 2
    for locale, short in [
        ("de", "04.03.24"),
        ("fi", "4.3.2024"),
        ("sv", "2024-03-04"),
        ("nl", "04-03-2024"),
        ("zh", "2024/3/4"),
        ("hu", "2024. 03. 04."),
    ]:
        assert short in forms[locale]


@pytest.mark.parametrize(
    "locales, text, remains",
    [
        (("es", "fr"), "4/3/24", True),  # both begin with the day
        (("es", "en"), "4/3/24", False),
        (("en_GB", "en"), "04/03/2024", False),  # other widths: read all the same
        (("zh", "es"), "2024/3/4", True),  # 2024 is not a day
        (("eu", "zh"), "24/3/4", True),  # the same order
        (("eu", "es"), "24/3/4", False),
        (("sl", "ko"), "4. 3. 24", False),
        (("sl", "de"), "4. 3. 24", True),
        (("id", "nl"), "4 Mar 2024", True),
        (("id", "teo"), "4 Mar 2024", False),  # Mar is May in Teso
        (("nl", "teo"), "4 mrt 2024", True),
    ],
)
def test_rule(locales, text, remains):
    forms = [form for locale in locales for form in date_forms(locale)]
    texts = {form.write(FOURTH_OF_MARCH): form for form in reversed(forms)}
    assert text in texts
    assert (texts[text] in keep_distinct(forms)) == remains


def test_examples_are_true_and_repeat_by_seed():
    examples = ka.data.dates("train", 500, seed=3)
    assert len(examples) == 500 and examples == ka.data.dates("train", 500, seed=3)
    assert examples != ka.data.dates("train", 500, seed=4)
    assert {locale for _, _, locale in examples} == set(LOCALES)
    forms = select_forms(LOCALES)
    for text, iso, locale in examples:
        day = datetime.date.fromisoformat(iso)
        assert text in {form.write(day) for form in forms[locale]}
        assert 1950 <= day.year <= 2049 and not set(text) & set("\u202f\u00a0\u200f\u200e\n\t")


def test_splits_share_no_day():
    days = {split: set(list_days(split)) for split in SPLITS}
    assert sum(map(len, days.values())) == len(set.union(*days.values())) == 36_525
    assert [round(len(days[s]) / 365.25) for s in SPLITS] == [85, 5, 10]
    assert {(d.month, d.day) for d in days["train"]} >= {(d.month, d.day) for d in days["test"]}
    for seed in (0, 1):
        drawn = {iso for _, iso, _ in ka.data.dates("test", 200, seed=seed)}
        assert drawn <= {day.isoformat() for day in days["test"]} and len(drawn) > 150
    drawn = {iso for _, iso, _ in ka.data.dates("dev", 200)}
    assert drawn <= {day.isoformat() for day in days["dev"]}


def test_days_keep_their_split():
    """Check that a day does not move from training to test data."""
    first = [day.isoformat() for day in list_days("test")[:3]]
    assert first == ["1950-01-02", "1950-01-07", "1950-01-09"] and len(list_days("test")) == 3631


def test_errors(monkeypatch):
    with pytest.raises(ValueError, match="split='valid': expected one of 'test', 'dev', 'train'"):
        ka.data.dates("valid")
    with pytest.raises(ValueError, match=r"num_examples=0\): .* at least 1"):
        ka.data.dates("dev", 0)
    with pytest.raises(ValueError, match="CLDR lacks the locale 'de_XX': expected one such"):
        ka.data.dates("dev", 1, locales=("de", "de_XX"))
    with pytest.raises(ValueError, match="CLDR lacks the locale ''"):
        ka.data.dates("dev", 1, locales=("",))
    with pytest.raises(ValueError, match="locales is empty"):
        ka.data.dates("dev", 1, locales=())
    monkeypatch.setitem(sys.modules, "babel", None)
    monkeypatch.setitem(sys.modules, "babel.dates", None)
    with pytest.raises(ImportError, match=r"ka.data.dates needs Babel .*install .*\[data\]"):
        ka.data.dates("dev", 1, locales=("da",))
