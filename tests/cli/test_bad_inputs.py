"""Whatever is typed, and whatever is in the files: exit 2 with one sentence that names what is
wrong, or the right answer; nothing is written, and no traceback.
"""

import shutil

import pytest

from keras_attention.cli import main
from tests.cli import bad_folders, bad_inputs
from tests.grids import ALL
from tests.small_runs import SMALL

INPUTS, FOLDERS = (500, 100) if ALL else (40, 12)


def tree(*folders):
    """{path: (size, time of the last change)} of all that lies in folders."""
    found = [path for folder in folders for path in [folder, *folder.rglob("*")]]
    states = {path: path.lstat() for path in found if path.name != ".pytest_cache"}
    return {path: (state.st_size, state.st_mtime_ns) for path, state in states.items()}


def complaint(case, code, out, err, named):
    """What is wrong with how the command ended, or None."""
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
    """`train` ends where its training would begin: all that it checks is checked by then."""
    monkeypatch.setattr("keras_attention.cli.train.run_job", lambda *arguments, **named: None)


@pytest.fixture
def ending(capsys):
    """Runs a command; gives exit code (or the error), standard output and standard error."""

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
    """Draws bad inputs and runs them; gives how many ended with which exit code."""
    drawn, wrong, codes = bad_inputs.Drawn(folder, models, seed), [], {0: 0, 2: 0}
    for _ in range(number):
        case = drawn.case()
        before = tree(folder, *models.values())
        code, out, err = ending(case.words)
        found = complaint(case, code, out, err, [case.named])
        if code == 0 and case.certain:
            found = "taken"
        if tree(folder, *models.values()) != before:
            found = "something was written"
        if found:
            wrong.append(
                f"{found}: {case.about}: {' '.join(map(str, case.words))[:300]}: {err[:300]}"
            )
        codes[code] = codes.get(code, 0) + 1
    assert not wrong, "\n".join(wrong)
    return codes


def check_folders(ending, folder, models, seed, number):
    """The same of folders of models in which something is damaged."""
    drawn, wrong, codes, answers = bad_folders.Drawn(folder, models, seed), [], {0: 0, 2: 0}, {}
    for _ in range(number):
        case = drawn.case()
        before = tree(folder, *models)
        if case.right not in answers:
            answers[case.right] = ending(case.right)
            assert answers[case.right][::2] == (0, ""), answers[case.right]
        code, out, err = ending(case.words)
        found = complaint(case, code, out, err, case.names)
        if code == 0 and out != answers[case.right][1]:
            found = f"another answer than {answers[case.right][1][:60]!r}, {out[:60]!r}"
        if tree(folder, *models) != before:
            found = "something was written"
        if found:
            wrong.append(
                f"{found}: {case.about}: {' '.join(map(str, case.words))[:300]}: {err[:300]}"
            )
        codes[code] = codes.get(code, 0) + 1
        shutil.rmtree(case.words[1])
    assert not wrong, "\n".join(wrong)
    return codes


@pytest.fixture(scope="module")
def models(tagger, classifier, tmp_path_factory):
    """task -> the folder of a small trained model."""
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
def test_bad_inputs(ending, untrained, models, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    codes = check_inputs(ending, tmp_path / "inputs", models, seed=0, number=INPUTS)
    assert sum(codes.values()) == INPUTS and codes[2] >= 0.8 * INPUTS


@pytest.mark.sweep
def test_damaged_folders(ending, models, tmp_path):
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
