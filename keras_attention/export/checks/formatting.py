"""Format sizes, scores, shapes, tables and lists as plain text for reports."""

import re
import textwrap

WIDTH = 100


def format_size(count):
    """Format `count`, a number of bytes: `format_size(1_234_567)` is `"1.2 MB"`."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count = count / 1000
    return f"{count:.1f} GB"


def format_score(name, value):
    """Format `value`, the score called `name`: most scores as a percentage, others as a number.

    Losses, bits per unit, BLEU and perplexity are numbers.
    """
    if name.startswith(("loss", "bits")):
        return f"{value:.4f}"
    return f"{value:.2f}" if name.startswith(("bleu", "perplexity")) else format_percent(value)


def format_percent(share):
    """Format `share`, a fraction: `format_percent(0.5)` is `"50.00 %"`."""
    return f"{100 * share:.2f} %"


def format_shape(axes):
    """Format a shape with `?` for dynamic axes (None): `(?, ?, 17)`."""
    inner = ", ".join("?" if axis is None else str(axis) for axis in axes)
    return f"({inner},)" if len(axes) == 1 else f"({inner})"


def format_table(title, header, rows):
    """Return a table as text, with left-aligned columns. Without rows, return an empty str.

    `title` is a line above the table. `header` has the names of the columns, and `rows` are tuples
    of values.
    """
    if not rows:
        return ""
    cells = [header, *rows]
    widths = [max(len(str(row[i])) for row in cells) for i in range(len(header))]
    lines = [
        "  " + "  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in cells
    ]
    return "\n".join([title, *(line.rstrip() for line in lines)])


def format_bullets(title, lines):
    """Return a bulleted list of `lines` below `title` as text. Without lines, return ""."""
    wrapped = [
        textwrap.fill(str(line), WIDTH, initial_indent="  - ", subsequent_indent="    ")
        for line in lines
    ]
    return "\n".join([title, *wrapped]) if lines else ""


def format_signatures(entries):
    """Return a table for each `Signature` as text, with the inputs, outputs, dtypes and shapes.

    `entries` are the signatures.
    """
    parts = []
    for signature in entries:
        rows = [("input", *row) for row in _tensors(signature.inputs)]
        rows += [("output", *row) for row in _tensors(signature.outputs)]
        title = f"signature {signature.name}"
        parts.append(format_table(title, ("", "name", "dtype", "shape"), rows))
    return "\n".join(parts)


def _tensors(entries):
    """Return a list of (name, dtype, shape), the rows of a table of tensors.

    Three or more tensors whose names differ only in numbers share a row: `block_*_key (12)`.
    """
    alike = {}
    for t in entries:
        alike.setdefault((re.sub(r"\d+", "*", t.name), t.dtype, format_shape(t.shape)), []).append(
            t
        )
    rows = []
    for (pattern, *kind), several in alike.items():
        names = [t.name for t in several] if len(several) < 3 else [f"{pattern} ({len(several)})"]
        rows += [(name, *kind) for name in names]
    return rows


def format_ops(counts, columns=6):
    """Return the counts of ops as text: `ops (92)`, `ADD 14, MUL 14, ...`, most frequent first.

    `counts` is a dict from the type of an op to its count. A line shows `columns` types.
    """
    if not counts:
        return ""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    words = [f"{kind} {count}" for kind, count in ordered]
    lines = [", ".join(words[i : i + columns]) for i in range(0, len(words), columns)]
    return "\n".join([f"ops ({sum(counts.values())})", *(f"  {line}" for line in lines)])
