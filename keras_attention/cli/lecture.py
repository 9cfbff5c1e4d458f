"""The `lecture` command: list the scripts that measure the claims of the lecture, or run one.

The scripts are in examples/lecture of the repository. A wheel holds a copy of them.
"""

import ast
import pathlib
import subprocess
import sys
import tomllib

from keras_attention.cli.printing import say, show_table

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = PACKAGE / "lecture", PACKAGE.parent / "examples" / "lecture"


def lecture(name=None, output=None, quick=False):
    """Run the script called `name`, or list all scripts with their claims.

    Args:
        name: str, or None to list the scripts.
        output: path of the folder for the figure and the numbers. None uses runs/lecture.
        quick: bool, whether to run in a tiny size.

    Raises:
        ValueError: `name` is not the name of a script.
        SystemExit: the script failed. Its own message was printed.
    """
    scripts = find_scripts()
    if name is None:
        rows = [(name, read_claim(script)) for name, script in scripts.items()]
        show_table(("name", "claim"), rows, title="Run one with: keras-attention lecture NAME")
        return
    if name not in scripts:
        raise ValueError(f"Unknown lesson {name!r}. Choose one of: {', '.join(scripts)}.")
    words = [sys.executable, scripts[name], *(["--quick"] if quick else [])]
    say(f"Running {scripts[name].name}, up to two minutes ...")
    done = subprocess.run([*words, "--output", output or pathlib.Path("runs", "lecture")])
    if done.returncode:
        sys.exit(done.returncode)


def find_scripts():
    """Return {name: path} of all scripts, in the order of the course."""
    folder = next(folder for folder in FOLDERS if folder.exists())
    course = tomllib.loads((folder / "course.toml").read_text("utf-8"))
    pages = (page for chapter in course["chapter"] for *_, page in chapter["concepts"])
    names = dict.fromkeys(page for page in pages if not page.endswith(".md"))
    return {name: folder / f"{name}.py" for name in names}


def read_claim(script):
    """Return the claim of a script: the first paragraph of its docstring."""
    docstring = ast.get_docstring(ast.parse(script.read_text("utf-8")))
    return docstring.split("\n\n")[0].replace("\n", " ")
