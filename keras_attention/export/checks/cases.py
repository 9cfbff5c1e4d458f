"""The cases that an export is checked on: batches of inputs with the model's own outputs."""

import dataclasses
from collections.abc import Callable

import keras
import numpy as np

from keras_attention.blocks import LengthMask
from keras_attention.core import keras_internals
from keras_attention.core.padding import Padding
from keras_attention.export import batches
from keras_attention.export.errors import ExportError, first_line
from keras_attention.generation.cache import NUM_SAMPLES

LENGTH = 12  # tokens of made-up sequences; half as many are checked, too


@dataclasses.dataclass(frozen=True)
class Case:
    """One batch of inputs with the model's outputs for it.

    Attributes:
        inputs, outputs: dicts of arrays.
        real: whether the inputs are the user's own, not made up or cut from them.
        cache: names of outputs that are reported as one.
        score: function that scores outputs, where many are right and `outputs` is empty: dict of
            arrays -> dict, name -> (error, agreement).
        padding: dict, as that of `Endpoint`.
    """

    inputs: dict
    outputs: dict
    real: bool = False
    cache: tuple = ()
    score: Callable | None = None
    padding: dict = dataclasses.field(default_factory=dict)


def make_cases(model, endpoint, given=None):
    """At least three cases, padded where that may be, and notes on what could not be checked.

    Where the endpoint leaves them free, the cases have batch sizes 1, 3 and 2, and two lengths.
    Given examples are checked as they are, too.
    """
    base = make_batches(model, endpoint, given)
    cases, notes = [], []
    for rows, halve, share in ((1, False, 1 / 4), (3, False, 1 / 3), (2, True, 1 / 2)):
        batch = batches.fit_batch(base[len(cases) % len(base)], endpoint, rows, halve)
        batch = batches.pad_first_row(batch, share, endpoint.padding)
        try:
            cases.append(Case(batch, run_model(endpoint, batch), padding=endpoint.padding))
        except Exception as error:
            if given is None:
                raise _make_unusable_error(batch, error) from error
            notes.append(f"not checked at {batches.describe_batch(batch)}: the model refuses it")
    if given is not None:
        fitted = (batches.fit_batch(batch, endpoint) for batch in base)
        cases += [
            Case(batch, _run_given(endpoint, batch), real=True, padding=endpoint.padding)
            for batch in fitted
        ]
    return cases, notes


def read_calibration(endpoint, given):
    """The batches that `given` holds, cut to the shapes of `endpoint`: a list of dicts of arrays.

    A ValueError refuses those that are not finite, or that the model itself cannot run: the
    converter would measure wrong scales on them, or crash.
    """
    read = batches.read_batches(given, endpoint, "calibration", most=None)
    batches.check_finite(read, "calibration")
    found = [piece for batch in read for piece in batches.cut_batch(batch, endpoint)]
    for piece in found:
        for name, value in _run_given(endpoint, piece, "calibration").items():
            if value.dtype.kind == "f" and not np.isfinite(value).all():
                raise ValueError(
                    f"The model gives infinite numbers in {name!r} for calibration= "
                    f"({batches.describe_batch(piece)}): give inputs like those it will see."
                )
    return found


def _run_given(endpoint, batch, argument="examples"):
    try:
        return run_model(endpoint, batch)
    except ExportError:
        raise
    except Exception as error:
        raise ValueError(
            f"The model cannot run {argument}= ({batches.describe_batch(batch)}): "
            f"{first_line(error)}"
        ) from error


def run_model(endpoint, batch):
    """The model's own outputs for a batch, as arrays; on the CPU, where files are checked."""
    with keras.device("cpu:0"):
        tensors = {name: keras.ops.convert_to_tensor(array) for name, array in batch.items()}
        outputs = {name: np.asarray(value) for name, value in endpoint.call(tensors).items()}
    for name, value in outputs.items():
        if np.issubdtype(value.dtype, np.floating) and np.isnan(value).any():
            raise ExportError(
                f"The model itself gives NaN in {name!r} for {batches.describe_batch(batch)}."
            )
    return outputs


def _make_unusable_error(batch, error):
    if isinstance(error, ExportError):
        return error
    return ExportError(
        f"The model cannot run inputs made up for the check ({batches.describe_batch(batch)}): "
        f"{first_line(error)} Pass examples=, a batch of real inputs."
    )


def make_batches(model, endpoint, given=None):
    """A list of batches, dicts of arrays: the given ones, or made-up ones that layers accept."""
    if given is not None:
        return batches.read_batches(given, endpoint, "examples")
    generator = np.random.default_rng(0)
    sizes = _find_sizes(model, endpoint)
    sounds, lengths = _find_sounds(model)

    def draw(tensor):
        if tensor.name in lengths:
            sound = next(t for t in endpoint.inputs if t.name in sounds)
            rows, length = _choose_shape(tensor)[0], _choose_shape(sound)[1]
            return np.linspace(length, length * 2 // 3, rows).astype("int32")
        shape = _choose_shape(tensor)
        if tensor.dtype == "int32":
            padding = endpoint.padding.get(tensor.name, Padding(None))  # none for bool
            return draw_ids(generator, sizes[tensor.name], shape, padding.id)
        if tensor.dtype == "string":
            raise ExportError(
                f"No text can be made up for the input {tensor.name!r}: pass examples=."
            )
        return generator.random(shape).astype(tensor.dtype)

    return [{tensor.name: draw(tensor) for tensor in endpoint.inputs} for _ in range(3)]


def _find_sounds(model):
    """Names of the inputs that a `LengthMask` reads: what it masks, and the lengths of its rows."""
    sounds, lengths = set(), set()
    for tensor in model.inputs:
        if any(isinstance(x, LengthMask) for x in keras_internals.find_readers(tensor)):
            (lengths if "int" in tensor.dtype else sounds).add(tensor.name)
    return (sounds, lengths) if sounds and lengths else (set(), set())


def draw_ids(generator, size, shape, padding):
    """Ids below `size`, int32, by NumPy's `generator`: none is padding."""
    if padding is None or padding >= size:
        return generator.integers(0, size, shape, dtype="int32")
    ids = generator.integers(0, size - 1, shape, dtype="int32")
    return ids + (ids >= padding).astype("int32")


def _choose_shape(tensor):
    """A shape for free axes, too; rows of numbers alone are waveforms, and have some frames."""
    is_waveform = len(tensor.shape) == 2 and tensor.dtype.startswith("float")
    length = NUM_SAMPLES if is_waveform else LENGTH
    rows = 3 if tensor.shape[0] is None else tensor.shape[0]
    return [rows, *(length if axis is None else axis for axis in tensor.shape[1:])]


def _find_sizes(model, endpoint):
    """Per input, the number that those to draw are below: 2 for bool.

    Ids below the size of the smallest embedding that reads them, else of the smallest of all, are
    valid for every embedding; without any embedding they are below 2.
    """
    everywhere = find_smallest_table(keras_internals.all_layers(model))
    sizes = {}
    for tensor, spec in zip(model.inputs, endpoint.inputs, strict=True):
        size = find_smallest_table(keras_internals.find_readers(tensor)) or everywhere or 2
        sizes[spec.name] = 2 if tensor.dtype == "bool" else max(2, size)
    return sizes


def find_smallest_table(layers):
    """Return the size of the smallest embedding among `layers`, or None."""
    sizes = [layer.input_dim for layer in layers if isinstance(layer, keras.layers.Embedding)]
    return min(sizes, default=None)
