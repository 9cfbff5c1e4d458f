import pytest

from keras_attention.export import ExportError, Signature, Tensor, endpoint
from keras_attention.export.exportable import CheckedEndpoint, Exportable

LOGITS = Tensor("logits", (2, 5, 3), "float32")


def signature(*, name="serving_default", inputs=None, outputs=(LOGITS,)):
    inputs = inputs or (Tensor("token_ids", (2, 5), "int32"),)
    return Signature(name, inputs, outputs)


@pytest.fixture
def exportable(labeler):
    return Exportable(labeler, (CheckedEndpoint(endpoint.make_endpoint(labeler, 2, 5), []),), [])


def test_order_signatures_accepts_matching_signatures(exportable):
    assert exportable.order_signatures([signature()]) == (signature(),)


@pytest.mark.parametrize(
    "result, message",
    [
        (signature(name="other"), "The file has the signatures other"),
        (signature(inputs=(Tensor("token_ids", (None, 5), "int32"),)), r"Expected .*\(2, 5\)"),
        (
            signature(inputs=(Tensor("token_ids", (2, 5), "int64"),)),
            "The file has .*64.*Expected",
        ),
        (signature(inputs=(Tensor("ids", (2, 5), "int32"),)), "The file has None"),
        (signature(outputs=()), "The file has the outputs "),
    ],
)
def test_order_signatures_refuses_wrong_names_shapes_and_dtypes(exportable, result, message):
    with pytest.raises(ExportError, match=message):
        exportable.order_signatures([result])
