"""Parity of a file with its model: measured per output, and held to what is allowed."""

import dataclasses
import re

import numpy as np

from keras_attention.core.padding import Padding
from keras_attention.export import backend, batches
from keras_attention.export.checks import compiled_model, gpu_delegate, runner
from keras_attention.export.checks.cases import Case, run_model
from keras_attention.export.checks.report import Parity
from keras_attention.export.endpoint import make_endpoint
from keras_attention.export.errors import ExportError, first_line
from keras_attention.export.graphs import flatbuffer
from keras_attention.export.precision import convert_to_float32
from keras_attention.export.quantization import FLOAT32, find_quantization

SAVED_MODEL_TOLERANCE = 1e-5  # as `Quantization.tolerance`

# XNNPACK takes the ops it knows from the reference kernels, and either may be wrong alone.
_RUNTIMES = {"LiteRT": True, "LiteRT without XNNPACK": False}

# Whether an output is a vector, by the first pattern that its name matches.
_NAMES = (
    ("logit|prob|score|softmax", False),
    ("embed|hidden|feature|vector|state|pool|norm|encod|projection|box", True),
    ("class|label|tag|predict", False),
)
_VECTOR = 64  # entries of an output whose name says nothing

CACHE = "cache"  # the name under which all entries of a decoder's cache are reported


def measure_parity(case, outputs, *, signature, runtime):
    """A list of `Parity`, one per output of the model; NaN or a wrong shape is an ExportError.

    All of a decoder's cache is one of them, with its largest error.
    """
    scored = {} if case.score is None else case.score(outputs)
    found = {name: (*both, None) for name, both in scored.items()}
    for name, expected in case.outputs.items():
        got = _check_output(name, outputs, expected, f"from {runtime} for {_describe_inputs(case)}")
        error = _compute_max_abs_error(got, expected)
        if name in case.cache:
            found[CACHE] = max(found.get(CACHE, (0.0,))[0], error), None, None
        else:
            found[name] = error, *_compare_meaning(case, name, got, expected)
    shapes = _describe_inputs(case)
    return [Parity(signature, name, runtime, shapes, *three) for name, three in found.items()]


def is_vector(name, expected):
    """Whether an output is a vector (an embedding, hidden states) and not the scores of classes.

    The direction of a vector counts, and not its largest entry. The name decides; of other names,
    probabilities and short outputs are scores of classes.
    """
    for words, answer in _NAMES:
        if re.search(words, name.lower()):
            return answer
    shares = expected.min() >= 0 and np.allclose(expected.sum(-1), 1.0, atol=1e-3)
    return expected.shape[-1] >= _VECTOR and not shares


def _compare_meaning(case, name, got, expected):
    """(argmax agreement, None) of scores, (None, mean cosine) of vectors."""
    if expected.dtype.kind != "f" or expected.ndim < 2 or expected.shape[-1] < 2:
        return None, None
    counted = _find_counted(case, expected.shape[:-1])
    if is_vector(name, expected):
        return None, float(_compute_cosines(got, expected)[counted].mean())
    return float((got.argmax(-1) == expected.argmax(-1))[counted].mean()), None


def _compute_cosines(got, expected):
    """Return the cosines of vectors along the last axis; 1 where both are the same, if zero."""
    finite = np.isfinite(got) & np.isfinite(expected)
    got, expected = (np.where(finite, x, 0.0).astype("float64") for x in (got, expected))
    lengths = np.linalg.norm(got, axis=-1) * np.linalg.norm(expected, axis=-1)
    products = (got * expected).sum(-1)
    same = np.all(got == expected, axis=-1)
    return np.where(same, 1.0, products / np.where(lengths == 0, 1.0, lengths))


def _check_output(name, outputs, expected, where):
    """Return the output `name` as an array, which has the shape it should and no NaN."""
    where = f"{name!r} {where}"
    if name not in outputs:
        raise ExportError(f"No output {where}: the file gives {', '.join(outputs)}.")
    got = np.asarray(outputs[name])
    if got.shape != expected.shape:
        raise ExportError(f"Wrong shape of {where}: {got.shape}, not {expected.shape}.")
    if got.dtype.kind == "f" and np.isnan(got).any():
        raise ExportError(f"NaN in {where}.")
    return got


