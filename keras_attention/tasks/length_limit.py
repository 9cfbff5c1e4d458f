"""`LengthLimit`: leaves out examples that are too long for the model, and says how many."""

PARTS = ("train", "dev", "test")


class LengthLimit:
    """Base of tasks whose examples cannot be cut, since tags or words would be lost.

    Attributes:
        long_ones: str, what examples are, in the plural.
    """

    long_ones = "sentences"

    @property
    def length_limit(self):
        """str, the most that an example may have, such as `"512 tokens"`."""
        raise NotImplementedError(f"{type(self).__name__}.length_limit")

    def is_long(self, example, training=False):
        """Return whether an example is too long to be scored, or to be trained on."""
        raise NotImplementedError(f"{type(self).__name__}.is_long")

    def keep_short(self, examples, where, training=False):
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
                f"{where} has no example that is short enough: all {self.long_ones} have more "
                f"than {self.length_limit}. Split them, or train with a larger max_length=."
            )
        return short

    def describe_data(self, data_set):
        """Count the examples of each part that are too long."""
        counts = {}
        for part in PARTS:
            training = part == "train"
            counts[part] = sum(self.is_long(one, training) for one in getattr(data_set, part))
        left = ", ".join(f"{count:,} of {part}" for part, count in counts.items() if count)
        if not left:
            return ()
        return (f"{self.long_ones} of more than {self.length_limit} are left out: {left}",)

    def describe_scored(self, examples):
        """Count the examples that are too long to be scored."""
        left = sum(map(self.is_long, examples))
        if not left:
            return ()
        return (
            f"{self.long_ones} of more than {self.length_limit} are not scored: {left:,} of "
            f"{len(examples):,}",
        )
