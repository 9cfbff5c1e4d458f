"""Residuals: how the result of a branch joins the stream that runs through a stack of blocks."""

import dataclasses

import keras
from keras import ops

from keras_attention.core import checks, keras_internals, part
from keras_attention.core.part import OwnArguments, Part


class Residual(Part):
    """How the result of a branch f joins the stream x of a stack: here `x + f(x)`.

    A block makes `layers` for each of its branches and computes
    `x = add(x, after(f(before(x))))`, with scale and dropout between `after` and `add`. A residual
    of your own is a frozen dataclass that overrides some of these methods.

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
        """The layers of one branch, {name: layer}.

        `normalize(name)` makes a normalization; `first` holds the layers of the block's first
        branch, None for that branch itself; `dtype` is the block's policy.
        """
        return {"norm": normalize("norm")}

    def initialize(self, attentions, others):
        """Changes the initial weights of the `attentions` and of the `others` of a block.

        The block calls it once, with the layers that it has just built.
        """

    def start(self, inputs):
        """The stream that enters a block, from the inputs of the block."""
        return inputs

    def before(self, stream, layers):
        """The input of the branch."""
        return stream

    def after(self, added, layers):
        """The output of the branch, before it is added."""
        return added

    def add(self, stream, added, layers):
        """The stream after the branch."""
        return ops.add(stream, added)

    def end(self, stream, normalize):
        """The output of a stack of blocks; `normalize(name)` makes a normalization."""
        return stream


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class PreNorm(Residual):
    """`x + f(n(x))` (Xiong et al., 2020), by name `"pre"`.

    A stack needs a norm after its last block.

    Args:
        first_norm: bool, whether the first branch of the block has a norm, too: that of a stack
            whose embeddings are normalized can do without (Warner et al., 2024, *ModernBERT*,
            section 2.1).
        final_norm: bool, whether a norm ends the stack. Where a norm follows what the vectors are
            pooled to, it can do without.

    ```python
    import keras_attention as ka

    block = ka.blocks.EncoderBlock(
        ka.attention.MultiHeadAttention(2, 4), ka.blocks.FeedForward(16), norm="pre"
    )
    assert block.norm == ka.blocks.PreNorm()
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
    """`n(x + f(x))` (Vaswani et al., 2017, section 3.1), by name `"post"`.

    ```python
    import keras_attention as ka

    block = ka.blocks.EncoderBlock(
        ka.attention.MultiHeadAttention(2, 4), ka.blocks.FeedForward(16), norm="post"
    )
    assert block.norm == ka.blocks.PostNorm()
    ```
    """

    def add(self, stream, added, layers):
        return layers["norm"](ops.add(stream, added))


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class SandwichNorm(PreNorm):
    """`x + n(f(n(x)))` (Ding et al., 2021, *CogView*), by name `"sandwich"`.

    A stack needs a norm after its last block.

    Args:
        first_norm, final_norm: bool, as in `PreNorm`: of the norm before the branch.

    ```python
    import keras_attention as ka

    block = ka.blocks.EncoderBlock(
        ka.attention.MultiHeadAttention(2, 4), ka.blocks.FeedForward(16), norm="sandwich"
    )
    assert block.norm == ka.blocks.SandwichNorm()
    ```
    """

    def layers(self, normalize, first=None, dtype=None):
        return super().layers(normalize, first, dtype) | {"post_norm": normalize("post_norm")}

    def after(self, added, layers):
        return layers["post_norm"](added)


@keras.saving.register_keras_serializable(package="keras_attention")
class ResidualWeight(OwnArguments, keras.layers.Layer):
    """Multiplies by one learned number.

    Args:
        initial: float, from which the number starts.

    Call arguments:
        inputs: of any shape. Returns the same shape; the mask passes through.

    ```python
    import numpy as np
    import keras_attention as ka

    assert np.all(ka.blocks.ResidualWeight(0.5)(np.ones((2, 3, 4))) == 0.5)
    ```
    """

    own_arguments = ("initial",)

    def __init__(self, initial=0.0, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.initial = initial

    def build(self, input_shape):
        self.weight = self.add_weight(
            shape=(), initializer=keras.initializers.Constant(self.initial), name="weight"
        )

    def call(self, inputs):
        return ops.multiply(inputs, self.weight)

    def compute_output_shape(self, input_shape):
        return input_shape


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class ReZero(Residual):
    """`x + α f(x)`, α a learned number that starts at 0 (Bachlechner et al., 2020).

    There are no norms, and every block starts as the identity. The branches of a block share their
    α, as in the authors' Transformer. By name `"rezero"`.

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
    """Post-norm and pre-norm at once (Xie et al., 2023), by name `"resi_dual"`.

    The stream is a pair that starts as (x, x). A branch makes of (x, s) the pair
    (n(x + f(x)), s + f(x)); a stack ends with x + n(s). A block is called on one tensor, for the
    first, or on the pair, and returns the pair.

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
        if self.num_decoder_layers is not None:
            checks.check_whole_numbers(self, "num_decoder_layers")

    @property
    def alpha(self):
        """α, the factor of the stream."""
        if self.num_decoder_layers is None:
            return (self.num_branches * self.num_layers) ** 0.25
        return 0.81 * (self.num_layers**4 * self.num_decoder_layers) ** (1 / 16)

    @property
    def beta(self):
        """β, the factor of initial weights."""
        if self.num_decoder_layers is None:
            return (4 * self.num_branches * self.num_layers) ** -0.25
        return 0.87 * (self.num_layers**4 * self.num_decoder_layers) ** (-1 / 16)

    def initialize(self, attentions, others):
        if not self.scale_initial:
            return
        scaled = [layer for attention in attentions for layer in _get_projections(attention)]
        for layer in others:
            scaled += getattr(layer, "experts", [layer])
        for weight in (weight for layer in scaled for weight in layer.weights):
            if weight.name != "bias":
                _multiply_initial(weight, self.beta)

    def add(self, stream, added, layers):
        return layers["norm"](ops.add(ops.multiply(stream, self.alpha), added))


def _get_projections(attention):
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
    if not keras_internals.has_value(weight):
        keras_internals.wrap_initializer(weight, lambda value: ops.multiply(value, factor))
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


NAMES = {
    "pre": PreNorm,
    "post": PostNorm,
    "sandwich": SandwichNorm,
    "deep_norm": DeepNorm,
    "rezero": ReZero,
    "resi_dual": ResiDual,
}


def get(identifier):
    """A `Residual` from an object, its name in `NAMES` or its config."""
    if identifier is None:
        raise ValueError(f"norm=None: a block needs one of {', '.join(NAMES)}, or a Residual.")
    return part.get(identifier, names=NAMES, family="norm", base=Residual)
