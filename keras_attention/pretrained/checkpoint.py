"""`Checkpoint`: a folder with `config.json` and safetensors files, read without running its code.

Every file is checked before it is used. Tensors are read as memory maps, so only the model's own
copy is in memory. (The safetensors library would copy every tensor, and NumPy lacks bfloat16.) The
module `keras_hub` reads folders of KerasHub.
"""

import contextlib
import dataclasses
import json
import math
import pathlib
import re

import numpy as np

from keras_attention.files.io import read_json

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
LONGEST_HEADER = 100_000_000  # bytes, as in the safetensors library
MOST_AXES = 8
DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}
# Early BERT files have TensorFlow's names for the weights of a layer normalization.
OLD_NAMES = re.compile(r"(?<=LayerNorm\.)(gamma|beta)$")
NEW_NAMES = {"gamma": "weight", "beta": "bias"}
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5", "model.ckpt")


class CheckpointError(ValueError):
    """Raised if a checkpoint is damaged or not supported. The message gives the reason."""


@dataclasses.dataclass(frozen=True)
class StoredTensor:
    """The place of a tensor in a file. `read` returns the array.

    Attributes:
        path: pathlib.Path of the file.
        start: int, the offset of the tensor's first byte.
        dtype: str, a NumPy dtype or "bfloat16".
        shape: tuple of int.
    """

    path: pathlib.Path
    start: int
    dtype: str
    shape: tuple

    def read(self):
        """Return the array as a memory map of the file."""
        import ml_dtypes

        dtype = np.dtype(ml_dtypes.bfloat16 if self.dtype == "bfloat16" else self.dtype)
        if not math.prod(self.shape):
            return np.zeros(self.shape, dtype)
        return np.memmap(self.path, dtype, mode="r", offset=self.start, shape=self.shape)


class Checkpoint:
    """The settings and tensors of a checkpoint in Hugging Face's format.

    Args:
        folder: path of a folder with `config.json` and `model.safetensors`, or its shards.

    Attributes:
        folder: pathlib.Path of the folder.
        config: dict, the content of `config.json`.
        tensors: dict from the name of a tensor to a `StoredTensor`.

    Raises:
        CheckpointError: a file is missing or damaged, or the weights are only in pickle files,
            which can run code.
    """

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        if not self.folder.is_dir():
            raise CheckpointError(f"There is no folder {folder}.")
        self.config = self._read_config()
        self.tensors = {}
        for path in self._find_files():
            for name, tensor in self._read_tensors(path).items():
                name = OLD_NAMES.sub(lambda match: NEW_NAMES[match[1]], name)
                if name in self.tensors:
                    raise CheckpointError(
                        f"{path} is damaged: {name} is in {self.tensors[name].path.name}, too."
                    )
                self.tensors[name] = tensor

    @property
    def model_type(self):
        """Return `model_type` from `config.json`, or `"timm"` if the checkpoint is from timm."""
        is_timm = "architecture" in self.config and "model_type" not in self.config
        return "timm" if is_timm else self.config.get("model_type")

    def _read_config(self):
        return self._read_dict(CONFIG)

    def _read_tensors(self, path):
        return read_header(path)

    def _read_dict(self, name):
        path = self.folder / name
        if not path.is_file():
            raise CheckpointError(f"{self.folder} holds no {name}, so it is not a checkpoint.")
        return read_content(path)

    def _find_files(self):
        """Return the paths of `model.safetensors` or of its shards."""
        path = self.folder / WEIGHTS
        if path.is_file():
            return [path]
        if not (self.folder / INDEX).is_file():
            self._refuse_pickles()
            raise CheckpointError(f"{self.folder} holds no {WEIGHTS}, and no {INDEX} of shards.")
        weight_map = self._read_dict(INDEX).get("weight_map")
        if not isinstance(weight_map, dict) or not all(
            isinstance(shard, str) for shard in weight_map.values()
        ):
            raise CheckpointError(f"{self.folder / INDEX} is damaged: it has no weight_map.")
        return self._check_shards(INDEX, set(weight_map.values()), ".safetensors")

    def _check_shards(self, index, names, ending):
        """Return the paths of shards, the several files of one checkpoint, as a list.

        A name that contains a folder or has no file raises a CheckpointError.

        `index` is the file that lists the shards, and `ending` the ending of their names.
        """
        for name in names:
            # Check the name and not the target: files in the Hub's cache are links.
            if pathlib.PurePath(name).name != name or not name.endswith(ending):
                raise CheckpointError(
                    f"{self.folder / index} names the shard {name!r:.80}: expected the plain name "
                    f"of a {ending} file beside it."
                )
            if not (self.folder / name).is_file():
                raise CheckpointError(f"{self.folder} lacks {name}, a shard of its weights.")
        return [self.folder / name for name in sorted(names)]

    def _refuse_pickles(self):
        if names := [name for name in PICKLES if (self.folder / name).exists()]:
            raise CheckpointError(
                f"{self.folder} has weights only in {names[0]}, which is not opened, because such "
                "a file can run code. If you trust the file, convert it once: "
                "transformers.AutoModel.from_pretrained(folder).save_pretrained(new_folder)."
            )


