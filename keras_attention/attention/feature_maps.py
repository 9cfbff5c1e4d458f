"""Feature maps of linear attention: φ(q) · φ(k) replaces exp(q · k)."""

import dataclasses
import random

import keras
import numpy as np
from keras import ops

from keras_attention.core import checks, part
from keras_attention.core.part import Part

LARGEST_EXPONENT = 60.0


class FeatureMap:
    """Base class of feature maps φ, with which linear attention computes weights ∝ φ(q) · φ(k).

    Features are non-negative and float32. Attention does not change if all features of a query, or
    of all keys of a head, are multiplied by the same factor, so maps omit such factors.
    """

    def size(self, key_dim):
        """Return the number of features F for heads of size `key_dim`."""
        return key_dim

    def draw(self, key_dim):
        """Sample random numbers for a layer: a NumPy float32 array, or None if the map needs none.

        `key_dim` is H, the size of a head. The layer saves the array as a non-trainable weight, and
        passes it to `queries` and `keys` as `drawn`.
        """
        return None

    def queries(self, x, drawn=None):
        """Map queries `x` (B, N, T, H) to features (B, N, T, F).

        F is the number of features. `drawn` is the result of `draw`.
        """
        raise NotImplementedError(f"{type(self).__name__}.queries")

    def keys(self, x, drawn=None):
        """Map keys `x` (B, K, S, H) to features (B, K, S, F), each key independently of all others.

        F is the number of features. `drawn` is the result of `draw`.
        """
        return self.queries(x, drawn)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class EluFeatures(FeatureMap, Part):
    """The feature map `φ(x) = elu(x) + 1` (Katharopoulos et al., 2020, section 3.2.1).

    ```python
    import numpy as np
    import keras_attention as ka

    features = ka.attention.feature_maps.EluFeatures().queries(np.array([[[[-1.0, 0.0, 2.0]]]]))
    assert np.allclose(features, [[[[np.exp(-1), 1, 3]]]])
    ```
    """

    def queries(self, x, drawn=None):
        x = ops.cast(x, "float32")
        return ops.relu(x) + ops.exp(ops.minimum(x, 0.0))  # elu(x) + 1 would round e^-20 to 0


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class ReLUFeatures(FeatureMap, Part):
    """The feature map `φ(x) = max(x, 0)` (Cai et al., 2023, "EfficientViT", section 3.1).

    If a query's features are orthogonal to the features of all keys, its output is zero.

    ```python
    import numpy as np
    import keras_attention as ka

    features = ka.attention.feature_maps.ReLUFeatures().queries(np.array([[[[-1.0, 0.0, 2.0]]]]))
    assert np.allclose(features, [[[[0, 0, 2]]]])
    ```
    """

    def queries(self, x, drawn=None):
        return ops.relu(ops.cast(x, "float32"))


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class FavorFeatures(FeatureMap, Part):
    """FAVOR+: positive orthogonal random features (Choromanski et al., 2021, lemma 1).

    Each feature is `exp(w · x' - |x'|² / 2)`, where w is one of F random vectors and
    `x' = x / H^(1/4)`. The expected value of φ(q) · φ(k) / F is exp(q · k / √H), so this is an
    estimate of softmax attention. The error decreases as 1 / √F and grows exponentially with
    |q' + k'|². Keys with |k'| > 15 get no weight, because all their features round to zero.

    A layer samples the random vectors when it is built, and saves them as non-trainable weights.
    The H vectors of a group are orthogonal to each other, and have the lengths of Gaussian vectors.
    The largest exponent of each query is subtracted, which does not change the attention. Exponents
    of keys are clipped at 60 to keep sums finite.

    Args:
        num_features: int, F, the number of random vectors.
        seed: int, the seed of the random vectors. None samples new vectors for each layer.

    ```python
    import numpy as np
    import keras_attention as ka

    favor = ka.attention.feature_maps.FavorFeatures(num_features=4000, seed=0)
    drawn = favor.draw(key_dim=4)  # (H, F)
    q, k = np.random.default_rng(0).normal(size=(2, 1, 1, 1, 4))
    estimate = np.mean(favor.keys(q, drawn) * favor.keys(k, drawn))
    assert np.isclose(estimate, np.exp(np.sum(q * k) / np.sqrt(4)), rtol=0.1)
    ```
    """

    num_features: int = 256
    seed: int | None = None

    def __post_init__(self):
        checks.check_whole_numbers(self, "num_features")
        checks.check_whole_numbers(self, "seed", least=0, optional=True)

    def size(self, key_dim):
        return self.num_features

    def draw(self, key_dim):
        # `keras.utils.set_random_seed` seeds this generator.
        seed = random.getrandbits(31) if self.seed is None else self.seed
        normal = np.random.default_rng(seed).normal
        blocks = []
        for _ in range(-(-self.num_features // key_dim)):
            basis, triangle = np.linalg.qr(normal(size=(key_dim, key_dim)))
            # Without these signs, only half of all directions would be drawn.
            blocks.append(basis * np.sign(np.diag(triangle)))
        directions = np.concatenate(blocks, axis=1)[:, : self.num_features]
        lengths = np.linalg.norm(normal(size=(key_dim, self.num_features)), axis=0)
        return (directions * lengths).astype("float32")

    def queries(self, x, drawn=None):
        exponents = self._exponents(x, drawn)
        largest = ops.stop_gradient(ops.max(exponents, axis=-1, keepdims=True))
        return ops.exp(exponents - largest)

    def keys(self, x, drawn=None):
        return ops.exp(ops.minimum(self._exponents(x, drawn), LARGEST_EXPONENT))

    @staticmethod
    def _exponents(x, drawn):
        x = ops.multiply(ops.cast(x, "float32"), x.shape[-1] ** -0.25)
        half_square = ops.multiply(ops.sum(ops.square(x), axis=-1, keepdims=True), 0.5)
        return ops.matmul(x, ops.cast(drawn, "float32")) - half_square


NAMES = {"elu": EluFeatures, "relu": ReLUFeatures, "favor": FavorFeatures}


def get(identifier):
    """Return the feature map that `identifier` describes.

    `identifier` is a feature map, a name in `NAMES`, or the config of a feature map. None raises
    a ValueError.
    """
    feature_map = part.get(identifier, names=NAMES, family="feature map", base=FeatureMap)
    if feature_map is None:
        raise ValueError(f"feature_map=None: expected one of {', '.join(NAMES)}.")
    return feature_map
