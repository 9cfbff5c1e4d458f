"""The scripts of the lecture run, their pages are as generated, and their index is complete."""

import importlib
import re
import runpy

import keras
import matplotlib
import pytest

import keras_attention as ka
from keras_attention.cli import lecture as command
from tests.conftest import ROOT
from tests.test_docs import run_tool

matplotlib.use("agg")

SCRIPTS = ROOT / "examples" / "lecture"
PAGES = ROOT / "docs" / "lecture"
NAMES = list(command.find_scripts())
# Claims whose direction holds at any size: it is exact, or does not depend on training.
EXACT = ("cnn_is_attention", "four_requirements", "sqrt_d")
QUICK = (*EXACT, "embeddings", "heads", "normalizers", "residuals", "scores")  # below 2 CPU seconds
RUNS = [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.slow]) for n in NAMES]
CONCEPTS = 41  # in the notes


@pytest.fixture
def lesson(monkeypatch):
    """Return the module that the scripts share."""
    monkeypatch.syspath_prepend(SCRIPTS)
    monkeypatch.delenv("KERAS_ATTENTION_DATA", raising=False)
    keras.utils.set_random_seed(0)
    return importlib.import_module("lesson")


def run_script(name, quick):
    return runpy.run_path(str(SCRIPTS / f"{name}.py"))["run"](quick)


@pytest.mark.parametrize("name", RUNS)
def test_script_runs(name, lesson):
    result = run_script(name, quick=True)
    assert result.verdict in lesson.VERDICTS and result.finding.endswith(".")
    columns = list(result.rows[0])
    assert all(list(row) == columns for row in result.rows)
    figure = lesson.draw(result)
    assert figure.axes and all(axes.has_data() for axes in figure.axes)
    assert any(axes.get_xlabel() for axes in figure.axes)
    if name in EXACT:
        assert result.verdict == "holds"


@pytest.mark.parametrize("name", NAMES)
def test_script_is_short_and_uses_public_names(name):
    text = (SCRIPTS / f"{name}.py").read_text("utf-8")
    assert len(text.splitlines()) <= 80
    for path in set(re.findall(r"\bka\.([a-z_]+(?:\.\w+)+)", text)):
        room, member = path.split(".")[:2]
        assert member in getattr(ka, room).__all__, f"ka.{path} is not public"
    assert "from keras_attention." not in text


def test_no_script_is_missing_in_the_course():
    files = {path.stem for path in SCRIPTS.glob("*.py")} - {"lesson"}
    assert files == set(NAMES)


def test_pages_are_as_generated():
    """Whoever changes a script makes its page anew: make lecture."""
    pages = run_tool("lecture.py")["write_pages"]()
    stale = [name for name, text in pages.items() if (PAGES / name).read_text("utf-8") != text]
    assert not stale, "run: python docs/tools/lecture.py"
    assert {path.name for path in PAGES.glob("*.md")} == set(pages)
    assert {path.stem for path in PAGES.glob("*.png")} == set(NAMES)


def test_every_concept_has_a_public_name_and_a_page():
    concepts = [x for chapter in run_tool("lecture.py")["COURSE"] for x in chapter["concepts"]]
    assert len(concepts) == CONCEPTS
    for english, chinese, name, page in concepts:
        _, room, member = name.split(".")
        assert english and chinese and member in getattr(ka, room).__all__, name
        assert (ROOT / "docs" / page if page.endswith(".md") else PAGES / f"{page}.md").exists()


def test_command_lists_and_runs(capfd, tmp_path):
    command.lecture()
    listed = capfd.readouterr().out
    assert all(name in listed for name in NAMES) and "softmax picks one key" in listed
    with pytest.raises(ValueError, match="Unknown lesson 'forgeting'. Choose one of: forgetting"):
        command.lecture("forgeting")


@pytest.mark.slow
def test_command_runs_a_script(capfd, tmp_path):
    command.lecture("sqrt_d", tmp_path, quick=True)
    assert f"Figure: {tmp_path}/sqrt_d.png" in capfd.readouterr().out
    assert (tmp_path / "sqrt_d.png").stat().st_size > 10_000
    with pytest.raises(SystemExit):
        command.lecture("sqrt_d", tmp_path / "sqrt_d.png", quick=True)


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_claim_turns_out_as_on_its_page(name, lesson):
    """Check the whole script, without the files of real data."""
    numbers = run_tool("lecture.py")["read_numbers"](name)
    if numbers["data"].startswith("generated"):
        assert run_script(name, quick=False).verdict == numbers["verdict"]
