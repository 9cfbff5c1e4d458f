"""Residuals: where blocks normalize, and how they add the output of a branch to their input."""

import dataclasses

import keras
from keras import ops

from keras_attention.blocks.mixture_of_experts import MixtureOfExperts
from keras_attention.blocks.normalization import LayerScale
from keras_attention.core import checks, keras_internals, part
from keras_attention.core.part import Part


class Residual(Part):
    """Base class of residuals, which say how a Transformer block adds a branch f to its input x.

    This class computes `x + f(x)`, without a norm. A branch f is an attention or a feed-forward
    network in a block. The method `layers` returns a dict of the layers that a residual needs for
    one branch, such as `{"norm": ...}`. A block passes this dict as the last argument to `before`,
    `after` and `add`, and computes `x = add(x, after(f(before(x))))`, with `LayerScale` and dropout
    between `after` and `add`. To write your own, override some of them in a frozen dataclass.

    ```python
    import dataclasses
    import keras
    import numpy as np
    import keras_attention as ka


    @keras.saving.register_keras_serializable(package="mine")
    @dataclasses.dataclass(frozen=True)
    class Damped(ka.blocks.Residual):
        share: float

        def add(self, stream, added, layers):
            return stream + self.share * layers["norm"](added)


    block = ka.blocks.EncoderBlock(
        ka.attention.MultiHeadAttention(2, 4), ka.blocks.FeedForward(16), norm=Damped(0.1)
    )
    assert block(np.ones((2, 5, 8))).shape == (2, 5, 8)
    ```
    """

    num_streams = 1

    def layers(self, normalize, first=None, dtype=None):
        """Return a new dict {name: layer} with the norms or other layers of a block's branch.

        Args:
            normalize: function that makes a normalization layer with a given name.
            first: the dict of the block's first branch, or None if this is the first branch.
            dtype: the dtype policy of the block.
        """
        return {"norm": normalize("norm")}

    def initialize(self, attentions, inner):
        """Change initial weights after a block has built its layers. By default this does nothing.

        Args:
            attentions: list of the attention layers.
            inner: list of the other inner layers, such as feed-forward networks.
        """

    def start(self, inputs):
        """Return x, the stream to which branches are added, from the inputs of a block."""
        return inputs

    def before(self, stream, layers):
        """Return the input of a branch, such as the normalized x.

        `stream` is x, and `layers` the dict of the branch that `layers()` returned.
        """
        return stream

    def after(self, added, layers):
        """Return the tensor that is added to x.

        `added` is the output of the branch, and `layers` the dict that `layers()` returned.
        """
        return added

    def add(self, stream, added, layers):
        """Return the new x, by default `stream` (the old x) plus `added`, which `after` returned.

        `layers` is the dict of the branch that `layers()` returned.
        """
        return ops.add(stream, added)

    def end(self, stream, normalize):
        """Return the output of a stack of blocks.

        `stream` is x after the last block, and by default the output. `normalize` makes a
        normalization layer with a given name.
        """
        return stream


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class PreNorm(Residual):
    """Pre-norm: a block computes `x + f(n(x))` for each branch f and norm n (Xiong et al., 2020).

    Pass it to a block as `norm=PreNorm()` or `norm="pre"`. A stack needs a norm after its last
    block.

    Args:
        first_norm: bool, whether the first branch of a block has a norm. The first block of a stack
            needs none if the embeddings are normalized (Warner et al., 2024, *ModernBERT*, section
            2.1).
        final_norm: bool, whether a stack adds a norm after its last block. Set it to False if you
            normalize after pooling instead.

    ```python
    import keras_attention as ka

    assert ka.blocks.residuals.get("pre") == ka.blocks.PreNorm(first_norm=True)
    ```
    """

    first_norm: bool = True
    final_norm: bool = True

    def layers(self, normalize, first=None, dtype=None):
        return {"norm": normalize("norm")} if first is not None or self.first_norm else {}

    def before(self, stream, layers):
        return layers["norm"](stream) if "norm" in layers else stream

    def end(self, stream, normalize):
        return normalize("norm")(stream) if self.final_norm else stream


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class PostNorm(Residual):
    """Post-norm: a block computes `n(x + f(x))` for each branch f and norm n.

    The original Transformer uses it (Vaswani et al., 2017, section 3.1). Pass it to a block as
    `norm=PostNorm()` or `norm="post"`.

    ```python
    import keras_attention as ka

    assert ka.blocks.residuals.get("post") == ka.blocks.PostNorm()
    ```
    """

    def add(self, stream, added, layers):
        return layers["norm"](ops.add(stream, added))


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class SandwichNorm(PreNorm):
    """Norms before and after each branch f: a block computes `x + n(f(n(x)))`.

    CogView uses it (Ding et al., 2021). Pass it to a block as `norm=SandwichNorm()` or
    `norm="sandwich"`.

    Args:
        first_norm: bool, whether the first branch of a block has a norm before it.
        final_norm: bool, whether a stack adds a norm after its last block.

    ```python
    import keras_attention as ka

    assert ka.blocks.residuals.get("sandwich") == ka.blocks.SandwichNorm()
    ```
    """

    def layers(self, normalize, first=None, dtype=None):
        return super().layers(normalize, first, dtype) | {"post_norm": normalize("post_norm")}

    def after(self, added, layers):
        return layers["post_norm"](added)


