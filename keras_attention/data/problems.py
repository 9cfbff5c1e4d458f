"""`Problems`: collects the errors of single examples, to raise them together or to skip them."""

import contextlib
import functools
import warnings

ON_ERROR = ("raise", "skip")
SHOWN = 20  # maximum number of problems in an error
LONGEST = 500  # maximum number of characters for each problem


class ExamplesError(ValueError):
    """Raised by readers, with a message that lists the unreadable examples, one on each line."""


class SkippedWarning(UserWarning):
    """Issued by readers, to state how many examples were skipped because of errors."""


class Problems:
    """Collects the errors of individual examples while files are read.

    Args:
        on_error: `"raise"` reports the problems of all files in one error. `"skip"` leaves out the
            broken examples and issues a `SkippedWarning` with their number.
    """

    def __init__(self, on_error="raise"):
        if on_error not in ON_ERROR:
            raise ValueError(f"on_error={on_error!r}: expected 'raise' or 'skip'.")
        self.on_error, self._texts = on_error, []

    def __len__(self):
        return len(self._texts)

    @contextlib.contextmanager
    def note(self):
        """Context manager that catches a ValueError, and keeps the message for `report`.

        The rest of the block is skipped, and the program continues after the block.
        """
        try:
            yield
        except ValueError as error:
            self._texts.append(str(error).removesuffix("."))

    def read_each(self, read, rows):
        """Return `[read(*row) for row in rows]`, without the rows for which `read` fails.

        Each ValueError of `read` is kept for `report`.
        """
        examples = []
        for row in rows:
            with self.note():
                examples.append(read(*row))
        return examples

    def report(self):
        """Raise one error for all problems so far, or only warn if `on_error` is `"skip"`."""
        if not self._texts:
            return
        count = len(self._texts)
        if self.on_error == "skip":
            text = f"skipped examples: {count:,}\n{self._list()}"
            warnings.warn(text, SkippedWarning, stacklevel=3)
            return
        if count == 1:
            raise ValueError(f"{self._texts[0]}. To leave it out, give on_error='skip'.")
        raise ExamplesError(
            f"{count:,} examples cannot be read:\n{self._list()}\n"
            "Mend or remove them. To leave them out, give on_error='skip'."
        )

    def _list(self):
        """Return a line for each of the first problems, and a line with the number of the rest."""
        texts = self._texts[:SHOWN]
        lines = [text if len(text) <= LONGEST else f"{text[:LONGEST]}..." for text in texts]
        more = len(self._texts) - len(texts)
        return ".\n".join([*lines, *([f"And {more:,} more"] if more else [])]) + "."


def report_problems(read):
    """Decorate `read`, a reader of a file, so that its argument `problems` is optional.

    This argument is a `Problems`. Without it, problems are collected and raised as one error.
    """

    @functools.wraps(read)
    def read_all(*args, problems=None, **keywords):
        if problems is not None:
            return read(*args, problems=problems, **keywords)
        problems = Problems()
        examples = read(*args, problems=problems, **keywords)
        problems.report()
        return examples

    return read_all
