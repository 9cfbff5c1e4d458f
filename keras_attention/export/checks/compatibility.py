"""Check whether a LiteRT file runs in the requested runtimes, and in other runtimes."""

import dataclasses
import math

from keras_attention.export.checks import compiled_model, gpu_delegate
from keras_attention.export.checks.compiled_model import FREE_SHAPES
from keras_attention.export.checks.formatting import format_shape
from keras_attention.export.checks.graph_checks import find_culprit
from keras_attention.export.checks.parity import find_scale, measure_parity
from keras_attention.export.checks.report import Runtime
from keras_attention.export.errors import ExportError
from keras_attention.export.exportable import make_endpoints
from keras_attention.export.quantization import FLOAT32, Quantization

NAMES = ("interpreter", "gpu", "web")
INTERPRETER, COMPILED, GPU, WEB = "interpreter", compiled_model.NAME, "GPU delegate", "browser"

BROWSER_DTYPES = ("float32", "int32", "uint8")  # the dtypes that LiteRT.js supports
MOST_AXES = 4

_NO_DRIVER = "not run: no Vulkan driver"


def parse_runtimes(compatible_with):
    """Convert the user's argument `compatible_with`, a name or a list, to a tuple of runtimes.

    The tuple always contains `"interpreter"`.

    Raises:
        ValueError: a name is unknown.
    """
    names = (compatible_with,) if isinstance(compatible_with, str) else tuple(compatible_with or ())
    if unknown := [name for name in names if name not in NAMES]:
        raise ValueError(
            f"compatible_with={unknown[0]!r} is unknown. Use one or several of "
            f"{', '.join(map(repr, NAMES))}."
        )
    return tuple(name for name in NAMES if name in names or name == "interpreter")


def check_shapes(model, names, batch_size, sequence_length):
    """Raise a ValueError if inputs have dynamic shapes, but a requested runtime needs fixed shapes.

    `model` is a `keras.Model`, or a dict from the names of signatures to models. `names` are the
    names of the runtimes, such as `"gpu"`. `batch_size` and `sequence_length` are the fixed sizes
    that the user chose, or None.
    """
    strict = [name for name in names if name != "interpreter"]
    models = model if isinstance(model, dict) else {"": model}
    endpoints = make_endpoints(models, batch_size, sequence_length)
    inputs = [tensor for endpoint in endpoints for tensor in endpoint.inputs]
    free = [tensor for tensor in inputs if None in tensor.shape]
    if not strict or not free:
        return
    needed = ["batch_size="] if any(t.shape[0] is None for t in free) else []
    needed += ["sequence_length="] if any(None in t.shape[1:] for t in free) else []
    shapes = ", ".join(f"{tensor.name} {format_shape(tensor.shape)}" for tensor in free)
    raise ValueError(
        f"compatible_with={strict[0]!r} needs fixed shapes, but {shapes} is free. Pass "
        f"{' and '.join(needed)} (and pad shorter inputs). Free shapes run only in the interpreter."
    )


