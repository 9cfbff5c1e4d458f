"""Parity of a file with its model: measure the error of each output, and compare with limits."""

import dataclasses
import re

import numpy as np

from keras_attention.core.special_ids import Padding
from keras_attention.export import backend, batches
from keras_attention.export.checks import compiled_model, gpu_delegate, runner
from keras_attention.export.checks.cases import Case, run_model
from keras_attention.export.checks.report import Parity
from keras_attention.export.endpoint import make_endpoint
from keras_attention.export.errors import ExportError, first_line
from keras_attention.export.graphs import flatbuffer
from keras_attention.export.precision import convert_to_float32
from keras_attention.export.quantization import FLOAT32, find_quantization

SAVED_MODEL_TOLERANCE = 1e-5  # the same quantity as `Quantization.tolerance`

# XNNPACK and the reference kernels are separate implementations, and either may be wrong.
_RUNTIMES = {"LiteRT": True, "LiteRT without XNNPACK": False}

# Whether an output is a vector. The first pattern that matches the name of the output applies.
_NAMES = (
    ("logit|prob|score|softmax", False),
    ("embed|hidden|feature|vector|state|pool|norm|encod|projection|box", True),
    ("class|label|tag|predict", False),
)
_VECTOR = 64  # minimum number of entries of a vector, if its name matches no pattern

CACHE = "cache"  # the name in reports for all tensors of a key-value cache together


def measure_parity(case, outputs, *, signature, runtime):
    """Compare an exported file's outputs with the model's, and return a `Parity` for each output.

    The tensors of a key-value cache are reported as one output.

    Args:
        case: `Case`, a test input with the model's outputs.
        outputs: dict of arrays, the outputs of the file.
        signature: str, the name of the signature.
        runtime: str, the name of the runtime.

    Raises:
        ExportError: an output is missing, contains NaN or has a wrong shape.
    """
    scored = {} if case.score is None else case.score(outputs)
    values = {name: (*pair, None) for name, pair in scored.items()}
    for name, expected in case.outputs.items():
        got = _check_output(name, outputs, expected, f"from {runtime} for {_describe_inputs(case)}")
        error = _compute_max_abs_error(got, expected)
        if name in case.cache:
            values[CACHE] = max(values.get(CACHE, (0.0,))[0], error), None, None
        else:
            values[name] = error, *_compare_meaning(case, name, got, expected)
    shapes = _describe_inputs(case)
    return [Parity(signature, name, runtime, shapes, *three) for name, three in values.items()]


def is_vector(name, expected):
    """Return whether an output is a vector (embedding, hidden states) instead of class scores.

    `name` is the name of the output, and `expected` an array of its values. Vectors are compared by
    their direction, and class scores by their argmax. The decision depends on the name of the
    output. If the name matches no pattern, probabilities and short outputs are class scores.
    """
    for words, answer in _NAMES:
        if re.search(words, name.lower()):
            return answer
    shares = expected.min() >= 0 and np.allclose(expected.sum(-1), 1.0, atol=1e-3)
    return expected.shape[-1] >= _VECTOR and not shares


def _compare_meaning(case, name, got, expected):
    """Return (argmax agreement, None) for class scores, and (None, mean cosine) for vectors.

    For other outputs, such as integers, return (None, None). `got` and `expected` are the arrays of
    the output `name`, of the file and of the model.
    """
    if expected.dtype.kind != "f" or expected.ndim < 2 or expected.shape[-1] < 2:
        return None, None
    counted = _find_counted(case, expected.shape[:-1])
    if is_vector(name, expected):
        return None, float(_compute_cosines(got, expected)[counted].mean())
    return float((got.argmax(-1) == expected.argmax(-1))[counted].mean()), None


def _compute_cosines(got, expected):
    """Return the cosines between vectors along the last axis, which are 1 for equal vectors.

    Entries that are not finite count as 0.
    """
    finite = np.isfinite(got) & np.isfinite(expected)
    got, expected = (np.where(finite, x, 0.0).astype("float64") for x in (got, expected))
    lengths = np.linalg.norm(got, axis=-1) * np.linalg.norm(expected, axis=-1)
    products = (got * expected).sum(-1)
    same = np.all(got == expected, axis=-1)
    return np.where(same, 1.0, products / np.where(lengths == 0, 1.0, lengths))


