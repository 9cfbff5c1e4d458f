"""The reference of a room: its names in families with one line for each, then their entries."""

import fnmatch
import inspect
import pathlib
import re
import tomllib

FAMILIES = tomllib.loads((pathlib.Path(__file__).parent / "families.toml").read_text("utf-8"))
WITHOUT_ENTRY = {"NAMES", "ROLES"}  # tables, which the docstrings of their rooms list
OPTIONS = """
    options:
      show_root_heading: true
      show_root_full_path: false
      show_root_toc_entry: true
"""
IN_BRACKETS = re.compile(r" \([^()]*\b(?:19|20)\d\d\b[^()]*\)")


def describe(member):
    """Return the first sentence of a docstring without citations, as a cell of a table."""
    first = " ".join((inspect.getdoc(member) or "").split("\n\n")[0].split())
    return IN_BRACKETS.sub("", first).rstrip(".").replace("|", r"\|")


def group_names(room):
    """Return {family: names} of a room, each in the order of families.toml.

    Raises:
        ValueError: a public name is in no family, or a pattern fits no name.
    """
    import keras_attention as ka

    names = [name for name in getattr(ka, room).__all__ if name not in WITHOUT_ENTRY]
    groups = {family: [] for family in FAMILIES[room]}
    left, unused = list(names), []
    for family, patterns in FAMILIES[room].items():
        for pattern in patterns:
            fitting = sorted(fnmatch.filter(left, pattern), key=str.lower)
            if not fitting:
                unused.append(pattern)
            groups[family] += fitting
            left = [name for name in left if name not in fitting]
    if left or unused:
        add = f"add {', '.join(left)} to a family" if left else ""
        remove = f"remove {', '.join(unused)}, which fits no name" if unused else ""
        steps = " and ".join(filter(None, (add, remove)))
        raise ValueError(f"docs/tools/families.toml, [{room}]: {steps}.")
    return groups


def get_anchor(room, name):
    """Return the identifier of a name in the reference."""
    import keras_attention as ka

    path = f"keras_attention.{room}.{name}"
    member = getattr(getattr(ka, room), name)
    has_own_module = getattr(member, "__module__", None) == path  # a function in a file of its name
    return f"{path}.{name}" if has_own_module else path


def write_overview(room):
    """Return a table of the names of each family, in Markdown."""
    import keras_attention as ka

    tables = []
    for family, names in group_names(room).items():
        rows = []
        for name in names:
            sentence = describe(getattr(getattr(ka, room), name))
            rows.append(f"| [`{name}`](#{get_anchor(room, name)}) | {sentence} |")
        tables.append("\n".join([f"| {family} | |", "| --- | --- |", *rows]))
    return "\n\n".join(tables)


def write_entries(room):
    """Return a directive of mkdocstrings for each name, in alphabetical order."""
    names = [name for names in group_names(room).values() for name in names]
    return "\n".join(f"::: {get_anchor(room, name)}{OPTIONS}" for name in sorted(names))
