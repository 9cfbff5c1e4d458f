"""What `generate` returns when more than ids is asked for."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Generated:
    """New tokens, and how they came about. R is the number of results of each row.

    Attributes:
        ids: int32 (B, limit), or (B, R, limit) for `Beam(num_return_sequences=R)` with R > 1, best
            first; padding stands after the end.
        scores: float32, in the shape of `ids`: the log-probability of each token, in the model's
            distribution as penalties leave it (constraints and what a sampler cuts off do not
            count); 0 after the end. None if not asked for.
        totals: float32 (B,) or (B, R): their sum, for `Beam` divided by its length penalty; what
            results are ranked by. None if not asked for.
        attention: dict, {layer path: weights (B, N, limit, S)}, or (B, R, N, limit, S): what
            attention looked at when it chose each token. S is the source in cross-attention;
            in self-attention the prompt, shorter ones with padding in front, and the new tokens
            but the last. None if not asked for.
        rounds: int, how often the model itself ran to write, with a draft model; else None.
    """

    ids: np.ndarray
    scores: np.ndarray | None = None
    totals: np.ndarray | None = None
    attention: dict | None = None
    rounds: int | None = None
