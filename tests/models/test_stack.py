"""The stack of encoder blocks: its norms, and blocks that share their weights."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.blocks import residuals
from keras_attention.models.stack import encoder_stack
from tests.export.helpers import assert_exports

random = np.random.default_rng(0)
B, T, D = 2, 5, 8
X = random.normal(size=(B, T, D)).astype("float32")


def stack(**kwargs):
    tokens = keras.Input((None, D), name="tokens")
    size = dict(num_layers=4, num_heads=2, intermediate_dim=12)
    return keras.Model(tokens, encoder_stack(tokens, **{**size, **kwargs}))


@pytest.mark.parametrize("norm", residuals.NAMES)
def test_a_stack_ends_as_its_norm_wants(norm):
    model = stack(norm=norm, num_layers=2)
    blocks = [model.get_layer(f"block_{i}") for i in range(2)]
    x = X
    for block in blocks:
        x = block(x)
    if norm in ("pre", "sandwich"):
        x = model.get_layer("final_norm")(x)
    if norm == "resi_dual":
        x = x[0] + model.get_layer("final_norm")(x[1])
    assert ("final_norm" in [layer.name for layer in model.layers]) == (
        norm in ("pre", "sandwich", "resi_dual")
    )
    np.testing.assert_allclose(model(X), x, atol=1e-6)


def test_two_streams_export():
    assert_exports(stack(norm="resi_dual", num_layers=2))


@pytest.mark.parametrize("norm", ["deep_norm", "rezero", "resi_dual"])
@pytest.mark.slow
def test_norms_train(norm):
    """Two layers learn to say everywhere which token came first."""
    model = stack(norm=norm, num_layers=2, position="rotary")
    y = np.repeat(X[:, :1], T, axis=1)
    model.compile(keras.optimizers.Adam(0.01), "mse")
    history = model.fit(X, y, epochs=40, verbose=0).history["loss"]
    assert history[-1] < 0.6 * history[0]


def test_the_depth_of_deep_norm_is_that_of_the_stack():
    model = stack(norm="deep_norm", num_layers=3, num_blocks=1)
    assert model.get_layer("block_0").norm == ka.blocks.DeepNorm(3)


@pytest.mark.parametrize(
    "num_blocks, order", [(None, [0, 1, 2, 3]), (1, [0] * 4), (2, [0, 0, 1, 1]), (3, [0, 0, 1, 2])]
)
def test_layers_in_a_row_share_a_block(num_blocks, order):
    model = stack(num_blocks=num_blocks, norm="post", position="relative_bias")
    x = X
    for i in order:
        x = model.get_layer(f"block_{i}")(x)
    np.testing.assert_allclose(model(X), x, atol=1e-6)
    one = stack(num_layers=1, norm="post", position="relative_bias").count_params()
    assert model.count_params() == (max(order) + 1) * one
    with ka.visualization.record_attention(model) as maps:
        model(X)
    runs = [f"block_{i}/attention" for i in order]
    assert list(maps) == [
        path + (f":{runs[:n].count(path)}" if runs[:n].count(path) else "")
        for n, path in enumerate(runs)
    ]


@pytest.mark.slow
def test_shared_weights_train_save_and_export_once(tmp_path):
    model = stack(num_blocks=1)
    model.compile(keras.optimizers.Adam(0.01), "mse")
    history = model.fit(X, X[:, ::-1], epochs=20, verbose=0).history["loss"]
    assert history[-1] < 0.7 * history[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.count_params() == model.count_params()
    np.testing.assert_allclose(loaded(X), model(X), atol=1e-6)
    shared, own = (
        sum(each.constant for each in assert_exports(made).constants)
        for made in (stack(num_blocks=1), stack())
    )
    assert shared < 0.4 * own


def test_one_block_called_again_in_a_functional_model():
    """Blocks in turn, as CYCLE of Takase and Kiyono (2021), need no argument at all."""
    size = dict(attention=ka.attention.MultiHeadAttention, feed_forward=ka.blocks.FeedForward)
    blocks = [
        ka.blocks.EncoderBlock(
            size["attention"](2, 4, name="look"), size["feed_forward"](9), name=name
        )
        for name in ("even", "odd")
    ]
    tokens = x = keras.Input((None, D), name="tokens")
    for i in range(4):
        x = blocks[i % 2](x)
    model = keras.Model(tokens, x)
    with ka.visualization.record_attention(model) as maps:
        model(X)
    assert list(maps) == ["even/look", "odd/look", "even/look:1", "odd/look:1"]
    assert_exports(model)


@pytest.mark.parametrize("builder", ["sequence_labeler", "vision_transformer"])
def test_builders_take_num_blocks(builder):
    size = dict(num_layers=3, num_heads=2, hidden_dim=8, intermediate_dim=8, num_blocks=1)
    args = (9, 4) if builder == "sequence_labeler" else (8, 4)
    extra = {} if builder == "sequence_labeler" else {"patch_size": 4}
    model = getattr(ka.models, builder)(*args, norm="deep_norm", **size, **extra)
    assert [layer.name for layer in model.layers if "block" in layer.name] == ["block_0"]


@pytest.mark.parametrize("num_blocks", [0, 5, 1.5])
def test_refuses_block_counts(num_blocks):
    with pytest.raises(ValueError, match=f"num_blocks={num_blocks}"):
        stack(num_blocks=num_blocks)