def _check_output(name, outputs, expected, where):
    """Return the output `name` of a file as an array. Raise an ExportError if it is invalid.

    An output is invalid if it has NaN, or another shape than `expected`. `where` is a phrase for
    the error message.
    """
    where = f"{name!r} {where}"
    if name not in outputs:
        raise ExportError(f"No output {where}. The file returns {', '.join(outputs)}.")
    got = np.asarray(outputs[name])
    if got.shape != expected.shape:
        raise ExportError(
            f"Wrong shape of {where}: {got.shape}. The model returns {expected.shape}."
        )
    if got.dtype.kind == "f" and np.isnan(got).any():
        raise ExportError(f"NaN in {where}.")
    return got


def _describe_inputs(case):
    return batches.describe_batch({k: v for k, v in case.inputs.items() if k not in case.cache})


def check_parity(case, measured, *, tolerance=None, agreement=None, cosine=None, advice=""):
    """Raise an ExportError if an output differs too much from the output of the model.

    Args:
        case: `Case`, a test input with the model's outputs.
        measured: list of `Parity`, the errors for this case.
        tolerance: float, the maximum relative error.
        agreement: float, the minimum share of positions with the same argmax.
        cosine: float, the minimum mean cosine between vectors. A limit of None is not checked.
        advice: str, a sentence that is added to the error message.
    """
    for parity in measured:
        largest = max(1.0, find_scale(case, parity.output))
        at = f"{parity.output!r} from {parity.runtime} at {parity.batch}"
        if tolerance is not None and not parity.max_abs_error <= tolerance * largest:
            raise ExportError(
                f"The file's results differ from the model's: {at} is off by "
                f"{parity.max_abs_error:.2e}. Allowed is {tolerance * largest:.0e}."
            )
        share = parity.argmax_agreement
        if agreement is not None and share is not None and share < agreement:
            raise ExportError(
                f"The quantized file decides differently from the model: {at} agrees in "
                f"{share:.3f} of the positions. Required is {agreement}.{advice}"
            )
        if cosine is not None and parity.cosine is not None and not parity.cosine >= cosine:
            raise ExportError(
                f"The quantized file returns other vectors than the model: {at} has a cosine of "
                f"{parity.cosine:.3f} with the model's. Required is {cosine}.{advice}"
            )


def _compute_max_abs_error(got, expected):
    if got.dtype.kind in "biufc":
        got, expected = got.astype("float64"), expected.astype("float64")
        differ = got != expected  # equal infinities would give NaN
        return float(np.abs(got[differ] - expected[differ]).max(initial=0.0))
    return float((got != expected).any())


def find_scale(case, output):
    """Return the largest absolute value in an output of the model, or 0 without this output.

    `case` is a `Case`, and `output` the name of the output. If `output` is `CACHE`, all tensors of
    the key-value cache are searched.
    """
    largest = 0.0
    for name in case.cache if output == CACHE else (output,):
        array = case.outputs.get(name)
        if array is not None and array.dtype.kind in "biuf":
            array = np.abs(array.astype("float64"))
            largest = array[np.isfinite(array)].max(initial=largest)
    return largest


def _find_counted(case, shape):
    """Return a bool array of the given shape: True for the positions to compare, False for padding.

    A position is padding if all inputs of ids with this shape have the padding id there.
    """
    tokens = [
        array != case.padding.get(name, Padding()).masked  # all differ from None
        for name, array in case.inputs.items()
        if array.dtype == np.int32 and array.shape == shape and array.ndim > 1
    ]
    counted = np.any(tokens, axis=0) if tokens else np.ones(shape, bool)
    return counted if counted.any() else np.ones(shape, bool)


def measure_litert(path, endpoint, cases, quantization=FLOAT32):
    """Run a LiteRT file on all cases, with and without XNNPACK, and return a list of `Parity`.

    `endpoint` is an `Endpoint`, an exported function. `cases` are test cases for its signature.
    `quantization` has the limits of errors. A `Parity` is the difference between an output of the
    file and of the model.

    Raises:
        ExportError: an output differs too much from the output of the model.
    """
    measured = []
    for runtime, xnnpack in _RUNTIMES.items():
        execute = runner.LiteRT(path, endpoint.name, xnnpack=xnnpack)
        for case in cases:
            outputs = _execute(execute, case, runtime)
            parity = measure_parity(case, outputs, signature=endpoint.name, runtime=runtime)
            check_parity(
                case,
                parity,
                tolerance=quantization.tolerance,
                agreement=quantization.agreement if case.real else None,
                cosine=quantization.cosine if case.real else None,
                advice=quantization.advice,
            )
            measured += parity
    return measured


def _execute(execute, case, runtime):
    try:
        return execute(case.inputs)
    except (RuntimeError, ValueError) as error:
        raise ExportError(
            f"{runtime} cannot run the file on {batches.describe_batch(case.inputs)}: "
            f"{first_line(error.__cause__ or error)} Check the inputs, or report this model."
        ) from error


