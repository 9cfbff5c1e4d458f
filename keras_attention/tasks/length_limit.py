"""`LengthLimit`: leaves out examples that are too long for the model, and says how many."""

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class LengthLimit:
    """What examples may have at most that cannot be cut, since tags or words would be lost.

    Args:
        unit: str, what examples are, in the plural.
        most: str, the most that one may have, such as `"512 tokens"`.
        is_long: function of an example, and of whether the model is to be trained on it, that says
            whether it is too long.
    """

    unit: str
    most: str
    is_long: Callable

    def select(self, examples, where, training=False):
        """Return the examples that are not too long.

        Args:
            examples: list of raw examples.
            where: str, what errors call them.
            training: bool, whether the model is to be trained on them.

        Raises:
            ValueError: all of them are too long.
        """
        short = [example for example in examples if not self.is_long(example, training)]
        if examples and not short:
            raise ValueError(
                f"{where} has no example that is short enough: all {self.unit} have more than "
                f"{self.most}. Split them, or train with a larger max_length=."
            )
        return short

    def describe_data(self, data_set):
        """Count the examples of each part that are too long, a tuple of one sentence or none."""
        counts = {
            part: sum(self.is_long(example, part == "train") for example in examples)
            for part, examples in data_set.parts.items()
        }
        left = ", ".join(f"{count:,} of {part}" for part, count in counts.items() if count)
        return (f"{self.unit} of more than {self.most} are left out: {left}",) if left else ()

    def describe_scored(self, examples):
        """Count the examples that are too long to be scored, likewise."""
        left = sum(self.is_long(example, False) for example in examples)
        if not left:
            return ()
        count = len(examples)
        return (f"{self.unit} of more than {self.most} are not scored: {left:,} of {count:,}",)
