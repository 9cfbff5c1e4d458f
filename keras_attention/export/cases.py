"""What an export is checked against: batches and what the model itself makes of them."""

import dataclasses
import re
from collections.abc import Callable

import keras
import numpy as np

from keras_attention.export import batches, examples
from keras_attention.export.errors import ExportError


@dataclasses.dataclass(frozen=True)
class Case:
    """One batch of inputs with the model's outputs for it.

    Attributes:
        inputs, outputs: dicts of arrays.
        real: whether the inputs are the user's own, not made up or cut from them.
        cache: names of outputs that are reported as one.
        judge: function that tells of outputs how good they are, where many would be right and
            `outputs` is empty: dict of arrays -> dict, name -> (error, agreement).
    """

    inputs: dict
    outputs: dict
    real: bool = False
    cache: tuple = ()
    judge: Callable | None = None


def of(model, endpoint, given=None):
    """At least three cases, all with padding, and notes on what could not be checked.

    Where the endpoint leaves them free, the cases have batch sizes 1, 3 and 2, and two lengths.
    Given examples are checked as they are, too.
    """
    base = examples.base(model, endpoint, given)
    cases, notes = [], []
    for rows, halve, share in ((1, False, 1 / 4), (3, False, 1 / 3), (2, True, 1 / 2)):
        batch = batches.fit(base[len(cases) % len(base)], endpoint, rows, halve)
        batch = batches.pad_first_row(batch, share)
        try:
            cases.append(Case(batch, run(endpoint, batch)))
        except Exception as error:
            if given is None:
                raise _unusable(batch, error) from error
            notes.append(f"not checked at {batches.describe(batch)}: the model refuses it")
    if given is not None:
        fitted = (batches.fit(batch, endpoint) for batch in base)
        cases += [Case(batch, _given(endpoint, batch), real=True) for batch in fitted]
    return cases, notes


def _given(endpoint, batch):
    try:
        return run(endpoint, batch)
    except ExportError:
        raise
    except Exception as error:
        raise ValueError(
            f"The model cannot run examples= ({batches.describe(batch)}): {_first_line(error)}"
        ) from error


def _first_line(error):
    """What an error says, without the terminal colours that TensorFlow puts in."""
    lines = re.sub(r"\x1b\[[0-9;]*m|\{\{.*?\}\}", "", str(error)).strip().splitlines()
    return lines[0] if lines else repr(error)


def run(endpoint, batch):
    """The model's own outputs for a batch, as arrays; on the CPU, where files are checked."""
    with keras.device("cpu:0"):
        tensors = {name: keras.ops.convert_to_tensor(array) for name, array in batch.items()}
        outputs = {name: np.asarray(value) for name, value in endpoint.call(tensors).items()}
    for name, value in outputs.items():
        if np.issubdtype(value.dtype, np.floating) and np.isnan(value).any():
            raise ExportError(
                f"The model itself gives NaN in {name!r} for {batches.describe(batch)}."
            )
    return outputs


def _unusable(batch, error):
    if isinstance(error, ExportError):
        return error
    return ExportError(
        f"The model cannot run inputs made up for the check ({batches.describe(batch)}): "
        f"{_first_line(error)} Pass examples=, a batch of real inputs."
    )
