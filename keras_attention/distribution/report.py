"""The report of a layout: how each weight of a model is split, and why if not."""

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class WeightLayout:
    """How one weight is laid out.

    Attributes:
        path: str, as `keras.Variable.path`.
        shape: tuple of ints.
        axes: tuple, the role of each axis, or None for a weight without roles.
        split: tuple, the mesh axis that splits each axis, or None.
        reason: str, why an axis is not split although it could be, or empty.
    """

    path: str
    shape: tuple
    axes: tuple | None
    split: tuple
    reason: str = ""

    @property
    def is_split(self):
        """Whether no device holds the whole weight."""
        return any(self.split)


@dataclasses.dataclass(frozen=True)
class LayoutReport:
    """How the weights of a model are laid out. `print` shows a line for each.

    Attributes:
        mesh: dict, name of a mesh axis -> number of devices.
        weights: tuple of `WeightLayout`.

    ```python
    import keras_attention as ka

    kernel = ka.distribution.WeightLayout("mlp/kernel", (8, 32), ("embed", "mlp"), (None, "model"))
    report = ka.distribution.LayoutReport({"data": 2, "model": 4}, (kernel,))
    assert report.split == [kernel] and report.size == 256 and report.size_on_a_device == 64
    assert "1 of 1 weights are split" in str(report)
    ```
    """

    mesh: dict
    weights: tuple

    @property
    def split(self):
        """The `WeightLayout`s of the weights that are split, as a list."""
        return [weight for weight in self.weights if weight.is_split]

    @property
    def size(self):
        """How many numbers the weights have."""
        return sum(math.prod(weight.shape) for weight in self.weights)

    @property
    def size_on_a_device(self):
        """How many of them each device holds."""
        return sum(
            math.prod(weight.shape) // math.prod(self.mesh[axis] for axis in weight.split if axis)
            for weight in self.weights
        )

    def __str__(self):
        rows = [("weight", "shape", "roles", "split along", "why not")]
        for weight in self.weights:
            roles, split = (_join(names) for names in (weight.axes, weight.split))
            rows.append((weight.path, _join(weight.shape), roles, split, weight.reason))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        mesh = ", ".join(f"{name}={size}" for name, size in self.mesh.items())
        lines.append(
            f"{len(self.split)} of {len(self.weights)} weights are split over {mesh}; each device "
            f"holds {self.size_on_a_device:,} of {self.size:,} numbers."
        )
        return "\n".join(lines)


def _join(names):
    """Return `names` as a cell of a table."""
    return " ".join("-" if name is None else str(name) for name in names or ())
