"""What people see: tables for terminals, aligned plain text for everything else."""

import sys


def show_table(header, rows, title=None):
    """Prints a table: drawn on a terminal, plain columns in a pipe or a file."""
    rows = [[str(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        return _show_plain(header, rows, title)
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title)
    for name in header:
        table.add_column(name)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # Text: brackets in a token are no markup
    Console().print(table)


def _show_plain(header, rows, title):
    """Aligned columns; the header only under a title, so that a program can read the rest."""
    lines = [header, *rows] if title else rows
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    if title:
        print(title)
    for line in lines:
        cells = (
            cell + " " * (width - _width(cell)) for cell, width in zip(line, widths, strict=True)
        )
        print("  ".join(cells).rstrip())


def _width(text):
    """Columns of a terminal that the text takes: two for most East Asian characters."""
    from rich.cells import cell_len

    return cell_len(text)


def say(text):
    """Prints a line at once, also into a file that somebody is watching."""
    print(text, flush=True)


def shown(name, value):
    """A score as people write it: in percent, but for those that are no shares."""
    if name.startswith(("loss", "bits")):
        return f"{value:.4f}"
    return f"{value:.2f}" if name.startswith(("bleu", "perplexity")) else percent(value)


def percent(share):
    return f"{100 * share:.2f} %"
