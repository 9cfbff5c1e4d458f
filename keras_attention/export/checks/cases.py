"""The test cases of an export: batches of inputs with the outputs of the model."""

import dataclasses
from collections.abc import Callable

import keras
import numpy as np

from keras_attention.blocks import LengthMask
from keras_attention.core import keras_internals
from keras_attention.core.special_ids import Padding
from keras_attention.export import batches
from keras_attention.export.errors import ExportError, first_line
from keras_attention.generation.cache import NUM_SAMPLES

LENGTH = 12  # number of tokens in random sequences. Half this number is checked, too.


@dataclasses.dataclass(frozen=True)
class Case:
    """A batch of inputs with the model's outputs, which the outputs of a file are compared with.

    Attributes:
        inputs, outputs: dicts of arrays.
        real: bool, whether the inputs are unchanged examples of the user.
        cache: tuple of str, the outputs that form a key-value cache. A report joins them to one
            output.
        score: function for cases with several correct outputs, for which `outputs` is empty. It
            maps the outputs of a file, a dict of arrays, to a dict {name of an output: (error,
            agreement)}.
        padding: dict from the name of an input of ids to its `Padding`.
    """

    inputs: dict
    outputs: dict
    real: bool = False
    cache: tuple = ()
    score: Callable | None = None
    padding: dict = dataclasses.field(default_factory=dict)


def make_cases(model, endpoint, examples=None):
    """Make the test cases for an endpoint.

    A dynamic batch axis gets the sizes 1, 3 and 2, and a dynamic length gets two values. The first
    row of ids is partly padded if the model supports padding. The user's examples are cut and
    padded in this way, and also tested unchanged.

    Args:
        model: the `keras.Model` that is exported.
        endpoint: `Endpoint`, the signature that the cases test.
        examples: one batch of the user's examples or an iterable of batches. None makes random
            inputs.

    Returns:
        A list of `Case`, and a list of notes about batches that the model could not run.
    """
    base = make_batches(model, endpoint, examples)
    cases, notes = [], []
    for rows, halve, share in ((1, False, 1 / 4), (3, False, 1 / 3), (2, True, 1 / 2)):
        batch = batches.fit_batch(base[len(cases) % len(base)], endpoint, rows, halve)
        batch = batches.pad_first_row(batch, share, endpoint.padding)
        try:
            cases.append(Case(batch, run_model(endpoint, batch), padding=endpoint.padding))
        except Exception as error:
            if examples is None:
                raise _make_unusable_error(batch, error) from error
            notes.append(f"not checked at {batches.describe_batch(batch)}: the model refuses it")
    if examples is not None:
        fitted = (batches.fit_batch(batch, endpoint) for batch in base)
        cases += [
            Case(batch, _run_examples(endpoint, batch), real=True, padding=endpoint.padding)
            for batch in fitted
        ]
    return cases, notes


def read_calibration(endpoint, calibration):
    """Return the user's calibration batches as a list of dicts of arrays that fit an endpoint.

    `calibration` is an iterable of batches, on which the converter measures the ranges of
    activations.

    Raises:
        ValueError: a batch is not finite, or the model cannot run it. The converter would measure
            wrong ranges on it, or crash.
    """
    read = batches.read_batches(calibration, endpoint, "calibration", most=None)
    batches.check_finite(read, "calibration")
    pieces = [piece for batch in read for piece in batches.cut_batch(batch, endpoint)]
    for piece in pieces:
        for name, value in _run_examples(endpoint, piece, "calibration").items():
            if value.dtype.kind == "f" and not np.isfinite(value).all():
                raise ValueError(
                    f"The model returns infinite numbers in {name!r} for calibration= "
                    f"({batches.describe_batch(piece)}). Pass typical inputs."
                )
    return pieces


def _run_examples(endpoint, batch, argument="examples"):
    try:
        return run_model(endpoint, batch)
    except ExportError:
        raise
    except Exception as error:
        raise ValueError(
            f"The model cannot run {argument}= ({batches.describe_batch(batch)}): "
            f"{first_line(error)} Pass inputs that the model accepts."
        ) from error


