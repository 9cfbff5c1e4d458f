"""The command line: `keras-attention`, or `python -m keras_attention`.

To keep `--help` fast, Keras and TensorFlow are only imported when a command runs.
"""

import os
import pickle
import sys


def main(arguments=None):
    """Run a command, and exit the process with its exit code.

    Args:
        arguments: list of str, the words of the command. None uses the arguments of the process.
    """
    from keras_attention.cli.app import app
    from keras_attention.cli.console import run_command

    if arguments is None:
        sys.stdout.reconfigure(errors="backslashreplace")  # file names may not be valid UTF-8
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # TensorFlow reads it when imported
        _mute_native_code()

    def command():
        if wrong := [word for word in arguments or () if "\0" in word]:
            raise ValueError(f"{wrong[0]!r} contains a NUL character: leave it out.")
        return app(arguments, prog_name="keras-attention", standalone_mode=False)

    words = sys.argv[1:] if arguments is None else arguments
    sys.exit(run_command(command, str(words[0]) if words else None))


def finish_training():
    """Export and test a model that was trained on another backend.

    This is the entry point of the process that `keras_attention.cli.mesh.finish_with_tensorflow`
    starts. The process reads the pickled arguments of `cli.train.train` from stdin.
    """
    from keras_attention.cli.console import run_command

    arguments = pickle.load(sys.stdin.buffer)
    _mute_native_code()

    def command():
        from keras_attention.cli.train import train

        train(**arguments, trained=True)

    sys.exit(run_command(command, "train"))


def _mute_native_code():
    """Discard the log messages of TensorFlow's C++ code, but not those of Python."""
    from keras_attention.cli.console import DEBUG

    if os.environ.get(DEBUG):
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.stderr.flush()
    terminal = os.fdopen(os.dup(2), "w", buffering=1, errors="backslashreplace")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.stderr = terminal
