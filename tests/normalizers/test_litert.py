import pytest

from keras_attention.core import scope
from tests.normalizers import definition

litert = pytest.importorskip("tests.litert", reason="needs tensorflow and ai-edge-litert")

# The contract also exports each normalizer inside of attention.
pytestmark = pytest.mark.slow


def test_every_normalizer_exports():
    """Convert all with a mask in one file, which takes about as long as one."""
    arrays = {"scores": definition.scores().numpy(), "mask": definition.mask()}

    def run(scores, mask):
        return {
            name.replace(" ", "_").replace(",", ""): part(scores, mask)
            for name, (part, _) in definition.EXAMPLES.items()
        }

    with scope.Export():
        litert.assert_converts(run, arrays, dynamic=4)


def test_normalizers_export_without_a_mask():
    arrays = {"scores": definition.scores().numpy()}

    def run(scores):
        return {
            name.replace(" ", "_").replace(",", ""): part(scores)
            for name, (part, _) in definition.EXAMPLES.items()
        }

    litert.assert_converts(run, arrays, dynamic=4)
