"""Weights of a `.keras` file in another type: half the size, and still loaded as float32."""

import io
import zipfile

import h5py
import numpy as np

from keras_attention.data.files import write_whole

WEIGHTS = "model.weights.h5"
DTYPES = ("float16", "float32")


def store_weights_as(path, dtype):
    """Rewrites the floating-point weights in the `.keras` file `path` as `dtype`.

    The model's layers keep their own type: Keras converts weights when it loads them.

    Args:
        path: pathlib.Path.
        dtype: `"float16"` or `"float32"`.

    Raises:
        ValueError: a weight is too large for `dtype`, or `dtype` is another.
    """
    if dtype not in DTYPES:
        raise ValueError(f"weights_dtype={dtype!r}: expected one of {', '.join(DTYPES)}, or None.")
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members[WEIGHTS] = _convert(members[WEIGHTS], dtype)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    write_whole(path, buffer.getbuffer())


def _convert(content, dtype):
    """The bytes of an HDF5 file with its floating-point arrays as `dtype`."""
    buffer = io.BytesIO()
    with h5py.File(io.BytesIO(content)) as old, h5py.File(buffer, "w") as new:
        _copy_attributes(old, new)

        def copy(name, item):
            if isinstance(item, h5py.Group):
                made = new.require_group(name)
            else:
                made = new.create_dataset(name, data=_cast(name, item[()], dtype))
            _copy_attributes(item, made)

        old.visititems(copy)
    return buffer.getvalue()


def _copy_attributes(old, new):
    for name, value in old.attrs.items():
        new.attrs[name] = value


def _cast(name, values, dtype):
    values = np.asarray(values)
    if values.dtype.kind != "f":
        return values
    with np.errstate(over="ignore"):
        cast = values.astype(dtype)
    if not np.array_equal(np.isfinite(cast), np.isfinite(values)):
        raise ValueError(
            f"The weight {name} has values up to {np.abs(values).max():.3g}, too large for {dtype}."
        )
    return cast
