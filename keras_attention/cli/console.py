"""Run a command, and report errors as one sentence and an exit code."""

import os
import pathlib
import shlex
import sys
import traceback

import typer
from typer.exceptions import TyperException

from keras_attention.cli.printing import Interrupted, print_log, write_options
from keras_attention.core.lazy import MISSING

BAD_INPUT, INTERRUPTED = 2, 130
DEBUG = "KERAS_ATTENTION_DEBUG"
LONGEST = 2000  # maximum number of characters of a message on stderr
# Python arguments whose option has another name.
OPTIONS = {
    "maximum_length": "--max-length",
    "column": "--label-column",
    "calibration": "--file",
    "path": "--output",
    "file": "--with",
}


def run_command(command, name=None):
    """Run a command, report errors on stderr, and return the exit code.

    Errors that the user can fix (ValueError, ExportError, a missing file or package, an unknown
    option) are reported as one sentence, with exit code 2. With KERAS_ATTENTION_DEBUG=1, the
    traceback is printed before. Any other error is a bug, and is raised.

    Args:
        command: function without arguments. It returns an exit code, or None for 0.
        name: str, the name of the command, whose options replace Python arguments in error
            messages. With None, the messages stay as they are.
    """
    try:
        with print_log():
            code = command() or 0
        return _report("interrupted.", code) if code == INTERRUPTED else code  # typer caught Ctrl-C
    except (KeyboardInterrupt, typer.Abort):
        return _report("interrupted.", INTERRUPTED)
    except Interrupted as interrupted:
        return _report(str(interrupted), INTERRUPTED)
    except BrokenPipeError:  # `keras-attention ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except TyperException as error:
        message = " ".join(error.format_message().split())
        return _report(message.replace(": Value error, ", ": "), BAD_INPUT)  # words of pydantic
    except Exception as error:
        is_export_error = type(error).__name__ == "ExportError"
        if not (is_export_error or isinstance(error, ValueError | OSError | ImportError)):
            raise
        if os.environ.get(DEBUG):
            traceback.print_exc()
        return _report(name_options(format_error(error), name), BAD_INPUT)


def name_options(text, name):
    """Replace Python arguments in a message, `text`, by the options of the command `name`.

    `max_length=` becomes `--max-length`, and `encoding='cp1252'` becomes `--encoding cp1252`.
    """
    from keras_attention.cli.app import app

    command = typer.main.get_command(app).commands.get(name)
    if command is None:
        return text
    options = {p.name: p.opts[0] for p in command.params if p.param_type_name == "option"}
    names = set(options.values())
    options |= {argument: option for argument, option in OPTIONS.items() if option in names}
    return write_options(text, options)


def format_error(error):
    """Return the message of an error on one line, or on one line per example for several examples.

    If the error was raised by another package, a hint on how to see the traceback is appended.
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
    return f"{text} (Set {DEBUG}=1 to see the traceback.)"


def _report(text, code):
    if text:
        lines = "\n".join(map(escape_text, text.split("\n")))
        print(f"keras-attention: {lines}", file=sys.stderr)
    return code


def escape_text(text):
    """Return a message without unprintable characters, which are escaped, and not too long.

    Messages quote files, which may contain terminal escape sequences or a line of a gigabyte.
    """
    if len(text) > LONGEST:
        text = f"{text[: LONGEST * 3 // 4]} ... {text[-LONGEST // 4 :]}"
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
