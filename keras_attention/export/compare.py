"""The distance between what a file computes and what the model computes."""

import numpy as np

from keras_attention.export import batches
from keras_attention.export.errors import ExportError
from keras_attention.export.report import Parity

# The largest absolute error allowed, per unit of the largest output (at least 1): what these
# runtimes reach leaves an order of magnitude to spare. int8 is judged by agreement instead.
TOLERANCE = {"saved_model": 1e-5, None: 1e-4, "float16": 1e-2}

# The least argmax agreement on given examples. Trained classifiers keep 0.97 or more in int8 and
# 1.0 with int8 weights; a mask constant that is too large takes int8 down to 0.64.
AGREEMENT = {"int8_weights": 0.9, "int8": 0.8}

CACHE = "cache"  # what all outputs that a decoder keeps are reported as


def measure(case, outputs, *, signature, runtime):
    """A list of `Parity`, one per output of the model; NaN or a wrong shape is an ExportError.

    What a decoder keeps is one of them, with its largest error.
    """
    found = {} if case.judge is None else case.judge(outputs)
    for name, expected in case.outputs.items():
        got = _checked(name, outputs, expected, f"from {runtime} for {_describe(case)}")
        error = _max_abs_error(got, expected)
        if name in case.cache:
            found[CACHE] = max(found.get(CACHE, (0.0, None)), (error, None))
        else:
            found[name] = error, _agreement(case, got, expected)
    shapes = _describe(case)
    return [Parity(signature, name, runtime, shapes, *both) for name, both in found.items()]


def _checked(name, outputs, expected, where):
    """The output `name` as an array, which has the shape it should and no NaN."""
    where = f"{name!r} {where}"
    if name not in outputs:
        raise ExportError(f"No output {where}: the file gives {', '.join(outputs)}.")
    got = np.asarray(outputs[name])
    if got.shape != expected.shape:
        raise ExportError(f"Wrong shape of {where}: {got.shape}, not {expected.shape}.")
    if got.dtype.kind == "f" and np.isnan(got).any():
        raise ExportError(f"NaN in {where}.")
    return got


def _describe(case):
    return batches.describe({k: v for k, v in case.inputs.items() if k not in case.cache})


def check(case, measured, *, tolerance=None, agreement=None):
    """Raises ExportError where an error is above `tolerance`, or an agreement too low."""
    for parity in measured:
        scale = max(1.0, _scale(case, parity.output))
        at = f"{parity.output!r} from {parity.runtime} at {parity.batch}"
        if tolerance is not None and not parity.max_abs_error <= tolerance * scale:
            raise ExportError(
                f"The file does not compute what the model computes: {at} is off by "
                f"{parity.max_abs_error:.2e}; {tolerance * scale:.0e} is allowed."
            )
        share = parity.argmax_agreement
        if agreement is not None and share is not None and share < agreement:
            raise ExportError(
                f"The quantized file decides differently from the model: {at} agrees in "
                f"{share:.3f} of the positions; {agreement} is the least allowed."
            )


def _max_abs_error(got, expected):
    if got.dtype.kind in "biufc":
        got, expected = got.astype("float64"), expected.astype("float64")
        differ = got != expected  # equal infinities have no difference to compute
        return float(np.abs(got[differ] - expected[differ]).max(initial=0.0))
    return float((got != expected).any())


def _scale(case, output):
    """The largest number in what the model gives there; judges scale by themselves."""
    names = case.cache if output == CACHE else (output,)
    return max((_largest(case.outputs[n]) for n in names if n in case.outputs), default=0.0)


def _largest(array):
    if array.dtype.kind not in "biuf":
        return 0.0
    array = np.abs(array.astype("float64"))
    return array[np.isfinite(array)].max(initial=0.0)


def _agreement(case, got, expected):
    if expected.dtype.kind != "f" or expected.ndim < 2 or expected.shape[-1] < 2:
        return None
    same = got.argmax(-1) == expected.argmax(-1)
    return float(same[_counted(case.inputs, same.shape)].mean())


def _counted(inputs, shape):
    """Which positions count: those that are not padding in every input of ids of that shape."""
    ids = [a for a in inputs.values() if a.dtype == np.int32 and a.shape == shape and a.ndim > 1]
    counted = np.any([a != 0 for a in ids], axis=0) if ids else np.ones(shape, bool)
    return counted if counted.any() else np.ones(shape, bool)
