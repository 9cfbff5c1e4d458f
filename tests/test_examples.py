"""Every file of `examples/` runs, from beginning to end."""

import io
import pathlib
import runpy
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"
ARGUMENTS = {
    "blood_cells.py": ["--epochs", "1", "--made-up", "--image-size", "64"],
    "chat.py": ["--epochs", "1"],
    "constituency_trees.py": ["--epochs", "1"],
    "dates.py": ["--pairs", "256", "--epochs", "1"],
    "dependency_trees.py": ["--epochs", "1"],
    "digits.py": ["--epochs", "1", "--output", "digits"],
    "captions.py": ["--epochs", "1", "--pictures", "64"],
    "drawn_digits.py": ["--epochs", "1", "--samples", "samples.png"],
    "emotions.py": ["--epochs", "1", "--made-up"],
    "objects_as_text.py": ["--epochs", "1", "--pictures", "64"],
    "part_of_speech.py": ["--epochs", "1"],
    "question_answering.py": ["--epochs", "1"],
    "shakespeare.py": ["--steps", "3"],
    "sentence_polarity.py": ["--epochs", "1", "--made-up", "--models", "Transformer", "CNN"],
    "speech.py": ["--epochs", "1", "--made-up", "--output", "speech"],
    "speech_translation.py": ["--epochs", "1", "--made-up", "--output", "speech"],
    "summaries.py": ["--epochs", "1", "--reports", "40"],
    "translation.py": ["--epochs", "1", "--num-layers", "1"],
}
PRINTED = {
    "blood_cells.py": "map50",
    "captions.py": "written: ",
    "chat.py": "perplexity",
    "constituency_trees.py": "f1: ",
    "dates.py": "days never seen are right",
    "dependency_trees.py": "las: ",
    "digits.py": "test accuracy",
    "drawn_digits.py": "bits_per_dimension",
    "emotions.py": "macro_f1",
    "objects_as_text.py": "map50",
    "part_of_speech.py": "mat/",
    "question_answering.py": "exact_match",
    "shakespeare.py": "validation loss",
    "sentence_polarity.py": "a warm and clever film",
    "speech.py": "unseen speaker",
    "speech_translation.py": "unseen speaker",
    "summaries.py": "rouge_l",
    "translation.py": "BLEU",
}
# Those that train for long, and those whose task has a slow test that trains it in the same way.
LONG = (
    "blood_cells.py",
    "captions.py",
    "chat.py",
    "constituency_trees.py",
    "dates.py",
    "drawn_digits.py",
    "objects_as_text.py",
    "question_answering.py",
    "shakespeare.py",
    "speech_translation.py",
    "summaries.py",
    "translation.py",
)
FILES = [
    pytest.param(path.name, marks=[pytest.mark.sweep] if path.name in LONG else [])
    for path in sorted(EXAMPLES.glob("*.py"))
]


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_example(file, tmp_path, monkeypatch, capsys):
    """Run an example in this process: a new one would spend most of its time on imports."""
    monkeypatch.delenv("KERAS_ATTENTION_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [file, *ARGUMENTS[file]])
    monkeypatch.setattr(sys, "stdin", io.StringIO("I was in Rome.\n\n"))
    runpy.run_path(str(EXAMPLES / file), run_name="__main__")
    assert PRINTED[file] in capsys.readouterr().out


@pytest.mark.sweep
def test_summaries_of_a_file(tmp_path, monkeypatch, capsys):
    rows = [f"{place} is quiet. It rained.,Rain in {place}." for place in ("Oslo", "Rome")] * 20
    (tmp_path / "news.csv").write_text("\n".join(["article,summary", *rows]), "utf-8")
    monkeypatch.chdir(tmp_path)
    arguments = ["--csv", "news.csv", "--epochs", "1", "--max-length", "40", "--output", "out"]
    monkeypatch.setattr(sys, "argv", ["summaries.py", *arguments])
    runpy.run_path(str(EXAMPLES / "summaries.py"), run_name="__main__")
    assert "(right: Rain in " in capsys.readouterr().out
    assert (tmp_path / "out" / "model.tflite").exists()


def test_the_compared_models_are_of_one_size():
    """Beside the table of words, which all three have: within a tenth of the Transformer."""
    models = runpy.run_path(EXAMPLES / "sentence_polarity.py")["MODELS"]
    sizes = [make(2).count_params() for make in models.values()]
    assert len(sizes) == 3 and all(abs(size / sizes[0] - 1) < 0.1 for size in sizes)
