"""Makes notebooks of examples: their code in cells, run from top to bottom, with outputs.

    make notebooks

A cell is what stands between empty lines of the example's `main`, whose arguments are given here.
"""

import argparse
import ast
import os
import pathlib
import tempfile

import jupytext
import nbclient
import nbformat

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "docs" / "notebooks"
PICTURE = "attention.png"

# Example -> the arguments of its `main`, as code.
EXAMPLES = {
    "digits": "epochs, output = 15, pathlib.Path()",
    "part_of_speech": (
        "train = dev = TINY  # thirty sentences, learnt by heart: the score says no more\n"
        f'epochs, picture = 30, "{PICTURE}"'
    ),
}


def write_cells(name):
    """The example called `name` in cells, in jupytext's percent format."""
    text = (ROOT / "examples" / f"{name}.py").read_text()
    lines, tree = text.splitlines(), ast.parse(text)
    title, _, about = ast.get_docstring(tree).partition("\n")
    about = "\n".join(line for line in about.splitlines() if not line.startswith("    python "))
    title = title.rstrip(".")
    cells = [f"# {title}\n\nMade by `make notebooks` from `examples/{name}.py`.{about}"]
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    imports = "\n".join(lines[tree.body[0].end_lineno : functions[0].lineno - 1]).strip()
    imports = imports.replace("import argparse\n", "")
    parts = [imports.replace("__file__", repr(f"examples/{name}.py"))]
    parts += [_cut(lines, f.lineno, f.end_lineno) for f in functions if f.name != "main"]
    parts.append(EXAMPLES[name])
    main = next(f for f in functions if f.name == "main")
    body = _cut(lines, main.body[0].lineno, main.end_lineno)
    parts += [part for part in body.split("\n\n") if part.strip()]
    parts.append(f'from IPython.display import Image\n\nImage("{PICTURE}")')
    comment = "\n".join(f"# {line}".rstrip() for line in cells[0].splitlines())
    return "\n\n".join([f"# %% [markdown]\n{comment}", *(f"# %%\n{part}" for part in parts)])


def _cut(lines, first, last):
    """Lines `first` to `last`, without the indentation of the first."""
    indent = len(lines[first - 1]) - len(lines[first - 1].lstrip())
    return "\n".join(line[indent:] for line in lines[first - 1 : last])


def make_notebook(name):
    """Runs the example in a folder of its own; returns the notebook with its outputs."""
    notebook = jupytext.reads(write_cells(name), "py:percent")
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.metadata["kernelspec"] = kernel
    with tempfile.TemporaryDirectory() as folder:
        for part in ("examples", "tests"):  # examples read data that lie beside the tests
            (pathlib.Path(folder) / part).symlink_to(ROOT / part)
        nbclient.NotebookClient(
            notebook,
            timeout=1200,
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        ).execute()
    for i, cell in enumerate(notebook.cells):
        cell.metadata, cell["id"] = {}, f"cell-{i}"
        if cell.cell_type == "code":
            cell.outputs = [output for output in map(_clean_output, cell.outputs) if output]
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def _clean_output(output):
    """An output without what says something of this machine alone; None if nothing is left."""
    if output.output_type == "stream":
        lines = output.text.splitlines(keepends=True)
        output.text = "".join(x for x in lines if not x.startswith("INFO:tensorflow")).strip("\n")
        return output if output.name == "stdout" and output.text else None
    return output if set(output.get("data", {})) != {"text/plain"} else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="of examples; by default all that have a notebook")
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"  # of the kernels, too
    NOTEBOOKS.mkdir(exist_ok=True)
    for name in parser.parse_args().names or EXAMPLES:
        nbformat.write(make_notebook(name), NOTEBOOKS / f"{name}.ipynb")
        print(NOTEBOOKS / f"{name}.ipynb")
