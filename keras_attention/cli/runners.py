"""Model files as functions, whatever their format and whether or not their shapes are fixed."""

import numpy as np

# Loading models registers the layers that a .keras file names.
from keras_attention import export, models  # noqa: F401


def load(path, name=None):
    """Like `ka.export.load`, and files with a fixed batch or length take any that fits, too.

    Args:
        name: str, of the signature; None for the first.
    """
    run = export.load(path, name)
    signatures = export.inspect(path).signatures
    signature = next(found for found in signatures if name in (None, found.name))
    shapes = {tensor.name: tensor.shape for tensor in signature.inputs}
    return Fitted(run, shapes)


class Fitted:
    """A runner that pads inputs to the file's fixed shapes, and cuts the outputs back."""

    def __init__(self, run, shapes):
        self.run, self.shapes, self.inputs = run, shapes, run.inputs

    def __call__(self, inputs):
        inputs = {name: np.asarray(array) for name, array in inputs.items()}
        first = next(iter(inputs.values()))
        rows, length = first.shape[:2]
        step = self._batch or rows
        parts = []
        for start in range(0, rows, step):
            part = {
                name: self._fit(name, array[start : start + step]) for name, array in inputs.items()
            }
            kept = min(step, rows - start)
            parts.append({name: out[:kept] for name, out in self.run(part).items()})
        joined = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
        if first.dtype.kind != "i":
            return joined
        return {name: out[:, :length] if out.ndim > 2 else out for name, out in joined.items()}

    @property
    def _batch(self):
        return next(iter(self.shapes.values()))[0]

    def _fit(self, name, array):
        """`array` with zeros behind it where the file wants more."""
        missing = []
        for axis, wanted in enumerate(self.shapes[name]):
            size = array.shape[axis]
            if wanted is not None and size > wanted:
                raise ValueError(
                    f"{self.run.path} takes {name} of at most {wanted} along axis {axis}; this "
                    f"one has {size}. Split it, or export again with a larger --sequence-length."
                )
            missing.append((0, 0 if wanted is None else wanted - size))
        return np.pad(array, missing)


def softmax(logits):
    """Probabilities (..., L) of logits (..., L)."""
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def by_name(run, inputs):
    """Inputs as a dict, under the name that the file has for them if there is one only."""
    return inputs if isinstance(inputs, dict) else {next(iter(run.inputs)): inputs}
