"""Makes notebooks of examples and of lessons: their code in cells, run in order, with outputs.

    make notebooks

Empty lines in an example's `main` separate cells. The arguments of `main` are set in this file. The
notebook `lecture` has several scripts of examples/lecture, each in one cell.
"""

import argparse
import ast
import os
import pathlib
import tempfile

import jupytext
import lecture
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

LESSONS = ("sqrt_d", "order", "cnn_is_attention", "leak", "normalizers")
INTRODUCTION = """\
# The lecture

Made by `make notebooks` from `examples/lecture`. Each of these five lessons measures a claim about
attention. [The lecture](../lecture/index.md) has more."""
SHOW = '''\
import sys

from IPython.display import Markdown, display

sys.path.append("examples/lecture")  # of the repository


def show(result):
    """Show the table, the figure and the finding of a lesson."""
    lines = [result.rows[0], ["---"] * len(result.rows[0]), *(x.values() for x in result.rows)]
    table = "\\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)
    display(Markdown(table), lesson.draw(result))
    display(Markdown(f"**The claim {result.verdict}.** {result.finding}"))'''


def write_cells(name):
    """Return the notebook called `name` as cells, in jupytext's percent format."""
    return write_lessons() if name == "lecture" else write_example(name)


def write_lessons():
    """Return the notebook of `LESSONS` as cells."""
    cells = [_markdown(INTRODUCTION), f"# %%\n{SHOW}"]
    for name in LESSONS:
        script = lecture.SCRIPTS / f"{name}.py"
        fields, text = lecture.read_fields(script), script.read_text("utf-8")
        tree = ast.parse(text)
        code = _cut(text.splitlines(), tree.body[1].lineno, tree.body[-2].end_lineno)
        head = f"## {lecture.title(name)}\n\n**Claim.** {fields['claim']}\n\n"
        head += f"```text\n{fields['Equation']}\n```\n\n{fields['text']}"
        tail = f"*{fields['Caption']}*\n\n**Try this:** {fields['Try this']}\n\n"
        tail += f"[The page of this lesson](../lecture/{name}.md)"
        cells += [_markdown(head), f"# %%\n{code}", "# %%\nshow(run(quick=False))", _markdown(tail)]
    return "\n\n".join(cells)


def _markdown(text):
    """Return text as a cell."""
    return "# %% [markdown]\n" + "\n".join(f"# {line}".rstrip() for line in text.splitlines())


def write_example(name):
    """Return the example called `name` as cells."""
    text = (ROOT / "examples" / f"{name}.py").read_text()
    lines, tree = text.splitlines(), ast.parse(text)
    title, _, description = ast.get_docstring(tree).partition("\n")
    description = "\n".join(
        line for line in description.splitlines() if not line.startswith("    python ")
    )
    title = title.rstrip(".")
    introduction = f"# {title}\n\nMade by `make notebooks` from `examples/{name}.py`.{description}"
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
    return "\n\n".join([_markdown(introduction), *(f"# %%\n{part}" for part in parts)])


def _cut(lines, first, last):
    """Lines `first` to `last`, without the indentation of the first."""
    indent = len(lines[first - 1]) - len(lines[first - 1].lstrip())
    return "\n".join(line[indent:] for line in lines[first - 1 : last])


def make_notebook(name):
    """Run the code in a new folder. Return the notebook with its outputs."""
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
    """Remove from an output what depends on this machine. Return None if nothing is left."""
    if output.output_type == "stream":
        lines = output.text.splitlines(keepends=True)
        output.text = "".join(x for x in lines if not x.startswith("INFO:tensorflow")).strip("\n")
        return output if output.name == "stdout" and output.text else None
    return output if set(output.get("data", {})) != {"text/plain"} else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="of notebooks; by default all")
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"  # of the kernels, too
    NOTEBOOKS.mkdir(exist_ok=True)
    for name in parser.parse_args().names or [*EXAMPLES, "lecture"]:
        nbformat.write(make_notebook(name), NOTEBOOKS / f"{name}.ipynb")
        print(NOTEBOOKS / f"{name}.ipynb")
