"""Reports of exports: names, shapes, ops, size and measured parity of a file."""

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
    """An input or output of a signature; None in `shape` is an axis of any size."""

    name: str
    shape: tuple
    dtype: str


@dataclasses.dataclass(frozen=True)
class Signature:
    """A function of a file, from named inputs to named outputs."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


@dataclasses.dataclass(frozen=True)
class Parity:
    """How far one output of a file was from the model's, on one batch, in one runtime.

    `argmax_agreement` is the share of positions whose largest entry is the same, padding left
    out; `cosine` the mean cosine of its vectors with the model's. An output has the one or the
    other: scores of classes are judged by their largest entry, and vectors (embeddings, hidden
    states) by their direction. The name of an output decides which it is (`logits`, `embedding`),
    or its size: see `parity.is_vector`. Both are None where there is no axis to judge along.
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
    """A runtime and a file: whether it `ran` there, and how, or why not."""

    name: str
    ran: bool
    note: str

    def __str__(self):
        return f"{self.name}: {self.note}"


@dataclasses.dataclass(frozen=True)
class Drift:
    """How far a file that decodes is from the model, both reading the same real text.

    Attributes:
        tokens: how many tokens were compared at each position.
        argmax_agreement: the share of them after which both choose the same next token.
        max_abs_error: the largest difference of a logit, at each position.
    """

    tokens: tuple[int, ...]
    argmax_agreement: tuple[float, ...]
    max_abs_error: tuple[float, ...]

    @property
    def agreement(self):
        """The share over all positions."""
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
        gpu: what GPU delegates refuse in the file (LiteRT); empty when nothing was found.
        warnings: weaknesses that are no reason to refuse the file.
        versions: dict, package -> version that wrote the file.
        sha256: str, of the file; of all names and contents for a folder.
        generation: dict, of a file that generates: its special ids, its lengths, and what its
            cache holds; else None.
        drift: `Drift` on the examples that were given (LiteRT), or None.
        compatible_with: the runtimes that were asked for, as in `to_litert` (LiteRT).
        runtimes: a `Runtime` for each that is known, whether the file ran in it or not (LiteRT).
        minimum_runtime: dict, package -> the oldest version that runs the file (LiteRT), or None.
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
        """The largest difference from the model over all outputs, batches and runtimes."""
        return max(parity.max_abs_error for parity in self.parity)

    @property
    def argmax_agreement(self):
        """The smallest argmax agreement over all outputs, batches and runtimes, or None."""
        shares = [p.argmax_agreement for p in self.parity if p.argmax_agreement is not None]
        return min(shares, default=None)

    @property
    def cosine(self):
        """The smallest mean cosine over all outputs that are vectors, batches and runtimes."""
        return min((p.cosine for p in self.parity if p.cosine is not None), default=None)

    def as_dict(self):
        """Return the report as plain dicts, tuples, numbers and strings."""
        return dataclasses.asdict(self)

    def save(self, path):
        """Writes the report as JSON. (The manifest beside the file holds it, too.)"""
        pathlib.Path(path).write_text(json.dumps(self.as_dict(), indent=2) + "\n", "utf-8")

    @classmethod
    def from_dict(cls, values):
        """Return the report that `as_dict` gave, also after a trip through JSON."""
        signatures = (
            Signature(s["name"], _tensors(s["inputs"]), _tensors(s["outputs"]))
            for s in values["signatures"]
        )
        lists = {key: tuple(values[key]) for key in ("checks", "gpu", "warnings")}
        lists["compatible_with"] = tuple(values.get("compatible_with", ()))  # older files lack it
        lists["runtimes"] = tuple(Runtime(**entry) for entry in values.get("runtimes", ()))
        parity = tuple(Parity(**p) for p in values["parity"])
        drift = values.get("drift")
        drift = drift and Drift(**{name: tuple(column) for name, column in drift.items()})
        parts = {"signatures": tuple(signatures), "parity": parity, "drift": drift}
        return cls(**{**values, **lists, **parts})

    @classmethod
    def load(cls, path):
        """Reads what `save` wrote; a ValueError where that is no report."""
        values = read_json(path)
        try:
            return cls.from_dict(values)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is no report that `save` wrote: {error!r}.") from error

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
            format_bullets("a GPU delegate would object to", self.gpu),
            format_bullets("warnings", self.warnings),
            f"sha256 {self.sha256}",
        ]
        return "\n".join(section for section in sections if section)


def _tensors(values):
    return tuple(Tensor(t["name"], tuple(t["shape"]), t["dtype"]) for t in values)


def _parity_table(parity):
    """One row per output and runtime: the worst over the batches."""
    several = len({entry.signature for entry in parity}) > 1
    groups = {}
    for entry in parity:
        output = f"{entry.signature}: {entry.output}" if several else entry.output
        groups.setdefault((output, entry.runtime), []).append(entry)
    rows = [(*key, len(group), *_worst(group)) for key, group in groups.items()]
    header = ("output", "runtime", "batches", "max abs error", "argmax agreement", "cosine")
    return format_table("parity with the model, at worst", header, rows)


def _worst(group):
    found = [f"{max(p.max_abs_error for p in group):.1e}"]
    for numbers in ([p.argmax_agreement for p in group], [p.cosine for p in group]):
        known = [number for number in numbers if number is not None]
        found.append(f"{min(known):.4f}" if known else "-")
    return found
