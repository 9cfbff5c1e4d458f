import math

import numpy as np
import pytest
from keras import ops

from keras_attention import attention, positions

B, T, N, H = 2, 5, 3, 14
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(B, T, N, H)).astype("float32")


def turned(x, p, layout, size, max_wavelength=10000):
    """Rotate one head (H,) at position p: each pair is a complex number times e^(i angle)."""
    result = np.array(x, "float64")
    for k in range(size // 2):
        first, second = (k, k + size // 2) if layout == "half" else (2 * k, 2 * k + 1)
        angle = p * max_wavelength ** (-2 * k / size)
        z = complex(x[first], x[second]) * complex(math.cos(angle), math.sin(angle))
        result[first], result[second] = z.real, z.imag
    return result


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("rotary_dim", [None, 2, 6, H])
@pytest.mark.parametrize("shape", [None, (T,), (B, T)])
def test_rotations_equal_the_definition(layout, rotary_dim, shape):
    where = None if shape is None else RANDOM.integers(0, 100, shape)
    position = positions.Rotary(layout, max_wavelength=50, rotary_dim=rotary_dim)
    result = np.asarray(position.rotate(X, where))
    where = np.broadcast_to(np.arange(T) if where is None else where, (B, T))
    for b in range(B):
        for t in range(T):
            for n in range(N):
                expected = turned(X[b, t, n], where[b, t], layout, rotary_dim or H, 50)
                np.testing.assert_allclose(result[b, t, n], expected, atol=3e-5)


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("rotary_dim", [8, 12])
@pytest.mark.parametrize("prefix", [0, 2])
@pytest.mark.parametrize("shape", [None, (T,), (B, T)])
def test_rotations_on_a_grid_equal_the_definition(layout, rotary_dim, prefix, shape):
    """Rotate the first half of the pairs by the row, the second by the column."""
    where = None if shape is None else RANDOM.integers(0, prefix + 6, shape)
    position = positions.Rotary(layout, 50, rotary_dim, grid=(2, 3), prefix=prefix)
    result = np.asarray(position.rotate(X, where))
    where = np.broadcast_to(np.arange(T) if where is None else where, (B, T))
    pairs = rotary_dim // 2
    for b in range(B):
        for t in range(T):
            p = where[b, t] - prefix
            by_axis = (0, 0) if p < 0 else divmod(p, 3)
            for n in range(N):
                expected = np.array(X[b, t, n], "float64")
                for k in range(pairs):
                    axis, of_axis = divmod(k, pairs // 2)
                    features = (k, k + pairs) if layout == "half" else (2 * k, 2 * k + 1)
                    angle = by_axis[axis] * 50 ** (-2 * of_axis / pairs)
                    z = complex(*expected[list(features)]) * np.exp(1j * angle)
                    expected[list(features)] = z.real, z.imag
                np.testing.assert_allclose(result[b, t, n], expected, atol=3e-5)


def test_on_a_grid_scores_depend_on_distances_in_rows_and_columns():
    position = positions.Rotary(grid=(4, 5), rotary_dim=12)
    q, k = RANDOM.normal(size=(2, 1, 1, N, H)).astype("float32")

    def scores(i, j):
        return np.sum(np.asarray(position.rotate(q, [i]) * position.rotate(k, [j])), axis=-1)

    np.testing.assert_allclose(scores(6, 0), scores(13, 7), atol=1e-5)  # one down, one right
    assert np.abs(scores(5, 4) - scores(6, 5)).max() > 1e-3  # in the next row


def test_a_grid_needs_pairs_for_both_axes():
    with pytest.raises(ValueError, match="14 features are 7 pairs. Choose .* that 4 divides"):
        positions.Rotary(grid=(2, 3)).rotate(X)


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("rotary_dim", [None, 6])
def test_scores_depend_only_on_the_distance(layout, rotary_dim):
    position = positions.Rotary(layout, rotary_dim=rotary_dim)
    q, k = RANDOM.normal(size=(2, 1, 1, N, H)).astype("float32")

    def scores(i, j):
        return np.sum(np.asarray(position.rotate(q, [i]) * position.rotate(k, [j])), axis=-1)

    for i, j in ((0, 0), (5, 2), (2, 5), (40, 7)):
        np.testing.assert_allclose(scores(i + 211, j + 211), scores(i, j), atol=2e-3)
    assert np.abs(scores(5, 2) - scores(2, 5)).max() > 0.1


def test_layouts_are_equal_up_to_a_permutation():
    order = [*range(0, H, 2), *range(1, H, 2)]
    half = positions.Rotary("half").rotate(X[..., order])
    interleaved = positions.Rotary("interleaved").rotate(X)
    np.testing.assert_allclose(half, np.asarray(interleaved)[..., order], atol=1e-5)


@pytest.mark.parametrize("dtype, error", [("bfloat16", 2e-2), ("float16", 2e-3)])
def test_half_precision_is_rotated_in_float32(dtype, error):
    x = ops.cast(RANDOM.normal(size=(1, 600, 1, 8)), dtype)
    exact = positions.Rotary().rotate(ops.cast(x, "float32"))
    result = positions.Rotary().rotate(x)
    assert dtype in str(result.dtype)
    np.testing.assert_allclose(ops.cast(result, "float32"), exact, atol=error)
    ones = positions.Rotary().rotate(ops.ones((1, 600, 1, 8), dtype))
    assert len(np.unique(np.asarray(ops.cast(ones, "float32"))[0, :, 0], axis=0)) == 600


def test_rotation_keeps_the_length_of_a_vector():
    np.testing.assert_allclose(
        np.linalg.norm(positions.Rotary().rotate(X), axis=-1), np.linalg.norm(X, axis=-1), rtol=1e-5
    )


@pytest.mark.slow
def test_parity_with_keras_hub():
    keras_hub = pytest.importorskip("keras_hub")
    theirs = keras_hub.layers.RotaryEmbedding(max_wavelength=100)(X)
    np.testing.assert_allclose(positions.Rotary(max_wavelength=100).rotate(X), theirs, atol=1e-5)


def test_an_odd_head_size_is_an_error():
    with pytest.raises(ValueError, match=r"odd number of them, 13\..*rotary_dim=12"):
        positions.Rotary().rotate(X[..., :13])
    partial = positions.Rotary(rotary_dim=12).rotate(X[..., :13])
    np.testing.assert_array_equal(partial[..., 12], X[..., 12])


def test_rotary_dim_is_checked():
    with pytest.raises(ValueError, match=r"Rotary\(rotary_dim=5\).*must be even"):
        positions.Rotary(rotary_dim=5)
    with pytest.raises(ValueError, match=r"Rotary\(rotary_dim=0\)"):
        positions.Rotary(rotary_dim=0)
    with pytest.raises(ValueError, match=r"rotary_dim=16\) cannot rotate .* the 14 that"):
        positions.Rotary(rotary_dim=16).rotate(X)


def test_layout_is_checked():
    with pytest.raises(ValueError, match="layout must be one of 'half', 'interleaved'"):
        positions.Rotary("concatenated")


LAYOUTS = ("half", "interleaved")


@pytest.mark.parametrize("source, target", [LAYOUTS, LAYOUTS[::-1]])
@pytest.mark.parametrize("rotary_dim", [None, 4])
@pytest.mark.parametrize("heads", [4, 2])
def test_converted_projections_give_the_same_attention(source, target, rotary_dim, heads):
    def layer(layout):
        position = positions.Rotary(layout, rotary_dim=rotary_dim)
        return attention.MultiHeadAttention(4, 6, num_key_value_heads=heads, position=position)

    x = RANDOM.normal(size=(2, 9, 24)).astype("float32")
    theirs, ours = layer(source), layer(target)
    for one in (theirs, ours):
        one.build(x.shape, x.shape)
    for weight in theirs.weights:
        weight.assign(RANDOM.normal(size=weight.shape, scale=0.3))
    expected, scores = theirs(x, x, return_attention_scores=True)
    ours.set_weights(theirs.get_weights())
    assert not np.allclose(ours(x, x), expected, atol=1e-3)
    for name in ("query_dense", "key_dense"):
        projection = getattr(ours, name)
        for weight in projection.weights:
            weight.assign(positions.convert_layout(weight, source, target, rotary_dim))
    output, weights = ours(x, x, return_attention_scores=True)
    np.testing.assert_allclose(weights, scores, atol=1e-6)
    np.testing.assert_allclose(output, expected, atol=1e-5)


def test_convert_layout_equals_the_definition():
    """Move pair k from 2k and 2k + 1 to k and k + R/2, or back."""
    weights = RANDOM.normal(size=(3, 2, 9))
    half = positions.convert_layout(weights, "interleaved", "half", rotary_dim=8)
    for k in range(4):
        np.testing.assert_array_equal(half[..., k], weights[..., 2 * k])
        np.testing.assert_array_equal(half[..., k + 4], weights[..., 2 * k + 1])
    np.testing.assert_array_equal(half[..., 8], weights[..., 8])
    back = positions.convert_layout(half, "half", "interleaved", rotary_dim=8)
    np.testing.assert_array_equal(back, weights)
    np.testing.assert_array_equal(positions.convert_layout(weights, "half", "half", 8), weights)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("pairs", "half"), r"convert_layout\(source='pairs'\)"),
        (("half", None), r"convert_layout\(target=None\)"),
        (("half", "interleaved", 5), r"rotary_dim=5\): .*even"),
        (("half", "interleaved", 8), r"rotary_dim=8\): .*at most the 6 features"),
        (("half", "interleaved", 0), r"rotary_dim=0\)"),
    ],
)
def test_convert_layout_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        positions.convert_layout(np.zeros((2, 6)), *arguments)


