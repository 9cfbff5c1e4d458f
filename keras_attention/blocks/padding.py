"""`Padding`: the id that fills rows of token ids up, and `find_padding`, which looks it up."""

import dataclasses

from keras_attention.blocks.token_embedding import TokenDropout, TokenEmbedding


@dataclasses.dataclass(frozen=True)
class Padding:
    """The id that fills rows of token ids up.

    Attributes:
        id: int, the id that is no token; None where every id is a token.
        may_come: bool, False where the embedding takes only rows without padding.
    """

    id: int | None = 0
    may_come: bool = True

    @property
    def filler(self):
        """The id that stands where there is no token: `id`, or 0."""
        return self.id or 0

    @property
    def masked(self):
        """The id that a mask looks for, or None where there is nothing to mask."""
        return self.id if self.may_come else None


def find_padding(layers):
    """Return the `Padding` of the first of `layers` that embeds token ids, or of id 0.

    The embedding owns the padding id of a model. A `TokenDropout` in front of it has the same one.
    """
    for layer in layers:
        if isinstance(layer, TokenEmbedding):
            return Padding(layer.padding_id, layer.padding != "none")
        if isinstance(layer, TokenDropout):
            return Padding(layer.padding_id)
    return Padding()
