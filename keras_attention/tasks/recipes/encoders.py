"""Encoders of recipes, which are made of the sizes that users may change."""

import dataclasses

from keras_attention.core.lazy import models


@dataclasses.dataclass(frozen=True)
class ConformerOfSize:
    """Makes a `ka.models.ConformerEncoder` (Gulati et al., 2020).

    Args:
        kernel_size, activation, position: as in its `of_size`.
    """

    kernel_size: int = 31
    activation: str = "silu"
    position: object = "rotary"

    def __call__(self, *, num_layers, num_heads, hidden_dim, intermediate_dim, dropout):
        return models.ConformerEncoder.of_size(
            num_layers,
            num_heads,
            hidden_dim,
            intermediate_dim,
            kernel_size=self.kernel_size,
            activation=self.activation,
            dropout=dropout,
            position=self.position,
        )


@dataclasses.dataclass(frozen=True)
class RecurrentOfSize:
    """Makes a `ka.models.RecurrentStack`, which has neither heads nor feed-forward networks."""

    cell: str = "lstm"

    def __call__(self, *, num_layers, hidden_dim, dropout, num_heads=None, intermediate_dim=None):
        return models.RecurrentStack(num_layers, hidden_dim, self.cell, dropout)
