import math

import numpy as np
import pytest
from keras import ops

from keras_attention import positions


def wave(p, c, width, layout="interleaved", max_wavelength=10000):
    """Compute the paper's equation for feature c. The even feature of its pair is 2k."""
    if layout == "concatenated":
        sines = math.ceil(width / 2)
        c = 2 * c if c < sines else 2 * (c - sines) + 1
    k = c // 2
    angle = p / max_wavelength ** (2 * k / width)
    return math.sin(angle) if c % 2 == 0 else math.cos(angle)


@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
@pytest.mark.parametrize("width", [1, 2, 3, 6, 7])
def test_embeddings_equal_the_definition(layout, width):
    x = np.random.default_rng(0).normal(size=(2, 5, width)).astype("float32")
    position = positions.Sinusoidal(layout, max_wavelength=100)
    result = position.embed(x)
    assert result.shape == (2, 5, width)
    for b in range(2):
        for p in range(5):
            for c in range(width):
                expected = x[b, p, c] + wave(p, c, width, layout, 100)
                assert float(result[b, p, c]) == pytest.approx(expected, abs=2e-6)


def test_embeddings_equal_golden_numbers():
    """Compare with D = 4: sin p, cos p, sin p/100, cos p/100."""
    rows = positions.Sinusoidal().waves(ops.arange(3), 4)[0]
    expected = [
        [0.0, 1.0, 0.0, 1.0],
        [0.84147098, 0.54030231, 0.00999983, 0.99995],
        [0.90929743, -0.41614684, 0.01999867, 0.99980001],
    ]
    np.testing.assert_allclose(rows, expected, atol=1e-7)
    rows = positions.Sinusoidal("concatenated").waves(ops.arange(3), 4)[0]
    np.testing.assert_allclose(rows, np.array(expected)[:, [0, 2, 1, 3]], atol=1e-7)


def test_long_sequences_equal_the_definition():
    rows = np.asarray(positions.Sinusoidal().waves(ops.arange(4096), 12)[0])
    for p in (1000, 4095):
        np.testing.assert_allclose(rows[p], [wave(p, c, 12) for c in range(12)], atol=5e-4)


@pytest.mark.parametrize("dtype, error", [("bfloat16", 4e-3), ("float16", 3e-4)])
def test_half_precision_repeats_no_row(dtype, error):
    """Count positions that half precision would repeat, with errors above 1."""
    exact = np.asarray(positions.Sinusoidal().waves(ops.arange(600), 64)[0])
    x = ops.zeros((1, 600, 64), dtype)
    rows = positions.Sinusoidal().embed(x)
    assert str(rows.dtype).endswith(dtype) or dtype in str(rows.dtype)
    rows = np.asarray(ops.cast(rows, "float32"))[0]
    assert len(np.unique(rows, axis=0)) == 600
    assert np.abs(rows - exact).max() < error