@keras.saving.register_keras_serializable(package="keras_attention")
class ResidualWeight(LayerScale):
    """Multiplies its inputs by one learned scalar.

    Args:
        initial: float, the initial value of the scalar.

    Call arguments:
        inputs: float, any shape.

    Returns a tensor with the shape and the mask of the inputs.

    ```python
    import numpy as np
    import keras_attention as ka

    assert np.all(ka.blocks.ResidualWeight(0.5)(np.ones((2, 3, 4))) == 0.5)
    ```
    """

    def __init__(self, initial=0.0, **kwargs):
        super().__init__(initial, **kwargs)

    def build(self, input_shape):
        self.weight = self.add_weight(
            shape=(), initializer=keras.initializers.Constant(self.initial), name="weight"
        )

    def call(self, inputs):
        return ops.multiply(inputs, self.weight)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class ReZero(Residual):
    """A residual without norms: `x + α f(x)` with a learned scalar α (Bachlechner et al., 2020).

    α is 0 when training begins, so a block is the identity then. The branches f of a block share
    one α, as in the authors' Transformer. Pass it to a block as `norm=ReZero()` or `norm="rezero"`.

    ```python
    import numpy as np
    import keras_attention as ka

    block = ka.blocks.EncoderBlock(
        ka.attention.MultiHeadAttention(2, 4), ka.blocks.FeedForward(16), norm="rezero"
    )
    x = np.random.rand(2, 5, 8).astype("float32")
    assert np.array_equal(block(x), x)
    ```
    """

    def layers(self, normalize, first=None, dtype=None):
        if first is not None:
            return {"weight": first["weight"]}
        return {"weight": ResidualWeight(dtype=dtype, name="residual_weight")}

    def after(self, added, layers):
        return layers["weight"](added)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class ResiDual(Residual):
    """A residual with two streams, which combines post-norm and pre-norm (Xie et al., 2023).

    Pass it to a block as `norm=ResiDual()` or `norm="resi_dual"`. The streams are a pair of
    tensors, which starts as (x, x). A branch f with norm n changes (x, s) to
    (n(x + f(x)), s + f(x)). The output of a stack is x + n(s). The first block is called on one
    tensor, and later blocks on the pair. All blocks return a pair.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    x = np.random.rand(2, 5, 8).astype("float32")
    for _ in range(2):
        x = ka.blocks.EncoderBlock(
            ka.attention.MultiHeadAttention(2, 4), ka.blocks.FeedForward(16), norm="resi_dual"
        )(x)
    normalized, total = x
    output = normalized + keras.layers.LayerNormalization()(total)
    assert output.shape == (2, 5, 8)
    ```
    """

    num_streams = 2

    def start(self, inputs):
        return tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs, inputs)

    def before(self, stream, layers):
        return stream[0]

    def add(self, stream, added, layers):
        normalized, total = stream
        return layers["norm"](ops.add(normalized, added)), ops.add(total, added)

    def end(self, stream, normalize):
        normalized, total = self.start(stream)
        return keras.layers.Add(name="streams")([normalized, normalize("norm")(total)])


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class DeepNorm(Residual):
    """Post-norm for very deep stacks: `n(α x + f(x))` (Wang et al., 2022, figure 2).

    The branch f also starts with smaller weights. The initial weights of the feed-forward network,
    and of the value and output projections of the attention, are multiplied by β. For a stack of N
    layers with b branches each, α = (bN)^¼ and β = (4bN)^-¼. For an encoder whose decoder has M
    layers, α = 0.81 (N⁴M)^(1/16) and β = 0.87 (N⁴M)^(-1/16). In `TransformerEncoder` and
    `TransformerDecoder`, use `norm="deep_norm"`, which sets N and b.

    Args:
        num_layers: int N, number of layers of this stack.
        num_branches: int b, 2 for attention and feed-forward network, 3 with cross-attention.
        num_decoder_layers: int M, number of layers of the decoder that reads this encoder. None if
            this stack is a decoder, or an encoder without a decoder.
        scale_initial: bool, whether to multiply initial weights by β. The attention then must have
            the attributes `value_dense` and `output_dense`, as `MultiHeadAttention` does. Layers
            that are already built keep their weights.

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
        checks.check_whole_numbers(self, "num_layers", "num_branches")
        checks.check_whole_numbers(self, "num_decoder_layers", optional=True)

    @property
    def alpha(self):
        """Return α, the factor of x."""
        if self.num_decoder_layers is None:
            return (self.num_branches * self.num_layers) ** 0.25
        return 0.81 * (self.num_layers**4 * self.num_decoder_layers) ** (1 / 16)

    @property
    def beta(self):
        """Return β, the factor of initial weights."""
        if self.num_decoder_layers is None:
            return (4 * self.num_branches * self.num_layers) ** -0.25
        return 0.87 * (self.num_layers**4 * self.num_decoder_layers) ** (-1 / 16)

    def initialize(self, attentions, inner):
        if not self.scale_initial:
            return
        scaled = [layer for attention in attentions for layer in _get_projections(attention)]
        for layer in inner:
            scaled += layer.experts if isinstance(layer, MixtureOfExperts) else [layer]
        for weight in (weight for layer in scaled for weight in layer.weights):
            if weight.name != "bias":
                _multiply_initial(weight, self.beta)

    def add(self, stream, added, layers):
        return layers["norm"](ops.add(ops.multiply(stream, self.alpha), added))


def _get_projections(attention):
    """Return the value and output projections of an attention layer.

    In Keras's own `MultiHeadAttention` they are private attributes.
    """
    projections = [
        getattr(attention, f"{name}_dense", None) or getattr(attention, f"_{name}_dense", None)
        for name in ("value", "output")
    ]
    if None in projections:
        raise ValueError(
            f"DeepNorm scales the initial value and output projections, but "
            f"{type(attention).__name__} has no value_dense and output_dense. Give it these "
            "properties, or use DeepNorm(..., scale_initial=False) and initialize them yourself."
        )
    return projections


def _multiply_initial(weight, factor):
    if not keras_internals.has_value(weight):
        keras_internals.wrap_initializer(weight, lambda value: ops.multiply(value, factor))
        return
    try:
        float(ops.sum(weight))
    except TypeError as error:  # every backend raises it for a tensor without a value
        raise RuntimeError(
            "A block with DeepNorm was built inside a traced function, where it cannot scale its "
            "initial weights. Build the model before, for example with "
            "`model.build((None, None, hidden_dim))`, or call it once."
        ) from error
    weight.assign(ops.multiply(weight, factor))


NAMES = {
    "pre": PreNorm,
    "post": PostNorm,
    "sandwich": SandwichNorm,
    "deep_norm": DeepNorm,
    "rezero": ReZero,
    "resi_dual": ResiDual,
}


def get(identifier):
    """Return the residual that the argument `norm` of a block describes.

    `identifier` is a `Residual` (returned unchanged), a name in `NAMES`, such as "pre", or a
    config. Raise a ValueError if `identifier` is None or an unknown name.
    """
    if identifier is None:
        raise ValueError(f"norm=None: expected one of {', '.join(NAMES)}, or a Residual.")
    return part.get(identifier, names=NAMES, family="norm", base=Residual)