def faded(x, p, sign, layout, size, base=50, scale_base=512, middle=0):
    """Rotate one head (H,) and multiply its pairs by zeta^(± p / scale_base) (table 1)."""
    result = np.array(x, "float64")
    for k in range(size // 2):
        first, second = (k, k + size // 2) if layout == "half" else (2 * k, 2 * k + 1)
        zeta = (k / (size / 2) + 0.4) / 1.4
        z = complex(x[first], x[second]) * np.exp(1j * p * base ** (-2 * k / size))
        z *= zeta ** (sign * (p - middle) / scale_base)
        result[first], result[second] = z.real, z.imag
    return result


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("rotary_dim", [None, 6])
@pytest.mark.parametrize("shape", [None, (T,), (B, T)])
def test_xpos_equals_the_definition(layout, rotary_dim, shape):
    where = None if shape is None else RANDOM.integers(0, 300, shape)
    position = positions.XPos(layout, 50, rotary_dim, scale_base=100, middle=7)
    query, key = position.rotate(X, where), position.rotate_key(X, where)
    where = np.broadcast_to(np.arange(T) if where is None else where, (B, T))
    for b in range(B):
        for t in range(T):
            for n in range(N):
                for result, sign in ((query, 1), (key, -1)):
                    expected = faded(
                        X[b, t, n], where[b, t], sign, layout, rotary_dim or H, 50, 100, 7
                    )
                    np.testing.assert_allclose(result[b, t, n], expected, rtol=1e-4, atol=1e-4)


def test_xpos_scores_depend_only_on_the_distance_and_decay():
    position = positions.XPos()
    q, k = RANDOM.normal(size=(2, 1, 1, N, H)).astype("float32")

    def scores(i, j, position=position):
        product = position.rotate(q, [i]) * position.rotate_key(k, [j])
        return np.sum(np.asarray(product), axis=-1)

    for i, j in ((0, 0), (5, 2), (400, 7)):
        np.testing.assert_allclose(scores(i + 211, j + 211), scores(i, j), atol=2e-3)
        centred = scores(i, j, positions.XPos(middle=200))
        np.testing.assert_allclose(centred, scores(i, j), rtol=1e-4, atol=1e-5)
    assert np.abs(scores(6000, 0)).max() < np.abs(scores(0, 0)).max() / 3


def test_attention_scales_queries_and_keys_differently():
    """Compare the weights of `attend` with the definition."""
    key = RANDOM.normal(size=(B, 7, N, H)).astype("float32")
    position, i = positions.XPos(scale_base=20), np.arange(2, 7)
    visibility = attention.Visibility("causal", query_positions=i)
    _, weights = attention.attend(X, key, key, position=position, mask=visibility)
    for n in range(N):
        for t in range(T):
            q = faded(X[0, t, n], i[t], 1, "half", H, 10000, 20)
            scores = [
                q @ faded(key[0, s, n], s, -1, "half", H, 10000, 20) / math.sqrt(H)
                for s in range(i[t] + 1)
            ]
            chosen = np.exp(scores) / np.sum(np.exp(scores))
            np.testing.assert_allclose(weights[0, n, t, : i[t] + 1], chosen, atol=1e-5)


def test_xpos_of_a_part_equals_a_part_of_the_whole():
    position = positions.XPos()
    where = np.arange(2, 4)
    for turn in (position.rotate, position.rotate_key):
        np.testing.assert_allclose(turn(X[:, 2:4], where), turn(X)[:, 2:4], atol=1e-6)


def test_xpos_without_decay_equals_rotary():
    slow = positions.XPos(scale_base=1e30)
    np.testing.assert_allclose(slow.rotate(X), positions.Rotary().rotate(X), atol=1e-6)
    np.testing.assert_allclose(slow.rotate_key(X), positions.Rotary().rotate(X), atol=1e-6)


def test_xpos_in_half_precision_is_computed_in_float32():
    x = ops.cast(X, "bfloat16")
    exact = positions.XPos().rotate_key(ops.cast(x, "float32"), np.arange(300, 305))
    result = positions.XPos().rotate_key(x, np.arange(300, 305))
    assert "bfloat16" in str(result.dtype)
    np.testing.assert_allclose(ops.cast(result, "float32"), exact, rtol=2**-8)


def test_xpos_keys_stay_finite_within_the_documented_limits():
    """Check the limits of the docstring: float16 to 4000 from the middle, float32 to 35000."""
    one = ops.ones((1, 1, 1, H), "float16")
    for reach, dtype in ((4000, "float16"), (35000, "float32"), (35000, "bfloat16")):
        key = positions.XPos().rotate_key(ops.cast(one, dtype), [reach])
        far = positions.XPos(middle=2 * reach).rotate_key(ops.cast(one, dtype), [3 * reach - 1])
        for x in (key, far):
            assert np.all(np.isfinite(np.asarray(ops.cast(x, "float32"))))


def test_parity_with_torchscale():
    """Set `middle` to its offset, T // 2, and interleave pairs."""
    length, size = 6, 8
    x = RANDOM.normal(size=(1, length, 1, size)).astype("float32")
    zeta = (np.arange(0, size, 2) + 0.4 * size) / (1.4 * size)
    scale = zeta ** (np.arange(-(length // 2), length - length // 2) / 512)[:, None]
    angle = np.arange(length)[:, None] / 10000 ** (np.arange(size // 2) / (size // 2))
    sine, cosine = (np.repeat(f(angle) * scale, 2, axis=1) for f in (np.sin, np.cos))
    partner = np.stack([-x[0, :, 0, 1::2], x[0, :, 0, ::2]], axis=-1).reshape(length, size)
    theirs = x[0, :, 0] * cosine + partner * sine
    ours = positions.XPos("interleaved", middle=length // 2).rotate(x)[0, :, 0]
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize(
    "arguments", [{"scale_base": 0}, {"middle": -1}, {"rotary_dim": 5}, {"layout": "whole"}]
)
def test_xpos_arguments_are_checked(arguments):
    ((name, value),) = arguments.items()
    with pytest.raises(ValueError, match=rf"XPos\({name}={value!r}\)"):
        positions.XPos(**arguments)
