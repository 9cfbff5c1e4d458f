"""Small faults put into the package on purpose, one at a time: do the tests notice?

    python -m tests.mutants record            # which test runs which line: one run of all tests
    python -m tests.mutants draw --seed 0     # 60 faults, over all rooms; a table of what noticed

Needs `pip install pytest-cov`. A fault is an operator, a comparison, a constant or a condition
changed, or a statement deleted; for each, the tests that run its line are run in a copy of the
project until one fails. Arguments after `--` go to pytest: `record -- -m "slow or not slow"`.
"""

import argparse
import ast
import concurrent.futures
import dataclasses
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = "keras_attention"
RECORD = ROOT / ".coverage"
SECONDS = 600
MOST_TESTS = 400

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


def find_mutants(path):
    """Every fault that a file could have."""
    source = (ROOT / path).read_text("utf-8")
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


def draw(seed, count):
    """`count` faults, as many from each room as there are, in turn."""
    chosen, generator = [], random.Random(seed)
    rooms = {}
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        for mutant in find_mutants(str(path.relative_to(ROOT))):
            rooms.setdefault(mutant.room, []).append(mutant)
    while len(chosen) < count and any(rooms.values()):
        for room in sorted(rooms):
            if rooms[room] and len(chosen) < count:
                chosen.append(rooms[room].pop(generator.randrange(len(rooms[room]))))
    return chosen


def tests_of(mutant, generator):
    """Ids of the tests that run the line, in an order that is drawn; at most `MOST_TESTS`."""
    import coverage

    data = coverage.CoverageData(str(RECORD))
    data.read()
    contexts = data.contexts_by_lineno(str(ROOT / mutant.path))
    lines = range(mutant.line, mutant.end_line + 1)
    names = {name for line in lines for name in contexts.get(line, ())}
    found = sorted({name.split("|")[0] for name in names if "::" in name})
    # what is run while modules are imported belongs to no test: those of the same room
    if not found:
        found = [f"tests/{mutant.room}"] if (ROOT / "tests" / mutant.room).is_dir() else ["tests"]
    generator.shuffle(found)
    return found[:MOST_TESTS]


def judge(mutant, tests):
    """`(mutant, number of tests, what noticed)`; nothing noticed where that is None."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder, "project")
        unused = shutil.ignore_patterns(
            ".git", ".venv*", "__pycache__", ".coverage*", ".ruff_cache"
        )
        shutil.copytree(ROOT, copy, ignore=unused, symlinks=True)
        source = (copy / mutant.path).read_text("utf-8")
        (copy / mutant.path).write_text(mutant.apply(source), "utf-8")
        options = ["-x", "-q", "-p", "no:cacheprovider", "-m", "slow or not slow", "--no-header"]
        command = [sys.executable, "-m", "pytest", *options, *tests]
        try:
            done = subprocess.run(
                command, cwd=copy, capture_output=True, text=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            return mutant, len(tests), f"no end in {SECONDS} s"
    if done.returncode == 0:
        return mutant, len(tests), None
    told = [x for x in done.stdout.splitlines() if x.startswith(("FAILED", "ERROR"))]
    return mutant, len(tests), told[0][:100] if told else f"exit status {done.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["record", "draw"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    arguments, rest = parser.parse_known_args()
    if arguments.command == "record":
        options = [f"--cov={PACKAGE}", "--cov-context=test", "--cov-report="]
        sys.exit(subprocess.run([sys.executable, "-m", "pytest", *options, *rest], cwd=ROOT))
    generator = random.Random(arguments.seed)
    mutants = draw(arguments.seed, arguments.count)
    work = [(mutant, tests_of(mutant, generator)) for mutant in mutants]
    noticed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for mutant, number, told in pool.map(lambda pair: judge(*pair), work):
            noticed += told is not None
            print(
                f"{'noticed ' if told else 'SURVIVED'} {mutant}  [{number} tests] {told or ''}",
                flush=True,
            )
    print(f"{noticed} of {len(mutants)} noticed (seed {arguments.seed})")


if __name__ == "__main__":
    main()
