"""The README: its commands and names exist, and its numbers are right.

Its code runs in `test_wheel.py`, with the package installed from its wheel.
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
for page in (ROOT / "docs").rglob("*.md"):  # commands on lines of their own
    COMMANDS |= {*re.findall(r"^keras-attention ([^#\n]*)", page.read_text(), re.MULTILINE)}
# The measure of each preset in the table of the README, and its factor (100 for percent).
TRAINED = {
    "digits-vit": ("accuracy", 100),
    "pos-tagger-en-ewt": ("accuracy", 100),
    "digits-speech": ("word_error_rate", 100),
    "multi30k-de-en": ("bleu", 1),
    "dates": ("exact_match", 100),
    "emotions": ("macro_f1", 100),
    "blood-cells": ("map", 100),
    "shakespeare": ("bits_per_character", 1),
}
FAMILIES = (ka.scores, ka.normalizers, ka.masks, ka.positions)


def test_readme_is_short():
    assert len(README.splitlines()) <= 110
    assert README.count("![") == 1
    assert len(re.findall(r"^- \[", README, re.MULTILINE)) == 6  # the links at its end


def test_layer_of_the_diff_replaces_keras_layer():
    """Both lines make a layer, and their weights have the same shapes."""
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
def test_commands_and_their_options_exist(command):
    words = command.split()
    commands = get_command(app).commands
    if words[0].startswith("-"):
        assert words == ["--help"]
        return
    assert words[0] in commands
    options = {option for parameter in commands[words[0]].params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= options | {"--help"}


def test_every_command_is_in_the_readme_or_its_guide():
    named = {command.split()[0] for command in COMMANDS}
    assert set(get_command(app).commands) <= named


def test_readme_counts_mechanisms_correctly():
    counts = {family.__name__.rpartition(".")[2]: len(family.NAMES) for family in FAMILIES}
    layers = {name for name in ka.attention.__all__ if hasattr(ka.layers, name)}
    counts["attention layers"] = len(layers - {"AttentionLayer", "HeadProjection"})
    counts["builders"] = len(list_builders())
    for word, count in counts.items():
        numbers = re.findall(rf"(\d+)\s{word}\b", README)
        assert numbers == [str(count)], f"README.md says {numbers} {word}: there are {count}"


def list_model_types():
    """Return the `model_type`s of Hugging Face's checkpoints that `ka.pretrained` loads."""
    folder = "keras_attention.pretrained.architectures"
    modules = [importlib.import_module(f"{folder}.{name}") for name in architecture.ARCHITECTURES]
    return {kind for module in modules for kind in module.MODEL_TYPES}


def test_model_types_are_counted_and_listed():
    """Check their number in the README, and their names in the guide to checkpoints."""
    (number,) = re.findall(r"(\d+) `model_type`s", README)
    model_types = list_model_types()
    assert int(number) == len(model_types), f"README.md: there are {len(model_types)} model_types"
    guide = (ROOT / "docs" / "guides" / "pretrained.md").read_text()
    table = guide.partition("| architecture | `model_type` |")[2].partition("\n\n")[0]
    rows = [row.split("|")[2] for row in table.splitlines()[2:]]
    names = {name for row in rows for name in re.findall("`([^`]+)`", row)}
    assert_lists("the table of docs/guides/pretrained.md", names, model_types)


def test_every_preset_is_in_the_table():
    presets = {path.parent.name for path in (ROOT / "saved_models").glob("*/manifest.json")}
    assert_lists("TRAINED of tests/test_readme.py", TRAINED, presets)


@pytest.mark.parametrize("preset", TRAINED)
def test_scores_in_the_readme_are_right(preset):
    measure, factor = TRAINED[preset]
    (row,) = re.findall(rf"^\| `{preset}` \| (.*) \|$", README, re.MULTILINE)
    (number,) = re.findall(r"[\d.]+\d", row.rpartition("|")[2])
    scores = json.loads((ROOT / "saved_models" / preset / "scores.json").read_text())
    assert abs(factor * scores["test"]["keras"][measure] - float(number)) <= 0.051


PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]


@pytest.mark.parametrize("page", sorted(PAGES))
def test_links_lead_somewhere(page):
    page = ROOT / page
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#]+)", prose)
    files = [link for link in links if "://" not in link]
    assert not [link for link in files if not (page.parent / link).exists()]
