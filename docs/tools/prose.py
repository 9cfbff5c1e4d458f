"""Count the habits that make prose hard to read, in docstrings, comments, errors and Markdown.

    make check                          # fails where there are more hits than the limit
    python docs/tools/prose.py          # the rates, beside their limits
    python docs/tools/prose.py PATH...  # each hit, as `file:line: rule: text`

A hit is a place to look at: a sentence to write anew, in plain words. The limits are hits per 1,000
lines of prose. They only fall: a change that goes 5 below a limit must lower it.
"""

import ast
import collections
import io
import pathlib
import re
import sys
import tokenize

# Keras has 18 hits per 1,000 lines, Equinox 43.
LIMITS = {  # files and folders that are counted together, and their limit
    "keras_attention": 8,
    "README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md docs": 10,
    "examples benchmarks": 8,
    "tests": 5,
}
SLACK = 5
LONG_SENTENCE = 32  # words

PATTERNS = {
    "begins with Of": r"(?:^|[.:;(] )Of (?!course)",
    "clause as a noun": r"(?i)\b(?:what|that which|those that|those who|who|whom)\b (?:is|are|was"
    r"|were|it|they|he|she|has|have|had|a|an|the|one|people|users|others|nobody|everybody|comes|stands"
    r"|lies|follows|makes|made|goes|reads|runs|belongs)\b",
    "is no": r"\b(?:is|are|was|were) (?:no|none)\b"
    r"(?! (?:longer|more than|less than|need|way|one else))",
    "alone for only": r"\balone\b(?! (?:in|with)\b)",
    "said, told, known": r"\b(?:is said|are said|says so|says it|said so|is told|are told)\b",
    "objects with minds": r"(?i)\b(?:promises?|remembers?|knows?|hears?|wants?|asks?) "
    r"(?:that|what|of|for|its|it|no|how|a|the)\b",
    "of which, in which": r"\b(?:of|in|by|with|from|on|at|to) (?:which|whom)\b",
    "semicolon": r";(?! *$)",
    "others for the rest": r"\b(?:those of others|the others'|of others)\b",
}
NOT_A_VERB = set(
    "the a an what how which whether of where who whose if in as for with from by on all every "
    "each none no one those that this these it its some any like".split()
)
VAGUE_NAMES = set(
    "found given known wanted said told apart kept places others about here there owner thing "
    "things what which rest both".split()
)
ROOT = pathlib.Path(__file__).parents[2]


def read_message(error):
    """Return the text of a raised error, with X for each value in it, or None."""
    for part in ast.walk(error):
        if isinstance(part, ast.JoinedStr):
            return "".join(x.value if isinstance(x, ast.Constant) else "X" for x in part.values)
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            return part.value
    return None


def read_python(source):
    """Yield (line, kind, text) of docstrings, error messages and comments."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node)
            kind = "function" if isinstance(node, ast.FunctionDef) else "docstring"
            if text:
                yield node.body[0].lineno, kind, re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            text = read_message(node.exc)
            if text:
                yield node.lineno, "error", text
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], "comment", token.string.lstrip("# ")


def read_markdown(source):
    """Yield (line, kind, text) of the lines outside of code blocks."""
    in_code = False
    for number, line in enumerate(source.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and line.strip() and not line.startswith("    "):
            yield number, "markdown", re.sub(r"`[^`]*`", "`x`", line)


def find_habits(kind, text):
    """Yield (rule, words around it) for each habit in one piece of prose."""
    flat = " ".join(text.split())
    for rule, pattern in PATTERNS.items():
        if kind != "markdown" or rule != "semicolon":
            for match in re.finditer(pattern, flat):
                yield rule, flat[max(0, match.start() - 30) : match.end() + 50]
    first_word = re.match(r"[A-Za-z']*", flat)[0].lower()
    if kind == "function" and first_word in NOT_A_VERB:
        yield "docstring without a verb in front", flat[:80]
    if kind != "markdown":
        for sentence in re.split(r"(?<=[.:])\s", flat):
            if len(sentence.split()) > LONG_SENTENCE:
                yield "long sentence", sentence[:80]


def find_vague_names(source):
    """Yield (line, name) of variables and parameters with a name that says nothing."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.arg):
            name = node.arg
        else:
            continue
        if name in VAGUE_NAMES:
            yield node.lineno, name


def check_source(source, suffix):
    """Return hits as (line, rule, words), and the number of lines of prose."""
    pieces = list((read_markdown if suffix == ".md" else read_python)(source))
    hits = [(line, *hit) for line, kind, text in pieces for hit in find_habits(kind, text)]
    if suffix == ".py":
        hits += [(line, "vague name", name) for line, name in find_vague_names(source)]
    return hits, sum(text.count("\n") + 1 for _, _, text in pieces)


def check_paths(paths):
    """Return hits as (file, line, rule, words), and the number of lines of prose below `paths`."""
    files = [path for path in paths if path.is_file()]
    for folder in paths:
        files += [x for x in sorted(folder.rglob("*")) if x.suffix in (".py", ".md")]
    hits, lines = [], 0
    for file in files:
        in_file, in_lines = check_source(file.read_text(encoding="utf-8"), file.suffix)
        hits += [(file, *hit) for hit in in_file]
        lines += in_lines
    return hits, lines


def list_hits(paths):
    hits, lines = check_paths(paths)
    for file, line, rule, words in hits:
        print(f"{file}:{line}: {rule}: {words}")
    for rule, count in collections.Counter(hit[2] for hit in hits).most_common():
        print(f"{count:6d}  {rule}")
    print(f"{len(hits)} hits in {lines} lines of prose")


def check_limits(root=ROOT, limits=LIMITS):
    """Print the rate of each group of `limits`. Return a sentence for each limit to mend."""
    complaints = []
    for names, limit in limits.items():
        hits, lines = check_paths([root / name for name in names.split()])
        rate = 1000 * len(hits) / max(lines, 1)
        print(f"{names}: {rate:.0f} hits per 1,000 lines of prose, limit {limit}")
        if rate > limit:
            complaints.append(
                f"{names}: {rate:.0f} hits per 1,000 lines, at most {limit} are allowed. List them "
                f"with `python docs/tools/prose.py {names}`. Rewrite the sentences of your change."
            )
        elif rate < limit - SLACK:
            complaints.append(
                f"{names}: only {rate:.0f} hits per 1,000 lines. Lower the limit of {limit} in "
                f"docs/tools/prose.py to {round(rate) + 1}."
            )
    return complaints


if __name__ == "__main__":
    if len(sys.argv) > 1:
        list_hits([pathlib.Path(name) for name in sys.argv[1:]])
    else:
        sys.exit("\n".join(check_limits()) or None)
