"""The runtimes that a LiteRT file is compatible with: asked for, tried here, and reported."""

import dataclasses
import math

from keras_attention.export.checks import compiled_model, gpu_delegate
from keras_attention.export.checks.compiled_model import FREE_SHAPES
from keras_attention.export.checks.formatting import format_shape
from keras_attention.export.checks.graph_checks import find_culprit
from keras_attention.export.checks.parity import find_scale, measure_parity
from keras_attention.export.checks.report import Runtime
from keras_attention.export.endpoint import make_endpoint
from keras_attention.export.errors import ExportError
from keras_attention.export.quantization import FLOAT32, Quantization

NAMES = ("interpreter", "gpu", "web")
INTERPRETER, COMPILED, GPU, WEB = "interpreter", compiled_model.NAME, "GPU delegate", "browser"

BROWSER_DTYPES = ("float32", "int32", "uint8")  # the dtypes that LiteRT.js has arrays for
MOST_AXES = 4

_NO_DRIVER = "not run: no Vulkan driver"


def parse_runtimes(compatible_with):
    """Return a tuple of names of `NAMES`, of one or several; a ValueError for others."""
    names = (compatible_with,) if isinstance(compatible_with, str) else tuple(compatible_with or ())
    if unknown := [name for name in names if name not in NAMES]:
        raise ValueError(
            f"compatible_with={unknown[0]!r} is unknown. Known: {', '.join(map(repr, NAMES))}; one "
            "of them or several."
        )
    return tuple(name for name in NAMES if name in names or name == "interpreter")


def check_shapes(model, names, batch_size, sequence_length):
    """Raises ValueError where shapes are free that one of `names` needs fixed."""
    wanting = [name for name in names if name != "interpreter"]
    inputs = make_endpoint(model, batch_size, sequence_length).inputs
    free = [tensor for tensor in inputs if None in tensor.shape]
    if not wanting or not free:
        return
    needed = ["batch_size="] if any(t.shape[0] is None for t in free) else []
    needed += ["sequence_length="] if any(None in t.shape[1:] for t in free) else []
    shapes = ", ".join(f"{tensor.name} {format_shape(tensor.shape)}" for tensor in free)
    raise ValueError(
        f"compatible_with={wanting[0]!r} wants fixed shapes, and {shapes} is free: pass "
        f"{' and '.join(needed)} (callers pad what is shorter). Free shapes are for the "
        "interpreter only."
    )


