"""Ids with a special meaning: padding of token ids, and special labels of trees.

This file does not import Keras, because LiteRT files must run without it.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Padding:
    """The padding id of a model: the token id that fills up short rows of a batch.

    Attributes:
        id: int, or None if every id is a token.
        allowed: bool, False if the model accepts no padding, so that all rows of a batch must be
            equally long. An embedding with `padding="none"` is of this kind.
    """

    id: int | None = 0
    allowed: bool = True

    @property
    def filler(self):
        """Return the id to pad rows with: the attribute `id`, or 0 if `id` is None."""
        return self.id or 0

    @property
    def masked(self):
        """Return the id that the embedding masks as padding, or None if it masks none."""
        return self.id if self.allowed else None


# Special ids in trees that are encoded as sequences of labels, see `blocks.parser_state`. The ids
# of constituent labels and tags follow them.
PADDING, START, END, CLOSE = range(4)
FIRST_LABEL = 4
EACH = 2  # constituents per word that a tree may have, in addition to `spare_constituents`
