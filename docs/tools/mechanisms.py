"""Writes docs/mechanisms.md: every part, layer and builder, what it is, its papers and its test.

    make mechanisms

All of it is read: names from the families' tables, first lines and citations from docstrings, tests
from the tree of tests. Where papers are, papers.toml beside this file says.
"""

import argparse
import inspect
import pathlib
import re
import tomllib

import keras

import keras_attention as ka
from keras_attention.blocks import residuals

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "mechanisms.md"
PAPERS = tomllib.loads((pathlib.Path(__file__).parent / "papers.toml").read_text())

# Vaswani et al., 2017 | Vaswani et al. (2017 | Press and Wolf, 2017
_NAME = r"[A-Za-z][\w-]+"
_AUTHORS = rf"(?:{_NAME} et al\.|(?:{_NAME}, )?{_NAME} (?:and|&) {_NAME}|{_NAME}(?:-[A-Z]+)?)"
CITATION = re.compile(rf"({_AUTHORS}),? \(?((?:19|20)\d\d)\b")
IN_BRACKETS = re.compile(r" \([^()]*\b(?:19|20)\d\d\b[^()]*\)")

# Bases of the others, and layers that are inside of them.
INNER = {"AttentionLayer", "HeadProjection", "ResidualWeight"}

HEAD = """\
# Mechanisms

Every part, layer and builder, with the papers it cites and its test. Written by `make mechanisms`
from the docstrings. A string means the part of its line: `score="cosine"` is
`score=ka.scores.Cosine()`.

Every one of them exports to LiteRT with built-in ops and, not quantized, equals the Keras model to
1e-4, at any batch and length and at fixed ones, by [test_contract](../tests/test_contract.py)
(`FaissMemory` alone runs eagerly); [on-device](on-device.md) says what of fixed shape GPU delegates
and browsers run. The tests compare with a definition in NumPy, or with the paper's numbers.
"""

ROOMS = {
    "scores": "How well a query fits a key. Argument `score=`.",
    "normalizers": "Scores to weights. Argument `normalizer=`.",
    "masks": "Who may attend to whom. Argument `mask=`; they combine with `&`, `|` and `~`.",
    "positions": "Where tokens are. Argument `position=`, one or a list.",
    "positions.scalings": "Rotary positions for longer inputs: `Rotary(scaling=...)`.",
    "attention": "Layers that attend.",
    "blocks": 'What stands around attention. Norm arrangements go by name: `norm="pre"`.',
    "recurrent": "Recurrent networks that attend.",
    "models": "Stacks and builders: functions that return a functional `keras.Model`.",
}

# Layers that are tested in the models which have them.
TESTED_IN_MODELS = {
    "PositionsInDocuments": ROOT / "tests" / "models" / "test_packed.py",
    "Scan": ROOT / "tests" / "backends" / "test_deep_stacks_on_jax.py",
    "SegmentEmbedding": ROOT / "tests" / "models" / "test_builders.py",
    "WordEmbedding": ROOT / "tests" / "models" / "test_builders.py",
}

COLUMNS = """\
| | string | what it is | papers | test |
| --- | --- | --- | --- | --- |
"""

HEAD_STRUCTURES = """\
Arguments of `MultiHeadAttention` that change its heads, tested by
[test_head_structures](../tests/attention/test_head_structures.py) and
[test_multi_head](../tests/attention/test_multi_head.py): `num_key_value_heads` (grouped and
multi-query), `use_gate`, `qk_norm`, `sink`, `num_memory_slots`, `talking_heads`.
`ka.attention.with_memory` gives any model a memory of earlier segments.
"""


def list_mechanisms(room):
    """The (name, object, string that means it or None) of a room, in its own order."""
    module = ka
    for part in room.split("."):
        module = getattr(module, part)
    names = dict(getattr(module, "NAMES", residuals.NAMES if room == "blocks" else {}))
    strings = {cls: name for name, cls in names.items()}
    if room in ("attention", "blocks", "recurrent"):
        found = [n for n in module.__all__ if hasattr(ka.layers, n)]
        found += [n for n in module.__all__ if getattr(module, n) in strings and n not in found]
    elif room == "models":
        found = [
            n for n in module.__all__ if n not in ("extend_vocabulary", "replace_head", "sizes")
        ]
    else:
        found = [cls.__name__ for cls in strings]
    return [
        (n, getattr(module, n), strings.get(getattr(module, n))) for n in found if n not in INNER
    ]


def describe(thing):
    """The first sentence of a docstring, without what it cites, as a cell of a table."""
    first = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    return IN_BRACKETS.sub("", first).rstrip(".").replace("|", r"\|")


def list_citations(thing):
    """The papers that a docstring cites, each once, as papers.toml names them."""
    text = " ".join((inspect.getdoc(thing) or "").split())
    found = [f"{who.replace('&', 'and')}, {year}" for who, year in CITATION.findall(text)]
    return list(dict.fromkeys(found))


def list_papers(thing):
    """The [citation](address) of every paper that a docstring cites, in its order."""
    links = []
    for citation in list_citations(thing):
        address = PAPERS[citation]
        address = address if isinstance(address, str) else address[thing.__name__]
        links.append(f"[{citation}]({address})")
    return links


def find_test(room, thing, string=None):
    """The test file of a mechanism: that of its module, or the one that names it most.

    Those of its own room count double; layers of models are also tested with models.
    """
    if thing.__name__ in TESTED_IN_MODELS:
        return TESTED_IN_MODELS[thing.__name__]
    folder = ROOT / "tests" / room.split(".")[0]
    own = folder / f"test_{thing.__module__.rpartition('.')[2]}.py"
    names = [thing.__name__, string or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", thing.__name__).lower()]
    mentions = {}
    for path in (*folder.glob("test_*.py"), *(ROOT / "tests" / "models").glob("test_*.py")):
        count = len(re.findall(rf"\b(?:{'|'.join(names)})\b", path.read_text()))
        mentions[path] = count * (2 if path.parent == folder else 1)
    return own if mentions.get(own) else max(sorted(mentions), key=mentions.get)


def write_row(room, name, thing, string):
    page = f"reference/{room.split('.')[0]}.md"
    module = f"keras_attention.{room}"
    if thing.__module__ == f"{module}.{name}":  # a function in a file of its name
        module = thing.__module__
    link = f"[`{name}`]({page}#{module}.{name})"
    test = find_test(room, thing, string)
    test = f"[{test.stem.removeprefix('test_')}](../{test.relative_to(ROOT)})"
    cells = [link, f'`"{string}"`' if string else "", describe(thing)]
    return f"| {' | '.join([*cells, ', '.join(list_papers(thing)), test])} |"


def write_page():
    """The whole page as text."""
    parts = [HEAD]
    for room, sentence in ROOMS.items():
        parts.append(f"## ka.{room}\n\n{sentence}\n")
        rows = [write_row(room, *mechanism) for mechanism in list_mechanisms(room)]
        parts.append(COLUMNS + "\n".join(rows) + "\n")
        if room == "attention":
            parts.append(HEAD_STRUCTURES)
    return "\n".join(parts)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    PAGE.write_text(write_page())
    print(f"{PAGE}: keras {keras.__version__}")
