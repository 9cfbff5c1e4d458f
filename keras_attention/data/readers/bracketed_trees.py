"""Constituency trees: as nested nodes, as brackets, and as sequences of labels."""

import re
import typing

from keras_attention.data.dataset import DataSet

MOST_DEPTH = 200  # nested brackets. The maximum in the Penn Treebank is 36.
CLOSE = ")"
EMPTY = "-NONE-"  # tag of traces and other empty elements
TOP = "TOP"  # label for a root without a label

# The Penn Treebank's replacements for brackets in words.
_NAMES = str.maketrans({"(": "-LRB-", ")": "-RRB-"})
_PIECE = re.compile(r"[()]|[^\s()]+")
_FUNCTION = re.compile(r"(?<=.)[-=|].*")


class ConstituencyTree(typing.NamedTuple):
    """A node of a constituency tree: a label and its children.

    The children of a constituent are trees. A leaf has a part-of-speech tag as its label and one
    word, a str, as its only child. `str(tree)` returns the tree in brackets. Brackets inside words
    become `-LRB-` and `-RRB-`, as in the Penn Treebank.

    ```python
    import keras_attention as ka

    (tree,) = ka.data.parse_brackets("(S (NP (NNS Dogs)) (VP (VBP bark)))")
    assert tree.label == "S" and tree.tokens == ("Dogs", "bark") and tree.tags == ("NNS", "VBP")
    assert str(tree.children[0]) == "(NP (NNS Dogs))"
    ```
    """

    label: str
    children: tuple

    @classmethod
    def collect(cls, train=(), dev=(), test=(), *, dev_fraction=0.1, seed=0):
        """Make a `DataSet` from lists of trees for train, dev and test.

        If `dev` is empty, a random share `dev_fraction` of `train`, chosen by the int `seed`, is
        moved to it. The labels are the sorted labels of constituents, such as `"(NP"`, followed by
        the sorted tags of words. Raise a ValueError if a tree is only a tagged word, or not a
        `ConstituencyTree`.
        """
        train, dev, test = parts = [list(part) for part in (train, dev, test)]
        names = set()
        for tree in (tree for part in parts for tree in part):
            if not isinstance(tree, cls) or tree.is_tag:
                problem = "is not a constituent: expected trees of ka.data.parse_brackets"
                raise ValueError(f"{str(tree)[:60]!r} {problem}.")
            names.update(linearize_tree(tree))
        labels = sorted(names - {")"}, key=lambda name: (not name.startswith("("), name))
        options = {"labels": tuple(labels), "dev_fraction": dev_fraction, "seed": seed}
        return DataSet.from_parts(cls, train, dev, test, **options)

    @property
    def is_tag(self):
        """bool, whether this node is a leaf: a part-of-speech tag with its word."""
        return isinstance(self.children[0], str)

    @property
    def leaves(self):
        """tuple of (tag, word), the leaves from left to right."""
        return tuple(
            (node.label, node.children[0])
            for node in _walk(self)
            if node is not CLOSE and node.is_tag
        )

    @property
    def tokens(self):
        """tuple of str, the words of the sentence."""
        return tuple(word for _, word in self.leaves)

    @property
    def tags(self):
        """tuple of str, the tags of the words."""
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
    """Yield the nodes of a tree from left to right, and `CLOSE` after the children of each node.

    The function does not recurse, because a tree may be deeper than Python's stack.
    """
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if node is not CLOSE and not node.is_tag:
            waiting += [CLOSE, *reversed(node.children)]


def parse_brackets(text):
    """Parse a string in the bracket format of the Penn Treebank to a list of `ConstituencyTree`.

    Trees are prepared as usual for parsers (Collins, 1997). Labels are reduced to their category
    (`NP-SBJ-1` becomes `NP`). Empty elements (`-NONE-`) and constituents without words are removed.
    A root without a label is replaced by its child if it has only one, and otherwise labeled `TOP`.

    Raise a ValueError with the line number if a bracket is not closed, or is neither a constituent
    nor a tagged word.
    """
    trees, stack, expects_label, root = [], [], False, None
    for match in _PIECE.finditer(text):
        piece = match.group()
        if piece == "(":
            root = root if stack else match
            stack.append(["", []])
            if len(stack) > MOST_DEPTH:
                raise _error(text, match, f"more than {MOST_DEPTH} nested brackets")
            expects_label = True
            continue
        if not stack:
            raise _error(text, match, f"{piece[:40]!r} is outside of all brackets")
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
    """Return an error message, a str, for a tree with `count` brackets that are not closed.

    `root` is the `re.Match` of the tree's first bracket in `text`.
    """
    problem = f"the tree that begins here is not closed, {count} brackets are open at the end"
    following = re.compile(r"^\(", re.MULTILINE).search(text, root.end())
    if following is None:
        return problem
    number = 1 + text.count("\n", 0, following.start())
    return f"{problem}. Perhaps close it before line {number}, which begins with a bracket"


def _explain_no_constituent(label, children):
    """Return why a bracket is neither a constituent nor a tagged word, a str, or else None.

    `children` is a list of the words (str) and trees in the bracket.
    """
    words = [child for child in children if isinstance(child, str)]
    if not children or (words and len(children) > 1):
        content = " ".join(map(str, (label, *children)))
        return (
            f"({content[:60]}) is neither a constituent, as (NP (DT the) (NN cat)), nor a word "
            "with its tag, as (NN cat)"
        )
    return f"the word {words[0][:40]!r} has no tag" if words and not label else None


def _make(label, children, is_root):
    """Make a `ConstituencyTree`, or return None for a constituent without words.

    `children` is a list with one word, or with trees and None. `is_root` is a bool, whether this
    is the root of a tree.
    """
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
    """Convert a tree to a sequence of labels, a list of str, which a model can generate.

    The labels follow Vinyals et al. (2015, section 2.2): `"(NP"` opens a constituent, `")"` closes
    the constituent, and each word is replaced by its tag.

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
    """Convert `names`, labels as from `linearize_tree`, to a tree over the words `tokens`.

    Raise a ValueError that explains why the labels are not a tree over exactly these words.
    """
    stack, words, root = [], list(reversed(tokens)), None
    for index, name in enumerate(names):
        if root is not None:
            raise ValueError(f"label {index}, {name!r}, is after the end of the tree")
        if name == CLOSE:
            if not stack or not stack[-1][1]:
                raise ValueError(f"label {index} closes {'nothing' if not stack else 'no word'}")
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
            raise ValueError(f"label {index}, the tag {name!r}, has {missing}")
        else:
            stack[-1][1].append(ConstituencyTree(name, (words.pop(),)))
    if root is None or words:
        raise ValueError(f"{len(stack)} brackets are open at the end, and {len(words)} words left")
    return root
