"""`read_datasets`: finds the arrays in an HDF5 file of Keras weights, without reading them.

Keras only writes plain arrays. HDF5 also has links into other files, references, and compressed or
virtual arrays. To read these may run other code, so they raise an error.
"""

import numpy as np

from keras_attention.pretrained.checkpoint import DTYPES, CheckpointError, StoredTensor

MOST_OBJECTS = 1_000_000
KINDS = set(DTYPES.values()) - {"bfloat16"}


def read_datasets(path):
    """Return the places of the arrays in an HDF5 file, {path inside the file: `StoredTensor`}.

    Raise a CheckpointError if the file is damaged.
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
    """Return the result of `read_datasets` for an open HDF5 file. Links raise an error."""
    import h5py

    size, tensors, addresses, groups = path.stat().st_size, {}, set(), [("", file)]
    while groups:
        prefix, group = groups.pop()
        for key in group:
            name = f"{prefix}/{key}" if prefix else key
            if not isinstance(group.get(key, getlink=True), h5py.HardLink):
                raise CheckpointError(
                    f"{path} has {name:.80} as a link: expected the array itself."
                )
            item = group[key]
            address = h5py.h5o.get_info(item.id).addr
            if address in addresses or len(addresses) >= MOST_OBJECTS:
                raise _damaged(path, f"{name:.80} has two names, or the file too many objects")
            addresses.add(address)
            if isinstance(item, h5py.Group):
                groups.append((name, item))
            elif isinstance(item, h5py.Dataset):
                tensors[name] = _locate(item, name, path, size)
            else:
                raise _damaged(path, f"{name:.80} is neither a group nor an array")
    return tensors


def _locate(dataset, name, path, size):
    """Return the `StoredTensor` of an HDF5 dataset called `name`, in a file of `size` bytes.

    A dataset that is not a plain array inside the file raises a CheckpointError.
    """
    import h5py

    dtype = dataset.dtype.name
    if dataset.dtype == np.dtype("V2") and dataset.attrs.get("dtype") == "bfloat16":
        dtype = "bfloat16"
    elif not dataset.dtype.isnative or dataset.dtype.fields is not None or dtype not in KINDS:
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
        raise _damaged(path, f"{name:.80}, {dtype} {dataset.shape}, is not complete")
    return StoredTensor(path, start, dtype, tuple(dataset.shape))


def _damaged(path, reason):
    return CheckpointError(f"{path} is damaged: {reason}.")
