"""What all residuals answer: where the norms are, and how a branch is added."""

from keras import ops

from keras_attention.part import Part


class Residual(Part):
    """How what a branch f computes joins the stream x of a stack: here `x + f(x)`.

    A block makes `layers` for each of its branches and computes
    `x = add(x, after(f(before(x))))`, with scale and dropout applied to what `after` returns.
    A residual of your own is a frozen dataclass that overrides what it does otherwise.

    Example:

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
        """{place: layer}, what one branch needs.

        `normalize(place)` makes a normalization; `first` holds the layers of the block's first
        branch, None when these are they; `dtype` is the block's policy.
        """
        return {"norm": normalize("norm")}

    def initialize(self, attentions, others):
        """Changes the initial weights of the `attentions` and of the `others` of a block.

        Called once, with the layers that the block has just built.
        """

    def start(self, inputs):
        """The stream that enters a block, from what the block is called on."""
        return inputs

    def before(self, stream, layers):
        """What the branch sees of the stream."""
        return stream

    def after(self, added, layers):
        """What the branch adds, from what it computed."""
        return added

    def add(self, stream, added, layers):
        """The stream after the branch."""
        return ops.add(stream, added)

    def end(self, stream, normalize):
        """What leaves a stack of blocks; `normalize(place)` makes a normalization."""
        return stream
