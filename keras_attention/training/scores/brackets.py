"""`score_brackets`: precision, recall and F1 of predicted constituency trees, as of EVALB."""

import collections

PUNCTUATION = (",", ":", "``", "''", ".")  # tags
NO_BRACKETS = ("TOP", "-NONE-")
SAME = {"PRT": "ADVP"}


def score_brackets(predicted, actual, *, punctuation=False):
    """Score predicted constituency trees by the precision, recall and F1 of their brackets.

    A bracket is a constituent: its label, first and last word (Black et al., 1991). The scores
    equal the scores of EVALB (Sekine and Collins, 1997) with the settings `COLLINS.prm`:
    punctuation, brackets that contain only punctuation, and `TOP` are ignored, and the labels `PRT`
    and `ADVP` are the same. A word is punctuation if its tag in the actual tree is a punctuation
    tag. (EVALB skips a sentence if the predicted tags disagree about this.)

    Args:
        predicted, actual: lists of `ka.data.ConstituencyTree` over the same words.
        punctuation: bool, whether to count punctuation and all brackets, and distinguish all
            labels.

    Returns:
        A dict of floats from 0 to 1, over all trees: `precision`, `recall` and `f1` of brackets,
        `exact`, the fraction of trees whose brackets are all right, and `tags`, the fraction of
        words with the right tag.

    Raises:
        ValueError: the trees are not over the same words.

    ```python
    import keras_attention as ka

    actual = ka.data.parse_brackets("(S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .))")
    predicted = ka.data.parse_brackets("(S (NP (DT The) (NN cat) (VBD sat)) (. .))")
    scores = ka.training.score_brackets(predicted, actual)
    assert (scores["precision"], scores["recall"]) == (0.5, 0.333333)
    ```
    """
    counts = collections.Counter()
    for one, other in zip(predicted, actual, strict=True):
        counts.update(_compare_trees(one, other, punctuation))
    f1 = 2 * counts["matched"] / max(1, counts["predicted"] + counts["actual"])
    shares = {
        "f1": f1,
        "precision": counts["matched"] / max(1, counts["predicted"]),
        "recall": counts["matched"] / max(1, counts["actual"]),
        "exact": counts["exact"] / max(1, counts["trees"]),
        "tags": counts["tags"] / max(1, counts["words"]),
    }
    return {name: round(share, 6) for name, share in shares.items()}


def _compare_trees(predicted, actual, punctuation):
    """Return a dict of counts for one sentence, such as `matched` brackets.

    `predicted` and `actual` are trees over the same words. The dict is empty if all words are
    ignored punctuation.
    """
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
        "predicted": one.total(),
        "actual": other.total(),
        "exact": matched == one.total() == other.total(),
        "trees": 1,
        "tags": sum(tags),
        "words": len(tags),
    }


def _list_brackets(tree, counted, punctuation):
    """Return a Counter of the brackets (label, start, end) of a tree.

    `counted` tells for each word whether it counts. `start` and `end` index only the words that
    count, and `end` is exclusive.
    """
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
