"""The report of an export: names, shapes, ops, size and measured parity of a file."""

import dataclasses
import json
import pathlib

from keras_attention.export.checks.formatting import (
    format_bullets,
    format_ops,
    format_signatures,
    format_size,
    format_table,
)
from keras_attention.files.io import read_json


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An input or output of a signature: `name`, `shape` (None for dynamic axes) and `dtype`."""

    name: str
    shape: tuple
    dtype: str


@dataclasses.dataclass(frozen=True)
class Signature:
    """A function in a model file, from named inputs to named outputs."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


@dataclasses.dataclass(frozen=True)
class Parity:
    """The difference between an output of a file and of the model, for one batch in one runtime.

    `ExportReport.parity` has one for each output, batch and runtime.

    Attributes:
        signature, output, runtime: str, the names of the signature, the output and the runtime.
        batch: str, the names and shapes of the inputs.
        max_abs_error: float, the largest absolute difference.
        argmax_agreement: float, for class scores: the share of positions (without padding) where
            the argmax is the same. None for other outputs.
        cosine: float, for vectors (embeddings, hidden states): the mean cosine between the vectors
            of the file and of the model. None for other outputs. `parity.is_vector` distinguishes
            class scores and vectors.
    """

    signature: str
    output: str
    runtime: str
    batch: str
    max_abs_error: float
    argmax_agreement: float | None
    cosine: float | None = None


@dataclasses.dataclass(frozen=True)
class Runtime:
    """The result of running a file in one runtime, such as a GPU delegate.

    `ExportReport.runtimes` has one for each known runtime.

    Attributes:
        name: str, the name of the runtime.
        ran: bool, whether the file ran.
        note: str, details of the result, or the reason why the file did not run.
    """

    name: str
    ran: bool
    note: str

    def __str__(self):
        return f"{self.name}: {self.note}"


@dataclasses.dataclass(frozen=True)
class Drift:
    """How much an exported LiteRT file that generates text differs from its model.

    `export` compares both on the texts of `examples=`, and stores the result as
    `ExportReport.drift`. Both read the given tokens of each text, not their own, and predict the
    next token after each of them. Entry i of each attribute is about the predictions after the
    token at position i, counted from 0, of all texts that are long enough.

    Attributes:
        tokens: tuple of int, the number of texts with a token at this position.
        argmax_agreement: tuple of float, for what share of these texts the file and the model
            predict the same next token.
        max_abs_error: tuple of float, the largest absolute difference between two logits.

    ```python
    import keras_attention as ka

    drift = ka.export.Drift(tokens=(4, 2), argmax_agreement=(1.0, 0.5), max_abs_error=(1e-6, 2e-3))
    assert abs(drift.agreement - 5 / 6) < 1e-9  # of 6 predictions, 5 are the same
    ```
    """

    tokens: tuple[int, ...]
    argmax_agreement: tuple[float, ...]
    max_abs_error: tuple[float, ...]

    @property
    def agreement(self):
        """Return the share of all tokens after which file and model predict the same next token."""
        pairs = zip(self.tokens, self.argmax_agreement, strict=True)
        return sum(count * share for count, share in pairs) / max(1, sum(self.tokens))

    def __str__(self):
        worst = min(range(len(self.tokens)), key=lambda i: self.argmax_agreement[i])
        return (
            f"drift on {sum(self.tokens)} tokens of the examples, teacher-forced: argmax "
            f"agreement {self.agreement:.4f}, at worst {self.argmax_agreement[worst]:.4f} at "
            f"position {worst}; max abs error {max(self.max_abs_error):.1e}"
        )


