"""`Beam`, the settings of beam search. `generation.beam_search` runs it."""

import dataclasses

import keras
from keras import ops

from keras_attention.core import checks
from keras_attention.generation.samplers.base import Sampler


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Beam(Sampler):
    """Beam search: continues the `width` most probable sequences, step by step.

    A sequence that ends with an end id while it is among the `width` best becomes a result, and
    another sequence takes its place. Results are ranked by

        log P(Y) / ((5 + |Y|) / 6)^length_penalty                 (Wu et al., 2016, equation 14)

    where |Y| is the number of new tokens of the sequence Y, with the end id. The search stops when
    no sequence can become better than the results. A sequence that is cut off at `max_new_tokens`
    is ranked as if it had ended there.

    Args:
        width: int, how many sequences are continued. It may be larger than the vocabulary.
        length_penalty: float, at least 0, the exponent in the formula. 0 ranks by probability,
            which favors short sequences. Wu et al. use 0.2.
        num_return_sequences: int, at most `width`, the number of results for each row, the best
            first. If fewer sequences exist, the rest is padding with a total of -inf.

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
                f"Beam(width={self.width}, num_return_sequences={self.num_return_sequences}): "
                "expected at most width sequences. Use a larger width, or request fewer."
            )

    def divisor(self, length):
        """Return ((5 + length) / 6)^length_penalty, the divisor of a log-probability.

        `length` is the number of new tokens of a sequence, an int or a tensor.
        """
        return ops.power((5.0 + ops.cast(length, "float32")) / 6.0, self.length_penalty)