@dataclasses.dataclass(frozen=True)
class RuntimeCheck:
    """Runs a LiteRT file in all runtimes except the interpreter, and compares the outputs.

    Args:
        path: path of the file.
        graph: the `flatbuffer.Flatbuffer` of the file.
        exportable: `Exportable` with the test cases.
        names: tuple of str, the requested runtimes.
        quantization: `Quantization` of the file, which limits the errors.
        parity: tuple of `Parity`, which were measured in the interpreter.
    """

    path: object
    graph: object
    exportable: object
    names: tuple
    quantization: Quantization
    parity: tuple

    def try_runtimes(self):
        """Run the file in all runtimes except the interpreter, and compare the outputs.

        Returns:
            A list of `Runtime` for all runtimes, a list of `Parity` for the runtimes other than the
            interpreter, and a list of warnings, for example about runtimes that failed.

        Raises:
            ExportError: a requested runtime failed.
        """
        interpreter = f"ran with and without XNNPACK, max abs error {_find_worst(self.parity):.1e}"
        runtimes = [Runtime(INTERPRETER, True, interpreter)]
        if any(None in t.shape for s in self.graph.signatures for t in s.inputs):
            runtimes.append(Runtime(COMPILED, False, f"not run: {FREE_SHAPES}"))
            runtimes += [Runtime(name, False, "not run: free shapes") for name in (GPU, WEB)]
            return runtimes, [], []
        parity, warnings = [], []
        browser = self._check_browser()  # this is first because its error message is the clearest
        for runtime, measured, notes in (self._try_compiled_model(), self._try_gpu()):
            runtimes.append(runtime)
            parity += measured
            warnings += notes
        return [*runtimes, browser], parity, warnings

    def _try_compiled_model(self):
        executions = compiled_model.run_jobs(self._make_jobs())
        try:
            parity = self._measure(executions, COMPILED)
        except ExportError as error:
            if self.names != ("interpreter",):
                raise
            return Runtime(COMPILED, False, f"fails: {error}"), [], [str(error)]
        note = f"ran on the CPU, max abs error {_find_worst(parity):.1e}"
        return Runtime(COMPILED, True, note), parity, []

    def _try_gpu(self):
        if "gpu" not in self.names:
            return Runtime(GPU, False, 'not run: compatible_with="gpu" runs it'), [], []
        if not gpu_delegate.is_available():
            warning = f"{_NO_DRIVER}, so the file was not tested on a GPU"
            note = f"{_NO_DRIVER}. {gpu_delegate.explain_missing()}"
            return Runtime(GPU, False, note), [], [warning]
        delegations = gpu_delegate.run_jobs(self._make_jobs())
        parity = self._measure(delegations, GPU)
        share, refused = self._describe_share(delegations)
        note = f"ran with {share} on the GPU, max abs error {_find_worst(parity):.1e}"
        warnings = [f"a GPU delegate leaves {name} to the CPU" for name in refused]
        return Runtime(GPU, True, note), parity, warnings

    def _describe_share(self, delegations):
        """Return a tuple: the share of operators on the GPU as a phrase, and the unsupported ones.

        The unsupported operators are a list of str. Every job loads the whole file, so each element
        of `delegations` describes all signatures.
        """
        refused = list(dict.fromkeys(line for each in delegations for line in each.refused))
        if all(each.fully_accelerated for each in delegations) and not refused:
            return "all operators", []
        first = delegations[0]
        if not first.on_cpu:
            return "not all operators", ["some operators"]
        share = f"{first.on_gpu} of {first.on_gpu + first.on_cpu} operators"
        return share, [self._name_refused(line) for line in refused]

    def _name_refused(self, refused):
        kind, _, reason = refused.partition(":")
        op = next((op for op in self.graph.operators if op.kind == kind), None)
        name = kind if op is None else self._blame(op)
        return f"{name} ({reason.strip()})" if reason.strip() else str(name)

    def _check_browser(self):
        problem = self._find_broken_rule()
        if problem is None:
            dtypes = ", ".join(BROWSER_DTYPES)
            note = f"not run. It fulfils the rules: fixed shapes, {dtypes}, no shared outputs"
            return Runtime(WEB, False, note)
        if "web" in self.names:
            message, op = problem
            culprit = self._blame(op) if op else None
            raise ExportError(
                f'compatible_with="web": {message}.',
                op=culprit and culprit.op,
                layer=culprit and culprit.layer,
            )
        return Runtime(WEB, False, f"would not run: {problem[0]}")

    def _find_broken_rule(self):
        """Return None if LiteRT.js supports the file, or else (problem, operator).

        The problem is a str, and the operator caused the problem (None if it is unknown).
        """
        for signature in self.graph.signatures:
            for kind in ("inputs", "outputs"):
                for tensor in getattr(signature, kind):
                    name = f"the {kind[:-1]} {tensor.name!r} of {signature.name}"
                    if tensor.dtype not in BROWSER_DTYPES:
                        sources = (o for o in self.graph.operators if tensor.dtype in o.dtypes)
                        op = next(sources, None)
                        source = f", from {self._blame(op)}" if op else ""
                        return (
                            f"{name} is {tensor.dtype}{source}. Browsers support "
                            f"{', '.join(BROWSER_DTYPES)}. Convert it with keras.ops.cast"
                        ), op
                    if len(tensor.shape) > MOST_AXES or None in tensor.shape:
                        return f"{name} has the shape {format_shape(tensor.shape)}", None
            if shared := self.graph.shared.get(signature.name):
                return f"{shared[0]!r} of {signature.name} shares its tensor", None
        return None

    def _blame(self, op):
        return find_culprit(op, self.exportable.model)

    def _make_jobs(self):
        return [
            compiled_model.Job(self.path, one.endpoint.name, tuple(c.inputs for c in one.cases))
            for one in self.exportable.checked
        ]

    def _measure(self, executions, runtime):
        """Compare the outputs of all executions with the model, and return a list of `Parity`.

        Args:
            executions: list of `Execution`, one for each endpoint.
            runtime: str, the name of the runtime.

        Raises:
            ExportError: an execution failed, or its outputs differ too much.
        """
        parity = []
        for one, execution in zip(self.exportable.checked, executions, strict=True):
            name = one.endpoint.name
            if execution.failure is not None:
                raise self._make_failure(runtime, name, execution)
            for case, outputs in zip(one.cases, execution.outputs, strict=True):
                measured = measure_parity(case, outputs, signature=name, runtime=runtime)
                for entry in measured:
                    self._check_parity(case, entry)
                parity += measured
        return parity

    def _make_failure(self, runtime, name, execution):
        refused = execution.refused
        op = next((o for o in self.graph.operators if refused and refused[0].startswith(o.kind)), 0)
        culprit = self._blame(op) if op else None
        reason = f" It refused {self._name_refused(refused[0])}." if refused else ""
        return ExportError(
            f"{runtime} does not run {name} of the file: {execution.failure}{reason}",
            op=culprit and culprit.op,
            layer=culprit and culprit.layer,
        )

    def _check_parity(self, case, entry):
        """Raise an ExportError if the error of a runtime on a `Case` is too large.

        `entry` is the `Parity` of an output. Its error must be at most the tolerance, or at most
        twice the error of the interpreter.
        """
        errors = [
            p.max_abs_error
            for p in self.parity
            if (p.signature, p.output, p.batch) == (entry.signature, entry.output, entry.batch)
        ]
        tolerance = self.quantization.tolerance or FLOAT32.tolerance
        scale = max(1.0, find_scale(case, entry.output))
        allowed = max(tolerance * scale, 2 * max(errors, default=0.0))
        if not (entry.max_abs_error <= allowed and math.isfinite(entry.max_abs_error)):
            raise ExportError(
                f"The results differ between {entry.runtime} and the interpreter: "
                f"{entry.output!r} of {entry.signature} at {entry.batch} is off by "
                f"{entry.max_abs_error:.2e}. Allowed is {allowed:.0e}."
            )


def _find_worst(parity):
    return max((entry.max_abs_error for entry in parity), default=0.0)
