"""Errors become sentences with an exit code."""

import pytest
import typer

from keras_attention.cli.console import LONGEST, escape_text, run_command
from keras_attention.cli.printing import Interrupted
from keras_attention.export import ExportError


def failing(error):
    def command():
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ValueError("num_heads=5\n  does not fit."), 2, "num_heads=5 does not fit."),
        (ExportError("no op for Cumsum."), 2, "no op for Cumsum."),
        (FileNotFoundError(2, "No such file or directory", "a.txt"), 2, "a.txt: No such file"),
        (ImportError("pip install x"), 2, "pip install x"),
        (ModuleNotFoundError("No module", name="keras"), 2, "keras is not installed: pip install"),
        (typer.BadParameter("3 is too small"), 2, "3 is too small"),
        (Interrupted("interrupted after 2 epochs."), 130, "interrupted after 2 epochs."),
        (KeyboardInterrupt(), 130, "interrupted."),
        (ValueError(), 2, "ValueError."),
    ],
)
def test_errors_are_one_line_on_stderr_with_an_exit_code(capsys, error, code, message):
    assert run_command(failing(error)) == code
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("keras-attention: ") and message in err
    assert err.count("\n") == 1


def test_bugs_keep_their_traceback():
    with pytest.raises(ZeroDivisionError):
        run_command(lambda: 1 / 0)
    with pytest.raises(KeyError):
        run_command(lambda: {}["x"])


def test_exit_code_of_success_is_0():
    assert run_command(lambda: None) == 0


def test_error_of_another_package_explains_how_to_see_the_traceback(capsys, monkeypatch):
    def elsewhere():
        int("three")

    assert run_command(elsewhere) == 2
    assert "KERAS_ATTENTION_DEBUG=1" in capsys.readouterr().err
    monkeypatch.setenv("KERAS_ATTENTION_DEBUG", "1")
    run_command(elsewhere)
    assert "Traceback" in capsys.readouterr().err


def test_closed_pipe_is_not_an_error(monkeypatch, tmp_path):
    with open(tmp_path / "out", "w") as file:
        monkeypatch.setattr("sys.stdout", file)
        assert run_command(failing(BrokenPipeError())) == 0


def test_error_messages_escape_terminal_control_characters(capsys):
    assert run_command(failing(ValueError("no column \x1b[2J\udcff\x00\x9b of é 中"))) == 2
    message = "keras-attention: no column \\x1b[2J\\udcff\\x00\\x9b of é 中"
    assert capsys.readouterr().err.startswith(message)


def test_long_messages_are_shortened():
    assert escape_text("x" * LONGEST) == "x" * LONGEST
    cut = escape_text("begin" + "x" * 10**6 + "end")
    assert cut.startswith("begin") and cut.endswith("end") and len(cut) < LONGEST + 10


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("train", "with a larger max_length=.", "with a larger --max-length."),
        ("train", "maximum_length=0: expected 1.", "--max-length 0: expected 1."),
        ("train", "Say which with text_column=: a name.", "Say which with --text-column: a name."),
        ("train", "such as encoding='cp1252'.", "such as --encoding cp1252."),
        ("train", "train= holds no example.", "--train holds no example."),
        ("train", "image_size=(3, 4) and labels=[...].", "image_size=(3, 4) and labels=[...]."),
        ("train", "call from_lists(seed=3).", "call from_lists(seed=3)."),
        ("train", "top=0 is small.", "top=0 is small."),
        ("predict", "top=0 is small.", "--top 0 is small."),
        ("predict", "It has file='keras' (model.keras).", "It has --with keras (model.keras)."),
        ("export", "path='a.txt' must end.", "--output a.txt must end."),
        ("export", "with calibration=, or none.", "with --file, or none."),
        (None, "top=0 is small.", "top=0 is small."),
    ],
)
def test_errors_of_a_command_name_its_options(capsys, name, error, message):
    assert run_command(failing(ValueError(error)), name) == 2
    assert capsys.readouterr().err.startswith(f"keras-attention: {message}")
