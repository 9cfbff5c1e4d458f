"""Checks of the built site, in addition to those of MkDocs. A failed check fails the build."""

import pathlib
import re

import families
from mkdocs.exceptions import PluginError


def check_site(site):
    """Check that the reference has every public name, and that the links of index.html work."""
    import keras_attention as ka

    site = pathlib.Path(site)
    missing = [
        f"reference/{room}.md shows no {name}"
        for room in sorted(set(ka.__all__) - {"Part", "layers"})
        for name in find_hidden_names(room, (site / "reference" / f"{room}.html").read_text())
    ]
    links = re.findall(r'href="(?!https?:)([^"#]+)', (site / "index.html").read_text())
    dead = [link for link in links if not (site / link).exists()]
    missing += [f"index.html leads to {link}, a missing file" for link in dead]
    if missing or not links:
        raise PluginError("; ".join(missing or ["index.html has no links"]))


def find_hidden_names(room, page):
    """Return the public names of a room without an entry on its page (HTML)."""
    import keras_attention as ka

    shown = set(re.findall(r'id="keras_attention\.([\w.]+)"', page))
    names = set(getattr(ka, room).__all__) - families.WITHOUT_ENTRY
    return sorted(n for n in names if not {f"{room}.{n}", f"{room}.{n}.{n}"} & shown)