def _describe_inputs(case):
    return batches.describe_batch({k: v for k, v in case.inputs.items() if k not in case.cache})


def check_parity(case, measured, *, tolerance=None, agreement=None, cosine=None, advice=""):
    """Raises ExportError where an error is above `tolerance`, or an agreement or cosine too low.

    Args:
        advice: str, a way out, for the end of the error.
    """
    for parity in measured:
        largest = max(1.0, find_scale(case, parity.output))
        at = f"{parity.output!r} from {parity.runtime} at {parity.batch}"
        if tolerance is not None and not parity.max_abs_error <= tolerance * largest:
            raise ExportError(
                f"The file does not compute what the model computes: {at} is off by "
                f"{parity.max_abs_error:.2e}; {tolerance * largest:.0e} is allowed."
            )
        share = parity.argmax_agreement
        if agreement is not None and share is not None and share < agreement:
            raise ExportError(
                f"The quantized file decides differently from the model: {at} agrees in "
                f"{share:.3f} of the positions; {agreement} is the least allowed.{advice}"
            )
        if cosine is not None and parity.cosine is not None and not parity.cosine >= cosine:
            raise ExportError(
                f"The quantized file gives other vectors than the model: {at} has a cosine of "
                f"{parity.cosine:.3f} with the model's; {cosine} is the least allowed.{advice}"
            )


def _compute_max_abs_error(got, expected):
    if got.dtype.kind in "biufc":
        got, expected = got.astype("float64"), expected.astype("float64")
        differ = got != expected  # equal infinities have no difference to compute
        return float(np.abs(got[differ] - expected[differ]).max(initial=0.0))
    return float((got != expected).any())


def find_scale(case, output):
    """Return the largest number in the model's output; 0 for outputs that a case scores itself."""
    largest = 0.0
    for name in case.cache if output == CACHE else (output,):
        array = case.outputs.get(name)
        if array is not None and array.dtype.kind in "biuf":
            array = np.abs(array.astype("float64"))
            largest = array[np.isfinite(array)].max(initial=largest)
    return largest


def _find_counted(case, shape):
    """Return the positions that count: not padding in all inputs of ids of that shape."""
    tokens = [
        array != case.padding.get(name, Padding()).masked  # all differ from None
        for name, array in case.inputs.items()
        if array.dtype == np.int32 and array.shape == shape and array.ndim > 1
    ]
    counted = np.any(tokens, axis=0) if tokens else np.ones(shape, bool)
    return counted if counted.any() else np.ones(shape, bool)


def measure_litert(path, endpoint, cases, quantization=FLOAT32):
    """A list of `Parity` over all cases in both kinds of kernels; too large an error is raised."""
    measured = []
    for runtime, xnnpack in _RUNTIMES.items():
        execute = runner.LiteRT(path, endpoint.name, xnnpack=xnnpack)
        for case in cases:
            outputs = _execute(execute, case, runtime)
            found = measure_parity(case, outputs, signature=endpoint.name, runtime=runtime)
            check_parity(
                case,
                found,
                tolerance=quantization.tolerance,
                agreement=quantization.agreement if case.real else None,
                cosine=quantization.cosine if case.real else None,
                advice=quantization.advice,
            )
            measured += found
    return measured


def _execute(execute, case, runtime):
    try:
        return execute(case.inputs)
    except (RuntimeError, ValueError) as error:
        raise ExportError(
            f"{runtime} cannot run the file on {batches.describe_batch(case.inputs)}: "
            f"{first_line(error.__cause__ or error)}"
        ) from error


