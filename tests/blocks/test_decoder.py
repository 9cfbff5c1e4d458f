"""The decoder block by its definition, and the arguments of its cross-attention."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.blocks.stand_ins import Plus, layer_norm, rms_norm

random = np.random.default_rng(0)
B, T, S, D, E = 2, 5, 3, 8, 6
X = random.normal(size=(B, T, D)).astype("float32")
SOURCE = random.normal(size=(B, S, E)).astype("float32")
PADDING = np.arange(S) < np.array([[2], [3]])
FIRST, LAST = np.linspace(-1, 2, D, dtype="float32"), np.linspace(3, -2, D, dtype="float32") ** 2


@keras.saving.register_keras_serializable(package="tests")
class PlusSource(keras.layers.Layer):
    """Stands in for cross-attention: adds the sum of all numbers of the source."""

    def build(self, *shapes):
        pass

    def call(self, query, value):
        return query + keras.ops.sum(value, axis=(1, 2), keepdims=True)


def block(cross=None, **kwargs):
    return ka.blocks.DecoderBlock(
        ka.attention.MultiHeadAttention(2, 4, mask="causal", position="rotary"),
        ka.attention.MultiHeadAttention(2, 4, **(cross or {})),
        ka.blocks.FeedForward(9),
        **kwargs,
    )


@pytest.mark.parametrize(
    "norm, step",
    [
        ("pre", lambda x, f, n: x + f(n(x))),
        ("post", lambda x, f, n: n(x + f(x))),
        ("sandwich", lambda x, f, n: x + n(f(n(x)))),
        (ka.blocks.DeepNorm(5, 3, scale_initial=False), lambda x, f, n: n(15**0.25 * x + f(x))),
    ],
    ids=["pre", "post", "sandwich", "deep"],
)
@pytest.mark.parametrize(
    "normalization, n", [("layer_norm", layer_norm), ("rms_norm", rms_norm)], ids=["layer", "rms"]
)
def test_decoder_block_by_definition(norm, step, normalization, n):
    layer = ka.blocks.DecoderBlock(
        Plus(FIRST), PlusSource(), Plus(LAST), norm=norm, normalization=normalization
    )
    of_source = SOURCE.sum((1, 2), keepdims=True)
    x = step(X, lambda x: x + FIRST, n)
    x = step(x, lambda x: x + of_source, n)
    x = step(x, lambda x: x + LAST, n)
    np.testing.assert_allclose(layer(X, SOURCE), x, atol=1e-5)


def test_resi_dual_has_two_streams_in_a_decoder():
    layer = ka.blocks.DecoderBlock(Plus(FIRST), PlusSource(), Plus(LAST), norm="resi_dual")
    x, total = X, X
    for f in (lambda x: x + FIRST, lambda x: x + SOURCE.sum((1, 2), keepdims=True), Plus(LAST)):
        added = np.asarray(f(x))
        x, total = layer_norm(x + added), total + added
    for ours, expected in zip(layer(X, SOURCE), (x, total), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-5)


def test_deep_norm_scales_both_attentions():
    norm, ones = ka.blocks.DeepNorm(5, 3), keras.initializers.Ones()
    layer = ka.blocks.DecoderBlock(
        *(ka.attention.MultiHeadAttention(2, 4, kernel_initializer=ones) for _ in range(2)),
        ka.blocks.FeedForward(9, kernel_initializer=ones),
        norm=norm,
    )
    layer.build(X.shape, SOURCE.shape)
    for attention in (layer.attention, layer.cross_attention):
        for name, value in [("query", 1), ("key", 1), ("value", norm.beta), ("output", norm.beta)]:
            kernel = np.asarray(getattr(attention, f"{name}_dense").kernel)
            np.testing.assert_allclose(kernel, np.full(kernel.shape, value), rtol=1e-6)
    assert {float(np.max(w)) for w in layer.feed_forward.weights} == {0, np.float32(norm.beta)}


def test_later_tokens_and_source_padding_change_nothing():
    layer = block()
    expected = np.asarray(layer(X, SOURCE, encoded_mask=PADDING))
    other = np.concatenate([X[:, :3], 9 - X[:, 3:]], axis=1)
    seen = np.where(PADDING[..., None], SOURCE, 7.0)
    np.testing.assert_allclose(
        np.asarray(layer(other, seen, encoded_mask=PADDING))[:, :3], expected[:, :3], atol=1e-5
    )
    np.testing.assert_allclose(layer(X[:1], SOURCE[:1, :2]), expected[:1], atol=1e-5)


@pytest.mark.slow
def test_implicit_masks_equal_explicit_ones(tmp_path):
    """Check both masks, also through nested models and files, and the mask of the output."""
    source, target = keras.Input((None, E)), keras.Input((None, D))
    encoder = keras.Model(source, keras.layers.Masking(100.0)(source), name="encoder")
    encoded, layer = keras.Input((None, E)), block()
    decoder = keras.Model([target, encoded], layer(keras.layers.Masking(100.0)(target), encoded))
    model = keras.Model([target, source], decoder([target, encoder(source)]))
    model.save(tmp_path / "model.keras")
    rows = np.arange(T) < np.array([[4], [5]])
    x = np.where(rows[..., None], X, 100.0)
    y = np.where(PADDING[..., None], SOURCE, 100.0)
    expected = layer(X * rows[..., None], SOURCE, mask=rows, encoded_mask=PADDING)
    for made in (model, keras.saving.load_model(tmp_path / "model.keras")):
        output = made([keras.ops.array(x, "float32"), keras.ops.array(y, "float32")])
        np.testing.assert_allclose(output, expected, atol=1e-5)
        np.testing.assert_array_equal(output._keras_mask, rows)
        np.testing.assert_allclose(made.predict([x, y], verbose=0), expected, atol=1e-5)


def test_positions_of_both_sides_reach_the_cross_attention():
    layer = block({"position": "rotary"})
    i, j = np.arange(T), np.arange(S)
    plain = layer(X, SOURCE)
    np.testing.assert_allclose(
        layer(X, SOURCE, positions=i + 5, encoded_positions=j + 5), plain, atol=1e-5
    )
    for shift in ({"positions": i + 5}, {"encoded_positions": j + 5}):
        assert not np.allclose(layer(X, SOURCE, **shift), plain, atol=1e-3)


def test_packed_documents_see_their_own_source():
    layer = block()
    packed = layer(
        X,
        SOURCE,
        segment_ids=np.array([[1, 1, 2, 2, 2]] * B),
        encoded_segment_ids=np.array([[1, 2, 2]] * B),
    )
    np.testing.assert_allclose(packed[:, :2], layer(X[:, :2], SOURCE[:, :1]), atol=1e-5)
    np.testing.assert_allclose(packed[:, 2:], layer(X[:, 2:], SOURCE[:, 1:]), atol=1e-5)


def test_cross_attention_mask_hides_keys():
    layer, first = block(), np.arange(S) == 0
    np.testing.assert_allclose(
        layer(X, SOURCE, cross_attention_mask=np.tile(first, (B, T, 1))),
        layer(X, SOURCE[:, :1]),
        atol=1e-5,
    )


def test_a_decoder_takes_the_attention_of_keras():
    layer = ka.blocks.DecoderBlock(
        ka.attention.MultiHeadAttention(2, 4, mask="causal", position="alibi"),
        keras.layers.MultiHeadAttention(2, 4),
        ka.blocks.FeedForward(9),
    )
    expected = np.asarray(layer(X, SOURCE, encoded_mask=PADDING, positions=np.arange(T)))
    np.testing.assert_allclose(layer(X[:1], SOURCE[:1, :2]), expected[:1], atol=1e-5)
    with pytest.raises(ValueError, match="MultiHeadAttention has no value_positions"):
        layer(X, SOURCE, encoded_positions=np.arange(S))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ka.blocks.DecoderBlock(Plus(1), "mha", Plus(1)), "cross_attention='mha'"),
        (
            lambda: block()(X, SOURCE, encoded_segment_ids=np.ones((B, S), "int32")),
            "encoded_segment_ids without segment_ids",
        ),
    ],
)
def test_refuses(make, message):
    with pytest.raises(ValueError, match=message):
        make()
