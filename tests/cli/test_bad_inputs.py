"""Damaged files and wrong options end with exit code 2 and one sentence, and write nothing."""

import shutil

import pytest

from keras_attention.cli import main
from tests.cli import bad_folders, bad_inputs
from tests.grids import ALL
from tests.small_runs import SMALL

INPUTS, FOLDERS = (500, 100) if ALL else (40, 12)


def tree(*folders):
    """Return {path: (size, time of the last change)} of all files in folders."""
    paths = [path for folder in folders for path in [folder, *folder.rglob("*")]]
    states = {path: path.lstat() for path in paths if path.name != ".pytest_cache"}
    return {path: (state.st_size, state.st_mtime_ns) for path, state in states.items()}


def complaint(case, code, out, err, named):
    """Describe the fault in the result of a command, or return None."""
    if code == 0:
        return "nan in the answer" if "nan" in out.lower() else None
    if code != 2:
        return f"exit {code}"
    if not err.startswith("keras-attention: ") or err.count("\n") != 1:
        return "not one sentence"
    if "Traceback" in err or "KERAS_ATTENTION_DEBUG" in err:
        return "an error of a library"
    if not any(name[:60] in err for name in named):
        return "does not name what is wrong"
    return None


@pytest.fixture
def untrained(monkeypatch):
    """Replace the training itself, so that `train` only checks its inputs."""
    monkeypatch.setattr("keras_attention.cli.train.run_job", lambda *arguments, **named: None)


@pytest.fixture
def ending(capsys):
    """Return a function that runs a command and returns (exit code or error, stdout, stderr)."""

    def ending(words):
        code = None
        try:
            main([str(word) for word in words])
        except SystemExit as stop:
            code = stop.code
        except Exception as error:
            code = repr(error)[:300]
        return code, *capsys.readouterr()

    return ending


def check_inputs(ending, folder, models, seed, number):
    """Run commands with bad inputs, and count their exit codes."""
    drawn, wrong, codes = bad_inputs.Drawn(folder, models, seed), [], {0: 0, 2: 0}
    for _ in range(number):
        case = drawn.case()
        before = tree(folder, *models.values())
        code, out, err = ending(case.words)
        problem = complaint(case, code, out, err, [case.named])
        if code == 0 and case.certain:
            problem = "taken"
        if tree(folder, *models.values()) != before:
            problem = "something was written"
        if problem:
            wrong.append(
                f"{problem}: {case.damage}: {' '.join(map(str, case.words))[:300]}: {err[:300]}"
            )
        codes[code] = codes.get(code, 0) + 1
    assert not wrong, "\n".join(wrong)
    return codes


def check_folders(ending, folder, models, seed, number):
    """Run `predict` with damaged presets, and count the exit codes."""
    drawn, wrong, codes, answers = bad_folders.Drawn(folder, models, seed), [], {0: 0, 2: 0}, {}
    for _ in range(number):
        case = drawn.case()
        before = tree(folder, *models)
        if case.right not in answers:
            answers[case.right] = ending(case.right)
            assert answers[case.right][::2] == (0, ""), answers[case.right]
        code, out, err = ending(case.words)
        problem = complaint(case, code, out, err, case.names)
        if code == 0 and out != answers[case.right][1]:
            problem = f"another answer than {answers[case.right][1][:60]!r}, {out[:60]!r}"
        if tree(folder, *models) != before:
            problem = "something was written"
        if problem:
            wrong.append(
                f"{problem}: {case.damage}: {' '.join(map(str, case.words))[:300]}: {err[:300]}"
            )
        codes[code] = codes.get(code, 0) + 1
        shutil.rmtree(case.words[1])
    assert not wrong, "\n".join(wrong)
    return codes


@pytest.fixture(scope="module")
def models(tagger, classifier, tmp_path_factory):
    """Return a dict, task -> the folder of a small trained model."""
    folder = tmp_path_factory.mktemp("models")
    data = folder / "data"
    data.mkdir()
    bad_inputs.write_good(data)
    made = {"sequence_labeler": tagger, "vision_transformer": classifier}
    for task, name, options in [
        ("text_classifier", "train.csv", ()),
        ("seq2seq_transformer", "train.tsv", ("--vocabulary-size", 24, "--beam", 2)),
        ("causal_language_model", "train.txt", ("--steps", 4)),
    ]:
        length = ("--max-length", 12) if options else ()
        words = ["train", task, "--train", data / name, "--output", folder / task, "--epochs", 1]
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in (*words, *options, *length, *SMALL)])
        assert stop.value.code == 0
        made[task] = folder / task
    return made


@pytest.mark.sweep
def test_damaged_data_and_wrong_options_are_one_sentence(
    ending, untrained, models, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    codes = check_inputs(ending, tmp_path / "inputs", models, seed=0, number=INPUTS)
    assert sum(codes.values()) == INPUTS and codes[2] >= 0.8 * INPUTS


@pytest.mark.sweep
def test_damaged_presets_are_one_sentence(ending, models, tmp_path):
    picture = bad_inputs.write_picture(tmp_path / "picture.png")
    inputs = {
        "sequence_labeler": ("the cat sat.",),
        "vision_transformer": (picture,),
        "text_classifier": ("a clever film",),
        "seq2seq_transformer": ("eins zwei",),
        "causal_language_model": ("the cat", "--temperature", "0", "--max-new-tokens", "4"),
    }
    models = {models[task]: words for task, words in inputs.items()}
    (tmp_path / "folders").mkdir()
    codes = check_folders(ending, tmp_path / "folders", models, seed=0, number=FOLDERS)
    assert sum(codes.values()) == FOLDERS and codes[2] >= 0.7 * FOLDERS
