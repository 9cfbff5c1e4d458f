"""Files of pairs of texts: two aligned files, or one with two columns."""

import functools

from keras_attention.data.columns import SUFFIXES, read_columns, suffix_of
from keras_attention.data.lines import broken, read_lines
from keras_attention.data.pairs import Pair, Pairs
from keras_attention.data.parts import read_parts


def from_pair_files(
    train=None, dev=None, test=None, *, columns=("source", "target"), dev_fraction=0.1, seed=0
):
    """Pairs of texts from files, such as sentences and their translations.

    Args:
        train, dev, test: what one part is read from, or None:

            - `(source, target)`, a tuple of two paths: aligned text files, line n of one belongs to
              line n of the other;
            - a path that ends in `.tsv`, `.csv` or `.jsonl`;
            - a list of such, of which the part is put together.

            Any file may be gzipped.
        columns: (source, target), in files with columns: their names in the first row, or the keys
            of the JSON objects; or ints, which count columns from 0 where no row names them.
        dev_fraction: float, the share of train that becomes dev where no dev file is given.
        seed: int, which pairs those are.

    Returns:
        A `Pairs`.

    A line without a partner, an empty line between others and a broken one are a ValueError with
    the file, the line number and what is wrong: a pair that is left out in silence moves all that
    follow it.

    Example:

    ```python
    import pathlib
    import tempfile
    import keras_attention as ka

    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "test.de").write_text("Guten Tag!\\nDanke.\\n")
    (folder / "test.en").write_text("Hello!\\nThanks.\\n")
    data = ka.data.from_pair_files(test=(folder / "test.de", folder / "test.en"))
    assert data.test[1] == ka.data.Pair("Danke.", "Thanks.")
    ```
    """
    read = functools.partial(read_pairs, columns=columns)
    paths = {"train": train, "dev": dev, "test": test}
    # A tuple is one source of pairs, and not, as elsewhere, several.
    paths = {name: [given] if isinstance(given, tuple) else given for name, given in paths.items()}
    return Pairs.from_lists(**read_parts(read, paths), dev_fraction=dev_fraction, seed=seed)


def read_pairs(path, columns=("source", "target")):
    """The pairs of a file with columns, or of a tuple of two aligned files: a list of `Pair`.

    See `from_pair_files`.
    """
    if isinstance(path, tuple):
        return _read_aligned(path)
    if len(columns) != 2 or type(columns[0]) is not type(columns[1]):
        raise ValueError(f"columns={columns!r}: expected two names, or two numbers.")
    if suffix_of(path) is None:
        raise ValueError(
            f"{path} is no file of pairs: expected a name that ends in {', '.join(SUFFIXES)}, "
            "gzipped (.gz) or not, or for two aligned text files a tuple, (source, target)."
        )
    return [Pair(*row) for row in read_columns(path, columns)]


def _read_aligned(paths):
    if len(paths) != 2:
        raise ValueError(f"{paths!r}: expected two paths, (source, target).")
    source, target = (_lines(path) for path in paths)
    if len(source) != len(target):
        raise ValueError(
            f"{paths[0]} has {len(source)} lines and {paths[1]} has {len(target)}: line n of one "
            "must belong to line n of the other."
        )
    for number, (one, other) in enumerate(zip(source, target, strict=True), start=1):
        if not (one and other):
            path, partner = (paths[0], other) if not one else (paths[1], one)
            raise broken(path, number, f"the line is empty; its partner is {partner[:40]!r}")
    if not source:
        raise ValueError(f"{paths[0]} holds no line.")
    return [Pair(*pair) for pair in zip(source, target, strict=True)]


def _lines(path):
    """The lines, without spaces around them. An end of line at the end of the file begins none."""
    lines = [line.strip() for _, line in read_lines(path)]
    return lines[:-1] if not lines[-1] else lines
