import pytest

from keras_attention import masks
from tests.masks.definition import assert_is


@pytest.mark.parametrize("window", [2, 4, 10])
@pytest.mark.parametrize("tokens", [1, (3,), (7, 2)])
@pytest.mark.parametrize("dilation", [1, 3])
def test_half_the_window_on_each_side_and_global_tokens(window, tokens, dilation):
    """Compare with Beltagy et al. (2020), section 3.1: w / 2 tokens on each side, d - 1 apart."""
    everywhere = range(tokens) if isinstance(tokens, int) else tokens
    steps = {side * k * dilation for k in range(window // 2 + 1) for side in (1, -1)}
    assert_is(
        masks.Longformer(window, tokens, dilation),
        lambda i, j: j - i in steps or i in everywhere or j in everywhere,
    )


def test_a_list_of_tokens_becomes_a_tuple():
    assert masks.Longformer(2, [3, 1]) == masks.Longformer(2, (3, 1))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((0,), r"Longformer\(window=0\): window must be a whole number of at least 2"),
        ((5,), r"Longformer\(window=5\): window must be even.* Choose 4 or 6"),
        ((4, 1, 0), r"Longformer\(dilation=0\)"),
        ((4, 0), r"Global\(tokens=0\)"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        masks.Longformer(*arguments)
