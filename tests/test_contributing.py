"""CONTRIBUTING.md and two pages of docs/: their code runs, and their files exist."""

import re

import keras
import pytest

import keras_attention as ka
from tests.conftest import ROOT
from tests.test_docs import forget_classes_of_the_page

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
TASKS = (ROOT / "docs" / "add-a-task.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", CONTRIBUTING, re.DOTALL)
PATHS = {
    *re.findall(
        r"`((?:tests|benchmarks|docs|examples)/[\w/.]+)`", CONTRIBUTING + ARCHITECTURE + TASKS
    ),
    *(
        f"keras_attention/{path}"
        for path in re.findall(r"`((?:\w+/)+\w+\.py)`", ARCHITECTURE + TASKS)
        if not path.startswith(("tests/", "docs/", "keras_attention/"))
    ),
}


@pytest.mark.parametrize("code", BLOCKS)
def test_code_runs(code):
    classes = dict(keras.saving.get_custom_objects())
    try:
        exec(compile(code, "CONTRIBUTING.md", "exec"), {"__name__": "__main__"})
    finally:
        forget_classes_of_the_page(classes)


@pytest.mark.parametrize("path", sorted(PATHS))
def test_files_exist(path):
    assert (ROOT / path).exists()


def test_every_room_is_in_the_table():
    rooms = {path.parent.name for path in (ROOT / "keras_attention").glob("*/__init__.py")}
    assert rooms == set(re.findall(r"^\| `(\w+)/` \|", ARCHITECTURE, re.MULTILINE))


def test_names_exist():
    for name in re.findall(r"`ka\.([\w.]+)", CONTRIBUTING + ARCHITECTURE + TASKS):
        value = ka
        for part in name.split("."):
            value = getattr(value, part)
