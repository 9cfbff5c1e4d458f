"""Batches of named arrays: read from what users pass, and fitted to an endpoint's shapes."""

import itertools

import numpy as np

from keras_attention.core.padding import Padding

MOST = 8  # batches of examples that are read; an export is no evaluation


def read_batches(examples, endpoint, argument, most=MOST):
    """Return a list of dicts name -> array from what was passed as `argument`.

    Accepts one batch or an iterable of batches (a tf.data.Dataset is one). A batch is a dict, an
    array where the model has one input, or a list in the order of the inputs; of a tuple the
    first entry is taken, as Keras does with (inputs, targets).
    """
    if isinstance(examples, dict) or hasattr(examples, "shape"):
        examples = [examples]
    found = [name_arrays(batch, endpoint, argument) for batch in itertools.islice(examples, most)]
    if not found:
        raise ValueError(f"{argument}= holds no batch.")
    return found


def name_arrays(batch, endpoint, argument):
    """One batch as a dict name -> array of the endpoint's dtypes."""
    if isinstance(batch, tuple):
        batch = batch[0]
    names = [tensor.name for tensor in endpoint.inputs]
    if not isinstance(batch, dict):
        batch = batch if isinstance(batch, list) and len(names) > 1 else [batch]
        if len(batch) != len(names):
            raise ValueError(
                f"{argument}= has batches of {len(batch)} arrays, but the model takes "
                f"{len(names)} inputs: {', '.join(names)}."
            )
        batch = dict(zip(names, batch, strict=True))
    if set(batch) != set(names):
        raise ValueError(
            f"{argument}= has a batch with {', '.join(sorted(map(str, batch)))}, but the model "
            f"takes {', '.join(names)}."
        )
    return {tensor.name: _array(batch[tensor.name], tensor, argument) for tensor in endpoint.inputs}


def _array(values, tensor, argument):
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise ValueError(
            f"{argument}= has no array for the input {tensor.name!r}: {error}"
        ) from error
    if array.ndim != len(tensor.shape) or 0 in array.shape:
        raise ValueError(
            f"{argument}= has an array of shape {array.shape} for the input {tensor.name!r}, "
            f"which has the shape {tensor.shape}, batch first."
        )
    try:
        return cast_exactly(array, tensor.dtype)
    except ValueError as error:
        raise ValueError(
            f"{argument}= has {error} for the input {tensor.name!r}, which takes {tensor.dtype}."
        ) from error


def cast_exactly(array, dtype):
    """`array` as `dtype`, a str; a ValueError names numbers that it cannot hold."""
    if dtype in ("string", array.dtype.name):
        return array
    if array.dtype.kind == "V" and array.dtype.names is None:  # bfloat16 and the like
        array = array.astype("float32")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"an array of {array.dtype}")
    if array.dtype.kind == "f" and not np.issubdtype(dtype, np.floating):
        if not np.isfinite(array).all():
            raise ValueError("NaN or infinite numbers")
        if np.any(array != np.floor(array)):
            raise ValueError("numbers with a fraction")
    with np.errstate(over="ignore", invalid="ignore"):
        found = array.astype(dtype, copy=False)
    if not np.array_equal(np.isfinite(found), np.isfinite(array)) or (
        not np.issubdtype(dtype, np.floating) and np.any(found != array)
    ):
        raise ValueError(f"numbers from {array.min()} to {array.max()}")
    return found


def check_finite(given, argument):
    """Refuses batches, as `read_batches` gives them, with NaN or infinite numbers."""
    for number, batch in enumerate(given):
        for name, array in batch.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ValueError(
                    f"{argument}= has NaN or infinite numbers for the input {name!r}, in batch "
                    f"{number}: expected finite ones."
                )


def fit_batch(batch, endpoint, rows=None, halve=False):
    """`batch` with `rows` rows (repeated if need be) and sequences of the endpoint's length.

    Where lengths are fixed, sequences are cut, or padded at the end. Where they are
    free they stay, or are cut to half with `halve=True`.
    """
    fitted = {}
    for tensor in endpoint.inputs:
        array = batch[tensor.name]
        count = tensor.shape[0] or rows or len(array)
        array = array[np.arange(count) % len(array)]
        for axis in endpoint.lengths[tensor.name]:
            length = array.shape[axis]
            wanted = tensor.shape[axis] or (max(1, length // 2) if halve else length)
            array = np.take(array, range(min(wanted, length)), axis)
            missing = [(0, 0)] * array.ndim
            missing[axis] = (0, wanted - array.shape[axis])
            filler = endpoint.padding.get(tensor.name, Padding()).filler
            array = np.pad(array, missing, constant_values=filler)
        fitted[tensor.name] = array
    return fitted


def cut_batch(batch, endpoint):
    """Yields all rows of `batch` in pieces that have the endpoint's shapes."""
    rows = len(next(iter(batch.values())))
    step = endpoint.inputs[0].shape[0] or rows
    for start in range(0, rows, step):
        yield fit_batch(
            {name: array[start : start + step] for name, array in batch.items()}, endpoint
        )


def pad_first_row(batch, share, padding):
    """Pads the last `share` of the first row of every input of ids.

    Args:
        padding: dict, name -> `Padding`. An input that may have none is left as it is.
    """
    padded = {}
    for name, array in batch.items():
        masked = padding.get(name, Padding()).masked
        if array.dtype == np.int32 and array.ndim > 1 and masked is not None:
            array = array.copy()
            array[0, max(1, round(array.shape[1] * (1 - share))) :] = masked
        padded[name] = array
    return padded


def describe_batch(batch):
    """`token_ids (3, 12), images (3, 8, 8, 1)`, for messages and reports."""
    return ", ".join(f"{name} {array.shape}" for name, array in batch.items())
