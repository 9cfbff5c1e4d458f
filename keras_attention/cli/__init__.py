"""The command line: `keras-attention`, or `python -m keras_attention`.

One file per command, per task, and per idea that they share. Modules here import Keras and
TensorFlow inside functions or are themselves imported inside functions, so that `--help` is quick.
"""

import os
import pickle
import sys


def main(arguments=None):
    """Runs the command in `arguments` (by default the process's own) and exits."""
    from keras_attention.cli.app import app
    from keras_attention.cli.console import run_command

    if arguments is None:
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files need not be UTF-8
        _mute_native_code()

    def command():
        if wrong := [word for word in arguments or () if "\0" in word]:
            raise ValueError(f"{wrong[0]!r} holds a NUL, which no argument of a program can.")
        return app(arguments, prog_name="keras-attention", standalone_mode=False)

    given = sys.argv[1:] if arguments is None else arguments
    sys.exit(run_command(command, str(given[0]) if given else None))


def finish_training():
    """Exports and tests a run that another backend has trained; the arguments come by a pipe.

    See `keras_attention.cli.mesh.finish_with_tensorflow`.
    """
    from keras_attention.cli.console import run_command

    arguments = pickle.load(sys.stdin.buffer)
    _mute_native_code()

    def command():
        from keras_attention.cli.train import train

        train(**arguments, trained=True)

    sys.exit(run_command(command, "train"))


def _mute_native_code():
    """Takes TensorFlow's C++ log lines off the terminal; Python still writes to it."""
    from keras_attention.cli.console import DEBUG

    if os.environ.get(DEBUG):
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.stderr.flush()
    terminal = os.fdopen(os.dup(2), "w", buffering=1, errors="backslashreplace")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.stderr = terminal
