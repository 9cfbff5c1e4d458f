"""`Beam`, the settings of beam search; `generation.beam_search` runs it."""

import dataclasses

import keras
from keras import ops

from keras_attention.core import checks
from keras_attention.generation.samplers.base import Sampler


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Beam(Sampler):
    """Beam search: of all beginnings the `width` most probable are continued, step by step.

    A beginning that ends, with an END id, while it is among the `width` best leaves the beam and
    becomes a result; the beam stays as wide as it was. Results are ranked by

        log P(Y) / ((5 + |Y|) / 6)^length_penalty                 (Wu et al., 2016, equation 14)

    where |Y| counts the new tokens of that very sequence, END included. The search stops when
    nothing in the beam can become better than the results; a sequence that is cut off at
    `max_new_tokens` competes like one that ended there.

    Args:
        width: int, how many beginnings are continued. It may be larger than the vocabulary.
        length_penalty: float, at least 0: alpha in the formula. 0 ranks by probability alone, which
            favours short sequences; Wu et al. use 0.2, others up to 1.
        num_return_sequences: int, at most `width`: how many results each row has, best first. Where
            fewer sequences exist, the rest is padding with a total of -inf.

    ```python
    import keras_attention as ka

    beam = ka.generation.Beam(width=4, length_penalty=0.6)
    assert beam.divisor(1.0) == 1.0  # a sequence of one token: (5 + 1) / 6
    ```
    """

    width: int
    length_penalty: float = 0.0
    num_return_sequences: int = 1

    def __post_init__(self):
        checks.check_whole_numbers(self, "width", "num_return_sequences")
        checks.check_number(self, "length_penalty", least=0)
        if self.num_return_sequences > self.width:
            raise ValueError(
                f"Beam(width={self.width}, num_return_sequences={self.num_return_sequences}): a "
                "beam cannot return more sequences than it is wide. Widen it, or ask for fewer."
            )

    def divisor(self, length):
        """Return the length penalty of a sequence of `length` new tokens, a divisor."""
        return ops.power((5.0 + ops.cast(length, "float32")) / 6.0, self.length_penalty)
