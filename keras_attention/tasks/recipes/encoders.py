"""Functions that make the encoder of a new model. Recipes use them as `make_encoder`."""

import dataclasses

from keras_attention.core.lazy import models


@dataclasses.dataclass(frozen=True)
class TransformerOfSize:
    """Makes a `ka.models.TransformerEncoder`.

    Args:
        use_bias: bool, whether the projections in the blocks have a bias.
    """

    use_bias: bool = True

    def __call__(self, **settings):
        """Make the encoder from the other arguments of `TransformerEncoder.of_size`."""
        return models.TransformerEncoder.of_size(use_bias=self.use_bias, **settings)


@dataclasses.dataclass(frozen=True)
class ConformerOfSize:
    """Makes a `ka.models.ConformerEncoder` (Gulati et al., 2020).

    Args:
        kernel_size: int, the kernel size of the convolutions.
        activation: str, the activation of the feed-forward networks.
    """

    kernel_size: int = 31
    activation: str = "silu"

    def __call__(self, **settings):
        """Make the encoder from the other arguments of `ConformerEncoder.of_size`."""
        own = {"kernel_size": self.kernel_size, "activation": self.activation}
        return models.ConformerEncoder.of_size(**own, **settings)


@dataclasses.dataclass(frozen=True)
class RecurrentOfSize:
    """Makes a `ka.models.RecurrentStack`. `cell` is the kind of its layers, such as `"lstm"`."""

    cell: str = "lstm"

    def __call__(self, *, num_layers, hidden_dim, dropout, num_heads=None, intermediate_dim=None):
        """Make the encoder from its sizes. `num_heads` and `intermediate_dim` are ignored."""
        return models.RecurrentStack(num_layers, hidden_dim, self.cell, dropout)
