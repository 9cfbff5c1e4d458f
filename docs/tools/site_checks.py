"""Checks of the built site beyond those of MkDocs: where one fails, the build does."""

import pathlib
import re

from mkdocs.exceptions import PluginError

WITHOUT_ENTRY = {"NAMES", "ROLES"}  # tables, which the pages of their rooms show


def check_site(site):
    """Every public name is in the reference, and every link of the first page leads somewhere."""
    import keras_attention as ka

    site = pathlib.Path(site)
    missing = [
        f"reference/{room}.md shows no {name}"
        for room in sorted(set(ka.__all__) - {"Part", "layers"})
        for name in find_hidden_names(room, (site / "reference" / f"{room}.html").read_text())
    ]
    links = re.findall(r'href="(?!https?:)([^"#]+)', (site / "index.html").read_text())
    missing += [f"index.html leads to {x}, which is not there" for x in links if not _is(site, x)]
    if missing or not links:
        raise PluginError("; ".join(missing or ["index.html has no links"]))


def find_hidden_names(room, page):
    """The public names of a room that its page (HTML) has no entry for."""
    import keras_attention as ka

    shown = set(re.findall(r'id="keras_attention\.([\w.]+)"', page))
    names = set(getattr(ka, room).__all__) - WITHOUT_ENTRY
    return sorted(n for n in names if not {f"{room}.{n}", f"{room}.{n}.{n}"} & shown)


def _is(site, link):
    return (site / link).exists()
