"""Small faults put into the package on purpose, one at a time: do the tests notice?

    python -m tests.mutants --seed 0           # 60 faults, over all rooms: a table of what noticed
    python -m tests.mutants --root ../before   # the same of another checkout
    python -m tests.mutants --near             # minutes a fault at most: leaves out the last stages

A fault is an operator, a comparison, a constant or a condition changed, or a statement deleted.
For each, tests run in a copy of the project until one fails: those of its file, those of its room,
the contract of all layers, then all that are left, the slow ones at the end.
"""

import argparse
import ast
import concurrent.futures
import dataclasses
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = "keras_attention"
SECONDS = 3600

OPERATORS = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A fault: `old` at a place in a file becomes `new`. Columns count bytes, as `ast` does."""

    path: str
    line: int
    start: int
    end_line: int
    end: int
    old: str
    new: str

    @property
    def room(self):
        """The folder of the package that the file is in."""
        parts = pathlib.Path(self.path).parts
        return parts[1] if len(parts) > 2 else PACKAGE

    def __str__(self):
        old = " ".join(self.old.split())
        return f"{self.path}:{self.line}  {old[:50]!r} -> {self.new!r}"

    def apply(self, source):
        """The source with the fault."""
        lines = source.encode().splitlines(keepends=True)
        head = b"".join(lines[: self.line - 1]) + lines[self.line - 1][: self.start]
        tail = lines[self.end_line - 1][self.end :] + b"".join(lines[self.end_line :])
        return (head + self.new.encode() + tail).decode()


def find_mutants(root, path):
    """Every fault that a file could have."""
    source = (root / path).read_text("utf-8")
    tree = ast.parse(source)
    lines = source.encode().splitlines(keepends=True)
    messages = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom)
        for inner in ast.walk(node)
    }

    def cut(line, start, end_line, end):
        if line == end_line:
            return lines[line - 1][start:end].decode()
        middle = b"".join(lines[line : end_line - 1])
        return (lines[line - 1][start:] + middle + lines[end_line - 1][:end]).decode()

    def replace(node, new):
        place = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
        return Mutant(path, *place, cut(*place), new)

    def between(left, right, operator):
        old, new = OPERATORS[type(operator)]
        place = (left.end_lineno, left.end_col_offset, right.lineno, right.col_offset)
        gap = cut(*place)
        if gap.count(old) == 1:
            yield Mutant(path, *place, gap, gap.replace(old, new))

    for node in ast.walk(tree):
        if id(node) in messages:
            continue
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            yield from between(node.left, node.right, node.op)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield from between(node.left, node.comparators[0], node.ops[0])
        elif isinstance(node, ast.BoolOp):
            yield from between(node.values[0], node.values[1], node.op)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield replace(node, ast.unparse(node.operand))
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield replace(node, str(not node.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield replace(node, repr(node.value + 1))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield replace(node, "pass")
        elif isinstance(node, ast.AugAssign):
            yield replace(node, "pass")


def draw(root, seed, count):
    """`count` faults, as many from each room as there are, in turn."""
    chosen, generator = [], random.Random(seed)
    rooms = {}
    for path in sorted((root / PACKAGE).rglob("*.py")):
        for mutant in find_mutants(root, str(path.relative_to(root))):
            rooms.setdefault(mutant.room, []).append(mutant)
    while len(chosen) < count and any(rooms.values()):
        for room in sorted(rooms):
            if rooms[room] and len(chosen) < count:
                chosen.append(rooms[room].pop(generator.randrange(len(rooms[room]))))
    return chosen


def stages(root, mutant, *, near_only=False):
    """Arguments of pytest, a list for each run: the tests nearest to the fault come first.

    With `near_only`, those of its file and its room, slow ones of the file too, and the contract.
    """
    path = pathlib.Path(mutant.path)
    folder = pathlib.Path("tests", *path.parent.parts[1:])
    file = folder / f"test_{path.stem}.py"
    near = [str(found) for found in (file,) if (root / found).is_file()]
    room = [str(folder)] if folder.parts[1:] and (root / folder).is_dir() else []
    default, slow = ["-m", "not slow"], ["-m", "slow"]
    if near:
        yield [*default, *near]
    if room:
        yield [*default, *room]
    yield [*default, "tests/test_contract.py", "tests/test_docstrings.py"]
    if near_only:
        if near:
            yield [*slow, *near]
        return
    yield [*default, "tests", *(f"--ignore={name}" for name in room)]
    yield [*slow, *(near or room or ["tests"])]
    yield [*slow, "tests"]


def find_failure(root, mutant, near_only):
    """`(mutant, what noticed)`; nothing noticed where that is None."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder, "project")
        unused = shutil.ignore_patterns(".git", ".venv*", "__pycache__", ".ruff_cache")
        shutil.copytree(root, copy, ignore=unused, symlinks=True)
        source = (copy / mutant.path).read_text("utf-8")
        (copy / mutant.path).write_text(mutant.apply(source), "utf-8")
        for arguments in stages(copy, mutant, near_only=near_only):
            if told := _run_tests(copy, arguments):
                return mutant, told
    return mutant, None


def _run_tests(folder, arguments):
    """The first test that failed, or None."""
    options = ["-x", "-q", "-p", "no:cacheprovider", "--no-header", "--durations=0"]
    command = [sys.executable, "-m", "pytest", *options, *arguments]
    environment = os.environ | {"PYTHONPATH": str(folder)}  # also of the processes that tests start
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"no end in {SECONDS} s"
    if done.returncode in (0, 5):  # 5: no test was chosen
        return None
    told = [x for x in done.stdout.splitlines() if x.startswith(("FAILED", "ERROR"))]
    return told[0][:100] if told else f"exit status {done.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    parser.add_argument("--near", action="store_true")
    parser.add_argument("--only", type=int, nargs="*", help="indices of the faults to try")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    mutants = draw(root, arguments.seed, arguments.count)
    if arguments.only is not None:
        mutants = [mutants[k] for k in arguments.only]
    noticed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for mutant, told in pool.map(lambda one: find_failure(root, one, arguments.near), mutants):
            noticed += told is not None
            print(f"{'noticed ' if told else 'SURVIVED'} {mutant}  {told or ''}", flush=True)
    print(f"{noticed} of {len(mutants)} noticed (seed {arguments.seed})")


if __name__ == "__main__":
    main()
