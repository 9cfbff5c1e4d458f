import numpy as np
import pytest

from keras_attention import masks
from tests.masks.definition import assert_is


@pytest.mark.parametrize("tokens", [1, 3, 40])
def test_the_first_tokens_see_all_and_all_see_them(tokens):
    assert_is(masks.Global(tokens), lambda i, j: i < tokens or j < tokens)


@pytest.mark.parametrize("tokens", [(0,), (2, 7), (9, 1, 4), (100,)])
def test_chosen_tokens_see_all_and_all_see_them(tokens):
    assert_is(masks.Global(tokens), lambda i, j: i in tokens or j in tokens)


def test_window_or_global_is_longformer():
    assert_is(masks.Window(2) | masks.Global((3,)), lambda i, j: abs(i - j) < 2 or i == 3 or j == 3)


def test_lists_and_numpy_become_tuples_of_ints():
    assert masks.Global([2, np.int32(3)]) == masks.Global((2, 3))
    assert hash(masks.Global([2])) == hash(masks.Global((2,)))


@pytest.mark.parametrize("tokens", [0, -1, (), (1, 1), (-1,), (0.5,), "3", None])
def test_tokens_are_checked(tokens):
    with pytest.raises(ValueError, match=r"Global\(tokens="):
        masks.Global(tokens)
