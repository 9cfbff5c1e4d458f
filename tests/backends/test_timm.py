"""Checkpoints that timm writes anew give the same outputs, and their settings are read right."""

import pytest
import timm
import torch

from keras_attention.pretrained.architecture import find_architecture
from keras_attention.pretrained.config import read_config
from tests.pretrained import make_foreign_checkpoints as made
from tests.pretrained.test_foreign import assert_equal
from tests.pretrained.test_parity import read_expected


@pytest.mark.parametrize("name", made.TIMM)
def test_the_committed_checkpoints_are_what_timm_makes(name, tmp_path):
    made.make_timm(name, tmp_path)
    assert_equal(tmp_path / name)
    _, new = read_expected(tmp_path / name)
    _, committed = read_expected(made.FOLDER / name)
    assert new.shape == committed.shape


@pytest.mark.slow
def test_settings_read_from_timm_names_match_the_built_models():
    """Compare heads, activation, epsilon, size and tensors of every model with a known name."""
    module, count = find_architecture("timm", ""), 0
    for name in timm.list_models("vit*", module="vision_transformer") + timm.list_models("deit*"):
        match = module.NAMES.fullmatch(name)
        if (
            match is None
            or match["size"] not in module.SIZES
            or name.startswith("vit_giant_patch14")
        ):
            continue  # other architectures, the last with a gate
        with torch.device("meta"):
            model = timm.create_model(name)
        pixels = list(model.patch_embed.img_size)
        settings = {"architecture": name, "global_pool": model.global_pool}
        settings["pretrained_cfg"] = {"input_size": [3, *pixels]}
        config = read_config(settings, "config.json", module.IRRELEVANT)
        tensors = model.state_dict()
        builder = module.find_builder(config, tensors)
        head = module.head(config, builder, {}, tensors)
        block, gelu = model.blocks[0], model.blocks[0].mlp.act
        kind = "quick_gelu" if "Quick" in type(gelu).__name__ else "gelu"
        approximate = "Tanh" in type(gelu).__name__ or getattr(gelu, "approximate", "") == "tanh"
        assert head["activation"] == ("gelu_tanh" if approximate else kind), name
        assert head["num_heads"] == block.attn.num_heads, name
        assert head["epsilon"] == block.norm1.eps, name
        assert head["image_size"] == tuple(pixels), name
        table = module.table(config, builder, head, tensors).values()
        assert tensors.keys() <= {x for one in table for x in getattr(one, "names", [one])}, name
        count += 1
    assert count > 100
