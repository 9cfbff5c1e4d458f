"""Precision, recall and F1 of the brackets of constituency trees, as EVALB computes them."""

import collections

PUNCTUATION = (",", ":", "``", "''", ".")  # tags
NO_BRACKETS = ("TOP", "-NONE-")
SAME = {"PRT": "ADVP"}


def score_brackets(predicted, actual, *, punctuation=False):
    """Compute labelled precision, recall and F1 of the brackets of trees (Black et al., 1991).

    As EVALB (Sekine and Collins, 1997) with `COLLINS.prm`, the settings of Collins (1997): it
    leaves out words with a tag of punctuation, brackets around only such words, and `TOP`, and
    takes `ADVP` for `PRT`. The tags of the actual tree say which words are punctuation. EVALB skips
    sentences whose found tags disagree.

    Args:
        predicted, actual: lists of `ka.data.ConstituencyTree` over the same words.
        punctuation: bool, whether to count words of punctuation and keep all labels apart.

    Returns:
        dict of floats from 0 to 1, over all trees: `f1`, `precision`, `recall`; `exact`, the share
        of trees with only right brackets; `tags`, the share of right tags.

    Raises:
        ValueError: the trees are not over the same words.

    ```python
    import keras_attention as ka

    wanted = ka.data.parse_brackets("(S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .))")
    found = ka.data.parse_brackets("(S (NP (DT The) (NN cat) (VBD sat)) (. .))")
    scores = ka.training.score_brackets(found, wanted)
    assert (scores["precision"], scores["recall"]) == (0.5, 0.333333)
    ```
    """
    counts = collections.Counter()
    for one, other in zip(predicted, actual, strict=True):
        counts.update(_compare_trees(one, other, punctuation))
    f1 = 2 * counts["matched"] / max(1, counts["found"] + counts["wanted"])
    shares = {
        "f1": f1,
        "precision": counts["matched"] / max(1, counts["found"]),
        "recall": counts["matched"] / max(1, counts["wanted"]),
        "exact": counts["exact"] / max(1, counts["trees"]),
        "tags": counts["tags"] / max(1, counts["words"]),
    }
    return {name: round(share, 6) for name, share in shares.items()}


def _compare_trees(predicted, actual, punctuation):
    """Count the brackets of one tree, or nothing if all its words are left out."""
    if predicted.tokens != actual.tokens:
        raise ValueError(
            f"{' '.join(predicted.tokens)[:60]!r} are not the words of "
            f"{' '.join(actual.tokens)[:60]!r}: expected trees over the same words."
        )
    counted = [punctuation or tag not in PUNCTUATION for tag in actual.tags]
    if not any(counted):
        return {}
    one, other = (_list_brackets(tree, counted, punctuation) for tree in (predicted, actual))
    matched = (one & other).total()
    tags = [x == y for x, y, n in zip(predicted.tags, actual.tags, counted, strict=True) if n]
    return {
        "matched": matched,
        "found": one.total(),
        "wanted": other.total(),
        "exact": matched == one.total() == other.total(),
        "trees": 1,
        "tags": sum(tags),
        "words": len(tags),
    }


def _list_brackets(tree, counted, punctuation):
    """Count brackets (label, start, end) around words that count."""
    brackets, is_counted = collections.Counter(), iter(counted)

    def visit(node, start):
        if node.is_tag:
            return start + next(is_counted)
        end = start
        for child in node.children:
            end = visit(child, end)
        if punctuation or (end > start and node.label not in NO_BRACKETS):
            label = node.label if punctuation else SAME.get(node.label, node.label)
            brackets[label, start, end] += 1
        return end

    visit(tree, 0)
    return brackets
