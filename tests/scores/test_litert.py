import pytest

from keras_attention import scores
from keras_attention.core import scope
from tests.scores import definition

litert = pytest.importorskip("tests.litert", reason="needs tensorflow and ai-edge-litert")

# The contract also exports each score inside of attention.
pytestmark = pytest.mark.slow


def test_every_score_exports():
    """Convert all in one file, which takes about as long as one."""
    query, key = (x.numpy() for x in definition.tensors())
    parts = {name: scores.get(name) for name in scores.NAMES}
    parts["additive in slices"] = scores.Additive(units=19)
    parts["concat in slices"] = scores.Concat(units=19, activation="gelu")
    variables = []
    for score in parts.values():
        definition.with_weights(score, query, key)
        variables += [w.value for w in getattr(score, "weights", [])]

    def run(query, key):
        return {name: score(query, key) for name, score in parts.items()}

    with scope.Export():
        litert.assert_converts(run, {"query": query, "key": key}, 2, variables)