def run_model(endpoint, batch):
    """Run the model of an endpoint on a batch, and return a dict of output arrays.

    The model runs on the CPU, as the exported file does.
    """
    with keras.device("cpu:0"):
        tensors = {name: keras.ops.convert_to_tensor(array) for name, array in batch.items()}
        outputs = {name: np.asarray(value) for name, value in endpoint.call(tensors).items()}
    for name, value in outputs.items():
        if np.issubdtype(value.dtype, np.floating) and np.isnan(value).any():
            raise ExportError(
                f"The model itself returns NaN in {name!r} for {batches.describe_batch(batch)}. "
                "Check the weights, or pass other examples=."
            )
    return outputs


def _make_unusable_error(batch, error):
    if isinstance(error, ExportError):
        return error
    return ExportError(
        f"The model cannot run the random inputs of the check ({batches.describe_batch(batch)}): "
        f"{first_line(error)} Pass examples=, a batch of real inputs."
    )


def make_batches(model, endpoint, examples=None):
    """Return a list of batches (dicts of arrays): the user's examples, or three random batches.

    `model` is the `keras.Model`. `endpoint` is an `Endpoint`, an exported function with the names
    and shapes of its inputs. `examples` are the batches of the user, or None.
    """
    if examples is not None:
        return batches.read_batches(examples, endpoint, "examples")
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
            padding = endpoint.padding.get(tensor.name, Padding(None))  # bool inputs have none
            return draw_ids(generator, sizes[tensor.name], shape, padding.id)
        if tensor.dtype == "string":
            raise ExportError(
                f"The input {tensor.name!r} takes text, which cannot be made up for the check. "
                "Pass examples=."
            )
        return generator.random(shape).astype(tensor.dtype)

    return [{tensor.name: draw(tensor) for tensor in endpoint.inputs} for _ in range(3)]


def _find_sounds(model):
    """Return two sets of input names: the recordings that a `LengthMask` masks, and their lengths.

    Both sets are empty if the model has no `LengthMask`.
    """
    sounds, lengths = set(), set()
    for tensor in model.inputs:
        if any(isinstance(x, LengthMask) for x in keras_internals.find_readers(tensor)):
            (lengths if "int" in tensor.dtype else sounds).add(tensor.name)
    return (sounds, lengths) if sounds and lengths else (set(), set())


def draw_ids(generator, size, shape, padding):
    """Return random int32 ids below `size`, except the id `padding`. None allows every id.

    `generator` is a `numpy.random.Generator`, and `shape` is the shape of the result.
    """
    if padding is None or padding >= size:
        return generator.integers(0, size, shape, dtype="int32")
    ids = generator.integers(0, size - 1, shape, dtype="int32")
    return ids + (ids >= padding).astype("int32")


def _choose_shape(tensor):
    """Return the shape of a tensor with sizes for its dynamic axes.

    Waveforms (tensors of floats with two axes) get enough samples for several frames.
    """
    is_waveform = len(tensor.shape) == 2 and tensor.dtype.startswith("float")
    length = NUM_SAMPLES if is_waveform else LENGTH
    rows = 3 if tensor.shape[0] is None else tensor.shape[0]
    return [rows, *(length if axis is None else axis for axis in tensor.shape[1:])]


def _find_sizes(model, endpoint):
    """Return a dict from the name of each input to the exclusive upper bound of random integers.

    The bound for bool inputs is 2. For ids it is the size of the smallest embedding that reads the
    input, or else of the smallest embedding in the model, or else 2.
    """
    smallest = find_smallest_table(keras_internals.all_layers(model))
    sizes = {}
    for tensor, spec in zip(model.inputs, endpoint.inputs, strict=True):
        size = find_smallest_table(keras_internals.find_readers(tensor)) or smallest or 2
        sizes[spec.name] = 2 if tensor.dtype == "bool" else max(2, size)
    return sizes


def find_smallest_table(layers):
    """Return the smallest `input_dim` of all `keras.layers.Embedding` in an iterable of layers.

    Return None if the iterable has no embedding.
    """
    sizes = [layer.input_dim for layer in layers if isinstance(layer, keras.layers.Embedding)]
    return min(sizes, default=None)
