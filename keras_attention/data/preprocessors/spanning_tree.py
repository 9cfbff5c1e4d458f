"""`find_tree`: the dependency tree whose arcs have the greatest sum of scores."""

import numpy as np

from keras_attention.data.readers.dependency_trees import explain_no_tree


def find_tree(arc_scores):
    """Return the heads of the best tree with one root (McDonald et al., 2005, section 2.2).

    Where the best head of each word gives a tree already, that is it. Otherwise `networkx` finds
    the spanning arborescence of the greatest sum (Chu and Liu, 1965; Edmonds, 1967).

    Args:
        arc_scores: floats (T, T + 1) of the words of one sentence, without padding; column 0 is
            the root, column j word j.

    Returns:
        list of T ints, the head of each word: one of them is 0, and all lead to it.

    ```python
    from keras_attention.data.preprocessors.spanning_tree import find_tree

    # each word would take the other one as its head
    assert find_tree([[1.0, 0.0, 9.0], [3.0, 9.0, 0.0]]) == [2, 0]
    ```
    """
    scores = np.array(arc_scores, "float64")
    count = len(scores)
    if scores.ndim != 2 or scores.shape[1] != count + 1 or not np.isfinite(scores).all():
        raise ValueError(
            f"arc_scores of shape {scores.shape}: expected finite numbers (T, T + 1), the words of "
            "one sentence by the root and these words."
        )
    scores[np.arange(count), np.arange(count) + 1] = -np.inf  # no word is its own head
    heads = [int(head) for head in np.argmax(scores, axis=1)]
    return heads if explain_no_tree(heads) is None else _find_arborescence(scores)


def _find_arborescence(scores):
    try:
        import networkx
    except ImportError as error:
        raise ImportError(
            "Trees are found by networkx, which is not installed: "
            "pip install 'keras-attention-zoo[nlp]'."
        ) from error
    finite = scores[np.isfinite(scores)]
    # A second root costs more than any tree can gain by it, so that there is one.
    cost = (np.max(finite) - np.min(finite) + 1) * (len(scores) + 1)
    graph = networkx.DiGraph()
    for word, row in enumerate(scores, start=1):
        for head, score in enumerate(row):
            if np.isfinite(score):
                graph.add_edge(head, word, weight=float(score - cost * (head == 0)))
    best = networkx.maximum_spanning_arborescence(graph, preserve_attrs=False)
    heads = {word: head for head, word in best.edges}
    return [heads[word] for word in range(1, len(scores) + 1)]
