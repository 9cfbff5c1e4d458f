import keras
import numpy as np
import pytest

from keras_attention import scores
from tests.scores import definition

ACTIVATIONS = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, 0)}


def rule_of(score):
    """Luong et al., 2015, section 3.1: the matrix meets query and key side by side."""
    kernel, vector = definition.array(score.kernel), definition.array(score.vector)
    activation = ACTIVATIONS[score.activation.__name__]
    return lambda q, k, n: vector[n] @ activation(np.concatenate([q, k]) @ kernel[n])


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("units, key_width", [(None, 11), (19, 13)])
def test_definition(activation, units, key_width):
    definition.assert_is(
        lambda: scores.Concat(units=units, activation=activation), rule_of, key_width
    )


def test_units_default_to_the_width_of_the_query():
    score = scores.Concat()
    score(*definition.tensors(key_width=13))
    assert score.kernel.shape == (3, 11 + 13, 11) and score.vector.shape == (3, 11)


@keras.saving.register_keras_serializable(package="tests")
def cube(x):
    return x * x * x


def test_a_function_of_the_users_is_saved():
    score = scores.Concat(activation=cube)
    again = scores.get(keras.saving.serialize_keras_object(score))
    assert again.activation is cube


def test_errors():
    with pytest.raises(ValueError, match=r"Concat\(units=0\)"):
        scores.Concat(units=0)
    with pytest.raises(ValueError, match="tahn"):
        scores.Concat(activation="tahn")
