"""Checkpoints of timm and KerasHub, committed with the outputs of the originals.

`make_foreign_checkpoints.py` made them. `tests/backends/test_foreign.py` makes them again.
"""

import json
import shutil

import h5py
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention.pretrained.architecture import FOREIGN, find_architecture
from keras_attention.pretrained.checkpoint import CheckpointError
from keras_attention.pretrained.keras_hub import read_checkpoint
from tests.grids import quick
from tests.pretrained.make_foreign_checkpoints import COMMITTED, FOLDER, KERAS_HUB, TIMM
from tests.pretrained.test_parity import read_expected
from tests.tables import assert_lists


def assert_equal(folder, **options):
    """Compare the outputs of a folder's model with `expected.npz` at the tokens."""
    inputs, expected = read_expected(folder)
    model = ka.pretrained.load(folder, **options)
    padding = ka.pretrained.describe(folder, **options).keywords.get("padding_id")
    actual = ops.convert_to_numpy(model(inputs if len(inputs) > 1 else [*inputs.values()][0]))
    assert actual.shape == expected.shape
    by_token = padding is not None and expected.ndim == 3
    counted = inputs["token_ids"] != padding if by_token else slice(None)
    np.testing.assert_allclose(actual[counted], expected[counted], atol=1e-5, rtol=1e-5)
    return model


@pytest.fixture
def copy(tmp_path):
    """Return a function that copies a checkpoint."""

    def make(name):
        shutil.copytree(FOLDER / name, tmp_path / name)
        return tmp_path / name

    return make


def change(folder, changes, name="config.json", inside=None):
    """Change settings of a file. None removes one."""
    content = json.loads((folder / name).read_text())
    part = content if inside is None else content.setdefault(inside, {})
    part.update(changes)
    for key in [key for key, value in part.items() if value is None]:
        del part[key]
    (folder / name).write_text(json.dumps(content))


@pytest.mark.parametrize("name", [*TIMM, *COMMITTED])
def test_outputs_equal_the_originals(name):
    assert_equal(FOLDER / name)


def test_every_architecture_has_a_checkpoint():
    kinds = {"timm", *(kind for kind, *_ in KERAS_HUB.values())}
    modules = [find_architecture(kind, "config.json") for kind in kinds]
    table = "KERAS_HUB of tests/pretrained/make_foreign_checkpoints.py"
    assert_lists(table, {module.__name__.split(".")[-1] for module in modules}, FOREIGN)
    listed = {kind for module in modules for kind in module.MODEL_TYPES}
    assert_lists(table, kinds, listed)


def test_describe_reports_models_of_timm_and_keras_hub():
    actual = ka.pretrained.describe(FOLDER / "timm-deit3")
    assert (actual.model_type, actual.builder) == ("timm", "vision_transformer")
    assert actual.keywords["layer_scale"] == 1.0 and actual.keywords["num_classes"] == 5
    actual = ka.pretrained.describe(FOLDER / "llama")
    assert (actual.model_type, actual.builder) == ("LlamaBackbone", "causal_language_model")
    assert actual.dtypes == ("bfloat16",) and actual.keywords["tie_embeddings"]
    assert actual.parameters == ka.pretrained.load(FOLDER / "llama").count_params()
    actual = ka.pretrained.describe(FOLDER / "bert-texts", task="text_encoder")
    assert "layers/dense/vars/0" in actual.unused and "task/layers/dense/vars/1" in actual.unused


@pytest.mark.parametrize("name", ["timm-vit", "timm-deit-distilled", "vit"])
def test_images_get_new_heads(name):
    inputs, _ = read_expected(FOLDER / name)
    model = ka.pretrained.load(FOLDER / name, task="vision_transformer", num_classes=7)
    assert model(inputs["images"]).shape == (2, 7)
    assert ka.pretrained.load(FOLDER / name, task="image_encoder")(inputs["images"]).shape == (
        2,
        12,
    )


