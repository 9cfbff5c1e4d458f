"""Dates as people write them, `ka.data.dates`, as a data set of the commands."""

from keras_attention import data
from keras_attention.data.dates import LOCALES

NAME = "dates"
SIZES = {"train": 50_000, "dev": 1_000, "test": 2_000}
ABOUT = {
    "name": "dates of 1950 to 2049 as people write them in "
    f"{len(LOCALES)} locales, made with Babel, and what they are in ISO 8601",
    "licence": "Unicode License v3 (CLDR)",
    "notes": (
        "made up with a fixed seed: every day belongs to one part of the data only, languages and "
        "forms to all; forms that could be read as another date in one of the locales are left out",
    ),
}


def load(seed=0):
    """The dates as `ka.data.Pairs`: what is written, and what it is in ISO 8601."""
    parts = {
        part: [date[:2] for date in data.dates(part, size, seed=seed)]
        for part, size in SIZES.items()
    }
    return data.Pairs.from_lists(**parts)
