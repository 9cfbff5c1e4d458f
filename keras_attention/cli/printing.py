"""Print lines, tables and progress on a terminal, or as plain text to a pipe or a file."""

import contextlib
import logging
import re
import sys
import threading
import time

WIDEST = 1_000_000  # width of a table in a file, so that lines are never wrapped
SILENCE = 4.0  # seconds before the first progress line in a file. The pause doubles each time.
LONGEST_SILENCE = 60.0
# A Python argument in a message, with or without a value: `beam=0`, `encoding='cp1252'`, `train=`.
ARGUMENT = re.compile(r"""(?<![\w.(])(\w+)=('[^']*'|"[^"]*"|[\w./-]*\w)?(?![\w(\[{'"=])""")


class Interrupted(Exception):
    """Raised after Ctrl-C, with a message that explains how to resume."""


def show_table(header, rows, title=None):
    """Print a table: with borders on a terminal, and as aligned plain columns elsewhere.

    Without a title, plain columns have no header, so that programs can easily read the rows.

    Args:
        header: list of str, the names of the columns.
        rows: list of rows, each a list of values.
        title: str, or None for no title.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    plain = not sys.stdout.isatty()
    style = {"box": None, "pad_edge": False, "padding": (0, 2, 0, 0)} if plain else {}
    table = Table(title=None if plain else title, show_header=bool(title) or not plain, **style)
    for name in header:
        table.add_column(name, no_wrap=plain)
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))  # Text does not parse brackets as markup
    if not plain:
        Console().print(table)
        return
    console = Console(width=WIDEST, color_system=None)
    with console.capture() as capture:
        console.print(table)
    lines = [line.rstrip() for line in capture.get().splitlines()]
    print("\n".join(lines if title is None else [title, *lines]))


def say(text):
    """Print a line, and flush standard output."""
    print(text, flush=True)


class _Lines(logging.Handler):
    """Log handler that prints each message on a line on standard error."""

    def emit(self, record):
        print(record.getMessage(), file=sys.stderr, flush=True)


@contextlib.contextmanager
def print_log():
    """Context manager that prints the log messages of this package, for example about downloads."""
    log, lines = logging.getLogger("keras_attention"), _Lines()
    level = log.level
    log.setLevel(logging.INFO)
    log.addHandler(lines)
    try:
        yield
    finally:
        log.removeHandler(lines)
        log.setLevel(level)


def write_options(text, options):
    """Return `text`, a message, with Python arguments replaced by command line options.

    `options` is a dict from the name of an argument to its option.
    """

    def write(match):
        argument, value = match.groups()
        if argument not in options:
            return match[0]
        value = value and value.strip("'\"")
        return f"{options[argument]} {value}" if value else options[argument]

    return ARGUMENT.sub(write, text)


def format_seconds(seconds):
    """Format seconds as minutes and seconds: `1:05`."""
    minutes, seconds = divmod(max(0, round(seconds)), 60)
    return f"{minutes}:{seconds:02}"


@contextlib.contextmanager
def keep_informed(describe):
    """Context manager that reports progress on standard error.

    On a terminal, one line is updated, and disappears at the end. In a file, a new line is written
    after 4 s, then after another 8 s and so on, and later every minute.

    Args:
        describe: str, which is printed with the elapsed time, or a function without arguments that
            returns the whole line.
    """
    started, done = time.perf_counter(), threading.Event()
    terminal = sys.stderr.isatty()

    def line():
        if callable(describe):
            return describe()
        return f"{describe}: {format_seconds(time.perf_counter() - started)}"

    def speak():
        pause = 0.25 if terminal else SILENCE
        while not done.wait(pause):
            pause = pause if terminal else min(2 * pause, LONGEST_SILENCE)
            end = "\033[K\r" if terminal else "\n"
            print(line(), end=end, file=sys.stderr, flush=True)

    speaker = threading.Thread(target=speak, daemon=True)
    speaker.start()
    try:
        yield
    finally:
        done.set()
        speaker.join()
        if terminal:
            print(end="\033[K\r", file=sys.stderr, flush=True)
