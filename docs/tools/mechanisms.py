"""Write docs/mechanisms.md: every part, layer and builder, with a description, papers and a test.

    make mechanisms

Names are read from the tables of the package, descriptions and citations from docstrings, and tests
from the folder of tests. The addresses of papers are in papers.toml beside this file.
"""

import argparse
import inspect
import pathlib
import re
import tomllib

import keras
from families import describe

import keras_attention as ka
from keras_attention.blocks import residuals

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "mechanisms.md"
PAPERS = tomllib.loads((pathlib.Path(__file__).parent / "papers.toml").read_text())

# Vaswani et al., 2017 | Vaswani et al. (2017 | Press and Wolf, 2017
_NAME = r"[A-Za-z][\w-]+"
_AUTHORS = rf"(?:{_NAME} et al\.|(?:{_NAME}, )?{_NAME} (?:and|&) {_NAME}|{_NAME}(?:-[A-Z]+)?)"
CITATION = re.compile(rf"({_AUTHORS}),? \(?((?:19|20)\d\d)\b")

MOST_PAPERS = 4  # in a row. The reference names all.

# Base classes, and layers that other layers of the page contain.
INNER = {"AttentionLayer", "HeadProjection", "ResidualWeight"}

HEAD = """\
# Mechanisms

Which mechanism of which paper is in the package, and under what name. `make mechanisms` writes this
page from the docstrings. A string in the second column can be used as an argument: `score="cosine"`
means `score=ka.scores.Cosine()`.

Each of them exports to LiteRT with built-in operations. Without quantization the file equals the
Keras model to 1e-4, for free and for fixed shapes ([test](../tests/test_contract.py)). The only
exception is `FaissMemory`, which runs eagerly. [Where a file runs](on-device/where-it-runs.md) says
which runtimes take which files. The test in each row compares with a definition in NumPy, or with
the paper's numbers.
"""

FOOT = """\

## Where to go next

- [The attention layer](guides/attention-layer.md), to use them
- [Write your own](guides/write-your-own.md), for a mechanism that is missing here
"""

ROOMS = {
    "scores": "Functions of a query and a key, for the argument `score=`.",
    "normalizers": "Functions that turn scores into weights, for the argument `normalizer=`.",
    "masks": "Pairs of query and key that may attend, for the argument `mask=`. They combine with "
    "`&`, `|` and `~`.",
    "positions": "Encodings of the position, for the argument `position=`, which takes one or a "
    "list.",
    "positions.scalings": "Changes of rotary positions for longer inputs: `Rotary(scaling=...)`.",
    "attention": "Attention layers.",
    "blocks": "Layers around the attention. Arrangements of the norm have names, as in "
    '`norm="pre"`.',
    "recurrent": "Recurrent networks with attention.",
    "models": "Stacks, and builders: functions that return a functional `keras.Model`.",
}

# Layers that are tested as parts of models.
TESTED_IN_MODELS = {
    "PositionsInDocuments": ROOT / "tests" / "models" / "test_packed.py",
    "Scan": ROOT / "tests" / "backends" / "test_deep_stacks_on_jax.py",
    "SegmentEmbedding": ROOT / "tests" / "models" / "test_builders.py",
    "WordEmbedding": ROOT / "tests" / "models" / "test_builders.py",
}

COLUMNS = """\
| | string | description | papers | |
| --- | --- | --- | --- | --- |
"""

HEAD_STRUCTURES = """\
These arguments of `MultiHeadAttention` change its heads: `num_key_value_heads` (grouped and
multi-query attention), `use_gate`, `qk_norm`, `sink`, `num_memory_slots` and `talking_heads`. Their
tests are [test_head_structures](../tests/attention/test_head_structures.py) and
[test_multi_head](../tests/attention/test_multi_head.py). `ka.attention.with_memory` gives any model
a memory of earlier segments.
"""


def list_mechanisms(room):
    """Return (name, object, its string or None) for each mechanism of a room, in its order."""
    module = ka
    for part in room.split("."):
        module = getattr(module, part)
    names = dict(getattr(module, "NAMES", residuals.NAMES if room == "blocks" else {}))
    strings = {cls: name for name, cls in names.items()}
    if room in ("attention", "blocks", "recurrent"):
        listed = [n for n in module.__all__ if hasattr(ka.layers, n)]
        listed += [n for n in module.__all__ if getattr(module, n) in strings and n not in listed]
    elif room == "models":
        functions = ("extend_vocabulary", "replace_head", "sizes")
        listed = [n for n in module.__all__ if n not in functions]
    else:
        listed = [cls.__name__ for cls in strings]
    return [
        (n, getattr(module, n), strings.get(getattr(module, n))) for n in listed if n not in INNER
    ]


def list_citations(mechanism):
    """Return the papers that a docstring cites, each once, with the names of papers.toml."""
    text = " ".join((inspect.getdoc(mechanism) or "").split())
    citations = [f"{who.replace('&', 'and')}, {year}" for who, year in CITATION.findall(text)]
    return list(dict.fromkeys(citations))


def list_papers(mechanism):
    """Return a link for every paper that a docstring cites, such as [Vaswani 2017](address)."""
    links = []
    for citation in list_citations(mechanism):
        address = PAPERS[citation]
        address = address if isinstance(address, str) else address[mechanism.__name__]
        authors, year = citation.rsplit(", ", 1)
        first = re.split(r" et al\.| and |, ", authors)[0]
        links.append(f"[{first} {year}]({address})")
    return links


def find_test(room, mechanism, string=None):
    """Return the test file of a mechanism's module, or the file that names the mechanism most.

    Files of the mechanism's room count double. Layers are also tested with models.
    """
    if mechanism.__name__ in TESTED_IN_MODELS:
        return TESTED_IN_MODELS[mechanism.__name__]
    folder = ROOT / "tests" / room.split(".")[0]
    own = folder / f"test_{mechanism.__module__.rpartition('.')[2]}.py"
    name = mechanism.__name__
    names = [name, string or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()]
    mentions = {}
    for path in (*folder.glob("test_*.py"), *(ROOT / "tests" / "models").glob("test_*.py")):
        count = len(re.findall(rf"\b(?:{'|'.join(names)})\b", path.read_text()))
        mentions[path] = count * (2 if path.parent == folder else 1)
    return own if mentions.get(own) else max(sorted(mentions), key=mentions.get)


def write_row(room, name, mechanism, string):
    """Return the row of a mechanism."""
    page = f"reference/{room.split('.')[0]}.md"
    module = f"keras_attention.{room}"
    if mechanism.__module__ == f"{module}.{name}":  # a function in a file of the same name
        module = mechanism.__module__
    link = f"[`{name}`]({page}#{module}.{name})"
    test = f"[test](../{find_test(room, mechanism, string).relative_to(ROOT)})"
    cells = [link, f'`"{string}"`' if string else "", describe(mechanism)]
    papers = ", ".join(list_papers(mechanism)[:MOST_PAPERS])
    return f"| {' | '.join([*cells, papers, test])} |"


def write_page():
    """Return the whole page as text."""
    parts = [HEAD]
    for room, sentence in ROOMS.items():
        parts.append(f"## ka.{room}\n\n{sentence}\n")
        rows = [write_row(room, *mechanism) for mechanism in list_mechanisms(room)]
        parts.append(COLUMNS + "\n".join(rows) + "\n")
        if room == "attention":
            parts.append(HEAD_STRUCTURES)
    return "\n".join(parts) + FOOT


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    PAGE.write_text(write_page())
    print(f"{PAGE}: keras {keras.__version__}")
