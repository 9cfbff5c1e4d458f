"""Lines, tables and progress on a terminal, and the same in a pipe or a file."""

import contextlib
import logging
import sys
import threading
import time

WIDEST = 1_000_000  # columns of a table in a file: its lines are never broken
SILENCE = 4.0  # seconds without a word at first; then twice as long each time
LONGEST_SILENCE = 60.0


class Interrupted(Exception):
    """Ctrl-C, with a sentence that says how to go on."""


def show_table(header, rows, title=None):
    """Prints a table: with lines on a terminal; in a pipe or a file as aligned plain columns.

    Plain columns have their header only under a title, so that a program can read the rest.
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
        table.add_row(*(Text(str(cell)) for cell in row))  # Text: brackets in a token are no markup
    if not plain:
        Console().print(table)
        return
    console = Console(width=WIDEST, color_system=None)
    with console.capture() as capture:
        console.print(table)
    lines = [line.rstrip() for line in capture.get().splitlines()]
    print("\n".join(lines if title is None else [title, *lines]))


def say(text):
    """Prints a line at once, also into a file."""
    print(text, flush=True)


class _Lines(logging.Handler):
    """Prints what the package logs on standard error, a line each."""

    def emit(self, record):
        print(record.getMessage(), file=sys.stderr, flush=True)


@contextlib.contextmanager
def print_log():
    """Inside, prints what the package logs, such as that a preset is fetched."""
    log, lines = logging.getLogger("keras_attention"), _Lines()
    level = log.level
    log.setLevel(logging.INFO)
    log.addHandler(lines)
    try:
        yield
    finally:
        log.removeHandler(lines)
        log.setLevel(level)


def format_seconds(seconds):
    """`1:05`, minutes and seconds."""
    minutes, seconds = divmod(max(0, round(seconds)), 60)
    return f"{minutes}:{seconds:02}"


@contextlib.contextmanager
def keep_informed(describe):
    """Inside, says on standard error what goes on: no work is silent for long.

    Args:
        describe: str, or a function without arguments that gives one. On a terminal it stands in
            one line that goes away at the end. In a file each is a line of its own, after 4 s, 8 s
            more and so on, and then every minute.
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
