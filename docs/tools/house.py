"""Counts long signatures, classes of one kind, private functions, lines and imports.

    make house
    python docs/tools/house.py ROOT        # of another checkout

- value_mask: functions with such a parameter or variable, and classes with such a field.
- attend, AttentionLayer.call: their parameters, and lines without the docstring.
- keywords: all parameters (`inspect.signature`) of builders, stacks and MultiHeadAttention.
- data sets: classes in data/ with a field `train`.
- batch functions: functions that data/__init__.py exports and whose name ends in `batches`.
- preprocessors: classes named so. task bases: classes of tasks/ that others there inherit from.
- loose files: modules at the top, without __init__, __main__, __version__ and layers.
- padding_id: how often the text occurs, also in longer names.
- one caller: private, undecorated functions of at most 4 lines whose name occurs twice in a file.
- arrows: pairs of rooms. The first imports the second somewhere. A room is a folder or a
  module at the top. Rooms or modules that import each other in a circle are a CycleError.
"""

import ast
import collections
import graphlib
import inspect
import pathlib
import re
import sys

TOP = ("__init__", "__main__", "__version__", "layers")


def show(title, names):
    print(f"{title}: {len(names)}  {', '.join(map(str, names))}")


def select(tree, kind):
    return [node for node in ast.walk(tree) if isinstance(node, kind)]


def list_parameters(function):
    arguments = function.args
    parts = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    names = [x.arg for x in (*parts, arguments.vararg, arguments.kwarg) if x]
    return [name for name in names if name != "self"]


def count_lines(function):
    has_docstring = ast.get_docstring(function, clean=False) is not None
    body = function.body[1:] if has_docstring else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def list_fields(node):
    return [getattr(x.target, "id", "") for x in node.body if isinstance(x, ast.AnnAssign)]


def list_names(function):
    """Return the parameters and the variables of a function."""
    variables = [x.id for x in select(function, ast.Name) if isinstance(x.ctx, ast.Store)]
    return [*list_parameters(function), *variables]


def find_stops(tree, name):
    stops = [x.name for x in select(tree, ast.ClassDef) if name in list_fields(x)]
    return stops + [x.name for x in select(tree, ast.FunctionDef) if name in list_names(x)]


def find_one_callers(text, tree):
    return [
        x.name
        for scope in (tree, *select(tree, ast.ClassDef))
        for x in scope.body
        if isinstance(x, ast.FunctionDef) and re.match("_[^_]", x.name) and not x.decorator_list
        if 0 < count_lines(x) <= 4 and len(re.findall(rf"\b{x.name}\b", text)) == 2
    ]


def find_imports(tree, modules):
    targets = {alias.name for node in select(tree, ast.Import) for alias in node.names}
    for node in select(tree, ast.ImportFrom):
        base = node.module.removesuffix(".core.lazy")  # its names are rooms
        names = {f"{base}.{alias.name}" for alias in node.names}
        targets |= {name if name in modules else node.module for name in names}
    return targets & modules


def list_keywords(value):
    """Return the keywords of a function, or of a class and its bases in the package."""
    owners = value.__mro__ if inspect.isclass(value) else [value]
    owners = [x for x in owners if x.__module__.split(".")[0] == value.__module__.split(".")[0]]
    parameters = {
        n: p for function in owners for n, p in inspect.signature(function).parameters.items()
    }
    return [n for n, p in parameters.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]


def main(root):
    sys.path.insert(0, str(root))
    import keras

    import keras_attention as ka

    package = root / "keras_attention"
    texts = {str(p.relative_to(package)): p.read_text() for p in sorted(package.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    classes = {path: select(tree, ast.ClassDef) for path, tree in trees.items()}

    def search(find):
        return [f"{path}: {name}" for path in trees for name in find(path)]

    show("value_mask", search(lambda path: find_stops(trees[path], "value_mask")))
    for path, name in (("attention/attend.py", "attend"), ("attention/base.py", "call")):
        for function in (x for x in select(trees[path], ast.FunctionDef) if x.name == name):
            show(f"{path} {name}, of {count_lines(function)} lines", list_parameters(function))
    for name in ka.models.__all__:
        if (value := getattr(ka.models, name)) and not isinstance(value, dict):
            print(f"keywords of {name}: {len(list_keywords(value))}")
    peer = list_keywords(keras.layers.MultiHeadAttention)
    ours = list_keywords(ka.attention.MultiHeadAttention)
    show("MultiHeadAttention beyond Keras's", [name for name in ours if name not in peer])
    data = [path for path in trees if path.startswith("data/")]
    show("data sets", [x.name for p in data for x in classes[p] if "train" in list_fields(x)])
    exported = set(re.findall(r"\b\w*batches\b", texts["data/__init__.py"]))
    names = [x.name for p in data for x in select(trees[p], ast.FunctionDef)]
    show("batch functions", [name for name in names if name in exported])
    every = [x.name for path in classes for x in classes[path]]
    show("preprocessors", [name for name in every if name.endswith("Preprocessor")])
    tasks = [x for path in classes if path.startswith("tasks/") for x in classes[path]]
    bases = {getattr(base, "id", "") for x in tasks for base in x.bases}
    show("task bases", [x.name for x in tasks if x.name in bases])
    show("loose files", [p for p in trees if "/" not in p and p.removesuffix(".py") not in TOP])
    mentions = [text.count("padding_id") for text in texts.values() if "padding_id" in text]
    print(f"padding_id: {sum(mentions)} mentions in {len(mentions)} files")
    show("one caller", search(lambda path: find_one_callers(texts[path], trees[path])))
    lines = collections.Counter({path: text.count("\n") for path, text in texts.items()})
    show("files over 400 lines", [f"{path} {n}" for path, n in lines.most_common() if n > 400])
    print(f"lines: {lines.total()} in {len(lines)} files")
    names = {p: re.sub(r"(/__init__)?\.py$", "", f"keras_attention/{p}") for p in trees}
    modules = {name.replace("/", "."): trees[path] for path, name in names.items()}
    graph = {module: find_imports(tree, {*modules}) for module, tree in modules.items()}
    rooms = collections.defaultdict(set)
    for module, targets in graph.items():
        room, *imported = ((*name.split("."), "__init__")[1] for name in (module, *targets))
        rooms[room] |= {*imported} - {room}
    graphlib.TopologicalSorter(graph).prepare()  # or CycleError
    graphlib.TopologicalSorter(rooms).prepare()
    print(f"rooms: {len(rooms)}, arrows: {sum(map(len, rooms.values()))}, circles: none")
    signatures = re.compile(r"inspect\.signature|__signature__")
    show("signatures", search(lambda path: signatures.findall(texts[path])))


if __name__ == "__main__":
    main(pathlib.Path(*sys.argv[1:] or [__file__, "../../.."]).resolve())
