import keras
import numpy as np
import pytest

from keras_attention.export import ExportError, endpoint
from keras_attention.export.checks import cases
from tests.export.conftest import make_labeler


def shapes(result):
    return [case.inputs["token_ids"].shape for case in result]


def test_made_up_cases_vary_what_is_free(labeler):
    result, notes = cases.make_cases(labeler, endpoint.make_endpoint(labeler))
    assert shapes(result) == [(1, 12), (3, 12), (2, 6)] and not notes
    for case in result:
        ids = case.inputs["token_ids"]
        assert ids[0, -1] == 0 and ids[0, 0] > 0 and ids.max() < 20
        np.testing.assert_array_equal(case.outputs["logits"], labeler(ids))


def test_fixed_shapes_give_three_different_cases(labeler):
    result, _ = cases.make_cases(labeler, endpoint.make_endpoint(labeler, 1, 5))
    assert shapes(result) == [(1, 5)] * 3
    assert len({case.inputs["token_ids"].tobytes() for case in result}) == 3


def test_given_examples_are_checked_as_they_are_too(labeler):
    inputs = [np.full((4, 7), 3), np.full((2, 9), 5)]
    result, _ = cases.make_cases(labeler, endpoint.make_endpoint(labeler), inputs)
    assert shapes(result) == [(1, 7), (3, 9), (2, 3), (4, 7), (2, 9)]
    assert [case.real for case in result] == [False] * 3 + [True] * 2
    assert result[-1].inputs["token_ids"].min() == 5


def test_ids_stay_below_the_embedding_that_reads_them():
    few, many = (keras.Input((None,), dtype="int32", name=name) for name in ("few", "many"))
    outputs = keras.layers.Embedding(2, 3)(few) + keras.layers.Embedding(1000, 3)(many)
    model = keras.Model([few, many], outputs)
    result, _ = cases.make_cases(model, endpoint.make_endpoint(model))
    assert max(case.inputs["few"].max() for case in result) == 1
    assert max(case.inputs["many"].max() for case in result) > 100


def test_ids_behind_an_op_stay_below_the_smallest_embedding():
    ids = keras.Input((None,), dtype="int32", name="ids")
    model = keras.Model(ids, keras.layers.Embedding(7, 3)(keras.ops.maximum(ids, 0)))
    result, _ = cases.make_cases(model, endpoint.make_endpoint(model))
    assert max(case.inputs["ids"].max() for case in result) == 6


def picky():
    """Return a model with a convolution that needs at least 20 steps."""
    waves = keras.Input((None, 1), name="waves")
    return keras.Model(waves, keras.layers.Conv1D(1, 20, name="logits")(waves))


def test_a_model_that_refuses_random_inputs_needs_examples():
    model = picky()
    with pytest.raises(
        ExportError, match=r"random inputs of the check.*waves \(1, 12, 1\).*Pass examples="
    ):
        cases.make_cases(model, endpoint.make_endpoint(model))


def test_given_examples_that_the_model_cannot_run_are_an_error_in_plain_words(labeler):
    with pytest.raises(
        ValueError, match=r"cannot run examples= \(token_ids \(1, 2\)\): (?!.*node)"
    ):
        cases.make_cases(
            labeler, endpoint.make_endpoint(labeler), [{"token_ids": np.array([[1, 10**6]])}]
        )


def test_shapes_that_the_model_refuses_are_noted_when_examples_are_given():
    model = picky()
    result, notes = cases.make_cases(model, endpoint.make_endpoint(model), np.ones((1, 30, 1)))
    assert [case.inputs["waves"].shape for case in result] == [(1, 30, 1), (3, 30, 1), (1, 30, 1)]
    assert notes == ["not checked at waves (2, 15, 1): the model refuses it"]


def test_a_model_that_gives_nan_is_refused():
    inputs = keras.Input((2,), name="x")
    model = keras.Model(inputs, keras.layers.Activation(keras.ops.log, name="log")(inputs - 5.0))
    with pytest.raises(ExportError, match="The model itself returns NaN in 'log'"):
        cases.make_cases(model, endpoint.make_endpoint(model))


def test_text_cannot_be_made_up():
    text = keras.Input((), dtype="string", name="text")
    model = keras.Model(text, keras.layers.Identity()(text))
    with pytest.raises(ExportError, match="The input 'text' takes text, .*Pass examples="):
        cases.make_cases(model, endpoint.make_endpoint(model))


def test_make_labeler_is_seen_from_outside_as_one_function():
    assert endpoint.make_endpoint(make_labeler(5)).inputs[0].shape == (None, 5)
