"""Each scaling against its definition, one pair at a time, and golden numbers."""

import dataclasses
import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_attention import attention, positions
from keras_attention.positions import scalings
from tests.tables import assert_lists

SIZE, BASE = 14, 500.0
RANDOM = np.random.default_rng(0)

EXAMPLES = [
    scalings.Linear(4),
    scalings.NTK(4),
    scalings.DynamicNTK(2.5, original_length=11),
    scalings.DynamicNTK(2, original_length=11, length=40),
    scalings.YaRN(4, original_length=200),
    scalings.YaRN(4, original_length=200, beta_fast=8, beta_slow=2, truncate=False),
    scalings.LongRoPE((1.0,) * 7, (1, 1.5, 2, 2.5, 3, 3.5, 4), original_length=11, factor=4),
    scalings.LongRoPE((1.5,) * 7, (3.0,) * 7, original_length=11, length=5),
    scalings.Llama3(4, original_length=200),
]


def rates(scaling, positions=None, size=SIZE, base=BASE):
    where = ops.convert_to_tensor(np.arange(21) if positions is None else np.array(positions))
    return np.reshape(ops.convert_to_numpy(scaling.rates(size, base, where)), (-1, size // 2))


def plain(k, size=SIZE, base=BASE):
    return base ** (-2 * k / size)


def linear(scaling, k, length):
    return plain(k) / scaling.factor


def ntk(scaling, k, length):
    return plain(k, base=BASE * scaling.factor ** (SIZE / (SIZE - 2)))


def dynamic_ntk(scaling, k, length):
    length = max(scaling.length or length, scaling.original_length)
    grown = scaling.factor * length / scaling.original_length - (scaling.factor - 1)
    return plain(k, base=BASE * grown ** (SIZE / (SIZE - 2)))


def yarn(scaling, k, length):
    def pair(turns):
        inside = scaling.original_length / (turns * 2 * math.pi)
        return SIZE * math.log(inside) / (2 * math.log(BASE))

    low, high = pair(scaling.beta_fast), pair(scaling.beta_slow)
    if scaling.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, SIZE - 1)
    ramp = min(max((k - low) / (high - low), 0), 1)
    return plain(k) / scaling.factor * ramp + plain(k) * (1 - ramp)


def long_rope(scaling, k, length):
    is_long = (scaling.length or length) > scaling.original_length
    return plain(k) / (scaling.long_factors if is_long else scaling.short_factors)[k]


def llama3(scaling, k, length):
    wavelength, original = 2 * math.pi / plain(k), scaling.original_length
    low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
    if wavelength < original / high:
        return plain(k)
    if wavelength > original / low:
        return plain(k) / scaling.factor
    smooth = (original / wavelength - low) / (high - low)
    return (1 - smooth) * plain(k) / scaling.factor + smooth * plain(k)


DEFINITIONS = {
    "Linear": linear,
    "NTK": ntk,
    "DynamicNTK": dynamic_ntk,
    "YaRN": yarn,
    "LongRoPE": long_rope,
    "Llama3": llama3,
}


def test_there_is_an_example_of_every_scaling():
    table = "EXAMPLES of tests/positions/test_scalings.py"
    assert_lists(table, map(type, EXAMPLES), scalings.NAMES.values())


@pytest.mark.parametrize("scaling", EXAMPLES, ids=str)
@pytest.mark.parametrize("length", [5, 11, 12, 30])
def test_rates_equal_the_definition(scaling, length):
    definition = DEFINITIONS[type(scaling).__name__]
    expected = [definition(scaling, k, length) for k in range(SIZE // 2)]
    np.testing.assert_allclose(rates(scaling, range(length))[0], expected, rtol=1e-5)


@pytest.mark.parametrize("scaling", EXAMPLES, ids=str)
def test_rotary_uses_rates_and_amplitude(scaling):
    """Rotate each pair by position times rate, and multiply it by the amplitude."""
    x = RANDOM.normal(size=(1, 3, 1, SIZE)).astype("float32")
    where, definition = [2, 7, 19], DEFINITIONS[type(scaling).__name__]
    turned = np.asarray(positions.Rotary("interleaved", BASE, scaling=scaling).rotate(x, where))
    for t, p in enumerate(where):
        for k in range(SIZE // 2):
            angle = p * definition(scaling, k, 20)
            z = complex(*x[0, t, 0, 2 * k : 2 * k + 2]) * complex(math.cos(angle), math.sin(angle))
            z *= scaling.amplitude
            np.testing.assert_allclose(
                turned[0, t, 0, 2 * k : 2 * k + 2], [z.real, z.imag], atol=2e-5
            )


def test_dynamic_ntk_scales_the_base_not_every_rate():
    """Check that the first pair keeps its rate and the last is slower by the factor.

    Up to the training length nothing changes. Other libraries divided every rate by the factor.
    """
    scaling = scalings.DynamicNTK(2, original_length=10)
    ones = np.array([plain(k) for k in range(SIZE // 2)])
    np.testing.assert_allclose(rates(scaling, range(10))[0], ones, rtol=1e-6)
    slower = ones / rates(scaling, range(20))[0]
    assert slower[0] == pytest.approx(1) and slower[-1] == pytest.approx(3)  # 2 · 20/10 - 1


def test_yarn_gives_the_published_rates_and_amplitude():
    """Use heads of 64, base 10000, 4096 to 32768: pairs 10.47 to 22.51 rotate 32 to 1 times."""
    scaling = scalings.YaRN(8, original_length=4096)
    slower = np.array([plain(k, 64, 10000) for k in range(32)]) / rates(scaling, None, 64, 10000)[0]
    np.testing.assert_allclose(slower[:11], 1, rtol=1e-12)
    np.testing.assert_allclose(slower[23:], 8, rtol=1e-12)
    # a ramp from 10 to 23 for any factor
    for k in range(11, 23):
        assert 1 / slower[k] == pytest.approx(1 - (k - 10) / 13 * (1 - 1 / 8))
    assert scaling.amplitude == pytest.approx(0.1 * math.log(8) + 1)
    assert scaling.amplitude == pytest.approx(1.2079441541679836)


def test_llama3_gives_the_published_wavelengths():
    """Compare with Llama 3.1: base 500000, heads of 128.

    Waves shorter than 2048 stay, and waves longer than 8192 are 8 times as long. 2π · 500000^(k/64)
    crosses these at k = 28.2 and k = 34.98.
    """
    original = np.array([plain(k, 128, 500000) for k in range(64)])
    slower = original / rates(scalings.Llama3(), None, 128, 500000)[0]
    np.testing.assert_allclose(slower[:29], 1, rtol=1e-12)
    np.testing.assert_allclose(slower[35:], 8, rtol=1e-12)
    assert np.all(np.diff(slower[28:36]) > 0)
    assert slower[32] == pytest.approx(2.694529687894733)


def test_amplitudes_equal_the_definition():
    assert scalings.YaRN(4, 100, attention_factor=1.5).amplitude == 1.5
    assert scalings.YaRN(0.5, 100).amplitude == 1
    long = scalings.LongRoPE((1,), (1,), original_length=4096, factor=32)
    assert long.amplitude == pytest.approx(math.sqrt(1 + math.log(32) / math.log(4096)))
    assert long.amplitude == pytest.approx(1.1902380714238083)
    assert dataclasses.replace(long, factor=1.0).amplitude == 1
    assert dataclasses.replace(long, attention_factor=2.0).amplitude == 2
    assert scalings.Llama3().amplitude == scalings.NTK(2).amplitude == 1


@pytest.mark.parametrize("name", ["DynamicNTK", "LongRoPE"])
def test_each_row_of_a_batch_has_its_own_length(name):
    scaling = next(s for s in EXAMPLES if type(s).__name__ == name)
    x = RANDOM.normal(size=(2, 3, 2, SIZE)).astype("float32")
    rotary = positions.Rotary(max_wavelength=BASE, scaling=scaling)
    where = np.array([[0, 1, 2], [0, 9, 30]])
    together = rotary.rotate(x, where)
    for b in range(2):
        alone = rotary.rotate(x[b : b + 1], where[b])
        np.testing.assert_allclose(together[b], alone[0], atol=1e-6)


def test_a_fixed_length_gives_chunks_the_same_rates():
    x = RANDOM.normal(size=(1, 20, 2, SIZE)).astype("float32")
    rotary = positions.Rotary(scaling=scalings.DynamicNTK(2, original_length=10, length=20))
    whole = rotary.rotate(x)
    np.testing.assert_allclose(rotary.rotate(x[:, :7], np.arange(7)), whole[:, :7], atol=1e-6)


@pytest.mark.parametrize("scaling", EXAMPLES, ids=str)
def test_scaled_scores_depend_only_on_the_distance(scaling):
    if getattr(scaling, "length", 0) is None:
        scaling = dataclasses.replace(scaling, length=20)
    rotary = positions.Rotary(scaling=scaling)
    q, k = RANDOM.normal(size=(2, 1, 1, 2, SIZE)).astype("float32")

    def scores(i, j):
        return np.sum(np.asarray(rotary.rotate(q, [i]) * rotary.rotate_key(k, [j])), axis=-1)

    np.testing.assert_allclose(scores(45, 32), scores(15, 2), atol=1e-4)


@pytest.mark.parametrize("scaling", EXAMPLES, ids=str)
def test_configs_restore_scalings(scaling):
    rotary = positions.Rotary(scaling=scaling)
    again = positions.get(keras.saving.serialize_keras_object(rotary))
    assert again == rotary and hash(again) == hash(rotary)
    assert scalings.get(keras.saving.serialize_keras_object(scaling)) == scaling
    config = {"class_name": type(scaling).__name__, "config": scaling.get_config()}
    assert positions.Rotary(scaling=config) == rotary


def test_a_saved_model_keeps_its_scaling(tmp_path):
    x = keras.Input((21, 12))
    layer = attention.MultiHeadAttention(2, SIZE, position=positions.Rotary(scaling=EXAMPLES[6]))
    model = keras.Model(x, layer(x, x))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    batch = RANDOM.normal(size=(2, 21, 12))
    np.testing.assert_allclose(loaded(batch), model(batch), atol=1e-6)


def test_ntk_with_two_features_is_finite():
    """Check that nothing divides by R - 2 = 0. NTK does not change the only pair."""
    for scaling in (scalings.NTK(4), scalings.DynamicNTK(4, 2), scalings.YaRN(4, 100)):
        assert np.all(np.isfinite(rates(scaling, None, size=2)))
    np.testing.assert_allclose(rates(scalings.NTK(4), None, size=2), 1)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: scalings.Linear(0), r"Linear\(factor=0\)"),
        (lambda: scalings.NTK("4"), r"NTK\(factor='4'\)"),
        (lambda: scalings.DynamicNTK(2, 0), r"DynamicNTK\(original_length=0\)"),
        (lambda: scalings.DynamicNTK(2, 8, 1.5), r"DynamicNTK\(length=1.5\)"),
        (lambda: scalings.YaRN(2, 8, beta_fast=1), r"YaRN\(beta_fast=1, beta_slow=1\)"),
        (lambda: scalings.YaRN(2, 8, truncate=3), r"YaRN\(truncate=3\)"),
        (lambda: scalings.YaRN(2, 8, attention_factor=-1), r"YaRN\(attention_factor=-1\)"),
        (lambda: scalings.LongRoPE((0,), (1,), 8), r"LongRoPE\(short_factors=\(0,\)\)"),
        (lambda: scalings.LongRoPE((1,), 3, 8), r"LongRoPE\(long_factors=3\)"),
        (lambda: scalings.LongRoPE((1,), (1,), 1), r"LongRoPE\(original_length=1\)"),
        (lambda: scalings.Llama3(high_frequency_factor=1), r"Llama3\(low_frequency_factor=1, high"),
        (lambda: positions.Rotary(scaling="linear"), r"scaling Linear needs factor.*factor=\.\.\."),
        (lambda: positions.Rotary(scaling="yearn"), r"Unknown scaling 'yearn'. Known: linear, ntk"),
        (lambda: positions.Rotary(scaling=4.0), r"scaling=4.0 is not a scaling"),
    ],
)
def test_arguments_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_wrong_number_of_factors_is_refused():
    scaling = scalings.LongRoPE((1, 1), (1, 1), original_length=8)
    with pytest.raises(ValueError, match="has 2 short_factors, but 14 features are 7 pairs"):
        positions.Rotary(scaling=scaling).rotate(ops.zeros((1, 3, 1, SIZE)))


@pytest.mark.slow
def test_parity_with_keras_hub():
    keras_hub = pytest.importorskip("keras_hub")
    x = RANDOM.normal(size=(2, 30, 3, SIZE)).astype("float32")
    kinds = {"linear": scalings.Linear(4), "yarn": scalings.YaRN(4, 200)}
    for kind, scaling in kinds.items():
        theirs = keras_hub.layers.RotaryEmbedding(
            max_wavelength=500,
            scaling_factor=4.0,
            rope_type=kind,
            original_max_position_embeddings=200,
        )
        ours = positions.Rotary(max_wavelength=500, scaling=scaling).rotate(x)
        np.testing.assert_allclose(ours, theirs(x), atol=2e-5)
