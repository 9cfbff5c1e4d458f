import math

import numpy as np
import pytest
from keras import ops

from keras_attention import attention, masks, positions

GRID, N = (3, 4), 2
RANDOM = np.random.default_rng(0)


def built(grid=GRID, **kwargs):
    position = positions.SwinBias(grid, **kwargs)
    position.build((None, None, N, 8))
    return position


def row(i, j, grid=GRID, reach=None):
    """Return the row of Swin's table by its definition. Patches i and j count row by row."""
    reach = reach or (grid[0] - 1, grid[1] - 1)
    (yi, xi), (yj, xj) = divmod(i, grid[1]), divmod(j, grid[1])
    y, x = (max(-r, min(r, d)) + r for d, r in ((yi - yj, reach[0]), (xi - xj, reach[1])))
    return y * (2 * reach[1] + 1) + x


@pytest.mark.parametrize("prefix", [0, 2])
@pytest.mark.parametrize("max_distance", [None, (1, 2), (0, 0)])
def test_biases_equal_the_definition(prefix, max_distance):
    position = built(prefix=prefix, max_distance=max_distance)
    reach = max_distance or (2, 3)
    distances = (2 * reach[0] + 1) * (2 * reach[1] + 1)
    (table,) = position.get_weights()
    assert table.shape == (distances + (3 if prefix else 0), N)
    tokens = prefix + 12
    bias = np.asarray(position.bias(None, None, np.zeros((1, tokens, N, 8))))
    assert bias.shape == (1, N, tokens, tokens) and bias.dtype == "float32"
    for t in range(tokens):
        for s in range(tokens):
            if t >= prefix and s >= prefix:
                r = row(t - prefix, s - prefix, GRID, reach)
            else:
                r = distances + (2 if t < prefix and s < prefix else int(s < prefix))
            np.testing.assert_array_equal(bias[0, :, t, s], table[r])


@pytest.mark.parametrize("prefix", [0, 1])
def test_explicit_positions(prefix):
    position = built(prefix=prefix)
    query = np.zeros((2, 12, N, 8), "float32")
    whole = np.asarray(position.bias(None, None, query))[0]
    i, j = np.array([[3, 0], [11, 5]]), np.array([[0, 1, 2], [9, 3, 7]])
    bias = position.bias(i, j, query[:, :2], query[:, :3])
    for b in range(2):
        np.testing.assert_array_equal(bias[b], whole[:, i[b]][:, :, j[b]])
    shared = position.bias(i[0], j[0], query[:, :2], query[:, :3])
    np.testing.assert_array_equal(shared[0], bias[0])


@pytest.mark.slow
def test_parity_with_keras_hub():
    """Use a square window, because theirs swaps unequal rows and columns."""
    swin = pytest.importorskip("keras_hub.src.models.swin_transformer.swin_transformer_layers")
    theirs = swin.WindowAttention(dim=6, num_heads=N, window_size=4)
    theirs.build((None, 16, 6))
    position = built((4, 4))
    theirs.relative_position_bias_table.assign(position.table)
    ours = position.bias(None, None, np.zeros((1, 16, N, 3)))[0]
    np.testing.assert_array_equal(ours, theirs._get_rel_pos_bias())


def test_windows_by_a_mask_equal_separate_windows():
    """Compare a whole image and a mask of 2 × 2 windows with each window by itself."""
    image, window = (4, 6), (2, 2)
    x = RANDOM.normal(size=(1, 24, 6)).astype("float32")
    whole = positions.SwinBias(image, max_distance=(1, 1))
    alone = positions.SwinBias(window)
    layers = [attention.MultiHeadAttention(N, 3, position=p) for p in (whole, alone)]
    layers[0].build(x.shape, x.shape)
    layers[1].build(x.shape, x.shape)
    layers[1].set_weights(layers[0].get_weights())
    y, x_of = np.divmod(np.arange(24), 6)
    number = y // 2 * 3 + x_of // 2
    same = number[:, None] == number
    output = np.asarray(layers[0](x, x, attention_mask=same[None]))
    for w in range(6):
        inside = np.flatnonzero(number == w)
        cut = x[:, inside]
        np.testing.assert_allclose(layers[1](cut, cut), output[:, inside], atol=1e-6)


def test_interpolated_tables_fit_a_new_grid():
    position = built((3, 3), prefix=1)
    other = position.interpolate((5, 4), method="bilinear")
    assert other.grid == (5, 4) and other.table.shape == (9 * 7 + 3, N)
    (table,), (new,) = position.get_weights(), other.get_weights()
    np.testing.assert_array_equal(new[-3:], table[-3:])
    expected = positions.interpolate(table[:-3], (5, 5), (9, 7), method="bilinear")
    np.testing.assert_array_equal(new[:-3], expected)
    # distance 0 is in the middle
    np.testing.assert_allclose(new[4 * 7 + 3], table[2 * 5 + 2], atol=1e-6)
    assert not positions.SwinBias((2, 2)).interpolate((3, 3)).built


def test_weights_stay_float32_under_a_mixed_policy():
    position = built(dtype="mixed_float16")
    assert position.table.dtype == "float32"
    assert "float32" in str(position.bias(None, None, ops.zeros((1, 12, N, 8), "float16")).dtype)


