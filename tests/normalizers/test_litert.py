import pytest

from keras_attention.core import scope
from tests.normalizers import definition

litert = pytest.importorskip("tests.litert", reason="needs tensorflow and ai-edge-litert")

# The contract exports each of them, too, inside of attention.
pytestmark = pytest.mark.slow


def test_every_normalizer():
    """All in one file, masked: converting takes about as long for one as for all."""
    arrays = {"scores": definition.scores().numpy(), "mask": definition.mask()}

    def run(scores, mask):
        return {
            name.replace(" ", "_").replace(",", ""): part(scores, mask)
            for name, (part, _) in definition.EXAMPLES.items()
        }

    with scope.Export():
        litert.assert_converts(run, arrays, dynamic=4)


def test_without_mask():
    arrays = {"scores": definition.scores().numpy()}

    def run(scores):
        return {
            name.replace(" ", "_").replace(",", ""): part(scores)
            for name, (part, _) in definition.EXAMPLES.items()
        }

    litert.assert_converts(run, arrays, dynamic=4)
