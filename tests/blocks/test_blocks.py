"""Blocks by their definitions. `tests/test_contract.py` has the tests of all layers."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_attention as ka
from keras_attention.blocks import word_embedding
from keras_attention.core import shapes
from tests.blocks.stand_ins import Plus, layer_norm, rms_norm

random = np.random.default_rng(0)
B, T, D = 2, 5, 7
X = random.normal(size=(B, T, D)).astype("float32")
PADDING = np.arange(T) < np.array([[3], [5]])

AMOUNTS = np.linspace(-1, 2, D, dtype="float32"), np.linspace(3, -2, D, dtype="float32") ** 2


def test_a_norm_without_bias_only_has_a_scale():
    block = ka.blocks.EncoderBlock(Plus(1.0), Plus(2.0), normalization="layer_norm_no_bias")
    block(X)
    assert [weight.path.rsplit("/", 2)[-2:] for weight in block.weights] == [
        ["attention_norm", "gamma"],
        ["feed_forward_norm", "gamma"],
    ]


@pytest.mark.parametrize(
    "normalization, n",
    [("layer_norm", layer_norm), ("layer_norm_no_bias", layer_norm), ("rms_norm", rms_norm)],
    ids=["layer", "no bias", "rms"],
)
@pytest.mark.parametrize(
    "norm, step",
    [
        ("pre", lambda x, f, n: x + f(n(x))),
        ("post", lambda x, f, n: n(x + f(x))),
        ("sandwich", lambda x, f, n: x + n(f(n(x)))),
    ],
    ids=["pre", "post", "sandwich"],
)
def test_encoder_block_by_definition(norm, step, normalization, n):
    first, second = AMOUNTS
    block = ka.blocks.EncoderBlock(Plus(first), Plus(second), norm, normalization)
    expected = step(step(X, lambda x: x + first, n), lambda x: x + second, n)
    np.testing.assert_allclose(block(X), expected, atol=1e-5)


def test_layer_scale_multiplies_the_output_of_a_branch():
    first, second = AMOUNTS
    block = ka.blocks.EncoderBlock(Plus(first), Plus(second), layer_scale=0.1)
    middle = X + 0.1 * (layer_norm(X) + first)
    np.testing.assert_allclose(block(X), middle + 0.1 * (layer_norm(middle) + second), atol=1e-5)


def test_stochastic_depth_skips_whole_examples():
    """Check that each example gets both branches, one or none, scaled up."""
    block = ka.blocks.EncoderBlock(Plus(1.0), Plus(1.0), stochastic_depth=0.5, norm="post")
    block.build((None, T, D))
    for name in ("_attention_branch", "_feed_forward_branch"):
        getattr(block, name)["norm"].call = lambda x: x  # the remainder is x + f(x)
    x = np.ones((400, T, D), "float32")
    y = np.asarray(block(x, training=True))
    assert np.all(y == y[:, :1, :1])
    values, counts = np.unique(y[:, 0, 0], return_counts=True)
    # x + 2(x + 1) once or twice: 1, 1 + 4 = 5, 5 + 12 = 17
    np.testing.assert_array_equal(values, [1, 5, 17])
    np.testing.assert_allclose(counts / 400, [0.25, 0.5, 0.25], atol=0.1)
    assert block(x)[0, 0, 0] == 7  # nothing is skipped or scaled at inference: 1 + 2 = 3, 3 + 4 = 7


def test_padding_changes_nothing_in_a_block():
    block = ka.blocks.EncoderBlock(ka.attention.MultiHeadAttention(2, 4), ka.blocks.FeedForward(9))
    padded = np.asarray(block(X, mask=PADDING))
    np.testing.assert_allclose(padded[:1, :3], block(X[:1, :3]), atol=1e-5)
    np.testing.assert_allclose(padded[1:], block(X[1:]), atol=1e-5)


def test_a_block_takes_masks_segments_and_positions():
    block = ka.blocks.EncoderBlock(
        ka.attention.MultiHeadAttention(2, 4, mask="causal", position="rotary"),
        ka.blocks.FeedForward(9),
    )
    packed = block(
        X, segment_ids=np.array([[1, 1, 2, 2, 2]] * B), positions=np.array([[0, 1, 0, 1, 2]] * B)
    )
    np.testing.assert_allclose(packed[:, :2], block(X[:, :2]), atol=1e-5)
    np.testing.assert_allclose(packed[:, 2:], block(X[:, 2:]), atol=1e-5)
    diagonal = np.eye(T, dtype=bool)[None]
    alone = np.stack([np.asarray(block(X[:, i : i + 1]))[:, 0] for i in range(T)], 1)
    where = np.zeros((B, T), "int32")
    np.testing.assert_allclose(block(X, attention_mask=diagonal, positions=where), alone, atol=1e-5)


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_feed_forward_by_definition(name):
    layer = ka.blocks.FeedForward(9, activation=name)
    layer.build(X.shape)
    inner, inner_bias, outer, outer_bias = weights = [
        random.normal(size=w.shape) for w in layer.weights
    ]
    layer.set_weights(weights)
    expected = ACTIVATIONS[name](X @ inner + inner_bias) @ outer + outer_bias
    np.testing.assert_allclose(layer(X), expected, atol=1e-4)


@pytest.mark.parametrize("name, act", [("reglu", "relu"), ("swiglu", "silu"), ("glu", "sigmoid")])
def test_gated_feed_forward_by_definition(name, act):
    layer = ka.blocks.FeedForward(9, activation=name, use_bias=False)
    layer.build(X.shape)
    gate, inner, outer = weights = [random.normal(size=w.shape) for w in layer.weights]
    layer.set_weights(weights)
    expected = (ACTIVATIONS[act](X @ gate) * (X @ inner)) @ outer
    np.testing.assert_allclose(layer(X), expected, atol=1e-4, rtol=1e-4)


def test_geglu_is_gelu_times_the_second_projection():
    layer = ka.blocks.FeedForward(9, activation="geglu")
    assert layer.activation is ka.blocks.gelu and layer.get_config()["activation"] == "geglu"


@pytest.mark.parametrize("mode", ["mean", "max", "cls", "last"])
def test_pooling_refuses_other_ranks(mode):
    for x in (X[0], X[None]):
        with pytest.raises(ValueError, match="expected ndim=3"):
            ka.blocks.Pooling(mode)(x)


@pytest.mark.parametrize("mode", ["mean", "max"])
def test_pooling_by_definition(mode):
    pooled = ka.blocks.Pooling(mode)(X, mask=PADDING)
    expected = [getattr(np, mode)(X[b][PADDING[b]], axis=0) for b in range(B)]
    np.testing.assert_allclose(pooled, expected, atol=1e-6)


def test_attention_pooling_by_definition():
    layer = ka.blocks.Pooling("attention")
    pooled = layer(X, mask=PADDING)
    query = np.asarray(layer.query)[0, 0, 0]
    for b in range(B):
        scores = X[b][PADDING[b]] @ query / np.sqrt(D)
        weights = np.exp(scores) / np.exp(scores).sum()
        np.testing.assert_allclose(pooled[b], weights @ X[b][PADDING[b]], atol=1e-5)


@pytest.mark.parametrize("mode", ["mean", "max", "attention"])
def test_pooling_of_only_padding_is_zero(mode):
    assert np.all(np.asarray(ka.blocks.Pooling(mode)(X, mask=np.zeros((B, T), bool))) == 0)


def test_pooling_leaves_out_prefix_tokens():
    np.testing.assert_allclose(
        ka.blocks.Pooling("mean", num_prefix_tokens=2)(X), X[:, 2:].mean(1), atol=1e-6
    )
    np.testing.assert_array_equal(ka.blocks.Pooling("cls")(X), X[:, 0])
    np.testing.assert_array_equal(ka.blocks.Pooling("last")(X), X[:, -1])
    last = [X[i, np.flatnonzero(row)[-1]] for i, row in enumerate(PADDING)]
    np.testing.assert_array_equal(ka.blocks.Pooling("last")(X, mask=PADDING), last)


def test_prefix_and_cls_mean_concatenate_vectors():
    prefix = ka.blocks.Pooling("prefix", num_prefix_tokens=2)(X)
    np.testing.assert_array_equal(prefix, np.concatenate([X[:, 0], X[:, 1]], axis=-1))
    layer = ka.blocks.Pooling("cls_mean", num_prefix_tokens=2)
    expected = np.concatenate([X[:, 0], X[:, 2:].mean(1)], axis=-1)
    np.testing.assert_allclose(layer(X), expected, atol=1e-6)
    with pytest.raises(ValueError, match=r"mode='prefix'\) reads prefix tokens. Set num_prefix"):
        ka.blocks.Pooling("prefix")


def test_first_of_takes_the_vector_of_the_first_token():
    ids = np.tile([[5, 9, 3, 9, 9]], (B, 1))[:, :T]
    ids[0, 1] = 4
    output = ka.blocks.FirstOf(9)(X, ids)
    np.testing.assert_array_equal(output, [X[i, 3 if i == 0 else 1] for i in range(B)])
    np.testing.assert_array_equal(ka.blocks.FirstOf(7)(X, ids), X[:, 0])  # no norm


def test_prefix_tokens_come_first_and_are_visible():
    layer = ka.blocks.PrefixTokens(2)
    x = layer(X)
    np.testing.assert_array_equal(x[:, 2:], X)
    for row in np.asarray(x):
        np.testing.assert_array_equal(row[:2], np.asarray(layer.tokens)[0])
    embed = ka.blocks.TokenEmbedding(9, D)
    masked = layer(embed(np.array([[3, 0, 0], [4, 5, 0]])))
    expected = [[True, True, True, False, False], [True, True, True, True, False]]
    np.testing.assert_array_equal(masked._keras_mask, expected)


def test_padding_characters_change_nothing():
    layer = ka.blocks.CharacterEmbedding(30, 5, filters=4)
    word = random.integers(1, 30, size=(1, 1, 6))
    layer.build(word.shape)
    for weight in layer.weights:
        weight.assign(random.normal(size=weight.shape))  # biases and the row of padding included
    longer = np.concatenate([word, np.zeros((1, 1, 4), "int64")], axis=2)
    np.testing.assert_allclose(layer(word), layer(longer), atol=1e-5)


@pytest.mark.parametrize("merged", [True, False])
def test_character_embedding_by_definition(merged, monkeypatch):
    """Compare with loops, with merged words, as on TensorFlow, and without."""
    for module in (word_embedding, shapes):
        monkeypatch.setattr(module, "merges_tokens", lambda: merged)
    layer = ka.blocks.CharacterEmbedding(30, 5, filters=2, widths=(3,))
    words = random.integers(1, 30, size=(2, 3, 4))
    words[1, 2, 2:] = 0
    layer.build(words.shape)
    table, kernel, bias = weights = [random.normal(size=w.shape) for w in layer.weights]
    layer.set_weights(weights)
    for word, output in zip(
        words.reshape(6, 4), np.asarray(layer(words)).reshape(6, 2), strict=True
    ):
        seen = np.pad(table[word[word > 0]], ((1, 1), (0, 0)))
        responses = [
            np.einsum("we,wef->f", seen[i : i + 3], kernel) + bias for i in range(len(seen) - 2)
        ]
        np.testing.assert_allclose(output, np.maximum(np.max(responses, 0), 0), atol=1e-5)


def test_token_embedding_scales_before_it_adds_positions():
    layer = ka.blocks.TokenEmbedding(9, 16, position="sinusoidal", scale=True)
    ids = np.array([[3, 4, 0]])
    table = np.asarray(layer(ids) * 0) + np.asarray(layer.weights[0])[ids]
    expected = ka.positions.Sinusoidal().embed(4.0 * table)
    np.testing.assert_allclose(layer(ids), expected, atol=1e-5)


@pytest.mark.parametrize("several", [False, True], ids=["alone", "in a list"])
def test_building_refuses_a_length_past_the_table(several):
    position = ka.positions.Learned(9)
    embed = ka.blocks.TokenEmbedding(30, 8, position=["scalar", position] if several else position)
    assert embed(keras.Input((9,), dtype="int32")).shape == (None, 9, 8)
    with pytest.raises(ValueError, match=r"length 10 .*Learned\(max_length=9\)"):
        embed(keras.Input((10,), dtype="int32"))


def test_patches_are_cut_row_by_row():
    """Check that positions cover the prefix tokens and then the patches."""
    layer = ka.blocks.PatchEmbedding(1, (2, 3), num_prefix_tokens=2, position="learned")
    image = np.arange(4 * 6, dtype="float32").reshape(1, 4, 6, 1)
    layer.build(image.shape)
    table = np.arange(6, dtype="float32")[:, None] * 1000
    for weight in layer.weights:
        if "prefix" in weight.path:
            weight.assign([[[0.25], [0.5]]])
        elif weight.shape == (6, 1):
            weight.assign(table)
        else:
            weight.assign(np.full(weight.shape, 0.0 if "bias" in weight.path else 1 / 6))
    patches = [image[0, r : r + 2, c : c + 3].mean() for r in (0, 2) for c in (0, 3)]
    expected = np.array([0.25, 0.5, *patches])[:, None] + table
    np.testing.assert_allclose(layer(image)[0], expected, rtol=1e-5)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ka.blocks.EncoderBlock(Plus(1), Plus(1), norm="before"), "'before'.*pre, post"),
        (lambda: ka.blocks.EncoderBlock(Plus(1), Plus(1), normalization="batch"), "'batch'"),
        (lambda: ka.blocks.EncoderBlock("mha", Plus(1)), "attention='mha'"),
        (lambda: ka.blocks.Pooling("sum"), "'sum'.*'mean', 'max'"),
        (lambda: ka.blocks.TokenDropout(1.5), "rate=1.5"),
        (lambda: ka.blocks.PrefixTokens(0), r"num_tokens=0\): .* at least 1"),
        (lambda: ka.blocks.TokenEmbedding(9, 8, position="rotary"), "Rotary.*rotate"),
        (lambda: ka.blocks.PatchEmbedding(8, 4)(np.ones((1, 6, 8, 1))), r"\(4, 4\).*\(6, 8\)"),
        (
            lambda: ka.blocks.PatchEmbedding(4, 16),
            r"hidden_dim=4 .*=16 look swapped.*\(16, 4",
        ),
        (lambda: ka.blocks.PatchEmbedding(8, (4, 4, 1)), r"patch_size=\(4, 4, 1\).*height, width"),
        (lambda: ka.blocks.PatchEmbedding(8, 0), "patch_size=0.* at least 1"),
        (lambda: ka.blocks.PatchEmbedding(8.5, 2), "hidden_dim=8.5.* whole number"),
        (lambda: ka.blocks.PatchEmbedding(8, 2)(np.ones((6, 8, 1))), r"\(6, 8, 1\).*channels\)"),
        (lambda: ka.blocks.ConvolutionStem((8, 8), (2,)), r"\(8, 8\).*\(2,\)"),
    ],
    ids=[
        "norm",
        "normalization",
        "layer",
        "pooling",
        "rate",
        "prefix",
        "position",
        "patch",
        "swapped",
        "three sizes",
        "no pixels",
        "no width",
        "no batch",
        "stem",
    ],
)
def test_refuses(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_stack_of_rms_norms_keeps_the_mask_of_its_tokens():
    model = ka.models.sequence_labeler(
        *(20, 4),
        hidden_dim=8,
        encoder=ka.models.TransformerEncoder.of_size(1, 2, 8, 8, normalization="rms_norm"),
    )
    mask = model(np.array([[3, 4, 0]], "int32"))._keras_mask
    np.testing.assert_array_equal(mask, [[True, True, False]])


def test_rms_normalization_by_definition():
    x = np.random.default_rng(0).normal(size=(2, 3, 5)).astype("float32")
    expected = x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(ka.blocks.RMSNormalization()(x), expected, atol=1e-6)


def test_gelu_has_only_ops_that_convert_to_onnx():
    """TensorFlow's own GELU contains `Erfc`, which tf2onnx does not know."""
    layer = ka.blocks.FeedForward(9)
    layer.build((None, 4))
    graph = tf.function(layer).get_concrete_function(tf.TensorSpec((None, 4))).graph
    kinds = {operation.type for operation in graph.get_operations()}
    assert "Erf" in kinds and "Erfc" not in kinds


@pytest.mark.parametrize("layer", [ka.blocks.PrefixTokens(2), ka.blocks.Biaffine(3)])
def test_masks_are_padded_with_ops_that_convert_to_onnx(layer):
    """tf2onnx converts a padding of bool to an invalid file unless it pads with False."""
    model = keras.Sequential([ka.blocks.TokenEmbedding(9, D), layer])
    graph = tf.function(model).get_concrete_function(tf.TensorSpec((None, None), "int32")).graph
    paddings = [op for op in graph.get_operations() if op.type in ("Pad", "PadV2")]
    assert paddings and not [x for x in paddings if x.type == "PadV2" and x.inputs[0].dtype.is_bool]
