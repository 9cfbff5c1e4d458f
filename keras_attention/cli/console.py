"""Errors as one sentence with an exit code."""

import os
import pathlib
import shlex
import sys
import traceback

import typer
from typer.exceptions import TyperException

from keras_attention.cli.arguments import write_options
from keras_attention.cli.printing import Interrupted, print_log
from keras_attention.core.lazy import MISSING

BAD_INPUT, INTERRUPTED = 2, 130
DEBUG = "KERAS_ATTENTION_DEBUG"
LONGEST = 2000  # characters of a sentence on stderr
# Arguments that an option of another name stands for.
OPTIONS = {
    "maximum_length": "--max-length",
    "column": "--label-column",
    "calibration": "--file",
    "path": "--output",
    "file": "--with",
}


def run_command(command, name=None):
    """Runs `command()` and returns its exit code, with errors as one sentence on stderr.

    Args:
        command: function without arguments.
        name: str, of the command, whose options errors then name in place of Python arguments.

    Errors about the input (ValueError, ExportError, a file that is not there, a package that is
    not installed, an unknown option) are one sentence and exit code 2; with
    KERAS_ATTENTION_DEBUG=1 the traceback comes first. Everything else is a bug and keeps its own.
    """
    try:
        with print_log():
            code = command() or 0
        return _say("interrupted.", code) if code == INTERRUPTED else code  # typer took Ctrl-C
    except (KeyboardInterrupt, typer.Abort):
        return _say("interrupted.", INTERRUPTED)
    except Interrupted as interrupted:
        return _say(str(interrupted), INTERRUPTED)
    except BrokenPipeError:  # `keras-attention ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except TyperException as error:
        return _say(_usage_sentence(error), BAD_INPUT)
    except Exception as error:
        if not _about_input(error):
            raise
        if os.environ.get(DEBUG):
            traceback.print_exc()
        return _say(name_options(sentence(error), name), BAD_INPUT)


def name_options(text, name):
    """Write the Python arguments in `text` as options of the command `name`.

    `max_length=` becomes `--max-length`, and `encoding='cp1252'` becomes `--encoding cp1252`.
    """
    from keras_attention.cli.app import app

    command = typer.main.get_command(app).commands.get(name)
    if command is None:
        return text
    options = {p.name: p.opts[0] for p in command.params if p.param_type_name == "option"}
    known = set(options.values())
    options |= {name: option for name, option in OPTIONS.items() if option in known}

    return write_options(text, options)


def _usage_sentence(error):
    return " ".join(error.format_message().split())


def _about_input(error):
    kinds = (ValueError, OSError, ImportError)
    return isinstance(error, kinds) or type(error).__name__ == "ExportError"


def sentence(error):
    """Return the message of an error on one line; with a hint if it comes from another package.

    An error about several examples has a line for each.
    """
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{os.fsdecode(error.filename)}: {error.strerror}."
    if isinstance(error, ModuleNotFoundError) and error.name in MISSING:
        return f"This {MISSING[error.name]}"
    if type(error).__name__ == "MissingFileError" and error.export is not None:
        options = "".join(f" --{name} {value}" for name, value in error.export.items())
        command = f"keras-attention export {shlex.quote(str(error.folder))}{options}"
        return f"{str(error).removesuffix('.')}: `{command}`."
    several = type(error).__name__ == "ExamplesError"
    lines = str(error).splitlines() if several else [str(error)]
    text = "\n".join(" ".join(line.split()) for line in lines) or f"{type(error).__name__}."
    frames = traceback.extract_tb(error.__traceback__)
    package = pathlib.Path(__file__).resolve().parent.parent
    if frames and package in pathlib.Path(frames[-1].filename).resolve().parents:
        return text
    return f"{text} (Set {DEBUG}=1 to see where this comes from.)"


def _say(text, code):
    if text:
        lines = "\n".join(map(printable, text.split("\n")))
        print(f"keras-attention: {lines}", file=sys.stderr)
    return code


def printable(text):
    """`text` without control characters and ones that cannot be encoded, and not too long.

    Errors quote files, which may hold anything: escape sequences, or a line of a gigabyte.
    """
    if len(text) > LONGEST:
        text = f"{text[: LONGEST * 3 // 4]} ... {text[-LONGEST // 4 :]}"
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
