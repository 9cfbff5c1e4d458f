"""Blocks with other figures: parallel, macaron, Conformer, and a repeated block."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.blocks.stand_ins import Plus, layer_norm

random = np.random.default_rng(0)
B, T, D = 2, 5, 7
X = random.normal(size=(B, T, D)).astype("float32")
PADDING = np.arange(T) < np.array([[3], [5]])
ONE, TWO, THREE, FOUR = random.normal(size=(4, D)).astype("float32")

STEPS = {
    "pre": lambda x, f, n, step=1.0: x + step * f(n(x)),
    "post": lambda x, f, n, step=1.0: n(x + step * f(x)),
    "sandwich": lambda x, f, n, step=1.0: x + step * n(f(n(x))),
}


@pytest.mark.parametrize("norm", STEPS)
def test_parallel_block_by_definition(norm):
    block = ka.blocks.ParallelBlock(Plus(ONE), Plus(TWO), norm)
    expected = STEPS[norm](X, lambda x: (x + ONE) + (x + TWO), layer_norm)
    np.testing.assert_allclose(block(X), expected, atol=1e-5)


@pytest.mark.parametrize("norm", STEPS)
def test_macaron_block_by_definition(norm):
    block = ka.blocks.MacaronBlock(Plus(ONE), Plus(TWO), Plus(THREE), norm=norm)
    step, n = STEPS[norm], layer_norm
    x = step(X, lambda x: x + ONE, n, 0.5)
    x = step(x, lambda x: x + TWO, n)
    x = step(x, lambda x: x + THREE, n, 0.5)
    np.testing.assert_allclose(block(X), x, atol=1e-5)


def test_conformer_block_by_definition():
    """Gulati et al. (2020), equation 1."""
    block = ka.blocks.ConformerBlock(Plus(ONE), Plus(TWO), Plus(THREE), Plus(FOUR))
    n = layer_norm
    x = X + 0.5 * (n(X) + ONE)
    x = x + (n(x) + TWO)
    x = x + (n(x) + FOUR)
    x = n(x + 0.5 * (n(x) + THREE))
    np.testing.assert_allclose(block(X), x, atol=1e-5)


def attention():
    return ka.attention.MultiHeadAttention(2, 4, position="rotary")


def feed_forward():
    return ka.blocks.FeedForward(9, "silu")


def mixture():
    return ka.blocks.MixtureOfExperts([feed_forward() for _ in range(3)])


FIGURES = {
    "parallel": lambda: ka.blocks.ParallelBlock(attention(), feed_forward()),
    "macaron": lambda: ka.blocks.MacaronBlock(mixture(), attention(), feed_forward()),
    "conformer": lambda: ka.blocks.ConformerBlock(
        feed_forward(), attention(), feed_forward(), ka.blocks.ConvolutionModule(5)
    ),
    "conformer, causal": lambda: ka.blocks.ConformerBlock(
        feed_forward(),
        attention(),
        mixture(),
        ka.blocks.ConvolutionModule(4, causal=True, normalization="layer_norm"),
    ),
    "repeat": lambda: ka.blocks.Repeat(
        ka.blocks.EncoderBlock(attention(), mixture()), 3, coordinates=True
    ),
}


@pytest.fixture(params=FIGURES)
def figure(request):
    block = FIGURES[request.param]()
    block.build((None, T, D))
    for weight in block.weights:
        if weight.dtype == "float32" and "variance" not in weight.path:
            weight.assign(random.normal(size=weight.shape, scale=0.5))
    return block


def test_padding_changes_nothing(figure):
    padded = np.where(PADDING[..., None], X, 100.0).astype("float32")
    output = np.asarray(figure(padded, mask=PADDING))
    np.testing.assert_allclose(output[:1, :3], figure(X[:1, :3]), atol=1e-4)
    np.testing.assert_allclose(output[1:], figure(X[1:]), atol=1e-4)


def test_masks_are_used_and_passed_on(figure):
    tokens = keras.Input((None, D))
    masked = keras.layers.Masking(100.0)(tokens)
    pooled = ka.blocks.Pooling("mean")(figure(masked))
    model = keras.Model(tokens, pooled)
    padded = np.where(PADDING[..., None], X, 100.0).astype("float32")
    expected = [np.asarray(figure(X[b : b + 1, : PADDING[b].sum()]))[0].mean(0) for b in range(B)]
    np.testing.assert_allclose(model(padded), expected, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "figure", [name for name in FIGURES if "conformer" not in name], indirect=True
)
def test_attention_masks_segments_and_positions_reach_the_attention(figure):
    """Leave out the Conformer, whose convolution joins segments."""
    arguments = dict(
        segment_ids=np.array([[1, 1, 2, 2, 2]] * B), positions=np.array([[0, 1, 0, 1, 2]] * B)
    )
    packed = figure(X, **arguments)
    np.testing.assert_allclose(packed[:, :2], figure(X[:, :2]), atol=1e-4)
    np.testing.assert_allclose(packed[:, 2:], figure(X[:, 2:]), atol=1e-4)
    diagonal = np.eye(T, dtype=bool)[None]
    alone = [np.asarray(figure(X[:, i : i + 1]))[:, 0] for i in range(T)]
    same = figure(X, attention_mask=diagonal, positions=np.zeros((B, T), "int32"))
    np.testing.assert_allclose(same, np.stack(alone, 1), atol=1e-4)


def test_repeat_runs_one_block_several_times():
    block = ka.blocks.EncoderBlock(Plus(ONE), Plus(TWO))
    np.testing.assert_allclose(ka.blocks.Repeat(block, 3)(X), block(block(block(X))), atol=1e-5)


def test_repeat_adds_position_and_step_by_definition():
    """Dehghani et al. (2019), section 2.1, before each of two steps."""
    block = ka.blocks.EncoderBlock(Plus(ONE), Plus(TWO), norm="post")
    x = X
    for step in (1, 2):
        coordinates = np.zeros((T, D))
        for i in range(T):
            for j in range(D):
                wave = np.cos if j % 2 else np.sin
                rate = 10000 ** (-(j - j % 2) / D)
                coordinates[i, j] = wave(i * rate) + wave(step * rate)
        x = np.asarray(block((x + coordinates).astype("float32")))
    repeated = ka.blocks.Repeat(block, 2, coordinates=True)
    np.testing.assert_allclose(repeated(X), x, atol=1e-4)


def test_repeat_records_every_step():
    tokens = keras.Input((None, D))
    block = ka.blocks.EncoderBlock(
        ka.attention.MultiHeadAttention(2, 4, name="look"), feed_forward(), name="block"
    )
    model = keras.Model(tokens, ka.blocks.Repeat(block, 3, name="stack")(tokens))
    with ka.visualization.record_attention(model) as maps:
        model(X)
    assert list(maps) == ["stack/block/look", "stack/block/look:1", "stack/block/look:2"]


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ka.blocks.ConformerBlock(Plus(1), Plus(1), Plus(1), norm="post"), "norm='post'"),
        (lambda: ka.blocks.MacaronBlock("ffn", Plus(1), Plus(1)), "first_feed_forward='ffn'"),
        (lambda: ka.blocks.Repeat(Plus(1), 0), "num_layers=0"),
        (lambda: ka.blocks.ConvolutionModule(0), "kernel_size=0"),
        (lambda: ka.blocks.ConvolutionModule(normalization="group"), "'group'.*batch_norm"),
    ],
    ids=["norm", "layer", "repeat", "kernel", "normalization"],
)
def test_refuses(make, message):
    with pytest.raises(ValueError, match=message):
        make()
