"""Commands, options and their help."""

import os
import re
import subprocess
import sys

import pytest
from typer.main import get_command

from keras_attention.cli import printing
from keras_attention.cli.app import app
from keras_attention.cli.jobs import find_command
from keras_attention.tasks.registry import TASKS

TRAIN = ["train", "sequence_labeler", "--output", "x"]
COMMANDS = ["demo", "train", "evaluate", "predict", "export", "inspect"]


@pytest.mark.parametrize("program", [["-m", "keras_attention"], ["{script}"]])
def test_help_is_quick_and_lists_the_commands(program, tmp_path):
    script = tmp_path / "keras-attention"
    script.write_text("from keras_attention.cli import main\nmain()\n")
    words = [word.format(script=script) for word in program]
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *words, "--help"],
        capture_output=True,
        text=True,
        env=os.environ | {"KERAS_ATTENTION_DEBUG": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0
    assert all(command in done.stdout for command in COMMANDS)
    imported = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    assert "typer" in imported and not {"keras", "tensorflow", "matplotlib"} & imported


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0 and command in out


@pytest.mark.parametrize("command", get_command(app).commands.values(), ids=lambda c: c.name)
def test_every_option_has_help(command):
    assert [p.name for p in command.params if not p.help] == []


def test_help_of_train_begins_with_ten_options(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    _, out, _ = run("train", "--help")
    first = out.split("─ Options ─")[1].split("╭")[0]
    names = "output from dataset train dev test label-column epochs batch-size learning-rate help"
    assert set(re.findall(r"--([a-z-]+)", first)) == set(names.split())
    options = [p.opts[0] for p in get_command(app).commands["train"].params]
    assert [name for name in options if name.startswith("--") and name not in out] == []
    assert len(out.splitlines()) < 140


def test_help_does_not_break_names(run):
    listed = {"train": [*TASKS, "characters"], "export": ["int8_weights", "interpreter"]}
    for command, names in (listed | {"predict": ["saved_model", "litert-int8"]}).items():
        _, out, _ = run(command, "--help")
        assert [name for name in names if name not in out] == []


@pytest.mark.slow
def test_python_m_reports_on_the_real_stderr():
    done = subprocess.run(
        [sys.executable, "-m", "keras_attention", "inspect", "absent.tflite"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == "keras-attention: There is no file or folder absent.tflite.\n"


@pytest.mark.slow
def test_file_names_need_not_be_utf_8(tmp_path):
    """Check that bytes of a name outside of UTF-8 are escaped on stderr and stdout."""
    done = subprocess.run(
        [sys.executable, "-m", "keras_attention", "inspect", b"absent-\xff.tflite"],
        capture_output=True,
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"keras-attention: There is no file or folder absent-\\udcff.tflite.\n"


ABSENT = """
import sys
from keras_attention.cli import main

for words in (
    ["inspect", "absent.tflite"],
    ["export", "absent/model.keras"],
    ["evaluate", "absent/folder"],
    ["predict", "absent/model", "x"],
    ["predict", ".", "--file", "absent.txt"],
    ["train", "text_classifier", "--output", "x", "--train", "absent.csv"],
    ["train", "text_classifier", "--output", "x", "--train", ".", "--dev", "absent.csv"],
):
    try:
        main(words)
    except SystemExit as end:
        assert end.code == 2, words
assert not {"keras", "tensorflow", "numpy"} & {*sys.modules}
"""


def test_missing_file_is_reported_before_keras_is_imported():
    done = subprocess.run([sys.executable, "-c", ABSENT], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 7
    assert all("There is no file or folder absent" in line for line in lines)


def test_wrong_arguments_are_one_sentence(run):
    for words, message in [
        (["nonsense"], "No such command 'nonsense'"),
        (["train"], "Missing"),
        (["train", "poetry", "--output", "x"], "'poetry' is not one of"),
        (["train", "sequence_labeler", "--output", "x", "--colour", "red"], "No such option"),
        ([*TRAIN, "--seed", "99999999999999999999"], "Invalid value for '--seed'"),
        ([*TRAIN, "--learning-rate", "nan"], "Invalid value for '--learning-rate'"),
        ([*TRAIN, "--minutes", "inf"], "Invalid value for '--minutes': inf is not a finite number"),
        ([*TRAIN, "--dropout", "nan"], "Invalid value for '--dropout'"),
        ([*TRAIN, "--hidden-dim", "1000000000"], "Invalid value for '--hidden-dim'"),
        (["export", "x", "--format", "tflite"], "'--format': 'tflite' is not one of"),
        (["predict", "x", "y", "--temperature", "nan"], "Invalid value for '--temperature'"),
        (
            ["predict", "x", "--question", "Who?", "--context", "In 1850 Ada sold tea."],
            "--context 'In 1850 Ada sold tea.' is not a file: expected the name of a text file, or "
            "- for standard input.\n",
        ),
        (["predict", "x\0y", "z"], r"'x\x00y' contains a NUL"),
    ]:
        code, _, err = run(*words)
        assert code == 2 and message in err and err.count("\n") == 1


def test_plain_tables_are_aligned_by_the_width_of_characters(capsys):
    printing.show_table(("token", "tag"), [("中文", "NOUN"), ("[b]", "X"), ("a", "DET")])
    assert capsys.readouterr().out == "中文  NOUN\n[b]   X\na     DET\n"
    printing.show_table(("file", "size"), [("a", "1")], title="What was made")
    assert capsys.readouterr().out == "What was made\nfile  size\na     1\n"


def test_tables_on_a_terminal_keep_brackets(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    printing.show_table(("token", "tag"), [("[red]", "X")])
    assert "[red]" in capsys.readouterr().out


def test_recorded_command_has_no_absolute_path():
    words = [
        "train",
        "x",
        "--output",
        "/home/me/models/mine",
        "--data-dir",
        "/data",
        "--epochs",
        "3",
    ]
    assert find_command(words) == "keras-attention train x --output mine --epochs 3"
    assert find_command(["a", "--data-dir=/data", "b c"]) == "keras-attention a 'b c'"
