"""A folder of a checkpoint: its settings, and its tensors, read from maps of the files.

Nothing in a folder is run: only `config.json` and safetensors files are read (those of KerasHub in
`keras_hub`), and each is checked before anything is made of it. The library of the format copies
every tensor, and has no bfloat16 in NumPy; here a tensor is a map of its bytes, so that a model is
the only copy in memory.
"""

import dataclasses
import json
import math
import pathlib
import re

import numpy as np

from keras_attention.files.io import read_json

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
LONGEST_HEADER = 100_000_000  # bytes, as in the library of the format
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
# What the first BERTs, which TensorFlow wrote, call the scale and the offset of a norm.
OLD_NAMES = re.compile(r"(?<=LayerNorm\.)(gamma|beta)$")
NEW_NAMES = {"gamma": "weight", "beta": "bias"}
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5", "model.ckpt")


class CheckpointError(ValueError):
    """A checkpoint that is damaged, or that nothing here can load; the words say why."""


@dataclasses.dataclass(frozen=True)
class StoredTensor:
    """A tensor in a safetensors file.

    Attributes:
        path: the file. start: int, its first byte there.
        dtype: str, of NumPy (and `"bfloat16"`). shape: tuple of ints.
    """

    path: pathlib.Path
    start: int
    dtype: str
    shape: tuple

    def read(self):
        """Return the array, of the file's own bytes: they are read when they are looked at."""
        import ml_dtypes

        dtype = np.dtype(ml_dtypes.bfloat16 if self.dtype == "bfloat16" else self.dtype)
        if not math.prod(self.shape):
            return np.zeros(self.shape, dtype)
        return np.memmap(self.path, dtype, mode="r", offset=self.start, shape=self.shape)


class Checkpoint:
    """The settings and tensors of a folder.

    Args:
        folder: path of a folder with `config.json` and `model.safetensors`, or shards of it.

    Attributes:
        folder: pathlib.Path.
        config: dict, what `config.json` says.
        tensors: dict, name -> `StoredTensor`.

    Raises:
        CheckpointError: a file is missing, damaged, or of a kind that could run code.
    """

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        if not self.folder.is_dir():
            raise CheckpointError(f"There is no folder {folder}.")
        self.config = self._read_config()
        self.tensors = {}
        for path in self._find_files():
            for name, tensor in self._read_header(path).items():
                name = OLD_NAMES.sub(lambda found: NEW_NAMES[found[1]], name)
                if name in self.tensors:
                    raise CheckpointError(
                        f"{path} is damaged: {name} is in {self.tensors[name].path.name}, too."
                    )
                self.tensors[name] = tensor

    @property
    def model_type(self):
        """The architecture by its own name; `"timm"` for files of timm, which name a size."""
        is_timm = "architecture" in self.config and "model_type" not in self.config
        return "timm" if is_timm else self.config.get("model_type")

    def _read_config(self):
        return self._read_dict(CONFIG)

    def _read_header(self, path):
        return read_header(path)

    def _read_dict(self, name):
        path = self.folder / name
        if not path.is_file():
            raise CheckpointError(f"{self.folder} holds no {name}: it is no checkpoint.")
        return read_content(path)

    def _find_files(self):
        """Return the safetensors files of the folder."""
        whole = self.folder / WEIGHTS
        if whole.is_file():
            return [whole]
        if not (self.folder / INDEX).is_file():
            self._refuse_pickles()
            raise CheckpointError(f"{self.folder} holds no {WEIGHTS}, and no {INDEX} of shards.")
        places = self._read_dict(INDEX).get("weight_map")
        if not isinstance(places, dict) or not all(isinstance(x, str) for x in places.values()):
            raise CheckpointError(f"{self.folder / INDEX} is damaged: it has no weight_map.")
        return self._check_shards(INDEX, set(places.values()), ".safetensors")

    def _check_shards(self, index, names, ending):
        """Return the paths of the shards that a file names."""
        for name in names:
            # the name, not where it leads: caches of the hub are links
            if pathlib.PurePath(name).name != name or not name.endswith(ending):
                raise CheckpointError(
                    f"{self.folder / index} names the shard {name!r:.80}: expected the plain name "
                    f"of a {ending} file beside it."
                )
            if not (self.folder / name).is_file():
                raise CheckpointError(f"{self.folder} lacks {name}, a shard of its weights.")
        return [self.folder / name for name in sorted(names)]

    def _refuse_pickles(self):
        if found := [name for name in PICKLES if (self.folder / name).exists()]:
            raise CheckpointError(
                f"{self.folder} has its weights in {found[0]} alone, a file that can run code when "
                "it is read: it is not opened. Where you trust it, convert it once: "
                "transformers.AutoModel.from_pretrained(folder).save_pretrained(new_folder)."
            )


def read_content(path, kind=dict):
    """Return the content of a JSON file, a dict or list, or raise a CheckpointError."""
    try:
        found = read_json(path)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    if not isinstance(found, kind):
        name = "object" if kind is dict else "list"
        raise CheckpointError(f"{path} is damaged: expected a JSON {name}.")
    return found


def read_header(path):
    """The tensors of a safetensors file, {name: `StoredTensor`}; checked, nothing of them read."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        first = file.read(8)
        length = int.from_bytes(first, "little")
        if len(first) < 8 or length > min(LONGEST_HEADER, size - 8):
            raise _damaged(path, "its header ends behind the file, or is too long")
        text = file.read(length)

    def make_dict(pairs):
        if len(found := dict(pairs)) < len(pairs):
            raise ValueError("a name occurs twice")
        return found

    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=make_dict)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"its header is no JSON ({str(error)[:80]})") from error
    if not isinstance(header, dict):
        raise _damaged(path, "its header is no JSON object")
    header.pop("__metadata__", None)
    begin, found = 8 + length, {}
    for name, entry in header.items():
        dtype, shape, start, end = _read_entry(path, name, entry)
        if not 0 <= start <= end <= size - begin:
            raise _damaged(path, f"{name} is at {start} to {end} of {size - begin} bytes")
        item = 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize
        if end - start != math.prod(shape) * item:
            raise _damaged(path, f"{name}, {dtype} {shape}, has {end - start} bytes")
        found[name] = StoredTensor(path, begin + start, dtype, shape)
    _check_gapless(path, header, size - begin)
    return found


def _read_entry(path, name, entry):
    """(dtype, shape, start, end) of a tensor in a header."""
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
        raise _damaged(path, f"{name!r:.80} has no dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise CheckpointError(
            f"{path} has {name!r:.80} in {dtype!r:.40}: expected one of {', '.join(DTYPES)}."
        )
    numbers = isinstance(shape, list) and isinstance(offsets, list) and len(offsets) == 2
    if not numbers or not all(type(x) is int and 0 <= x < 2**63 for x in (*shape, *offsets)):
        raise _damaged(path, f"{name!r:.80} has a shape or data_offsets that are none")
    if len(shape) > MOST_AXES:
        raise _damaged(path, f"{name!r:.80} has {len(shape)} axes")
    return DTYPES[dtype], tuple(shape), *offsets


def _check_gapless(path, header, size):
    """Tensors lie one after another, and fill the file: as the format asks."""
    end = 0
    for start, after in sorted(tuple(entry["data_offsets"]) for entry in header.values()):
        if start != end:
            raise _damaged(path, f"its tensors overlap, or leave a gap, at byte {min(start, end)}")
        end = after
    if end != size:
        raise _damaged(path, f"it has {size} bytes of tensors, and its header speaks of {end}")


def _damaged(path, reason):
    return CheckpointError(f"{path} is damaged: {reason}.")
