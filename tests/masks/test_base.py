import dataclasses
import sys

import keras
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keras_attention import masks
from keras_attention.core.part import Part
from tests.masks.definition import assert_is
from tests.masks.strategies import ANY


def test_a_mask_without_allows_is_an_error():
    with pytest.raises(NotImplementedError, match="Mask.allows"):
        masks.Mask().allows(0, 0)


def test_text_has_queries_down_and_keys_across():
    assert masks.Causal().draw(2, 11) == "\n".join(
        [
            "  j  0  1  2  3  4  5  6  7  8  9 10",
            "i",
            "0    ■  ·  ·  ·  ·  ·  ·  ·  ·  ·  ·",
            "1    ■  ■  ·  ·  ·  ·  ·  ·  ·  ·  ·",
        ]
    )
    assert len(set(map(len, masks.Causal().draw(11, 2).splitlines()[2:]))) == 1


def test_a_rule_of_keys_only_is_drawn_for_all_queries():
    assert masks.Prefix(1).draw(2).splitlines()[2:] == ["0   ■ ·", "1   ■ ·"]


@pytest.mark.parametrize("lengths", [(0,), (3, 0), (2.0,), (None,)])
@pytest.mark.parametrize("name", ["draw", "density", "to_numpy"])
def test_lengths_are_checked(name, lengths):
    with pytest.raises(ValueError, match=rf"{name}\((query|key)_length="):
        getattr(masks.Causal(), name)(*lengths)


@pytest.mark.parametrize("length", [1, 7, 3000])
def test_density_is_the_share_of_allowed_pairs(length):
    assert masks.Causal().density(length) == (length + 1) / (2 * length)
    assert masks.Prefix(1).density(5, length) == 1 / length
    assert masks.Full().density(length) == 1 and (~masks.Full()).density(length) == 0


def test_the_picture_has_query_zero_on_top(tmp_path):
    pytest.importorskip("matplotlib")
    from matplotlib import image

    path = tmp_path / "mask.png"
    assert masks.Prefix(1).draw(4, path=path) == masks.Prefix(1).draw(4)
    masks.Causal().draw(4, path=path)
    red, _, blue, _ = np.moveaxis(image.imread(path), -1, 0)
    visible = (red < 0.4) & (blue > 0.5)
    down, across = np.nonzero(visible)
    rows, columns = (np.linspace(x.min(), x.max(), 9)[1::2].astype(int) for x in (down, across))
    np.testing.assert_array_equal(visible[np.ix_(rows, columns)], np.tri(4, dtype=bool))


def test_a_missing_matplotlib_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install .*\[viz\]"):
        masks.Causal().draw(2, path=tmp_path / "mask.png")


def test_a_users_mask_combines_with_others():
    @dataclasses.dataclass(frozen=True)
    class Even(masks.Mask, Part):
        def allows(self, i, j):
            return j % 2 == 0

    mask = masks.Causal() & Even()
    assert mask.draw(3).splitlines()[2:] == ["0   ■ · ·", "1   ■ · ·", "2   ■ · ■"]
    assert masks.get(mask) is mask


@pytest.mark.slow
@settings(deadline=None)
@given(ANY.filter(lambda mask: mask.relative), st.integers(0, 20))
def test_relative_masks_depend_only_on_the_distance(mask, shift):
    i, j = np.arange(12)[:, None], np.arange(15)[None]
    np.testing.assert_array_equal(mask.allows(i, j), mask.allows(i + shift, j + shift))


@pytest.mark.parametrize(
    "mask",
    [
        masks.Full(),
        masks.Causal(),
        masks.Window(3),
        masks.Causal() & masks.Window(5),
        masks.Window(5) & (masks.Window(2) & masks.Causal()),
    ],
    ids=str,
)
def test_bands_allow_all_pairs_between_two_diagonals(mask):
    assert mask.is_band
    left, right = mask.band()
    distance = np.arange(13) - np.arange(13)[:, None]  # j - i
    inside = np.ones((13, 13), "bool")
    inside &= True if left is None else distance >= -left
    inside &= True if right is None else distance <= right
    np.testing.assert_array_equal(mask.to_numpy(13), inside)


def test_is_band_holds_only_for_intersections_of_bands():
    band = masks.Causal() & masks.Window(3)
    assert band.is_band and masks.Full().is_band and (band & masks.Window(2)).is_band
    for other in (
        band | masks.Window(9),
        ~masks.Causal(),
        masks.Dilated(2, 2),
        masks.Global(1),
    ):
        assert not other.is_band
    assert not masks.Longformer(2).is_band and not masks.Mask.is_band


def test_relative_holds_unless_a_mask_uses_absolute_positions():
    combined = masks.Causal() & (masks.Window(2) | ~masks.Strided(3))
    assert combined.relative and masks.Dilated(2, 2).relative and masks.Full().relative
    assert not (combined | masks.Prefix(2)).relative and not masks.Mask.relative


def test_and_or_not_are_errors():
    with pytest.raises(TypeError, match="Combine masks with &"):
        masks.Causal() and masks.Window(3)


QUICK = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def cells(mask):
    allowed = mask.allows(np.arange(7)[:, None], np.arange(11)[None])
    return np.broadcast_to(allowed, (7, 11))


@QUICK
@given(ANY, ANY)
def test_operators_combine_masks(a, b):
    np.testing.assert_array_equal(cells(a & b), cells(a) & cells(b))
    np.testing.assert_array_equal(cells(a | b), cells(a) | cells(b))
    np.testing.assert_array_equal(cells(~a), ~cells(a))


@QUICK
@given(ANY, ANY)
def test_de_morgan(a, b):
    np.testing.assert_array_equal(cells(~(a & b)), cells(~a | ~b))
    np.testing.assert_array_equal(cells(~(a | b)), cells(~a & ~b))
    np.testing.assert_array_equal(cells(~~a), cells(a))


@QUICK
@given(ANY)
def test_any_mask_is_restored_from_its_config(mask):
    config = keras.saving.serialize_keras_object(mask)
    again = masks.get(config)
    assert again == mask and hash(again) == hash(mask) and again is not mask
    assert eval(repr(mask), vars(masks)) == mask


def test_a_nested_mask_by_definition():
    mask = masks.Causal() & ~(masks.Window(2) | masks.Chunked(3))
    assert_is(mask, lambda i, j: j <= i and not (abs(i - j) < 2 or i // 3 == j // 3))


def test_a_mask_prints_as_its_expression():
    mask = masks.Causal() & (masks.Window(2) | ~masks.Prefix(3))
    assert str(mask) == "(Causal() & (Window(size=2) | ~Prefix(length=3)))"


@pytest.mark.parametrize("other", [None, True, "causal", np.ones((2, 2), bool)])
def test_only_masks_combine(other):
    with pytest.raises(TypeError, match="unsupported operand"):
        masks.Causal() & other
    with pytest.raises(ValueError, match=r"(?s)Either\(right=.*right must be a mask"):
        masks.Either(masks.Causal(), other)


def test_full_shows_every_key():
    assert_is(masks.Full(), lambda i, j: True)
