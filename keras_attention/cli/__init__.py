"""The command line: `keras-attention`, or `python -m keras_attention`.

One file per command, and one per thing that commands share. Modules here import Keras and
TensorFlow inside functions or are themselves imported inside functions, so that `--help` is quick.
"""

import os
import sys


def main(arguments=None):
    """Runs the command in `arguments` (by default the process's own) and exits."""
    from keras_attention.cli.app import app
    from keras_attention.cli.errors import DEBUG, guarded

    if arguments is None and not os.environ.get(DEBUG):
        _mute_native_code()
    sys.exit(guarded(lambda: app(arguments, prog_name="keras-attention", standalone_mode=False)))


def _mute_native_code():
    """Takes TensorFlow's C++ log lines off the terminal; Python still writes to it."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.stderr.flush()
    terminal = os.fdopen(os.dup(2), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.stderr = terminal
