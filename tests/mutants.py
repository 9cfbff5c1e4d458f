"""Puts small faults into the package, one at a time, and checks that a test fails.

    pip install pytest-cov
    python -m tests.mutants --seed 0           # 60 faults, over all rooms, and a table of the tests
    python -m tests.mutants --root ../before   # the same of another checkout
    python -m tests.mutants --maps FOLDER      # keeps the results of the first run for the next

A fault is an operator, a comparison, a constant or a condition changed, or a statement deleted.
First the default tests and the slow ones run once, to record which lines each of them runs. That
takes one and a half times as long as CI. For each fault the default tests that run its
line then run in a copy of the project, quick ones first, until one fails. If none
fails, the slow tests run.
"""

import argparse
import ast
import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = "keras_attention"
RINGS = {"default": "not slow and not sweep", "slow": "slow and not sweep"}
MOST_SECONDS = {"default": 120, "slow": 240}
SECONDS = 900  # of the tests of a fault: one that takes longer does not end
SECONDS_OF_TESTS, CHOSEN_TESTS = "MUTANTS_SECONDS", "MUTANTS_TESTS"

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
        """Return the folder of the package that holds the file."""
        parts = pathlib.Path(self.path).parts
        return parts[1] if len(parts) > 2 else PACKAGE

    def __str__(self):
        old = " ".join(self.old.split())
        return f"{self.path}:{self.line}  {old[:50]!r} -> {self.new!r}"

    def apply(self, source):
        """Return the source with the fault."""
        lines = source.encode().splitlines(keepends=True)
        head = b"".join(lines[: self.line - 1]) + lines[self.line - 1][: self.start]
        tail = lines[self.end_line - 1][self.end :] + b"".join(lines[self.end_line :])
        return (head + self.new.encode() + tail).decode()


def find_mutants(root, path):
    """Return every fault that can be put into a file."""
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


class TestMap:
    """Return which tests of a ring run which lines of a project, and how long each test takes.

    Args:
        root: pathlib.Path, the project.
        folder: pathlib.Path, where the map is stored. If it has none, the tests run once.
        ring: one of `RINGS`.
    """

    def __init__(self, root, folder, ring):
        import coverage

        self.root, self.ring, seconds = root, ring, folder / "seconds.json"
        if not seconds.exists():
            folder.mkdir(parents=True, exist_ok=True)
            workers = ["--numprocesses=2", "--dist=worksteal"]
            lines = [f"--cov={PACKAGE}", "--cov-context=test", "--cov-report="]
            variables = {"COVERAGE_FILE": str(folder / "lines"), SECONDS_OF_TESTS: str(seconds)}
            run_pytest(root, ["-m", RINGS[ring], *workers, *lines], variables, timeout=None)
        self.seconds = json.loads(seconds.read_text("utf-8"))
        self.lines = coverage.CoverageData(str(folder / "lines"))
        self.lines.read()

    def find(self, mutant):
        """Return the names of the tests that run a line of the fault, the quickest first.

            If imports run the line, too, these are the tests that run any line of the file. Tests
        beyond the ring's `MOST_SECONDS` are left out.
        """
        by_line = self.lines.contexts_by_lineno(str(self.root / mutant.path))
        own = [by_line.get(line, ()) for line in range(mutant.line, mutant.end_line + 1)]
        names = self._get_names(own)
        if not names or any("" in contexts for contexts in own):
            names |= self._get_names(by_line.values())
        chosen, total = [], 0.0
        for name in sorted(names, key=self.seconds.get):
            total += self.seconds[name]
            if total > MOST_SECONDS[self.ring]:
                break
            chosen.append(name)
        return chosen

    def _get_names(self, contexts):
        names = {context.rpartition("|")[0] for some in contexts for context in some}
        return names & set(self.seconds)


def find_failure(root, mutant, maps):
    """Return `(mutant, ring, test)` of the first test that fails, with two None if none does."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder, "project")
        unused = shutil.ignore_patterns(".git", ".venv*", "__pycache__", ".ruff_cache", "build")
        shutil.copytree(root, copy, ignore=unused, symlinks=True)
        source = (copy / mutant.path).read_text("utf-8")
        (copy / mutant.path).write_text(mutant.apply(source), "utf-8")
        chosen = pathlib.Path(folder, "tests.json")
        for one in maps:
            names = one.find(mutant)
            chosen.write_text(json.dumps(names), "utf-8")
            files = sorted({name.partition("::")[0] for name in names})
            options = ["-x", "-m", RINGS[one.ring], *files]
            if files and (
                failed := run_pytest(copy, options, {CHOSEN_TESTS: str(chosen)}, SECONDS)
            ):
                return mutant, one.ring, failed
    return mutant, None, None


def run_pytest(root, arguments, variables, timeout):
    """Return the first test that failed, or None."""
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:costs",
        "--no-header",
        "-p",
        pathlib.Path(__file__).stem,
    ]
    with tempfile.TemporaryDirectory() as plugins:  # only here: elsewhere the plugin is missing
        shutil.copy(__file__, plugins)
        environment = os.environ | {"PYTHONPATH": f"{root}{os.pathsep}{plugins}"} | variables
        command = [sys.executable, "-m", "pytest", *options, *arguments]
        try:
            done = subprocess.run(
                command, cwd=root, env=environment, capture_output=True, text=True, timeout=timeout
            )
        except subprocess.TimeoutExpired:
            return f"no end in {timeout} s"
    if done.returncode in (0, 5):  # 5: no test was chosen
        return None
    failed = [x for x in done.stdout.splitlines() if x.startswith(("FAILED", "ERROR"))]
    return failed[0][:100] if failed else f"exit status {done.returncode}"


# This file is a plugin of pytest, too: it notes how long tests take, and runs the chosen ones.

_seconds, _failed = {}, set()


def pytest_runtest_logreport(report):
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration
    if report.failed:  # without a fault, too: it would notice nothing
        _failed.add(report.nodeid)


def pytest_sessionfinish(session):
    if (path := os.environ.get(SECONDS_OF_TESTS)) and not hasattr(session.config, "workerinput"):
        passed = {name: seconds for name, seconds in _seconds.items() if name not in _failed}
        pathlib.Path(path).write_text(json.dumps(passed), "utf-8")


def pytest_collection_modifyitems(items):
    if path := os.environ.get(CHOSEN_TESTS):
        names = json.loads(pathlib.Path(path).read_text("utf-8"))
        by_name = {item.nodeid: item for item in items}
        items[:] = [by_name[name] for name in names if name in by_name]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    parser.add_argument("--maps", type=pathlib.Path)
    parser.add_argument("--only", type=int, nargs="*", help="indices of the faults to try")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    faults = draw(root, arguments.seed, arguments.count)
    if arguments.only is not None:
        faults = [faults[k] for k in arguments.only]
    noticed = collections.Counter()
    with (
        tempfile.TemporaryDirectory() as temporary,
        concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool,
    ):
        folder = arguments.maps or pathlib.Path(temporary)
        maps = [TestMap(root, folder / ring, ring) for ring in RINGS]
        for fault, ring, failed in pool.map(lambda one: find_failure(root, one, maps), faults):
            noticed[ring] += 1
            print(f"{ring or 'SURVIVED':8} {fault}  {failed or ''}", flush=True)
    print(
        f"of {len(faults)} faults (seed {arguments.seed}) the default tests noticed"
        f" {noticed['default']}, the slow tests {noticed['slow']} more"
    )


if __name__ == "__main__":
    main()
