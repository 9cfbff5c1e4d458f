"""`LengthLimit`: leaves out examples that are too long for a model, and reports their number."""

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class LengthLimit:
    """The maximum length of examples that cannot be truncated, because tags or words would be lost.

    Args:
        unit: str, a plural noun for the examples, for messages.
        most: str, the limit as text, such as `"512 tokens"`.
        is_long: function of an example and a bool, which is True in training. It returns whether
            the example is too long.
    """

    unit: str
    most: str
    is_long: Callable

    def select(self, examples, where, training=False):
        """Return the examples that are not too long.

        Args:
            examples: list of examples, before preprocessing.
            where: str that error messages begin with, such as the name of the file.
            training: bool, whether `fit` trains on the examples. Some tasks only limit these.

        Raises:
            ValueError: all examples are too long.
        """
        short = [example for example in examples if not self.is_long(example, training)]
        if examples and not short:
            raise ValueError(
                f"{where} has no example that is short enough: all {self.unit} have more than "
                f"{self.most}. Split them, or train with a larger max_length=."
            )
        return short

    def describe_data(self, data_set):
        """Return a tuple with a sentence on the long examples in each split, for the model card.

        The tuple is empty if no example is too long. `data_set` is a `DataSet`.
        """
        counts = {
            part: sum(self.is_long(example, part == "train") for example in examples)
            for part, examples in data_set.parts.items()
        }
        long = ", ".join(f"{count:,} of {part}" for part, count in counts.items() if count)
        return (f"{self.unit} of more than {self.most} are left out: {long}",) if long else ()

    def describe_scored(self, examples):
        """Return a tuple with a sentence on examples that are too long for scoring, to warn users.

        The tuple is empty if no example is too long.
        """
        long = sum(self.is_long(example, False) for example in examples)
        if not long:
            return ()
        count = len(examples)
        return (f"{self.unit} of more than {self.most} are not scored: {long:,} of {count:,}",)