def test_layouts_are_permutations():
    for width in (1, 2, 7, 8):
        order = [*range(0, width, 2), *range(1, width, 2)]
        interleaved, concatenated = (
            np.asarray(positions.Sinusoidal(layout).waves(ops.arange(5), width))
            for layout in ("interleaved", "concatenated")
        )
        np.testing.assert_allclose(concatenated, interleaved[:, :, order], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("width", [5, 8])
def test_parity_with_keras_hub(width):
    keras_hub = pytest.importorskip("keras_hub")
    x = np.zeros((1, 11, width), "float32")
    theirs = keras_hub.layers.SinePositionEncoding(max_wavelength=50)(x)
    np.testing.assert_allclose(positions.Sinusoidal(max_wavelength=50).embed(x), theirs, atol=1e-6)


@pytest.mark.parametrize("layout", ["half", "", None, ["interleaved"]])
def test_layout_is_checked(layout):
    with pytest.raises(ValueError, match="layout must be one of 'interleaved', 'concatenated'"):
        positions.Sinusoidal(layout)


@pytest.mark.parametrize("value", [0, -1, "10000", None, float("inf"), float("nan"), True])
def test_max_wavelength_is_checked(value):
    with pytest.raises(ValueError, match=rf"max_wavelength={value!r}"):
        positions.Sinusoidal(max_wavelength=value)


ROWS, COLUMNS = 3, 5


def wave_2d(p, c, width, layout, base):
    """Compute feature c of the paper's 1-D encoding of p."""
    if layout == "concatenated":
        sines = math.ceil(width / 2)
        c = 2 * c if c < sines else 2 * (c - sines) + 1
    angle = p / base ** (2 * (c // 2) / width)
    return math.sin(angle) if c % 2 == 0 else math.cos(angle)


@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
@pytest.mark.parametrize("width", [1, 2, 4, 7, 8, 10])
@pytest.mark.parametrize("prefix", [0, 2])
def test_2d_embeddings_equal_the_definition(layout, width, prefix):
    tokens = prefix + ROWS * COLUMNS
    x = np.random.default_rng(0).normal(size=(2, tokens, width)).astype("float32")
    result = positions.Sinusoidal2D((ROWS, COLUMNS), prefix, layout, 50).embed(x)
    first = (width + 1) // 2
    for t in range(tokens):
        for c in range(width):
            row, column = divmod(t - prefix, COLUMNS)
            if t < prefix:
                added = 0
            elif c < first:
                added = wave_2d(column, c, first, layout, 50)
            else:
                added = wave_2d(row, c - first, width - first, layout, 50)
            assert float(result[1, t, c]) == pytest.approx(x[1, t, c] + added, abs=2e-6)


def quarters(n, base, divisor):
    """Compute sin x, cos x, sin y, cos y of every patch, row by row: (rows · columns, 4n)."""
    y, x = np.mgrid[:ROWS, :COLUMNS]
    rates = base ** -(np.arange(n) / divisor)
    angles = [axis.reshape(-1, 1) * rates for axis in (x, x, y, y)]
    waves = [f(a) for f, a in zip((np.sin, np.cos) * 2, angles, strict=True)]
    return np.concatenate(waves, axis=1)


def test_2d_embeddings_equal_maes():
    """Compare with MAE: 10000^(-k / n) for n = D / 4, columns first, zeros for the class token."""
    ours = positions.Sinusoidal2D((ROWS, COLUMNS), prefix=1).waves(ops.arange(16), 12)[0]
    np.testing.assert_allclose(ours[1:], quarters(3, 10000, 3), atol=1e-6)
    np.testing.assert_array_equal(ours[0], np.zeros(12))


def test_longer_wavelength_reproduces_waves_of_big_vision():
    n = 3
    position = positions.Sinusoidal2D((ROWS, COLUMNS), max_wavelength=10000 ** (n / (n - 1)))
    ours = position.waves(ops.arange(15), 4 * n)[0]
    np.testing.assert_allclose(ours, quarters(n, 10000, n - 1), atol=1e-6)


@pytest.mark.parametrize("rows", [[5, 6, 7], [[5, 6, 7], [0, 15, 3]]])
def test_2d_explicit_positions(rows):
    position = positions.Sinusoidal2D((ROWS, COLUMNS), prefix=1)
    x = np.random.default_rng(0).normal(size=(2, 16, 8)).astype("float32")
    whole = np.asarray(position.embed(x))
    rows = np.broadcast_to(rows, (2, 3))
    picked = np.take_along_axis(x, rows[:, :, None], axis=1)
    expected = np.take_along_axis(whole, rows[:, :, None], axis=1)
    np.testing.assert_allclose(position.embed(picked, rows), expected, atol=1e-6)


def test_2d_half_precision_counts_in_float32():
    x = ops.zeros((1, 900, 8), "bfloat16")
    position = positions.Sinusoidal2D((2, 450))
    exact = position.embed(ops.cast(x, "float32"))
    result = position.embed(x)
    assert "bfloat16" in str(result.dtype)
    np.testing.assert_allclose(ops.cast(result, "float32"), exact, atol=4e-3)


def test_2d_arguments_are_checked():
    with pytest.raises(ValueError, match="layout must be one of 'interleaved', 'concatenated'"):
        positions.Sinusoidal2D((2, 3), layout="half")
    with pytest.raises(ValueError, match=r"Sinusoidal2D\(max_wavelength=0\)"):
        positions.Sinusoidal2D((2, 3), max_wavelength=0)