@dataclasses.dataclass(frozen=True)
class ExportReport:
    """The result of an export. `print` shows it as text, and `save` and `load` store it as JSON.

    Attributes:
        path: str, the path of the exported file or folder.
        format: `"saved_model"` or `"litert"`.
        model: str, the name of the model.
        signatures: tuple of `Signature`, the functions in the file.
        ops: dict from the type of an op to its count.
        size: int, the number of bytes on disk.
        weights_bytes: int, the size of the weights of the model as float32, in bytes.
        parity: tuple of `Parity`, for each output, batch and runtime.
        checks: tuple of str, the checks that the file passed.
        quantization: None, `"float16"`, `"int8_weights"`, `"int4_weights"` or `"int8"`.
        mask_constant: float, the value that masks add to attention scores in this file.
        gpu: tuple of str, the operators that GPU delegates do not support. Empty for a SavedModel.
        warnings: tuple of str, problems that did not prevent the export.
        versions: dict from the name of a package to the version that the export used.
        sha256: str, the digest of the file, or of all file names and contents in the folder.
        generation: dict that describes generation: special ids, lengths and cache. None if the
            model does not generate text.
        drift: `Drift` on the user's examples, for LiteRT files that generate text, else None.
        compatible_with: tuple of str, the runtimes that the user requested. Empty for a SavedModel.
        runtimes: tuple with a `Runtime` for every known runtime, whether or not the file ran in it.
            Empty for a SavedModel.
        minimum_runtime: dict from the name of a package to the oldest version that can run the
            LiteRT file. None for a SavedModel.
    """

    path: str
    format: str
    model: str
    signatures: tuple[Signature, ...]
    ops: dict
    size: int
    weights_bytes: int
    parity: tuple[Parity, ...]
    checks: tuple[str, ...]
    quantization: str | None
    mask_constant: float
    gpu: tuple[str, ...]
    warnings: tuple[str, ...]
    versions: dict
    sha256: str
    generation: dict | None = None
    drift: Drift | None = None
    compatible_with: tuple[str, ...] = ()
    runtimes: tuple[Runtime, ...] = ()
    minimum_runtime: dict | None = None

    @property
    def max_abs_error(self):
        """Return the largest absolute error over all outputs, batches and runtimes."""
        return max(parity.max_abs_error for parity in self.parity)

    @property
    def argmax_agreement(self):
        """Return the lowest argmax agreement over all class scores, batches and runtimes.

        Return None if the model has no class scores.
        """
        shares = [p.argmax_agreement for p in self.parity if p.argmax_agreement is not None]
        return min(shares, default=None)

    @property
    def cosine(self):
        """Return the lowest mean cosine over all vectors, batches and runtimes.

        Return None if the model has no outputs that are vectors.
        """
        return min((p.cosine for p in self.parity if p.cosine is not None), default=None)

    def as_dict(self):
        """Return the report as nested dicts and tuples of numbers and strings."""
        return dataclasses.asdict(self)

    def save(self, path):
        """Write the report to the JSON file `path`. (`manifest.json` contains the same report.)"""
        pathlib.Path(path).write_text(json.dumps(self.as_dict(), indent=2) + "\n", "utf-8")

    @classmethod
    def from_dict(cls, values):
        """Make a report from `values`, the result of `as_dict` or the same dict read from JSON."""
        signatures = (
            Signature(s["name"], _tensors(s["inputs"]), _tensors(s["outputs"]))
            for s in values["signatures"]
        )
        lists = {key: tuple(values[key]) for key in ("checks", "gpu", "warnings")}
        lists["compatible_with"] = tuple(values.get("compatible_with", ()))  # missing in old files
        lists["runtimes"] = tuple(Runtime(**entry) for entry in values.get("runtimes", ()))
        parity = tuple(Parity(**p) for p in values["parity"])
        drift = values.get("drift")
        drift = drift and Drift(**{name: tuple(column) for name, column in drift.items()})
        parts = {"signatures": tuple(signatures), "parity": parity, "drift": drift}
        return cls(**{**values, **lists, **parts})

    @classmethod
    def load(cls, path):
        """Read a report from the JSON file `path`. Raise a ValueError if it is not a report."""
        values = read_json(path)
        try:
            return cls.from_dict(values)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{path} is not a report of an export: {error!r}. Pass a file that `save` wrote."
            ) from error

    def __str__(self):
        head = f"{self.path}: {self.format}, {format_size(self.size)}"
        quantized = f", {self.quantization}" if self.quantization else ""
        sections = [
            f"{head} (weights {format_size(self.weights_bytes)} as float32){quantized}, "
            f"mask constant {self.mask_constant:g}",
            format_signatures(self.signatures),
            format_ops(self.ops),
            _parity_table(self.parity),
            str(self.drift) if self.drift else "",
            format_bullets("checks passed", self.checks),
            format_bullets("runtimes", self.runtimes),
            format_bullets(
                "runs from", [" ".join(x) for x in (self.minimum_runtime or {}).items()]
            ),
            format_bullets("refused by a GPU delegate", self.gpu),
            format_bullets("warnings", self.warnings),
            f"sha256 {self.sha256}",
        ]
        return "\n".join(section for section in sections if section)


def _tensors(values):
    return tuple(Tensor(t["name"], tuple(t["shape"]), t["dtype"]) for t in values)


def _parity_table(parity):
    """Format a table with a row for each output and runtime, with the worst of all batches."""
    several = len({entry.signature for entry in parity}) > 1
    groups = {}
    for entry in parity:
        output = f"{entry.signature}: {entry.output}" if several else entry.output
        groups.setdefault((output, entry.runtime), []).append(entry)
    rows = [(*key, len(group), *_worst(group)) for key, group in groups.items()]
    header = ("output", "runtime", "batches", "max abs error", "argmax agreement", "cosine")
    return format_table("parity with the model, at worst", header, rows)


def _worst(group):
    cells = [f"{max(p.max_abs_error for p in group):.1e}"]
    for numbers in ([p.argmax_agreement for p in group], [p.cosine for p in group]):
        measured = [number for number in numbers if number is not None]
        cells.append(f"{min(measured):.4f}" if measured else "-")
    return cells
