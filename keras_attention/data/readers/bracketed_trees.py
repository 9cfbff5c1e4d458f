"""Constituency trees: in brackets, as treebanks have them, and as sequences of labels."""

import re
import typing

from keras_attention.data.dataset import DataSet

MOST_DEPTH = 200  # of brackets in brackets; the Penn Treebank has 36
CLOSE = ")"
EMPTY = "-NONE-"  # the tag of what is no word: traces, and what is left out
TOP = "TOP"  # the label of a root without one

# What brackets in words are called, as in the Penn Treebank.
_NAMES = str.maketrans({"(": "-LRB-", ")": "-RRB-"})
_PIECE = re.compile(r"[()]|[^\s()]+")
_FUNCTION = re.compile(r"(?<=.)[-=|].*")


class ConstituencyTree(typing.NamedTuple):
    """A label and its children: trees, or for the tag of a word that word alone.

    ```python
    import keras_attention as ka

    (tree,) = ka.data.parse_brackets("(S (NP (NNS Dogs)) (VP (VBP bark)))")
    assert tree.label == "S" and tree.tokens == ("Dogs", "bark") and tree.tags == ("NNS", "VBP")
    assert str(tree.children[0]) == "(NP (NNS Dogs))"
    ```

    As a str, brackets in words are `-LRB-` and `-RRB-`, as in the Penn Treebank.
    """

    label: str
    children: tuple

    @classmethod
    def collect(cls, train=(), dev=(), test=(), *, dev_fraction=0.1, seed=0):
        """Return a `DataSet` from lists of trees. Without `dev`, a part of train becomes it.

        Its labels are those of constituents, as `"(NP"`, and then the tags of words, of all parts,
        both sorted.
        """
        train, dev, test = parts = [list(part) for part in (train, dev, test)]
        names = set()
        for tree in (tree for part in parts for tree in part):
            if not isinstance(tree, cls) or tree.is_tag:
                raise ValueError(
                    f"{str(tree)[:60]!r} is no constituent: expected trees of "
                    "ka.data.parse_brackets."
                )
            names.update(linearize_tree(tree))
        labels = sorted(names - {")"}, key=lambda name: (not name.startswith("("), name))
        options = {"labels": tuple(labels), "dev_fraction": dev_fraction, "seed": seed}
        return DataSet.from_parts(cls, train, dev, test, **options)

    @property
    def is_tag(self):
        """bool, whether it is a word with its tag."""
        return isinstance(self.children[0], str)

    @property
    def leaves(self):
        """Tuple of (tag, word)."""
        return tuple(
            (node.label, node.children[0])
            for node in _walk(self)
            if node is not CLOSE and node.is_tag
        )

    @property
    def tokens(self):
        """Tuple of str, the words."""
        return tuple(word for _, word in self.leaves)

    @property
    def tags(self):
        """Tuple of str, the tags of the words."""
        return tuple(tag for tag, _ in self.leaves)

    def __str__(self):
        pieces = []
        for node in _walk(self):
            if node is CLOSE:
                pieces.append(CLOSE)
            elif node.is_tag:
                pieces.append(f" ({node.label} {node.children[0].translate(_NAMES)})")
            else:
                pieces.append(f" ({node.label}")
        return "".join(pieces)[1:]


def _walk(tree):
    """The nodes of a tree from left to right, and `CLOSE` behind the children of each; no
    recursion, as a tree may be deeper than Python's stack.
    """
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if node is not CLOSE and not node.is_tag:
            waiting += [CLOSE, *reversed(node.children)]