def list_warnings(measured, quantization, given=False):
    """Warnings of a low agreement or cosine, which on made-up inputs is no proof of a fault.

    Args:
        given: bool, whether inputs were made of given ones, by cutting and padding.
    """
    if quantization.agreement is None:
        return []
    shares = [p.argmax_agreement for p in measured if p.argmax_agreement is not None]
    cosines = [p.cosine for p in measured if p.cosine is not None]
    found = []
    if min(shares, default=1.0) < quantization.agreement:
        found.append(f"agrees with the model in only {min(shares):.3f} of the positions")
    if min(cosines, default=1.0) < quantization.cosine:
        found.append(f"gives vectors of a cosine of only {min(cosines):.3f} with the model's")
    where = (
        "that was on examples that are cut and padded; it passed on examples= as they are."
        if given
        else "pass examples= to see whether that holds for real inputs."
    )
    return [f"the quantized file {what}; {where}{quantization.advice}" for what in found]


def verify(model, path, inputs, *, tolerance=None, runtime=None):
    """Runs the file at `path` on `inputs` and compares it with `model`.

    Args:
        model: the functional `keras.Model` that the file should equal. (One in reduced precision
            is compared in float32, as it is exported.)
        path: a SavedModel folder, a `.tflite` or a `.keras` file.
        inputs: a batch or an iterable of batches: dicts of arrays, or arrays where the model has
            one input.
        tolerance: float, the largest absolute error allowed per unit of the largest output (at
            least 1). By default 1e-5, for LiteRT 1e-4 or 1e-2 with float16 weights; int8 files
            are only measured, and refused for NaN.
        runtime: `"compiled_model"` runs a `.tflite` of fixed shapes in `CompiledModel` on the CPU,
            and `"gpu"` on ai_edge_litert's GPU delegate, in float32; it needs a driver of Vulkan.
            None is the stock runtime of the file's kind.

    Returns:
        dict, output name -> `Parity`, the worst over all batches. Its `runtime` tells whether a
        GPU delegate left operators to the CPU.

    Raises:
        ExportError: where the file is further off than `tolerance`, gives NaN, lacks an output, or
            does not run on the delegate.
        ValueError: if there is no model at `path`, it takes other inputs, or it is not of the kind
            that `runtime` runs.
    """
    backend.import_tensorflow()
    kind = runner.find_format(path)
    if runtime not in (None, "compiled_model", "gpu"):
        raise ValueError(f"runtime={runtime!r} is unknown. Known: None, 'compiled_model', 'gpu'.")
    if runtime and kind != "litert":
        raise ValueError(f"runtime={runtime!r} runs .tflite files; {path} is {kind}.")
    if tolerance is None:
        tolerance = SAVED_MODEL_TOLERANCE
        if kind == "litert":
            constants = flatbuffer.read_graph(path).constants
            tolerance = find_quantization({tensor.dtype for tensor in constants}).tolerance
    own = make_endpoint(convert_to_float32(model))
    given = batches.read_batches(inputs, own, "inputs", most=None)
    worst = {}
    execute, where = runner.load(path), kind
    if runtime == "compiled_model":
        results = compiled_model.run_signature(path, execute.signature, given)
        where = compiled_model.NAME
    elif runtime == "gpu":
        delegation = gpu_delegate.run_signature(path, execute.signature, given)
        results, where = delegation.outputs, delegation.runtime
    else:
        results = map(execute, given)
    for batch, outputs in zip(given, results, strict=True):
        case = Case(batch, run_model(own, batch), padding=own.padding)
        measured = measure_parity(case, outputs, signature=own.name, runtime=where)
        check_parity(case, measured, tolerance=tolerance)
        for parity in measured:
            worst[parity.output] = _worse(worst.get(parity.output), parity)
    return worst


def _worse(known, parity):
    if known is None:
        return parity
    error = max(known.max_abs_error, parity.max_abs_error)
    agreement = parity.argmax_agreement
    if agreement is not None:
        agreement = min(known.argmax_agreement, agreement)
    cosine = None if parity.cosine is None else min(known.cosine, parity.cosine)
    batch = parity.batch if error == parity.max_abs_error else known.batch
    return dataclasses.replace(
        parity, batch=batch, max_abs_error=error, argmax_agreement=agreement, cosine=cosine
    )
