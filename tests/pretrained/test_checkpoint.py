"""Files of checkpoints: damaged files and files that could run code are refused."""

import gc
import json
import os
import shutil
import tracemalloc

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.pretrained.checkpoint import Checkpoint, CheckpointError, read_header
from tests.pretrained.make_checkpoints import FOLDER


@pytest.fixture
def folder(tmp_path):
    """Copy a checkpoint."""
    shutil.copytree(FOLDER / "gpt2", tmp_path / "gpt2")
    return tmp_path / "gpt2"


def write_tensors(path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def test_tensors_are_read_as_they_were_written(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    arrays = {
        "a": np.arange(6, dtype="float32").reshape(2, 3),
        "b": np.array([1.5, -2.0], ml_dtypes.bfloat16),
        "c": np.zeros((0, 4), "float16"),
        "d": np.array(7, "int64"),
    }
    names = {"float32": "F32", "bfloat16": "BF16", "float16": "F16", "int64": "I64"}
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, x in arrays.items():
        offsets = len(data), len(data) + x.nbytes
        header[name] = entry(names[x.dtype.name], x.shape, offsets)
        data += x.tobytes()
    write_tensors(tmp_path / "m.safetensors", header, data)
    actual = read_header(tmp_path / "m.safetensors")
    assert actual.keys() == arrays.keys()
    for name, x in arrays.items():
        assert actual[name].read().dtype == x.dtype
        np.testing.assert_array_equal(actual[name].read(), x)


@pytest.mark.parametrize(
    "header, data, message",
    [
        (b"{", b"", "its header is not JSON"),
        (b"[]", b"", "its header is not a JSON object"),
        (b'{"a": 1, "a": 2}', b"", "a name occurs twice"),
        (b"[" * 100_000, b"", "its header is not JSON"),
        ({"a": 5}, b"", "'a' lacks dtype, shape or data_offsets"),
        ({"a": entry("F4")}, b"12345678", "'a' in 'F4': expected one of F64, F32"),
        ({"a": entry(shape=[-1])}, b"12345678", "an invalid shape or data_offsets"),
        ({"a": entry(shape=[2.0])}, b"12345678", "an invalid shape or data_offsets"),
        ({"a": entry(shape=[1] * 9)}, b"12345678", "9 axes"),
        ({"a": entry(shape=[3])}, b"12345678", r"float32 \(3,\), has 8 bytes"),
        ({"a": entry(offsets=[0, 12])}, b"12345678", "at 0 to 12 of 8 bytes"),
        ({"a": entry(offsets=[8, 0])}, b"12345678", "at 8 to 0"),
        ({"a": entry(shape=[2**62, 2**62])}, b"12345678", "has 8 bytes"),
        ({"a": entry(), "b": entry()}, b"12345678", "overlap, or leave a gap"),
        ({"a": entry(offsets=[4, 12])}, b"123456789012", "overlap, or leave a gap"),
        ({"a": entry()}, b"12345678ab", "10 bytes of tensors, but its header describes 8"),
    ],
)
def test_damaged_headers_are_refused(header, data, message, tmp_path):
    path = tmp_path / "m.safetensors"
    write_tensors(path, header, data)
    with pytest.raises(CheckpointError, match=message):
        read_header(path)


def test_a_header_longer_than_its_file_is_refused(tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes((2**62).to_bytes(8, "little") + b"{}")
    with pytest.raises(CheckpointError, match="its header is longer than the file"):
        read_header(path)


def test_weights_that_could_run_code_are_not_opened(folder):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'echo ruined'\ntR.")
    with pytest.raises(CheckpointError, match="not opened.*can run code.*save_pretrained"):
        ka.pretrained.load(folder)


@pytest.mark.parametrize("name", ["../model.safetensors", "/etc/passwd", "model.bin", "a\\..\\b"])
def test_shard_names_with_a_path_are_refused(folder, name):
    (folder / "model.safetensors").rename(folder / "whole.safetensors")
    index = {"weight_map": {"wte.weight": name}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match="names the shard .*: expected the plain name"):
        Checkpoint(folder)


def test_a_missing_shard_is_refused(folder):
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"wte.weight": "model-00001-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match="lacks model-00001-of-00002.safetensors, a shard"):
        Checkpoint(folder)


def test_load_refuses_missing_folders_and_invalid_configs(tmp_path, folder):
    with pytest.raises(CheckpointError, match="There is no folder ./nowhere/at/all"):
        ka.pretrained.load("./nowhere/at/all")
    with pytest.raises(CheckpointError, match="holds no config.json, so it is not a checkpoint"):
        ka.pretrained.load(tmp_path)
    (folder / "config.json").write_text("[1]")
    with pytest.raises(CheckpointError, match="expected a JSON object"):
        ka.pretrained.load(folder)


def test_auto_map_is_never_run(folder):
    (folder / "code.py").write_text("raise SystemExit('was run')")
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"] = {"AutoModel": "code.Model"}
    (folder / "config.json").write_text(json.dumps(config))
    assert ka.pretrained.load(folder).name == "causal_language_model"


def measure_peak(run):
    """Return the peak memory of Python and NumPy while `run` runs, in bytes."""
    gc.collect()
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError) as raised:
            run()
        assert str(raised.value).count("\n") == 0
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_false_shapes_in_a_header_take_no_memory(tmp_path):
    path, size = tmp_path / "m.safetensors", 2**20
    write_tensors(path, {"a": entry(shape=[size, size], offsets=[0, 4 * size * size])}, b"12345678")
    assert measure_peak(lambda: read_header(path)) < 100_000


def test_a_sparse_file_takes_no_memory(folder):
    """Load a sparse file of a gigabyte whose shapes do not fit the model."""
    path, size = folder / "model.safetensors", 2**14
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    name = "transformer.wte.weight"
    other_names = [key for key in header if key not in ("__metadata__", name)]
    new, end = {name: entry(shape=[size, size], offsets=[0, 4 * size * size])}, 4 * size * size
    for key in other_names:
        start, after = header[key]["data_offsets"]
        new[key] = header[key] | {"data_offsets": [end, end + after - start]}
        end += after - start
    write_tensors(path, new)
    os.truncate(path, path.stat().st_size + end)
    assert measure_peak(lambda: ka.pretrained.load(folder)) < 20_000_000


@pytest.mark.parametrize("key", ["vocab_size", "n_embd", "n_inner", "n_positions", "n_layer"])
@pytest.mark.parametrize("size", [10**9, 2**62])
def test_false_sizes_in_settings_take_no_memory(folder, key, size):
    config = json.loads((folder / "config.json").read_text()) | {key: size}
    (folder / "config.json").write_text(json.dumps(config))
    assert measure_peak(lambda: ka.pretrained.load(folder)) < 20_000_000


def test_a_tensor_in_two_shards_is_refused(folder):
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    shutil.copy(folder / "a.safetensors", folder / "b.safetensors")
    index = {"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match="b.safetensors is damaged: .* is in a.safetensors"):
        Checkpoint(folder)


def test_shards_may_be_links(folder, tmp_path):
    """Load links as in the Hub's cache. A link to another kind of file is a damaged file."""
    (folder / "model.safetensors").rename(tmp_path / "blob")
    (folder / "model-00001-of-00001.safetensors").symlink_to(tmp_path / "blob")
    index = {"weight_map": {"x": "model-00001-of-00001.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert ka.pretrained.load(folder).name == "causal_language_model"
    (tmp_path / "blob").write_text("root:x:0:0:root:/root:/bin/bash\n" * 20)
    with pytest.raises(CheckpointError, match="its header is longer than the file") as raised:
        Checkpoint(folder)
    assert "bash" not in str(raised.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "bert-texts", "t5", "llama-2"])
def test_corrupted_files_are_refused_or_load(name, tmp_path):
    """Change, cut or repeat bytes: loading raises a one-line error, or succeeds."""
    folder = shutil.copytree(FOLDER / name, tmp_path / name)
    random = np.random.default_rng(0)
    files = ("config.json", "model.safetensors.index.json", "model*.safetensors")  # llama has two
    whole = {path: path.read_bytes() for part in files for path in sorted(folder.glob(part))}
    for _ in range(50):
        path = list(whole)[random.integers(len(whole))]
        data = bytearray(whole[path])
        most = len(data)
        if path.suffix == ".safetensors":
            most = min(most, 8 + int.from_bytes(data[:8], "little") + 20)
        place = int(random.integers(most))
        kind = random.integers(3)
        if kind == 0:
            data[place] = random.integers(256)
        elif kind == 1:
            del data[place : place + int(random.integers(1, 30))]
        else:
            data[place:place] = data[place : place + int(random.integers(1, 30))]
        path.write_bytes(bytes(data))
        try:
            ka.pretrained.describe(folder)
            ka.pretrained.load(folder)
        except ValueError as error:
            assert isinstance(error, CheckpointError), error
            assert str(error).count("\n") == 0
        path.write_bytes(whole[path])
