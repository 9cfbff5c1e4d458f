"""Write the `.keras` file of a preset: older versions of Keras load it, in float16 if asked."""

import copy
import io
import json
import pathlib
import shutil
import zipfile

import h5py
import numpy as np

from keras_attention.files.io import make_workplace, move_into_place

CONFIG, WEIGHTS = "config.json", "model.weights.h5"
DTYPES = ("float16", "float32")

# Config entries that Keras added after 3.12, and their defaults. Keras 3.12 refuses names that it
# does not know, so entries with the default value are left out.
ADDED = {
    "quantization_config": None,  # Dense, EinsumDense, Embedding
    "renorm": False,  # BatchNormalization
    "renorm_clipping": None,
    "renorm_momentum": 0.99,
    "input_axes": None,  # VarianceScaling and its kinds
    "output_axes": None,
    "sliding_window": None,  # MultiHeadAttention, GroupQueryAttention
    "use_gate": False,
    "oov_method": "floormod",  # IntegerLookup, StringLookup
    "salt": None,
    "native_serialization_platforms": None,  # JaxLayer
}


def save_model(model, path, weights_dtype=None):
    """Save a model like `model.save`, in a file that Keras 3.12 loads, too.

    A model that uses what Keras added later, such as batch renormalization, keeps that in its
    config: only newer versions load it.

    Args:
        path: path that ends with `.keras`.
        weights_dtype: `"float16"` or `"float32"`, the type of floating-point weights in the file.
            None keeps theirs. The model's layers keep their own type: Keras converts weights when
            it loads them.

    Raises:
        ValueError: a weight is too large for `weights_dtype`, or that is another type.
    """
    _check_dtype(weights_dtype)
    model.save(path)
    rewrite_model_file(path, weights_dtype)


def rewrite_model_file(path, weights_dtype=None):
    """Change a `.keras` file to what `save_model` would have written. Arguments as there."""
    _check_dtype(weights_dtype)
    path = pathlib.Path(path)
    with make_workplace(path) as new:
        with zipfile.ZipFile(path) as source, zipfile.ZipFile(new, "w") as target:
            for member in source.infolist():
                _copy_member(source, target, member, weights_dtype)
        move_into_place(new, path)


def _check_dtype(dtype):
    if dtype not in (None, *DTYPES):
        raise ValueError(f"weights_dtype={dtype!r}: expected one of {', '.join(DTYPES)}, or None.")


def _copy_member(source, target, member, weights_dtype):
    info = copy.copy(member)  # `target` changes it
    if weights_dtype is not None:
        info.compress_type = zipfile.ZIP_DEFLATED
    if member.filename == CONFIG:
        config = json.loads(source.read(member))
        target.writestr(info, json.dumps(drop_added_entries(config)))
    elif member.filename == WEIGHTS and weights_dtype is not None:
        target.writestr(info, _convert(source.read(member), weights_dtype))
    else:
        with source.open(member) as old, target.open(info, "w") as new:
            shutil.copyfileobj(old, new)


def drop_added_entries(config):
    """Return a model's config without the entries in `ADDED` that have their default value.

    Only configs of Keras's classes and ours are changed, at any depth.
    """
    if isinstance(config, list):
        return [drop_added_entries(value) for value in config]
    if not isinstance(config, dict):
        return config
    config = {name: drop_added_entries(value) for name, value in config.items()}
    module = str(config.get("module")).split(".")[0]
    if module in ("keras", "keras_attention") and isinstance(config.get("config"), dict):
        entries = config["config"].items()
        config["config"] = {
            name: value
            for name, value in entries
            if name not in ADDED or type(value) is not type(ADDED[name]) or value != ADDED[name]
        }
    return config


def _convert(content, dtype):
    """Return the bytes of an HDF5 file with its floating-point arrays as `dtype`."""
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