def test_arguments_are_checked():
    with pytest.raises(ValueError, match=r"SwinBias\(max_distance=3\).*\(rows, columns\)"):
        positions.SwinBias((2, 2), max_distance=3)
    with pytest.raises(ValueError, match=r"SwinBias\(max_distance=-1\).* at least 0"):
        positions.SwinBias((2, 2), max_distance=(1, -1))
    with pytest.raises(ValueError, match="SwinBias needs queries"):
        positions.SwinBias((2, 2)).build((2, 5, 3))
    with pytest.raises(ValueError, match="SwinBias has no weights yet"):
        positions.SwinBias((2, 2)).bias(None, None, np.zeros((1, 4, N, 8)))


def test_it_works_with_a_mask():
    layer = attention.MultiHeadAttention(N, 3, position=built((2, 3)), mask=masks.Causal())
    x = RANDOM.normal(size=(2, 6, 6)).astype("float32")
    np.testing.assert_allclose(layer(x[:, :4], x[:, :4]), layer(x, x)[:, :4], atol=1e-6)


def built_network(grid=GRID, hidden_dim=5, **kwargs):
    position = positions.ContinuousBias(grid, hidden_dim=hidden_dim, **kwargs)
    position.build((None, None, N, 8))
    for weight in position.weights:
        weight.assign(RANDOM.normal(size=weight.shape))
    return position


def spaced(step, side):
    """Compute equation 4 of Swin V2, with the normalization of its code."""
    d = 8 * step / max(side - 1, 1)
    return math.copysign(math.log2(1 + abs(d)) / math.log2(8), d)


def number(position, y, x, sides):
    """Compute the network's numbers (N,) for a distance."""
    W, b, V = (np.asarray(w, "float64") for w in position.get_weights())
    hidden = np.maximum(np.array([spaced(y, sides[0]), spaced(x, sides[1])]) @ W + b, 0)
    return 16 / (1 + np.exp(-hidden @ V))


@pytest.mark.parametrize("prefix", [0, 2])
@pytest.mark.parametrize("pretrained", [None, (8, 7)])
def test_network_biases_equal_the_definition(prefix, pretrained):
    position = built_network(prefix=prefix, pretrained_grid=pretrained)
    tokens = prefix + 12
    bias = np.asarray(position.bias(None, None, np.zeros((1, tokens, N, 8))))
    assert bias.shape == (1, N, tokens, tokens) and bias.dtype == "float32"
    for t in range(tokens):
        for s in range(tokens):
            if t < prefix or s < prefix:
                np.testing.assert_array_equal(bias[0, :, t, s], 0)
                continue
            (yi, xi), (yj, xj) = divmod(t - prefix, 4), divmod(s - prefix, 4)
            expected = number(position, yi - yj, xi - xj, pretrained or GRID)
            np.testing.assert_allclose(bias[0, :, t, s], expected, rtol=1e-4)


def test_distances_equal_golden_numbers():
    """Compare with log2(1 + |d|) / 3 for d from -8 to 8 in steps of 8: ±log2(9) / 3 and 0."""
    table = positions.ContinuousBias((2, 2)).distances()
    edge = math.log2(9) / 3
    assert table.shape == (9, 2)
    np.testing.assert_allclose(table[0], [-edge, -edge])
    np.testing.assert_allclose(table[4], [0, 0])
    np.testing.assert_allclose(table[5], [0, edge])


@pytest.mark.parametrize("prefix", [0, 1])
def test_network_explicit_positions(prefix):
    position = built_network(prefix=prefix)
    query = np.zeros((2, 12, N, 8), "float32")
    whole = np.asarray(position.bias(None, None, query))[0]
    i, j = np.array([[3, 0], [11, 5]]), np.array([[0, 1, 2], [9, 3, 7]])
    bias = position.bias(i, j, query[:, :2], query[:, :3])
    for b in range(2):
        np.testing.assert_array_equal(bias[b], whole[:, i[b]][:, :, j[b]])


def test_weights_of_a_small_grid_work_on_a_large_one():
    """Check that an equal distance, measured in the pretrained grid, has an equal bias."""
    small = built_network((3, 3))
    large = positions.ContinuousBias((5, 6), hidden_dim=5, pretrained_grid=(3, 3))
    large.build((None, None, N, 8))
    large.set_weights(small.get_weights())
    few = small.bias([4], [0], np.zeros((1, 1, N, 8)), np.zeros((1, 1, N, 8)))
    many = large.bias([7], [0], np.zeros((1, 1, N, 8)), np.zeros((1, 1, N, 8)))
    np.testing.assert_allclose(few, many, rtol=1e-6)  # one row down, one column right in both


def test_one_row_of_patches_does_not_divide_by_zero():
    bias = built_network((1, 6)).bias(None, None, np.zeros((1, 6, N, 8)))
    assert np.all(np.isfinite(np.asarray(bias)))


def test_network_weights_stay_float32_under_a_mixed_policy():
    position = built_network(dtype="mixed_bfloat16")
    assert {w.dtype for w in position.weights} == {"float32"}
    assert "float32" in str(position.bias(None, None, np.zeros((1, 12, N, 8), "float16")).dtype)


def test_network_arguments_are_checked():
    with pytest.raises(ValueError, match=r"ContinuousBias\(hidden_dim=0\)"):
        positions.ContinuousBias((2, 2), hidden_dim=0)
    with pytest.raises(ValueError, match=r"ContinuousBias\(pretrained_grid=7\)"):
        positions.ContinuousBias((2, 2), pretrained_grid=7)
    with pytest.raises(ValueError, match="ContinuousBias has no weights yet"):
        positions.ContinuousBias((2, 2)).bias(None, None, np.zeros((1, 4, N, 8)))
