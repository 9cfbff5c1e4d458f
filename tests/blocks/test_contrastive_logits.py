"""`ContrastiveLogits`, compared with cosines in NumPy."""

import keras
import numpy as np
import pytest

import keras_attention as ka

random = np.random.default_rng(0)
QUERIES = random.normal(size=(3, 6)).astype("float32")
DOCUMENTS = random.normal(size=(5, 6)).astype("float32")


def define(queries, documents, temperature):
    logits = np.zeros((len(queries), len(documents)))
    for b, query in enumerate(queries.astype("float64")):
        for c, document in enumerate(documents.astype("float64")):
            lengths = np.linalg.norm(query) * np.linalg.norm(document)
            logits[b, c] = query @ document / lengths / temperature
    return logits


def test_logits_are_cosines_divided_by_the_temperature():
    logits = ka.blocks.ContrastiveLogits(0.2)(QUERIES, DOCUMENTS)
    np.testing.assert_allclose(logits, define(QUERIES, DOCUMENTS, 0.2), atol=1e-5)


def test_dimensions_compare_the_first_components():
    logits = ka.blocks.ContrastiveLogits(0.2, dimensions=(6, 2))(QUERIES, DOCUMENTS)
    assert logits.shape == (3, 2, 5)
    for k, size in enumerate((6, 2)):
        expected = define(QUERIES[:, :size], DOCUMENTS[:, :size], 0.2)
        np.testing.assert_allclose(logits[:, k], expected, atol=1e-5)


def test_bias_is_added_to_all_logits():
    layer = ka.blocks.ContrastiveLogits(0.2, bias=-10.0)
    expected = define(QUERIES, DOCUMENTS, 0.2) - 10
    np.testing.assert_allclose(layer(QUERIES, DOCUMENTS), expected, atol=1e-5)
    assert [weight.name for weight in layer.weights] == ["logit_scale", "logit_bias"]


def test_vectors_of_zeros_have_finite_logits():
    logits = ka.blocks.ContrastiveLogits()(np.zeros((2, 6), "float32"), DOCUMENTS)
    np.testing.assert_array_equal(logits, np.zeros((2, 5)))


@pytest.mark.tensorflow
def test_temperature_is_bounded_as_in_clip():
    layer = ka.blocks.ContrastiveLogits(temperature=0.011)
    layer(QUERIES, DOCUMENTS)
    optimizer = keras.optimizers.SGD(1.0)
    optimizer.build([layer.logit_scale])
    optimizer.apply([keras.ops.convert_to_tensor(-1.0)])  # a large step up
    assert float(layer.logit_scale) == pytest.approx(np.log(100), abs=1e-6)
    optimizer.apply([keras.ops.convert_to_tensor(1.0)])  # it can fall again
    assert float(layer.logit_scale) == pytest.approx(np.log(100) - 1, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"temperature": 0.001}, "temperature must be a finite number of at least 0.01"),
        ({"bias": float("nan")}, "bias must be a finite number"),
        ({"dimensions": ()}, "dimensions must be a whole number"),
        ({"dimensions": (4, 0)}, "dimensions must be a whole number of at least 1"),
        ({"dimensions": (7,)}, r"dimensions=\[7\], and the vectors have 6 components: expected"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ka.blocks.ContrastiveLogits(**arguments)(QUERIES, DOCUMENTS)
    with pytest.raises(ValueError, match="expected vectors of one size"):
        ka.blocks.ContrastiveLogits()(QUERIES, DOCUMENTS[:, :5])
