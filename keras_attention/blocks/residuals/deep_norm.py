"""Post-norm that trains a thousand layers deep."""

import dataclasses

import keras
from keras import ops

from keras_attention import checks
from keras_attention.blocks.residuals.base import Residual


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class DeepNorm(Residual):
    """`n(α x + f(x))`, and a smaller start for f (Wang et al., 2022, figure 2).

    The initial weights of the feed-forward network, and of the value and output projections of the
    attention, are multiplied by β. In an encoder or a decoder of N layers with b branches each,
    α = (bN)^¼ and β = (4bN)^-¼; in an encoder beside a decoder of M layers
    α = 0.81 (N⁴M)^(1/16) and β = 0.87 (N⁴M)^(-1/16). By name `"deep_norm"` in builders, which know
    their depth.

    Args:
        num_layers: int N, the depth of this stack.
        num_branches: int b, 2 for attention and feed-forward, 3 with cross-attention.
        num_decoder_layers: int M, the depth of the decoder that this encoder feeds, or None.
        scale_initial: bool, whether to multiply initial weights by β. The attention then has to
            have `value_dense` and `output_dense`, as `MultiHeadAttention` has. Weights that exist
            before the block is built are left as they are.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    norm = ka.blocks.DeepNorm(num_layers=8)
    assert np.isclose(norm.alpha, 2.0) and np.isclose(norm.beta, 64**-0.25)
    block = ka.blocks.EncoderBlock(
        ka.attention.MultiHeadAttention(2, 4), ka.blocks.FeedForward(16), norm=norm
    )
    assert block(np.ones((2, 5, 8))).shape == (2, 5, 8)
    ```
    """

    num_layers: int
    num_branches: int = 2
    num_decoder_layers: int | None = None
    scale_initial: bool = True

    def __post_init__(self):
        checks.whole(self, "num_layers", "num_branches")
        if self.num_decoder_layers is not None:
            checks.whole(self, "num_decoder_layers")

    @property
    def alpha(self):
        """α, what the stream is multiplied by."""
        if self.num_decoder_layers is None:
            return (self.num_branches * self.num_layers) ** 0.25
        return 0.81 * (self.num_layers**4 * self.num_decoder_layers) ** (1 / 16)

    @property
    def beta(self):
        """β, what initial weights are multiplied by."""
        if self.num_decoder_layers is None:
            return (4 * self.num_branches * self.num_layers) ** -0.25
        return 0.87 * (self.num_layers**4 * self.num_decoder_layers) ** (-1 / 16)

    def initialize(self, attentions, others):
        if not self.scale_initial:
            return
        scaled = [layer for attention in attentions for layer in _projections(attention)]
        for layer in others:
            scaled += getattr(layer, "experts", [layer])
        for weight in (weight for layer in scaled for weight in layer.weights):
            if weight.name != "bias":
                _multiply_initial(weight, self.beta)

    def add(self, stream, added, layers):
        return layers["norm"](ops.add(ops.multiply(stream, self.alpha), added))


def _projections(attention):
    """The layers of `attention` that make values and the output."""
    found = [
        getattr(attention, f"{name}_dense", None) or getattr(attention, f"_{name}_dense", None)
        for name in ("value", "output")
    ]
    if None in found:
        raise ValueError(
            f"DeepNorm makes the initial value and output projections smaller, but "
            f"{type(attention).__name__} has no value_dense and output_dense. Give it these "
            "properties, or use DeepNorm(..., scale_initial=False) and initialize them yourself."
        )
    return found


def _multiply_initial(weight, factor):
    if weight._value is None:  # made inside a stateless scope: its value is drawn later
        draw = weight._initializer
        weight._initializer = lambda *args, **kwargs: ops.multiply(draw(*args, **kwargs), factor)
        return
    try:
        float(ops.sum(weight))
    except TypeError as error:  # what every backend raises for a tensor without a value
        raise RuntimeError(
            "DeepNorm makes initial weights smaller when its block is built, which here happens "
            "inside a traced function, too late for it. Build the model first, for example with "
            "`model.build((None, None, hidden_dim))`, or call it once."
        ) from error
    weight.assign(ops.multiply(weight, factor))
