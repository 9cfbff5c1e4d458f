"""`find_tree`: finds the dependency tree whose arcs have the greatest sum of scores."""

import numpy as np

from keras_attention.data.readers.dependency_trees import explain_no_tree


def find_tree(arc_scores):
    """Return the heads of the highest-scoring tree with one root, a list of T ints.

    The method follows McDonald et al. (2005, section 2.2). A head is the number of a word, counted
    from 1, or 0 if the word is the root. If the best heads of all words already form a tree, they
    are the result. Otherwise `networkx` computes the maximum spanning arborescence (Chu and Liu,
    1965, Edmonds, 1967).

    Args:
        arc_scores: floats (T, T + 1), the scores of all heads for each word of one sentence,
            without padding. Column 0 is the root, and column j is word j.

    ```python
    from keras_attention.data.preprocessors.spanning_tree import find_tree

    # each word would take the other one as its head
    assert find_tree([[1.0, 0.0, 9.0], [3.0, 9.0, 0.0]]) == [2, 0]
    ```
    """
    scores = np.array(arc_scores, "float64")
    count = len(scores)
    if scores.ndim != 2 or scores.shape[1] != count + 1 or not np.isfinite(scores).all():
        raise ValueError(f"arc_scores of shape {scores.shape}: expected finite numbers (T, T + 1).")
    scores[np.arange(count), np.arange(count) + 1] = -np.inf  # a word is never its own head
    heads = [int(head) for head in np.argmax(scores, axis=1)]
    return heads if explain_no_tree(heads) is None else _find_arborescence(scores)


def _find_arborescence(scores):
    try:
        import networkx
    except ImportError as error:
        raise ImportError(
            "Trees need networkx, which is not installed: pip install 'keras-attention-zoo[nlp]'."
        ) from error
    finite = scores[np.isfinite(scores)]
    # With this cost, a second root loses more than any tree can gain by it.
    cost = (np.max(finite) - np.min(finite) + 1) * (len(scores) + 1)
    graph = networkx.DiGraph()
    for word, row in enumerate(scores, start=1):
        for head, score in enumerate(row):
            if np.isfinite(score):
                graph.add_edge(head, word, weight=float(score - cost * (head == 0)))
    best = networkx.maximum_spanning_arborescence(graph, preserve_attrs=False)
    heads = {word: head for head, word in best.edges}
    return [heads[word] for word in range(1, len(scores) + 1)]
