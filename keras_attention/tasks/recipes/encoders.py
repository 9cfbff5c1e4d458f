"""Encoders of recipes, which are made of the sizes and parts that users may change."""

import dataclasses

from keras_attention.core.lazy import models


@dataclasses.dataclass(frozen=True)
class TransformerOfSize:
    """Makes a `ka.models.TransformerEncoder`.

    Args:
        use_bias: as in its `of_size`.
    """

    use_bias: bool = True

    def __call__(self, **settings):
        """Make the encoder by keywords of `of_size`."""
        return models.TransformerEncoder.of_size(use_bias=self.use_bias, **settings)


@dataclasses.dataclass(frozen=True)
class ConformerOfSize:
    """Makes a `ka.models.ConformerEncoder` (Gulati et al., 2020).

    Args:
        kernel_size, activation: as in its `of_size`.
    """

    kernel_size: int = 31
    activation: str = "silu"

    def __call__(self, **settings):
        """Make the encoder by keywords of `of_size`."""
        own = {"kernel_size": self.kernel_size, "activation": self.activation}
        return models.ConformerEncoder.of_size(**own, **settings)


@dataclasses.dataclass(frozen=True)
class RecurrentOfSize:
    """Makes a `ka.models.RecurrentStack`, which has neither heads nor feed-forward networks."""

    cell: str = "lstm"

    def __call__(self, *, num_layers, hidden_dim, dropout, num_heads=None, intermediate_dim=None):
        """Make the encoder by its sizes."""
        return models.RecurrentStack(num_layers, hidden_dim, self.cell, dropout)
