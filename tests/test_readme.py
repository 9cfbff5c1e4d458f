"""The README: its commands and names exist, its numbers are those there are.

Its code runs in `test_wheel.py`, with the package as its wheel installs it.
"""

import importlib
import json
import re

import keras
import numpy as np
import pytest
from typer.main import get_command

import keras_attention as ka
from keras_attention.cli.app import app
from keras_attention.pretrained import architecture
from tests.conftest import ROOT
from tests.tables import assert_lists, list_builders

README = (ROOT / "README.md").read_text()
COMMAND_LINE = (ROOT / "docs" / "guides" / "command-line.md").read_text()
DIFF = re.search(r"```diff\n-(.*)\n\+(.*)\n```", README)
TARGETS = sorted(set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE)))
COMMANDS = {*re.findall(r"`keras-attention ([^`]*)`", README + COMMAND_LINE)}
for page in (ROOT / "docs").rglob("*.md"):  # those that stand on lines of their own, too
    COMMANDS |= {*re.findall(r"^keras-attention ([^#\n]*)", page.read_text(), re.MULTILINE)}
TRAINED = re.findall(r"\]\((saved_models/[^/]+)/.*\| (\w+) ([\d.]+)( %)? \|", README)
FAMILIES = (ka.scores, ka.normalizers, ka.masks, ka.positions)


def test_it_fits_on_a_screen_or_two():
    assert len(README.splitlines()) <= 130
    assert README.count("![") == 1


def test_the_layer_takes_the_place_of_keras_own():
    """Both lines of the diff make a layer; the weights of the one fit into the other."""
    x = np.ones((1, 3, 16), "float32")
    weights = []
    for line in DIFF.groups():
        names = {"keras": keras, "ka": ka}
        exec(line, names)
        assert names["layer"](x, x).shape == x.shape
        weights.append([weight.shape for weight in names["layer"].weights])
    assert weights[0] == weights[1]


@pytest.mark.parametrize("target", TARGETS)
def test_make_targets_exist(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_commands_exist(command):
    """Every command, and every option it is shown with."""
    words = command.split()
    known = get_command(app).commands
    if words[0].startswith("-"):
        assert words == ["--help"]
        return
    assert words[0] in known
    options = {option for parameter in known[words[0]].params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= options | {"--help"}


def test_every_command_is_in_the_readme_or_its_guide():
    named = {command.split()[0] for command in COMMANDS}
    assert set(get_command(app).commands) <= named


def test_the_numbers_of_mechanisms_are_those_there_are():
    """In the sentence of the README that counts them."""
    counts = {family.__name__.rpartition(".")[2]: len(family.NAMES) for family in FAMILIES}
    layers = {name for name in ka.attention.__all__ if hasattr(ka.layers, name)}
    counts["attention layers"] = len(layers - {"AttentionLayer", "HeadProjection"})
    counts["builders"] = len(list_builders())
    for word, count in counts.items():
        said = re.findall(rf"(\d+)\s{word}\b", README)
        assert said == [str(count)], f"README.md says {said} {word}: there are {count}"


def list_model_types():
    """The `model_type`s of Hugging Face's checkpoints that `ka.pretrained` loads."""
    folder = "keras_attention.pretrained.architectures"
    modules = [importlib.import_module(f"{folder}.{name}") for name in architecture.ARCHITECTURES]
    return {kind for module in modules for kind in module.MODEL_TYPES}


def test_the_model_types_are_those_there_are():
    """The README counts them, and the guide of checkpoints names each."""
    (said,) = re.findall(r"(\d+) `model_type`s", README)
    known = list_model_types()
    assert int(said) == len(known), f"README.md says {said} model_types: there are {len(known)}"
    guide = (ROOT / "docs" / "guides" / "pretrained.md").read_text()
    rows = guide.partition("| architecture | `model_type` |")[2].partition("\n\n")[0].splitlines()
    named = {name for row in rows[2:] for name in re.findall("`([^`]+)`", row.split("|")[2])}
    assert_lists("the table of docs/guides/pretrained.md", named, known)


@pytest.mark.parametrize(("folder", "measure", "number", "percent"), TRAINED)
def test_trained_models_score_what_is_said(folder, measure, number, percent):
    """To a point, as they are written."""
    scores = json.loads((ROOT / folder / "scores.json").read_text())["test"]["keras"]
    assert abs((100 if percent else 1) * scores[measure] - float(number)) <= 0.051


PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]


@pytest.mark.parametrize("page", sorted(PAGES))
def test_links_lead_somewhere(page):
    page = ROOT / page
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#]+)", prose)
    files = [link for link in links if "://" not in link]
    assert not [link for link in files if not (page.parent / link).exists()]