@dataclasses.dataclass(frozen=True)
class RuntimeCheck:
    """Tries a file in other runtimes than the interpreter.

    Args:
        path: the file.
        graph: its `flatbuffer.Flatbuffer`. exportable: `Exportable`, whose cases it is tried on.
        names: names of the runtimes that were asked for. quantization: `Quantization`.
        parity: tuple of `Parity`, measured in the interpreter.
    """

    path: object
    graph: object
    exportable: object
    names: tuple
    quantization: Quantization
    parity: tuple

    def try_runtimes(self):
        """(`Runtime`s, `Parity`s of those beside the interpreter, warnings).

        A runtime that was asked for and fails is an ExportError; another one is a warning.
        """
        interpreter = f"ran with and without XNNPACK, max abs error {_find_worst(self.parity):.1e}"
        runtimes = [Runtime(INTERPRETER, True, interpreter)]
        if any(None in t.shape for s in self.graph.signatures for t in s.inputs):
            runtimes.append(Runtime(COMPILED, False, f"not run: {FREE_SHAPES}"))
            runtimes += [Runtime(name, False, "not run: free shapes") for name in (GPU, WEB)]
            return runtimes, [], []
        parity, warnings = [], []
        browser = self._check_browser()  # first: its error names what the others would fail at
        for runtime, measured, notes in (self._try_compiled_model(), self._try_gpu()):
            runtimes.append(runtime)
            parity += measured
            warnings += notes
        return [*runtimes, browser], parity, warnings

    def _try_compiled_model(self):
        found = compiled_model.run_jobs(self._make_jobs())
        try:
            parity = self._measure(found, COMPILED)
        except ExportError as error:
            if self.names != ("interpreter",):
                raise
            return Runtime(COMPILED, False, f"fails: {error}"), [], [str(error)]
        note = f"ran on the CPU, max abs error {_find_worst(parity):.1e}"
        return Runtime(COMPILED, True, note), parity, []

    def _try_gpu(self):
        if "gpu" not in self.names:
            return Runtime(GPU, False, 'not run: compatible_with="gpu" asks for it'), [], []
        if not gpu_delegate.is_available():
            warning = f"{_NO_DRIVER}, so that nothing shows that the file is right on a GPU"
            note = f"{_NO_DRIVER}. {gpu_delegate.explain_missing()}"
            return Runtime(GPU, False, note), [], [warning]
        found = gpu_delegate.run_jobs(self._make_jobs())
        parity = self._measure(found, GPU)
        share, refused = self._describe_share(found)
        note = f"ran with {share} on the GPU, max abs error {_find_worst(parity):.1e}"
        warnings = [f"a GPU delegate leaves {where} to the CPU" for where in refused]
        return Runtime(GPU, True, note), parity, warnings

    def _describe_share(self, found):
        """The share of the file that the GPU runs, in words; and refused operators, with layers.

        Every job loads the whole file, so that each result is about all signatures.
        """
        refused = list(dict.fromkeys(line for each in found for line in each.refused))
        if all(each.fully_accelerated for each in found) and not refused:
            return "all operators", []
        first = found[0]
        if not first.on_cpu:
            return "not all operators", ["some operators"]
        share = f"{first.on_gpu} of {first.on_gpu + first.on_cpu} operators"
        return share, [self._find_place(line) for line in refused]

    def _find_place(self, refused):
        kind, _, reason = refused.partition(":")
        op = next((op for op in self.graph.operators if op.kind == kind), None)
        where = kind if op is None else self._blame(op)
        return f"{where} ({reason.strip()})" if reason.strip() else str(where)

    def _check_browser(self):
        problem = self._find_broken_rule()
        if problem is None:
            dtypes = ", ".join(BROWSER_DTYPES)
            note = f"not run; it keeps the rules: fixed shapes, {dtypes}, outputs of their own"
            return Runtime(WEB, False, note)
        if "web" in self.names:
            message, op = problem
            found = self._blame(op) if op else None
            raise ExportError(
                f'compatible_with="web": {message}.',
                op=found and found.op,
                layer=found and found.layer,
            )
        return Runtime(WEB, False, f"would not run: {problem[0]}")

    def _find_broken_rule(self):
        """(Which rule of LiteRT.js the file breaks, the operator to blame or None), or None."""
        for signature in self.graph.signatures:
            for kind in ("inputs", "outputs"):
                for tensor in getattr(signature, kind):
                    name = f"the {kind[:-1]} {tensor.name!r} of {signature.name}"
                    if tensor.dtype not in BROWSER_DTYPES:
                        sources = (o for o in self.graph.operators if tensor.dtype in o.dtypes)
                        op = next(sources, None)
                        at = f", which {self._blame(op)} gives" if op else ""
                        return (
                            f"{name} is {tensor.dtype}{at}; browsers take "
                            f"{', '.join(BROWSER_DTYPES)}: convert it with keras.ops.cast"
                        ), op
                    if len(tensor.shape) > MOST_AXES or None in tensor.shape:
                        return f"{name} has the shape {format_shape(tensor.shape)}", None
            if shared := self.graph.shared.get(signature.name):
                return f"{shared[0]!r} of {signature.name} is no tensor of its own", None
        return None

    def _blame(self, op):
        """Return the `Culprit` of an operator."""
        return find_culprit(op, self.exportable.model)

    def _make_jobs(self):
        return [
            compiled_model.Job(self.path, one.endpoint.name, tuple(c.inputs for c in one.cases))
            for one in self.exportable.checked
        ]

    def _measure(self, found, runtime):
        """`Parity`s of executions, one for each endpoint; an ExportError where one is wrong."""
        parity = []
        for one, execution in zip(self.exportable.checked, found, strict=True):
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
        found = self._blame(op) if op else None
        at = f" It refused {self._find_place(refused[0])}." if refused else ""
        return ExportError(
            f"{runtime} does not run {name} of the file: {execution.failure}{at}",
            op=found and found.op,
            layer=found and found.layer,
        )

    def _check_parity(self, case, entry):
        """Raises ExportError above the usual tolerance and twice the interpreter's error."""
        known = [
            p.max_abs_error
            for p in self.parity
            if (p.signature, p.output, p.batch) == (entry.signature, entry.output, entry.batch)
        ]
        tolerance = self.quantization.tolerance or FLOAT32.tolerance
        scale = max(1.0, find_scale(case, entry.output))
        allowed = max(tolerance * scale, 2 * max(known, default=0.0))
        if not (entry.max_abs_error <= allowed and math.isfinite(entry.max_abs_error)):
            raise ExportError(
                f"The file computes something else in {entry.runtime} than in the interpreter: "
                f"{entry.output!r} of {entry.signature} at {entry.batch} is off by "
                f"{entry.max_abs_error:.2e}; {allowed:.0e} is allowed."
            )


def _find_worst(parity):
    return max((entry.max_abs_error for entry in parity), default=0.0)
