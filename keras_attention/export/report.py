"""What an export promises about its file: names, shapes, ops, size and measured parity."""

import dataclasses
import json
import pathlib

from keras_attention.export import text


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An input or output of a signature; None in `shape` is an axis of any size."""

    name: str
    shape: tuple
    dtype: str


@dataclasses.dataclass(frozen=True)
class Signature:
    """A function that a file offers: called by the names of its inputs, answers by name."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


@dataclasses.dataclass(frozen=True)
class Parity:
    """How far one output of a file was from the model's, on one batch, in one runtime.

    `argmax_agreement` is the share of positions whose largest entry is the same, padding left
    out; None where the output has no axis to take an argmax over.
    """

    signature: str
    output: str
    runtime: str
    batch: str
    max_abs_error: float
    argmax_agreement: float | None


@dataclasses.dataclass(frozen=True)
class ExportReport:
    """The result of an export; `print(report)` shows it, `save` and `load` keep it as JSON.

    Attributes:
        path: str, the file or folder written.
        format: `"saved_model"` or `"litert"`.
        model: str, the model's name.
        signatures: the functions in the file, with names, shapes and dtypes.
        ops: dict, kind of op -> how often it occurs.
        size: int, bytes on disk.
        weights_bytes: int, bytes of the model's weights as float32.
        parity: measured differences from the model, per output, batch and runtime.
        checks: what the file passed, in words.
        quantization: None, `"float16"`, `"int8_weights"` or `"int8"`.
        mask_constant: float, the number that masks add to scores in this file.
        gpu: what GPU delegates would object to (LiteRT); empty when nothing was found.
        warnings: things to know that are no reason to refuse.
        versions: dict, package -> version that wrote the file.
        sha256: str, of the file; of all names and contents for a folder.
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

    @property
    def max_abs_error(self):
        """The largest difference from the model over all outputs, batches and runtimes."""
        return max(parity.max_abs_error for parity in self.parity)

    @property
    def argmax_agreement(self):
        """The smallest argmax agreement over all outputs, batches and runtimes, or None."""
        shares = [p.argmax_agreement for p in self.parity if p.argmax_agreement is not None]
        return min(shares, default=None)

    def as_dict(self):
        """The report as plain dicts, tuples, numbers and strings."""
        return dataclasses.asdict(self)

    def save(self, path):
        """Writes the report as JSON. (The manifest beside the file holds it, too.)"""
        pathlib.Path(path).write_text(json.dumps(self.as_dict(), indent=2) + "\n", "utf-8")

    @classmethod
    def from_dict(cls, values):
        """The report that `as_dict` gave, also after a trip through JSON."""
        signatures = (
            Signature(s["name"], _tensors(s["inputs"]), _tensors(s["outputs"]))
            for s in values["signatures"]
        )
        lists = {key: tuple(values[key]) for key in ("checks", "gpu", "warnings")}
        parity = tuple(Parity(**p) for p in values["parity"])
        return cls(**{**values, **lists, "signatures": tuple(signatures), "parity": parity})

    @classmethod
    def load(cls, path):
        """Reads what `save` wrote."""
        return cls.from_dict(json.loads(pathlib.Path(path).read_text("utf-8")))

    def __str__(self):
        head = f"{self.path}: {self.format}, {text.size(self.size)}"
        quantized = f", {self.quantization}" if self.quantization else ""
        sections = [
            f"{head} (weights {text.size(self.weights_bytes)} as float32){quantized}, "
            f"mask constant {self.mask_constant:g}",
            text.signatures(self.signatures),
            text.ops(self.ops),
            _parity_table(self.parity),
            text.bullets("checks passed", self.checks),
            text.bullets("a GPU delegate would object to", self.gpu),
            text.bullets("warnings", self.warnings),
            f"sha256 {self.sha256}",
        ]
        return "\n".join(section for section in sections if section)


def _tensors(values):
    return tuple(Tensor(t["name"], tuple(t["shape"]), t["dtype"]) for t in values)


def _parity_table(parity):
    """One row per output and runtime: the worst over the batches."""
    groups = {}
    for entry in parity:
        groups.setdefault((entry.output, entry.runtime), []).append(entry)
    rows = [(*key, len(group), *_worst(group)) for key, group in groups.items()]
    header = ("output", "runtime", "batches", "max abs error", "argmax agreement")
    return text.table("parity with the model, at worst", header, rows)


def _worst(group):
    shares = [p.argmax_agreement for p in group if p.argmax_agreement is not None]
    share = f"{min(shares):.4f}" if shares else "-"
    return f"{max(p.max_abs_error for p in group):.1e}", share
