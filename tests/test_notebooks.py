"""The notebooks of docs/notebooks are those of the examples, with outputs and a picture."""

import json
import runpy

import jupytext
import pytest

from tests.conftest import ROOT

TOOL = runpy.run_path(str(ROOT / "docs" / "tools" / "notebooks.py"))
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def test_every_notebook_is_made_of_an_example():
    assert {path.stem for path in NOTEBOOKS} == set(TOOL["EXAMPLES"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_code_is_that_of_the_example(path):
    """Whoever changes an example makes its notebook anew: make notebooks."""
    cells = json.loads(path.read_text())["cells"]
    made = jupytext.reads(TOOL["write_cells"](path.stem), "py:percent").cells
    assert ["".join(cell["source"]) for cell in cells] == [cell.source for cell in made]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_there(path):
    assert path.stat().st_size < 500_000
    outputs = [x for cell in json.loads(path.read_text())["cells"] for x in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    text = "".join("".join(output.get("text", [])) for output in outputs)
    assert "accuracy" in text and "/tmp" not in text
    assert not [output for output in outputs if output["output_type"] == "error"]
