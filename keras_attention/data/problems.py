"""`Problems`: what is wrong with the examples of files, all named in one error or skipped."""

import contextlib
import functools
import warnings

ON_ERROR = ("raise", "skip")
SHOWN = 20  # problems of an error, in full
LONGEST = 500  # characters of one


class ExamplesError(ValueError):
    """Names the examples that cannot be read, one on each line."""


class SkippedWarning(UserWarning):
    """Says how many examples a reader has skipped."""


class Problems:
    """Collects the errors of single examples while files are read.

    Args:
        on_error: `"raise"` names the problems of all files in one error. `"skip"` leaves these
            examples out, and a `SkippedWarning` says how many.

    ```python
    from keras_attention.data.problems import Problems

    problems, numbers = Problems(), []
    for text in ("1", "two", "3", "four"):
        with problems.note():
            numbers.append(int(text))
    assert numbers == [1, 3] and len(problems) == 2
    try:
        problems.report()
    except ValueError as error:
        assert str(error).startswith("2 examples cannot be read:")
    ```
    """

    def __init__(self, on_error="raise"):
        if on_error not in ON_ERROR:
            raise ValueError(f"on_error={on_error!r}: expected 'raise' or 'skip'.")
        self.on_error, self._texts = on_error, []

    def __len__(self):
        return len(self._texts)

    @contextlib.contextmanager
    def note(self):
        """Inside, a ValueError ends the block, and is kept for `report`."""
        try:
            yield
        except ValueError as error:
            self._texts.append(str(error).removesuffix("."))

    def report(self):
        """Raise one error for all problems, or warn of them where they are skipped."""
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
        """Return a line for each of the first problems, and how many more there are."""
        texts = self._texts[:SHOWN]
        lines = [text if len(text) <= LONGEST else f"{text[:LONGEST]}..." for text in texts]
        more = len(self._texts) - len(texts)
        return ".\n".join([*lines, *([f"And {more:,} more"] if more else [])]) + "."


def report_problems(read):
    """Decorate a reader that takes `problems=`: without, it raises one error for all of them."""

    @functools.wraps(read)
    def read_all(*args, problems=None, **keywords):
        if problems is not None:
            return read(*args, problems=problems, **keywords)
        problems = Problems()
        examples = read(*args, problems=problems, **keywords)
        problems.report()
        return examples

    return read_all
