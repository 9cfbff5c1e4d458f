"""HDF5 files of weights, as Keras writes them: where each tensor lies, checked, and nothing read.

Keras writes plain arrays, one after another. What an HDF5 file may hold beside that (links into
other files, references, compressed or virtual arrays, which can need other code to be read) is
refused.
"""

import numpy as np

from keras_attention.pretrained.checkpoint import DTYPES, CheckpointError, StoredTensor

MOST_OBJECTS = 1_000_000
KINDS = set(DTYPES.values()) - {"bfloat16"}


def read_datasets(path):
    """Return the arrays of an HDF5 file, {name: `StoredTensor`}.

    Raises:
        CheckpointError: the file is damaged, or holds more than plain arrays.
    """
    import h5py

    try:
        with h5py.File(path, "r") as file:
            if file.userblock_size:
                raise _damaged(path, "it does not begin with HDF5")
            return _collect(file, path)
    except CheckpointError:
        raise
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, OverflowError) as error:
        reason = next(iter(str(error).strip("\"'").splitlines()), "")
        raise _damaged(path, f"HDF5 cannot read it ({reason:.80})") from error


def _collect(file, path):
    """The arrays below a file, whose groups are walked through without following links out."""
    import h5py

    size, found, seen, groups = path.stat().st_size, {}, set(), [("", file)]
    while groups:
        before, group = groups.pop()
        for name in group:
            whole = f"{before}/{name}" if before else name
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise CheckpointError(
                    f"{path} has {whole:.80} in another place, by a link: expected the array "
                    "itself."
                )
            one = group[name]
            address = h5py.h5o.get_info(one.id).addr
            if address in seen or len(seen) >= MOST_OBJECTS:
                raise _damaged(path, f"{whole:.80} is there under two names, or one of too many")
            seen.add(address)
            if isinstance(one, h5py.Group):
                groups.append((whole, one))
            elif isinstance(one, h5py.Dataset):
                found[whole] = _locate(one, whole, path, size)
            else:
                raise _damaged(path, f"{whole:.80} is neither a group nor an array")
    return found


def _locate(dataset, name, path, size):
    """Return the `StoredTensor` of a plain array in a file of `size` bytes."""
    import h5py

    dtype = _read_dtype(dataset)
    if dtype is None:
        raise CheckpointError(
            f"{path} has {name:.80} in {str(dataset.dtype):.40}: expected one of "
            f"{', '.join(DTYPES.values())}."
        )
    settings = dataset.id.get_create_plist()
    plain = settings.get_layout() == h5py.h5d.CONTIGUOUS
    if not plain or settings.get_nfilters() or settings.get_external_count():
        raise CheckpointError(
            f"{path} has {name:.80} compressed, in pieces or in another file: expected a plain "
            "array, as Keras writes it."
        )
    start, length = dataset.id.get_offset(), dataset.id.get_storage_size()
    expected = dataset.size * dataset.dtype.itemsize
    if start is None or length != expected or start + length > size:
        raise _damaged(path, f"{name:.80}, {dtype} {dataset.shape}, is not whole")
    return StoredTensor(path, start, dtype, tuple(dataset.shape))


def _read_dtype(dataset):
    """Return the type of an array in NumPy's words, or None for one that is no type of weights."""
    if dataset.dtype == np.dtype("V2") and dataset.attrs.get("dtype") == "bfloat16":
        return "bfloat16"
    known = dataset.dtype.isnative and dataset.dtype.fields is None
    return dataset.dtype.name if known and dataset.dtype.name in KINDS else None


def _damaged(path, reason):
    return CheckpointError(f"{path} is damaged: {reason}.")
