from keras_attention import masks
from tests.masks.definition import assert_is


def test_a_key_is_visible_up_to_the_query():
    assert_is(masks.Causal(), lambda i, j: j <= i)


def test_unequal_lengths_are_aligned_at_the_top_left():
    assert masks.Causal().draw(2, 4).splitlines()[2:] == ["0   ■ · · ·", "1   ■ ■ · ·"]
