"""`LayoutReport`: tells how each weight of a model is split over devices, or why it is not."""

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class WeightLayout:
    """How one weight is split over devices. `LayoutReport` has one for each weight.

    Attributes:
        path: str, the `keras.Variable.path`.
        shape: tuple of int.
        axes: tuple of str, the role (meaning) of each axis, such as `"heads"`. None for a weight
            without roles.
        split: tuple, for each axis the name of the mesh axis that splits it, or None.
        reason: str, why the weight is not split along some mesh axis, or empty.
    """

    path: str
    shape: tuple
    axes: tuple | None
    split: tuple
    reason: str = ""

    @property
    def is_split(self):
        """Return whether the weight is split over devices along any axis."""
        return any(self.split)


@dataclasses.dataclass(frozen=True)
class LayoutReport:
    """How the weights of a model are split over devices. `print` shows one line per weight.

    `RoleParallel.report(model)` returns it.

    Attributes:
        mesh: dict {name of a mesh axis: number of devices}.
        weights: tuple of `WeightLayout`, one for each weight.
        split: list of the `WeightLayout` of weights that are split.
        size: int, the number of parameters of the model.
        size_on_a_device: int, the number of parameters that each device stores.

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
        """Return a list of the `WeightLayout` of each weight that is split."""
        return [weight for weight in self.weights if weight.is_split]

    @property
    def size(self):
        """Return the total number of parameters."""
        return sum(math.prod(weight.shape) for weight in self.weights)

    @property
    def size_on_a_device(self):
        """Return the number of parameters on each device."""
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
            f"{len(self.split)} of {len(self.weights)} weights are split over {mesh}. Each device "
            f"holds {self.size_on_a_device:,} of {self.size:,} numbers."
        )
        return "\n".join(lines)


def _join(names):
    """Return `names` as the text of a table cell, separated by spaces. None becomes "-"."""
    return " ".join("-" if name is None else str(name) for name in names or ())
