import keras
import numpy as np
import pytest

from keras_attention import normalizers
from keras_attention.normalizers.activation import KNOWN
from tests.normalizers import definition


@pytest.mark.parametrize("name", KNOWN)
def test_every_keras_activation_equals_the_definition(name):
    """Masked keys are zero whatever the function gives there, and the gradient stays finite."""
    normalizer, scores, mask = normalizers.Activation(name), definition.scores(), definition.mask()
    forbidden = np.broadcast_to(~mask, scores.shape)
    assert np.all(np.asarray(normalizer(scores, mask))[forbidden] == 0)
    expected = getattr(keras.activations, name)(scores)
    np.testing.assert_allclose(normalizer(scores), expected, atol=1e-6)
    random = np.random.default_rng(0).normal(size=scores.shape).astype("float32")
    gradient = definition.gradient(lambda x: keras.ops.sum(normalizer(x, mask) * random), scores)
    assert np.all(np.isfinite(gradient)) and np.all(gradient[forbidden] == 0)


def test_a_users_function_equals_the_definition():
    normalizer = normalizers.Activation(definition.bent)
    again = normalizers.get(keras.saving.serialize_keras_object(normalizer))
    assert again == normalizer and again.fn is definition.bent


def test_errors():
    with pytest.raises(ValueError, match="fn='sofmax'.*sigmoid, silu"):
        normalizers.Activation("sofmax")
    with pytest.raises(ValueError, match="fn='glu'.*halves the row"):
        normalizers.Activation("glu")
    with pytest.raises(ValueError, match="fn='sparsemax'.*normalizers.Sparsemax"):
        normalizers.Activation("sparsemax")
    with pytest.raises(ValueError, match="fn=None"):
        normalizers.Activation(None)
