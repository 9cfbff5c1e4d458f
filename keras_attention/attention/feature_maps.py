"""Feature maps of linear attention: φ(q) · φ(k), with φ above zero, in place of exp(q · k)."""

import dataclasses
import random

import keras
import numpy as np
from keras import ops

from keras_attention.core import checks, part
from keras_attention.core.part import Part

LARGEST_EXPONENT = 60.0


class FeatureMap:
    """Takes queries and keys to features φ, none below zero, so that `weight ∝ φ(q) · φ(k)`.

    Everything is float32. A factor that is the same for all features of one query, or for all keys
    and features of a head, divides out of the attention: maps leave such factors out.
    """

    def size(self, key_dim):
        """Return how many features a head of `key_dim` has."""
        return key_dim

    def draw(self, key_dim):
        """Return the weights that are drawn once and kept, float32, or None for none."""
        return None

    def queries(self, x, drawn=None):
        """Map queries (B, N, T, H) -> (B, N, T, F)."""
        raise NotImplementedError(f"{type(self).__name__}.queries")

    def keys(self, x, drawn=None):
        """Map keys (B, K, S, H) -> (B, K, S, F). Each depends only on its own key."""
        return self.queries(x, drawn)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class EluFeatures(FeatureMap, Part):
    """`φ(x) = elu(x) + 1` (Katharopoulos et al., 2020, section 3.2.1).

    Example:

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
    """`φ(x) = max(x, 0)` (Cai et al., 2023, "EfficientViT", section 3.1).

    A query whose features are all zero, or orthogonal to those of all keys, gives zeros.

    Example:

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

    `φ(x) = exp(w · x' - |x'|² / 2)` with `x' = x / H^(1/4)`, for F random vectors w: on average
    over w, φ(q) · φ(k) / F is exp(q · k / √H), so that the attention is an estimate of softmax
    attention, without bias in numerator and denominator, whose error falls as 1 / √F. It grows
    exponentially with |q' + k'|²: queries and keys far from the origin need more features than
    there are, and keys so far that all their features round to zero (|k'| > 15) are not seen.

    The vectors are drawn when the layer is built, in blocks of H that are orthogonal to one
    another, each of the length of a Gaussian vector; they are weights that do not train, saved with
    the layer. For queries the largest exponent is taken out, which divides out; for keys it is not,
    because it would have to be the same for all, later ones included. Theirs are cut off at 60
    instead, which keeps sums finite and is far beyond where the estimate is of use.

    Args:
        num_features: int, F.
        seed: int, of the draw, or None for another one each time.

    Example:

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
        if self.seed is not None:
            checks.check_whole_numbers(self, "seed", least=0)

    def size(self, key_dim):
        return self.num_features

    def draw(self, key_dim):
        # Python's generator, which `keras.utils.set_random_seed` seeds
        seed = random.getrandbits(31) if self.seed is None else self.seed
        normal = np.random.default_rng(seed).normal
        blocks = []
        for _ in range(-(-self.num_features // key_dim)):
            basis, triangle = np.linalg.qr(normal(size=(key_dim, key_dim)))
            # without the signs of the triangle, directions come from half of the sphere only
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
    """Return the feature map that `identifier` means: one, its name, or its config."""
    found = part.get(identifier, names=NAMES, family="feature map", base=FeatureMap)
    if found is None:
        raise ValueError(f"feature_map=None: expected one of {', '.join(NAMES)}.")
    return found
