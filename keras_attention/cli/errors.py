"""The one place where an error becomes a sentence on stderr and an exit code."""

import os
import pathlib
import sys
import traceback

import typer
from typer.exceptions import TyperException

BAD_INPUT, INTERRUPTED = 2, 130
DEBUG = "KERAS_ATTENTION_DEBUG"


class Interrupted(Exception):
    """Ctrl-C, with a sentence that says how to go on."""


def guarded(command):
    """Runs `command()` and returns the exit code; says on stderr what was wrong, if anything.

    Errors about the input (ValueError, ExportError, a file that is not there, a package that is
    not installed, an unknown option) are one sentence and exit code 2; with
    KERAS_ATTENTION_DEBUG=1 the traceback comes first. Everything else is a bug and keeps its own.
    """
    try:
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
        return _say(" ".join(error.format_message().split()), BAD_INPUT)
    except Exception as error:
        if not _about_input(error):
            raise
        if os.environ.get(DEBUG):
            traceback.print_exc()
        return _say(sentence(error), BAD_INPUT)


def _about_input(error):
    kinds = (ValueError, OSError, ImportError)
    return isinstance(error, kinds) or type(error).__name__ == "ExportError"


def sentence(error):
    """What an error says, on one line; whence, if it did not come from this package."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}."
    text = " ".join(str(error).split()) or f"{type(error).__name__}."
    return text if _ours(error) else f"{text} (Set {DEBUG}=1 to see where this comes from.)"


def _ours(error):
    frames = traceback.extract_tb(error.__traceback__)
    package = pathlib.Path(__file__).resolve().parent.parent
    return bool(frames) and package in pathlib.Path(frames[-1].filename).resolve().parents


def _say(text, code):
    if text:
        print(f"keras-attention: {text}", file=sys.stderr)
    return code