@contextlib.contextmanager
def report_invalid(prefix):
    """Turn a ValueError, KeyError and the like in the `with` block into a CheckpointError.

    The message of the CheckpointError starts with `prefix`, such as the path of a file.
    """
    try:
        yield
    except CheckpointError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{prefix}: {error!s:.500}") from error


def read_content(path, kind=dict):
    """Return the content of a JSON file, which must be of type `kind`, dict or list.

    A damaged file or another content raises a CheckpointError.
    """
    try:
        content = read_json(path)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    if not isinstance(content, kind):
        name = "object" if kind is dict else "list"
        raise CheckpointError(f"{path} is damaged: expected a JSON {name}.")
    return content


def read_header(path):
    """Return {name: `StoredTensor`} of a safetensors file, without reading the tensors.

    A `StoredTensor` is the place of a tensor in the file `path`. Raise a CheckpointError if the
    file is damaged.
    """
    size = path.stat().st_size
    with open(path, "rb") as file:
        first = file.read(8)
        length = int.from_bytes(first, "little")
        if len(first) < 8 or length > min(LONGEST_HEADER, size - 8):
            raise _damaged(path, "its header is longer than the file, or too long")
        text = file.read(length)

    def make_dict(pairs):
        if len(content := dict(pairs)) < len(pairs):
            raise ValueError("a name occurs twice")
        return content

    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=make_dict)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"its header is not JSON ({str(error)[:80]})") from error
    if not isinstance(header, dict):
        raise _damaged(path, "its header is not a JSON object")
    header.pop("__metadata__", None)
    begin, tensors = 8 + length, {}
    for name, entry in header.items():
        dtype, shape, start, end = _read_entry(path, name, entry)
        if not 0 <= start <= end <= size - begin:
            raise _damaged(path, f"{name} is at {start} to {end} of {size - begin} bytes")
        item = 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize
        if end - start != math.prod(shape) * item:
            raise _damaged(path, f"{name}, {dtype} {shape}, has {end - start} bytes")
        tensors[name] = StoredTensor(path, begin + start, dtype, shape)
    _check_gapless(path, header, size - begin)
    return tensors


def _read_entry(path, name, entry):
    """Return (dtype, shape, start, end) from a header's `entry` for the tensor `name`.

    `start` and `end` are offsets in bytes. A damaged entry raises a CheckpointError.
    """
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
        raise _damaged(path, f"{name!r:.80} lacks dtype, shape or data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise CheckpointError(
            f"{path} has {name!r:.80} in {dtype!r:.40}: expected one of {', '.join(DTYPES)}."
        )
    are_lists = isinstance(shape, list) and isinstance(offsets, list) and len(offsets) == 2
    if not are_lists or not all(type(x) is int and 0 <= x < 2**63 for x in (*shape, *offsets)):
        raise _damaged(path, f"{name!r:.80} has an invalid shape or data_offsets")
    if len(shape) > MOST_AXES:
        raise _damaged(path, f"{name!r:.80} has {len(shape)} axes")
    return DTYPES[dtype], tuple(shape), *offsets


def _check_gapless(path, header, size):
    """Raise a CheckpointError if tensors overlap or leave gaps in a file of `size` bytes."""
    end = 0
    for start, stop in sorted(tuple(entry["data_offsets"]) for entry in header.values()):
        if start != end:
            raise _damaged(path, f"its tensors overlap, or leave a gap, at byte {min(start, end)}")
        end = stop
    if end != size:
        raise _damaged(path, f"it has {size} bytes of tensors, but its header describes {end}")


def _damaged(path, reason):
    return CheckpointError(f"{path} is damaged: {reason}.")
