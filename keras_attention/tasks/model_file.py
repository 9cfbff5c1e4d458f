"""Write `.keras` files that older versions of Keras can load, optionally with float16 weights."""

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

# Config entries that Keras added after 3.12, and their default values. Keras 3.12 raises an error
# for unknown entries, so entries with the default value are left out.
ADDED = {
    "quantization_config": None,  # Dense, EinsumDense, Embedding
    "renorm": False,  # BatchNormalization
    "renorm_clipping": None,
    "renorm_momentum": 0.99,
    "input_axes": None,  # VarianceScaling and its subclasses
    "output_axes": None,
    "sliding_window": None,  # MultiHeadAttention, GroupQueryAttention
    "use_gate": False,
    "oov_method": "floormod",  # IntegerLookup, StringLookup
    "salt": None,
    "native_serialization_platforms": None,  # JaxLayer
}


def save_model(model, path, weights_dtype=None):
    """Save a model like `model.save`, in a file that Keras 3.12 can also load.

    If the model uses later features of Keras, such as batch renormalization, only newer versions
    can load the file.

    Args:
        model: `keras.Model`.
        path: path that ends with `.keras`.
        weights_dtype: `"float16"` or `"float32"`, the dtype of floating-point weights in the file.
            None keeps the dtype of each weight. The dtypes of the layers do not change, because
            Keras converts weights when it loads them.

    Raises:
        ValueError: a weight is too large for `weights_dtype`, or `weights_dtype` is invalid.
    """
    _check_dtype(weights_dtype)
    model.save(path)
    rewrite_model_file(path, weights_dtype)


def rewrite_model_file(path, weights_dtype=None):
    """Rewrite a `.keras` file in place, so that Keras 3.12 can also load it.

    `weights_dtype` is the new dtype of floating-point weights. None keeps their dtypes.
    """
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
    info = copy.copy(member)  # because writing to `target` modifies it
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
    """Remove entries that Keras 3.12 does not know from a model's config, and return the config.

    `ADDED` lists these entries. They are removed if they have the default value, also from the
    configs of nested objects whose class belongs to Keras or this package.
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
    """Convert floating-point arrays in an HDF5 file (bytes) to `dtype`, and return new bytes."""
    buffer = io.BytesIO()
    with h5py.File(io.BytesIO(content)) as old, h5py.File(buffer, "w") as new:
        new.attrs.update(old.attrs)

        def copy(name, item):
            if isinstance(item, h5py.Group):
                made = new.require_group(name)
            else:
                made = new.create_dataset(name, data=_cast(name, item[()], dtype))
            made.attrs.update(item.attrs)

        old.visititems(copy)
    return buffer.getvalue()


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
