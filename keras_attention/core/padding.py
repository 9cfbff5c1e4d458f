"""`Padding`: the id that fills rows of token ids up."""

import dataclasses


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