def test_texts_get_new_heads():
    inputs, _ = read_expected(FOLDER / "bert-texts")
    whole = ka.pretrained.load(FOLDER / "bert-texts")
    tagger = ka.pretrained.load(FOLDER / "bert-texts", task="sequence_labeler", num_classes=3)
    assert tagger(inputs).shape == (3, 7, 3)
    other = ka.pretrained.load(FOLDER / "bert-texts", task="text_classifier", num_classes=6)
    assert other(inputs).shape == (3, 6)
    kernels = [np.array(m.get_layer("pooler").kernel) for m in (whole, other)]
    np.testing.assert_array_equal(*kernels)  # the pooler of the preset is loaded


# Saving.


@pytest.mark.parametrize("name", quick(TIMM, "timm-fc-norm"))
def test_unchanged_timm_checkpoints_are_saved_bit_for_bit(name, tmp_path):
    ka.pretrained.save(ka.pretrained.load(FOLDER / name), tmp_path / "saved")
    before, after = read_checkpoint(FOLDER / name), read_checkpoint(tmp_path / "saved")
    assert before.config == after.config and before.tensors.keys() == after.tensors.keys()
    for tensor in after.tensors:
        actual, expected = after.tensors[tensor], before.tensors[tensor]
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        assert actual.read().tobytes() == expected.read().tobytes(), tensor


@pytest.mark.parametrize("name", quick(TIMM, "timm-fc-norm"))
def test_changed_timm_weights_survive_saving_and_loading(name, tmp_path):
    """Compare outputs, because tokens without positions take the changes of positions."""
    model, (inputs, before) = ka.pretrained.load(FOLDER / name), read_expected(FOLDER / name)
    random = np.random.default_rng(0)
    for variable in model.trainable_variables:
        drawn = random.normal(size=variable.shape, scale=0.1).astype("float32")
        variable.assign(ops.convert_to_numpy(variable) + drawn)
    ka.pretrained.save(model, tmp_path / "saved")
    expected = ops.convert_to_numpy(model(inputs["images"]))
    actual = ops.convert_to_numpy(ka.pretrained.load(tmp_path / "saved")(inputs["images"]))
    np.testing.assert_allclose(actual, expected, atol=1e-5)
    assert np.abs(expected - before).max() > 0.1


