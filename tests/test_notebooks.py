"""The notebooks of docs/notebooks have the code of examples and lessons, outputs and figures."""

import json

import jupytext
import pytest

from tests.conftest import ROOT
from tests.test_docs import run_tool

TOOL = run_tool("notebooks.py")
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def test_no_notebook_is_missing():
    assert {path.stem for path in NOTEBOOKS} == {*TOOL["EXAMPLES"], "lecture"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_code_is_up_to_date(path):
    """Whoever changes an example or a lesson makes its notebook anew: make notebooks."""
    cells = json.loads(path.read_text())["cells"]
    made = jupytext.reads(TOOL["write_cells"](path.stem), "py:percent").cells
    assert ["".join(cell["source"]) for cell in cells] == [cell.source for cell in made]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_there(path):
    assert path.stat().st_size < 500_000
    outputs = [x for cell in json.loads(path.read_text())["cells"] for x in cell.get("outputs", [])]
    figures = sum("image/png" in output.get("data", {}) for output in outputs)
    assert figures == (len(TOOL["LESSONS"]) if path.stem == "lecture" else 1)
    lines = [x.get("text", x.get("data", {}).get("text/markdown", [])) for x in outputs]
    text = "".join(line for part in lines for line in part)
    assert "accuracy" in text and "/tmp" not in text
    assert not [output for output in outputs if output["output_type"] == "error"]
