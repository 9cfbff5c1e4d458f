"""Batches of named arrays: read the user's examples, and fit the arrays to an endpoint's shapes."""

import itertools

import numpy as np

from keras_attention.core.special_ids import Padding

MOST = 8  # maximum number of batches of examples that an export reads


def read_batches(examples, endpoint, argument, most=MOST):
    """Convert the user's examples to a list of dicts from input names to arrays.

    Args:
        examples: one batch, or an iterable of batches, such as a `tf.data.Dataset`. A batch is a
            dict, a list in the order of the inputs, or an array for a model with a single input. It
            may also be a tuple (inputs, targets), whose targets are ignored.
        endpoint: `Endpoint`, which defines the names and dtypes.
        argument: str, the name of the argument that the user passed, for error messages.
        most: int, the maximum number of batches to read.
    """
    if isinstance(examples, dict) or hasattr(examples, "shape"):
        examples = [examples]
    result = [name_arrays(batch, endpoint, argument) for batch in itertools.islice(examples, most)]
    if not result:
        raise ValueError(f"{argument}= is empty. Pass at least one batch.")
    return result


def name_arrays(batch, endpoint, argument):
    """Convert one batch to a dict from input names to arrays, with the dtypes of the endpoint.

    `batch` is a dict, a list in the order of the inputs, or one array. `endpoint` is an exported
    function, with the names, shapes and dtypes of its inputs. `argument` is the name of the user's
    argument, for error messages.
    """
    if isinstance(batch, tuple):
        batch = batch[0]
    names = [tensor.name for tensor in endpoint.inputs]
    if not isinstance(batch, dict):
        batch = batch if isinstance(batch, list) and len(names) > 1 else [batch]
        if len(batch) != len(names):
            raise ValueError(
                f"{argument}= has batches of {len(batch)} arrays, but the model takes {len(names)} "
                f"inputs: {', '.join(names)}. Pass one array for each input."
            )
        batch = dict(zip(names, batch, strict=True))
    if set(batch) != set(names):
        raise ValueError(
            f"{argument}= has a batch with {', '.join(sorted(map(str, batch)))}, but the model "
            f"takes {', '.join(names)}. Pass exactly these inputs."
        )
    return {tensor.name: _array(batch[tensor.name], tensor, argument) for tensor in endpoint.inputs}


def _array(values, tensor, argument):
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise ValueError(
            f"{argument}= has no array for the input {tensor.name!r}: {error}. Pad the rows to "
            "one length."
        ) from error
    if array.ndim != len(tensor.shape) or 0 in array.shape:
        raise ValueError(
            f"{argument}= has an array of shape {array.shape} for the input {tensor.name!r}. "
            f"Expected the shape {tensor.shape}, batch first."
        )
    try:
        return cast_exactly(array, tensor.dtype)
    except ValueError as error:
        raise ValueError(
            f"{argument}= has {error} for the input {tensor.name!r}. Expected {tensor.dtype}."
        ) from error


def cast_exactly(array, dtype):
    """Return an array cast to `dtype` (a str), if the cast changes no value except by rounding.

    Raises:
        ValueError: the dtype cannot represent all values. The message describes these values.
    """
    if dtype in ("string", array.dtype.name):
        return array
    if array.dtype.kind == "V" and array.dtype.names is None:  # bfloat16 and similar dtypes
        array = array.astype("float32")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"an array of {array.dtype}")
    if array.dtype.kind == "f" and not np.issubdtype(dtype, np.floating):
        if not np.isfinite(array).all():
            raise ValueError("NaN or infinite numbers")
        if np.any(array != np.floor(array)):
            raise ValueError("numbers with a fraction")
    with np.errstate(over="ignore", invalid="ignore"):
        result = array.astype(dtype, copy=False)
    if not np.array_equal(np.isfinite(result), np.isfinite(array)) or (
        not np.issubdtype(dtype, np.floating) and np.any(result != array)
    ):
        raise ValueError(f"numbers from {array.min()} to {array.max()}")
    return result


def check_finite(all_batches, argument):
    """Raise a ValueError if a batch contains NaN or infinity.

    `all_batches` is a list of dicts of arrays, which the user passed as the argument `argument`.
    """
    for number, batch in enumerate(all_batches):
        for name, array in batch.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ValueError(
                    f"{argument}= has NaN or infinite numbers for the input {name!r} in batch "
                    f"{number}. Expected finite numbers. Remove or replace them."
                )


def fit_batch(batch, endpoint, rows=None, halve=False):
    """Return a batch with the number of rows and the sequence lengths changed for an endpoint.

    Args:
        batch: dict of arrays.
        endpoint: `Endpoint`. If it has a fixed length, sequences are truncated, or padded at the
            end.
        rows: int, the number of rows, if the batch axis of the endpoint is dynamic. If the batch
            has fewer rows, its rows are repeated. None keeps the number of rows.
        halve: bool, whether to truncate sequences of dynamic length to half their length.
    """
    fitted = {}
    for tensor in endpoint.inputs:
        array = batch[tensor.name]
        count = tensor.shape[0] or rows or len(array)
        array = array[np.arange(count) % len(array)]
        for axis in endpoint.lengths[tensor.name]:
            size = array.shape[axis]
            length = tensor.shape[axis] or (max(1, size // 2) if halve else size)
            array = np.take(array, range(min(length, size)), axis)
            missing = [(0, 0)] * array.ndim
            missing[axis] = (0, length - array.shape[axis])
            filler = endpoint.padding.get(tensor.name, Padding()).filler
            array = np.pad(array, missing, constant_values=filler)
        fitted[tensor.name] = array
    return fitted


def cut_batch(batch, endpoint):
    """Split a batch into batches with the shapes of an endpoint, and yield them.

    `batch` is a dict of arrays, and `endpoint` an `Endpoint`. Together the yielded batches have all
    rows.
    """
    rows = len(next(iter(batch.values())))
    step = endpoint.inputs[0].shape[0] or rows
    for start in range(0, rows, step):
        yield fit_batch(
            {name: array[start : start + step] for name, array in batch.items()}, endpoint
        )


def pad_first_row(batch, share, padding):
    """Return a batch with padding at the end of the first row of every input of ids.

    Such a batch tests whether a file masks padding like the model.

    Args:
        batch: dict of arrays.
        share: float, the share of the row that becomes padding.
        padding: dict from the name of an input to its `Padding`. Inputs that do not support padding
            are not changed.
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
    """Return the shapes in a batch as text such as `token_ids (3, 12), images (3, 8, 8, 1)`."""
    return ", ".join(f"{name} {array.shape}" for name, array in batch.items())