def test_save_refuses_keras_hub_presets_and_new_timm_heads(tmp_path):
    with pytest.raises(ValueError, match="a preset of KerasHub, which can be loaded but not saved"):
        ka.pretrained.save(ka.pretrained.load(FOLDER / "gpt2"), tmp_path / "saved")
    model = ka.pretrained.load(FOLDER / "timm-vit", task="vision_transformer", num_classes=7)
    with pytest.raises(ValueError, match="is a timm checkpoint, which can only be saved with"):
        ka.pretrained.save(model, tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


# Settings.


@pytest.mark.parametrize(
    "changes, inside, message",
    [
        ({"architecture": "vit_so400m_patch16_radio_v4"}, None, "expected a vit, deit or deit3"),
        ({"architecture": "vit_small_patch16_18x2_224"}, None, "expected a vit, deit or deit3"),
        ({"architecture": "resnet50"}, None, "architecture='resnet50': expected a vit"),
        ({"architecture": 5}, None, "architecture=5: expected a vit"),
        ({"num_heads": None}, "model_args", "has a width of 12: expected 192, or num_heads in"),
        ({"num_heads": 5}, "model_args", "cannot be built: num_heads=5 does not divide"),
        ({"num_heads": 2**40}, "model_args", "num_heads is 1099511627776: expected a whole number"),
        ({"act_layer": "snake"}, "model_args", "act_layer is 'snake': expected one of gelu"),
        (
            {"norm_layer": "rmsnorm"},
            "model_args",
            "norm_layer='rmsnorm', a setting that the loader",
        ),
        ({"qk_norm": True}, "model_args", "qk_norm is true: expected none"),
        ({"global_pool": "map"}, None, "lacks the tensor attn_pool"),
        ({"global_pool": "prr"}, None, "global_pool is 'prr': expected one of token"),
        ({"pool_include_prefix": True}, "model_args", "pool_include_prefix is true: expected none"),
        ({"model_args": [1]}, None, "model_args is a list: expected an object"),
        ({"pretrained_cfg": 3}, None, "pretrained_cfg is 3: expected an object"),
        ({"head_kind": "wide"}, None, "head_kind='wide', a setting that the loader of a vit_tiny"),
        ({"model_type": "vit"}, None, "num_hidden_layers is not there: expected a whole number"),
    ],
)
def test_unknown_timm_settings_are_refused(changes, inside, message, copy):
    folder = copy("timm-vit")
    change(folder, changes, inside=inside)
    with pytest.raises(CheckpointError, match=message):
        ka.pretrained.load(folder)


def test_timm_names_and_sizes_follow_the_table(copy):
    module = find_architecture("timm", "")
    assert module.SIZES["tiny"] == {192: 3} and module.SIZES["base"][768] == 12
    for name, right in {
        "vit_base_patch16_224": True,
        "vit_large_patch14_clip_quickgelu_336": True,
        "deit_base_distilled_patch16_384": True,
        "deit3_huge_patch14_224": True,
        "vit_base_patch14_reg4_dinov2": True,
        "vit_so400m_patch14_siglip_gap_384": True,
        "vit_so150m_patch16_reg4_map_256": True,
        "vit_base_patch16_rpn_224": False,
        "vit_intern300m_patch14_448": False,
        "beit_base_patch16_224": False,
    }.items():
        assert (module.NAMES.fullmatch(name) is not None) == right, name


def test_the_image_size_of_timm_follows_the_positions(copy):
    folder = copy("timm-vit")
    change(folder, {"img_size": [24, 24]}, inside="model_args")
    assert ka.pretrained.describe(folder).keywords["image_size"] == (12, 12)  # by the positions
    folder = copy("timm-vit-wide")
    change(folder, {"img_size": None}, inside="model_args")
    change(folder, {"input_size": [3, 224, 224]}, inside="pretrained_cfg")
    with pytest.raises(CheckpointError, match=r"positions for 6 patches of \[4, 4\]. They do not"):
        ka.pretrained.load(folder)


@pytest.mark.parametrize(
    "name, changes, inside, message",
    [
        (
            "gpt2",
            {"class_name": "FalconBackbone"},
            None,
            "has the class FalconBackbone: expected",
        ),
        ("gpt2", {"class_name": None}, None, "expected a class_name and its config"),
        ("gpt2", {"num_layers": 3}, "config", "lacks the tensor layers/transformer_decoder_2/"),
        ("gpt2", {"num_layers": 1}, "config", "has the tensor layers/transformer_decoder_1/"),
        ("gpt2", {"vocabulary_size": 2**30}, "config", r"\(31, 12\) does not make embedding/table"),
        (
            "gpt2",
            {"num_layers": 2**30},
            "config",
            "1073741824: expected .* from 1 to 1000",
        ),
        (
            "gpt2",
            {"rotary": True},
            "config",
            "rotary=True, a setting that the loader of a GPT2Backbone",
        ),
        ("llama", {"rope_position_scaling_factor": 2.0}, "config", "2.0: expected one of 1.0"),
        (
            "llama",
            {"hidden_dim": "wide"},
            "config",
            "hidden_dim is .wide.: expected a whole",
        ),
        (
            "vit",
            {"use_class_token": False},
            "config",
            "use_class_token is false: expected one of True",
        ),
        (
            "vit",
            {"use_mha_bias": False},
            "config",
            "use_mha_bias=False, but other layers differ",
        ),
        ("vit", {"image_shape": 5}, "config", "has an invalid setting"),
        (
            "gemma-2",
            {"use_post_ffw_norm": False},
            "config",
            "use_post_ffw_norm=False and use_post_attention_norm=True: expected both, or neither",
        ),
        ("gemma-2", {"layer_norm_epsilon": 1e-5}, "config", "1e-05: expected one of 1e-06"),
        (
            "qwen-3",
            {"qk_scale": 2.0},
            "config",
            "qk_scale=2.0, a setting that the loader of a Qwen3",
        ),
    ],
)
def test_unknown_keras_hub_settings_are_refused(name, changes, inside, message, copy):
    folder = copy(name)
    change(folder, changes, inside=inside)
    with pytest.raises(CheckpointError, match=message):
        ka.pretrained.load(folder)


@pytest.mark.parametrize(
    "name, changes, message",
    [
        ("bert-texts", {"activation": "softmax"}, "activation is 'softmax': expected one of"),
        ("vit", {"pooling": "gap"}, "pooling is 'gap': expected one of token"),
        ("vit", {"intermediate_dim": 8}, "intermediate_dim is 8: expected none"),
        ("vit", {"temperature_of_logits": 2}, "temperature_of_logits=2, a setting that the loader"),
    ],
)
def test_unknown_keras_hub_heads_are_refused(name, changes, message, copy):
    folder = copy(name)
    change(folder, changes, "task.json", "config")
    with pytest.raises(CheckpointError, match=message):
        ka.pretrained.load(folder)
    assert ka.pretrained.describe(FOLDER / name)


def test_module_names_in_a_file_are_not_imported(copy):
    folder = copy("gpt2")
    (folder / "evil_module.py").write_text("raise SystemExit('was run')")
    change(folder, {"module": "keras_hub.evil_module", "registered_name": "evil_module>Evil"})
    assert ka.pretrained.load(folder).name == "causal_language_model"


# Files.


def test_presets_are_loaded_from_shards(copy):
    """Split a preset into files that an index names."""
    folder, half = copy("gpt2"), "layers/transformer_decoder_1"
    with h5py.File(folder / "model.weights.h5", "a") as whole:
        with h5py.File(folder / "model_00001.weights.h5", "w") as other:
            whole.copy(half, other.create_group("layers"))
        del whole[half]
    (folder / "model.weights.h5").rename(folder / "model_00000.weights.h5")
    weight_map = {"/layers/position_embedding/vars": ["model_00000.weights.h5"],
              f"/{half}/vars": "model_00001.weights.h5"}  # fmt: skip
    table = folder / "model.weights.json"
    table.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    assert_equal(folder)
    table.write_text(json.dumps({"weight_map": {"/a": ["../gpt2/model_00000.weights.h5"]}}))
    with pytest.raises(CheckpointError, match="names the shard .*: expected the plain name"):
        ka.pretrained.load(folder)
    table.write_text(json.dumps({"weight_map": {"/a": [{}]}}))
    with pytest.raises(CheckpointError, match="model.weights.json is damaged"):
        ka.pretrained.load(folder)
    table.unlink()
    with pytest.raises(CheckpointError, match="holds no model.weights.h5, and no"):
        ka.pretrained.load(folder)


def test_older_names_of_layers_are_read(copy):
    """Use Keras's older name of `layers`, and attributes with an underscore."""
    folder = copy("gpt2")
    with h5py.File(folder / "model.weights.h5", "a") as file:
        file.move("layers", "_layer_checkpoint_dependencies")
        inside = file["_layer_checkpoint_dependencies/transformer_decoder/_self_attention_layer"]
        inside.move("query_dense", "_query_dense")
    assert_equal(folder)


def ruin(kind, path):
    """Damage a file of GPT-2, for example replace its positions by another object."""
    if kind == "cut off":
        path.write_bytes(path.read_bytes()[:-2000])
        return
    if kind == "no HDF5":
        path.write_bytes(b"PK\x03\x04" + bytes(1000))
        return
    if kind == "behind another file":
        path.write_bytes(bytes(512) + path.read_bytes())
        return
    with h5py.File(path, "a") as file:
        group, values = file["layers/position_embedding/vars"], np.zeros((16, 12), "float32")
        del group["0"]
        if kind == "external":
            group["0"] = h5py.ExternalLink("/etc/other.h5", "/secret")
        elif kind == "soft":
            group["0"] = h5py.SoftLink("/layers/reversible_embedding/vars/0")
        elif kind == "hard":
            group["0"] = file["layers/reversible_embedding/vars/0"]
        elif kind == "circle":
            group["0"] = file["layers"]
        elif kind == "references":
            data = group.create_dataset("0", (16, 12), h5py.ref_dtype)
            data[0, 0] = file["layers"].ref
        elif kind == "texts":
            group.create_dataset("0", data=["os.system"], dtype=h5py.string_dtype())
        elif kind == "big-endian":
            group["0"] = values.astype(">f4")
        elif kind == "fields":
            group["0"] = np.zeros((16, 12), [("a", "float32")])
        elif kind == "compressed":
            group.create_dataset("0", data=values, compression="gzip")
        elif kind == "huge":
            group.create_dataset("0", (2**20, 2**30), "float32")
        elif kind == "elsewhere":
            group.create_dataset("0", (16, 12), "float32", external=[("/etc/passwd", 0, 768)])
        elif kind == "integers":
            group["0"] = values.astype("int8")
        elif kind == "another shape":
            group["0"] = np.zeros((12, 16, 2), "float32")
        elif kind == "a type":
            group["0"] = np.dtype("float32")


@pytest.mark.parametrize(
    "kind, message",
    [
        ("cut off", "is damaged"),
        ("no HDF5", "is damaged: HDF5 cannot read it"),
        ("behind another file", "is damaged: it does not begin with HDF5"),
        ("external", "position_embedding/vars/0 as a link"),
        ("soft", "position_embedding/vars/0 as a link"),
        ("hard", "has two names"),
        ("circle", "has two names"),
        ("references", "vars/0 in object: expected one of float64"),
        ("texts", "vars/0 in object: expected one of float64"),
        ("big-endian", "in >f4: expected one of"),
        ("fields", "expected one of float64"),
        ("compressed", "vars/0 compressed, in pieces or in another file"),
        ("elsewhere", "vars/0 compressed, in pieces or in another file"),
        ("huge", "is not complete"),
        ("integers", "is int8. Quantized checkpoints cannot"),
        ("another shape", r"\(12, 16, 2\) does not make embedding/learned/table"),
        ("a type", "is neither a group nor an array"),
    ],
)
def test_damaged_hdf5_files_are_refused(kind, message, copy):
    folder = copy("gpt2")
    ruin(kind, folder / "model.weights.h5")
    with pytest.raises(CheckpointError, match=message) as caught:
        ka.pretrained.load(folder)
    assert str(caught.value).count("\n") == 0


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ["gpt2", "timm-vit"])
def test_corrupted_files_are_refused_or_load(name, seed, copy):
    """Change, cut or repeat bytes: loading raises a one-line error, or succeeds."""
    folder, random = copy(name), np.random.default_rng(seed)
    weights = "model.weights.h5" if name == "gpt2" else "model.safetensors"
    whole = {each: (folder / each).read_bytes() for each in ("config.json", weights)}
    for _ in range(10):
        each = list(whole)[random.integers(2)]
        data = bytearray(whole[each])
        place, kind = int(random.integers(len(data))), random.integers(3)
        if kind == 0:
            data[place] = random.integers(256)
        elif kind == 1:
            del data[place : place + int(random.integers(1, 30))]
        else:
            data[place:place] = data[place : place + int(random.integers(1, 30))]
        (folder / each).write_bytes(bytes(data))
        try:
            ka.pretrained.load(folder)
        except ValueError as error:
            assert isinstance(error, CheckpointError), error
            assert str(error).count("\n") == 0
        (folder / each).write_bytes(whole[each])