def parse_brackets(text):
    """Return the trees of a text in the brackets of the Penn Treebank.

    A list of `ConstituencyTree`.

    As parsers are trained and scored (Collins, 1997): of a label its category stays (`NP` of
    `NP-SBJ-1`), what is no word (`-NONE-`) goes with the constituents that have no word then, and
    a root without a label is its only child, or else is called `TOP`.

    Raises:
        ValueError: the brackets do not match, or a bracket is no constituent and no tag of a word.
    """
    trees, stack, expects_label, root = [], [], False, None
    for match in _PIECE.finditer(text):
        piece = match.group()
        if piece == "(":
            root = root if stack else match
            stack.append(["", []])
            if len(stack) > MOST_DEPTH:
                raise _error(text, match, f"more than {MOST_DEPTH} brackets in brackets")
            expects_label = True
            continue
        if not stack:
            raise _error(text, match, f"{piece[:40]!r} stands outside of all brackets")
        if piece != CLOSE:
            if expects_label:
                stack[-1][0] = piece
            else:
                stack[-1][1].append(piece)
            expects_label = False
            continue
        label, children = stack.pop()
        expects_label = False
        if reason := _explain_no_constituent(label, children):
            raise _error(text, match, reason)
        node = _make(label, children, is_root=not stack)
        if stack:
            stack[-1][1].append(node)
        elif node is not None:
            trees.append(node)
    if stack:
        raise _error(text, root, _explain_no_end(text, root, len(stack)))
    return trees


def _error(text, match, problem):
    return ValueError(f"line {1 + text.count(chr(10), 0, match.start())}: {problem}")


def _explain_no_end(text, root, count):
    """Says how many brackets of the tree that begins at `root` are open at the end; and, as trees
    mostly begin at the edge and go on behind it, where the next one may begin.
    """
    problem = f"the tree that begins here is not closed, {count} brackets are open at the end"
    following = re.compile(r"^\(", re.MULTILINE).search(text, root.end())
    if following is None:
        return problem
    number = 1 + text.count("\n", 0, following.start())
    return (
        f"{problem}; perhaps it should be closed before line {number}, which begins with a bracket"
    )


def _explain_no_constituent(label, children):
    """Return why a bracket is neither a constituent nor a word with its tag; None where it is."""
    words = [child for child in children if isinstance(child, str)]
    if not children or (words and len(children) > 1):
        content = " ".join(map(str, (label, *children)))
        return (
            f"({content[:60]}) is neither a constituent, as (NP (DT the) (NN cat)), nor a word "
            "with its tag, as (NN cat)"
        )
    return f"the word {words[0][:40]!r} has no tag" if words and not label else None


def _make(label, children, is_root):
    """Return a `ConstituencyTree`, or None for one without words. `children` may be None."""
    if isinstance(children[0], str):
        leaf = ConstituencyTree(label, (children[0],))
        if label == EMPTY:
            return None
        return ConstituencyTree(TOP, (leaf,)) if is_root else leaf
    children = tuple(child for child in children if child is not None)
    if not children:
        return None
    if not label and len(children) == 1 and not children[0].is_tag:
        return children[0]
    return ConstituencyTree(_FUNCTION.sub("", label) or TOP, children)


def linearize_tree(tree):
    """Return the labels of a tree from left to right (Vinyals et al., 2015, section 2.2).

    `"(NP"` opens a constituent, `")"` closes it, and a tag stands for its word.

    ```python
    import keras_attention as ka

    (tree,) = ka.data.parse_brackets("(S (NP (NNS Dogs)) (VP (VBP bark)))")
    assert ka.data.linearize_tree(tree) == ["(S", "(NP", "NNS", ")", "(VP", "VBP", ")", ")"]
    ```
    """
    return [
        CLOSE if node is CLOSE else node.label if node.is_tag else f"({node.label}"
        for node in _walk(tree)
    ]


def build_tree(names, tokens):
    """Return the tree of such labels over `tokens`: the inverse of `linearize_tree`.

    Raises:
        ValueError: the labels are no tree over exactly these words.
    """
    stack, words, root = [], list(reversed(tokens)), None
    for place, name in enumerate(names):
        if root is not None:
            raise ValueError(f"label {place}, {name!r}, stands behind the end of the tree")
        if name == CLOSE:
            if not stack or not stack[-1][1]:
                raise ValueError(f"label {place} closes {'nothing' if not stack else 'no word'}")
            label, children = stack.pop()
            node = ConstituencyTree(label, tuple(children))
            if stack:
                stack[-1][1].append(node)
            else:
                root = node
        elif name.startswith("("):
            stack.append((name[1:], []))
        elif not stack or not words:
            missing = "no bracket" if words else "no word"
            raise ValueError(f"label {place}, the tag {name!r}, has {missing}")
        else:
            stack[-1][1].append(ConstituencyTree(name, (words.pop(),)))
    if root is None or words:
        raise ValueError(f"{len(stack)} brackets are open at the end, and {len(words)} words left")
    return root