def list_warnings(measured, quantization, has_examples=False):
    """Return warnings about a low agreement or cosine on inputs other than the user's examples.

    Args:
        measured: list of `Parity`, the errors of all cases.
        quantization: `Quantization`, which contains the limits.
        has_examples: bool, whether the user passed examples.
    """
    if quantization.agreement is None:
        return []
    shares = [p.argmax_agreement for p in measured if p.argmax_agreement is not None]
    cosines = [p.cosine for p in measured if p.cosine is not None]
    problems = []
    if min(shares, default=1.0) < quantization.agreement:
        problems.append(f"agrees with the model in only {min(shares):.3f} of the positions")
    if min(cosines, default=1.0) < quantization.cosine:
        problems.append(f"gives vectors of a cosine of only {min(cosines):.3f} with the model's")
    advice = (
        "This was measured on cut and padded examples. The unchanged examples passed."
        if has_examples
        else "Pass examples= to check real inputs."
    )
    return [f"the quantized file {text}. {advice}{quantization.advice}" for text in problems]


def verify(model, path, inputs, *, tolerance=None, runtime=None):
    """Compare the outputs of a model file with the outputs of a Keras model.

    Args:
        model: functional `keras.Model`. If it computes in a lower precision, it is converted to
            float32, as for an export.
        path: path of a SavedModel folder, or of a `.tflite` or `.keras` file.
        inputs: one batch, or an iterable of batches. A batch is a dict of arrays, or an array if
            the model has a single input.
        tolerance: float, the maximum absolute error, relative to the largest absolute output (or to
            1 if that is smaller). None selects 1e-5, 1e-4 for LiteRT files, or 1e-2 for LiteRT
            files with float16 weights. The errors of int8 files are measured, but not limited.
        runtime: `"compiled_model"` runs a `.tflite` file of fixed shapes in `CompiledModel` on the
            CPU. `"gpu"` runs it in float32 on the GPU delegate of ai_edge_litert, which requires a
            Vulkan driver. None uses the standard runtime of the file format.

    Returns:
        A dict from the name of each output to the worst `Parity` over all batches. The attribute
        `runtime` states whether a GPU delegate left operators to the CPU.

    Raises:
        ExportError: an error is above `tolerance`, an output contains NaN or is missing, or the
            file does not run.
        ValueError: `path` is not a model or has other inputs, or `runtime` cannot run this format.
    """
    backend.import_tensorflow()
    kind = runner.find_format(path)
    if runtime not in (None, "compiled_model", "gpu"):
        raise ValueError(
            f"runtime={runtime!r} is unknown. Use one of None, 'compiled_model', 'gpu'."
        )
    if runtime and kind != "litert":
        raise ValueError(
            f"runtime={runtime!r} runs .tflite files, but {path} is {kind}. Leave runtime out."
        )
    if tolerance is None:
        tolerance = SAVED_MODEL_TOLERANCE
        if kind == "litert":
            constants = flatbuffer.read_graph(path).constants
            tolerance = find_quantization({tensor.dtype for tensor in constants}).tolerance
    own = make_endpoint(convert_to_float32(model))
    all_batches = batches.read_batches(inputs, own, "inputs", most=None)
    worst = {}
    execute, name = runner.load(path), kind
    if runtime == "compiled_model":
        results = compiled_model.run_signature(path, execute.signature, all_batches)
        name = compiled_model.NAME
    elif runtime == "gpu":
        delegation = gpu_delegate.run_signature(path, execute.signature, all_batches)
        results, name = delegation.outputs, delegation.runtime
    else:
        results = map(execute, all_batches)
    for batch, outputs in zip(all_batches, results, strict=True):
        case = Case(batch, run_model(own, batch), padding=own.padding)
        measured = measure_parity(case, outputs, signature=own.name, runtime=name)
        check_parity(case, measured, tolerance=tolerance)
        for parity in measured:
            worst[parity.output] = _worse(worst.get(parity.output), parity)
    return worst


def _worse(first, second):
    if first is None:
        return second
    error = max(first.max_abs_error, second.max_abs_error)
    agreement = second.argmax_agreement
    if agreement is not None:
        agreement = min(first.argmax_agreement, agreement)
    cosine = None if second.cosine is None else min(first.cosine, second.cosine)
    batch = second.batch if error == second.max_abs_error else first.batch
    return dataclasses.replace(
        second, batch=batch, max_abs_error=error, argmax_agreement=agreement, cosine=cosine
    )
