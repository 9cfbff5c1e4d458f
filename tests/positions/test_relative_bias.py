import math
from fractions import Fraction

import numpy as np
import pytest
from keras import ops

from keras_attention import positions

CONFIGS = [
    (32, 128),
    (16, 128),
    (64, 256),
    (32, 256),
    (16, 64),
    (64, 128),
    (4, 2),
    (6, 9),
    (32, 16),
]


def bucket(step, num_buckets, max_distance, bidirectional):
    """Compute T5's formula, comparing logarithms as powers of whole numbers."""
    result = 0
    if bidirectional:
        num_buckets //= 2
        result = num_buckets if step > 0 else 0
        distance = abs(step)
    else:
        distance = max(-step, 0)
    exact = num_buckets // 2
    if distance < exact:
        return result + distance
    shared = num_buckets - exact
    ratio, whole = Fraction(distance, exact), Fraction(max_distance, exact)
    # floor(log(ratio) / log(whole) * shared): the largest k with whole^k <= ratio^shared
    k = max(k for k in range(shared) if whole**k <= ratio**shared)
    return result + exact + k


def bucket_by_logarithm(step, num_buckets, max_distance, bidirectional):
    """Compute T5's formula in floating point, as in its code."""
    result = 0
    if bidirectional:
        num_buckets //= 2
        result = num_buckets if step > 0 else 0
    distance = abs(step) if bidirectional else max(-step, 0)
    exact = num_buckets // 2
    if distance < exact:
        return result + distance
    share = math.log(distance / exact) / math.log(max_distance / exact)
    return result + min(exact + int(share * (num_buckets - exact) + 1e-9), num_buckets - 1)


def built(heads=3, **kwargs):
    position = positions.RelativeBias(**kwargs)
    position.build((None, None, heads, 4))
    return position


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("num_buckets, max_distance", CONFIGS)
def test_buckets_equal_t5s(num_buckets, max_distance, bidirectional):
    if not bidirectional and max_distance <= num_buckets // 2:
        num_buckets //= 2
    arguments = (num_buckets, max_distance, bidirectional)
    steps = range(-max_distance - 30, max_distance + 31)
    ours = positions.RelativeBias(*arguments).buckets(steps).tolist()
    assert ours == [bucket(step, *arguments) for step in steps]
    assert ours == [bucket_by_logarithm(step, *arguments) for step in steps]
    assert min(ours) == 0 and max(ours) == num_buckets - 1


def test_golden_buckets():
    """Compare with T5's setting, 32 buckets and distance 128, written out."""
    position = positions.RelativeBias(32, 128, bidirectional=True)
    past = [0, 1, 7, 8, 11, 12, 15, 16, 22, 23, 31, 32, 45, 46, 63, 64, 90, 91, 127, 128, 10000]
    expected = [0, 1, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15, 15, 15]
    assert position.buckets(np.negative(past)).tolist() == expected
    assert position.buckets(past[1:]).tolist() == [16 + b for b in expected[1:]]
    decoder = positions.RelativeBias(32, 128, bidirectional=False)
    assert decoder.buckets([5, 1, 0, -1, -15, -16, -18, -19, -113, -9999]).tolist() == [
        *(0, 0, 0, 1, 15, 16, 16, 17, 31, 31)
    ]


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("batch", [False, True])
def test_biases_equal_the_definition(bidirectional, batch):
    random = np.random.default_rng(0)
    i, j = random.integers(0, 50, (2, 5)), random.integers(0, 50, (2, 7))
    if not batch:
        i, j = i[0], j[0]
    position = built(num_buckets=8, max_distance=20, bidirectional=bidirectional)
    (table,) = position.get_weights()
    assert table.shape == (8, 3)
    bias = position.bias(i, j, np.zeros((2, 5, 3, 4)))
    assert bias.shape == (2 if batch else 1, 3, 5, 7) and "float32" in str(bias.dtype)
    i, j = np.reshape(i, (-1, 5)), np.reshape(j, (-1, 7))
    for b in range(len(i)):
        for n in range(3):
            for t in range(5):
                for s in range(7):
                    row = bucket(int(j[b, s] - i[b, t]), 8, 20, bidirectional)
                    assert float(bias[b, n, t, s]) == pytest.approx(table[row, n])


@pytest.mark.slow
def test_parity_with_keras_hub():
    t5 = pytest.importorskip("keras_hub.src.models.t5.t5_multi_head_attention")
    for bidirectional in (True, False):
        steps = np.arange(-300, 300)[None]
        theirs = t5.T5MultiHeadAttention._relative_position_bucket(
            steps, bidirectional=bidirectional, num_buckets=32, max_distance=128
        )
        ours = positions.RelativeBias(32, 128, bidirectional).buckets(steps)
        np.testing.assert_array_equal(ours, theirs)


def test_a_call_takes_the_query_first():
    position = positions.RelativeBias(8, 20)
    query, key = np.zeros((1, 5, 3, 4), "float32"), np.zeros((1, 7, 3, 4), "float32")
    assert position(query).shape == (1, 3, 5, 5)
    where = position(query, key, query_positions=np.arange(2, 7))
    np.testing.assert_array_equal(where, position.bias(range(2, 7), range(7), query))


def test_weights_stay_float32_under_a_mixed_policy():
    position = built(dtype="mixed_float16")
    assert position.table.dtype == "float32"
    assert "float32" in str(position.bias(None, None, ops.zeros((1, 5, 3, 4), "float16")).dtype)


def test_an_unbuilt_position_is_an_error():
    with pytest.raises(ValueError, match="RelativeBias has no weights yet"):
        positions.RelativeBias().bias(None, None, np.zeros((1, 5, 3, 4)))


def test_a_wrong_shape_is_refused():
    with pytest.raises(ValueError, match=r"RelativeBias needs queries.*received \(2, 5, 3\)"):
        positions.RelativeBias().build((2, 5, 3))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_buckets": 7}, r"num_buckets=7\): two directions need an even number"),
        ({"num_buckets": 2}, r"num_buckets=2\).* at least 4"),
        ({"num_buckets": 1, "bidirectional": False}, r"num_buckets=1\).* at least 2"),
        ({"max_distance": 8}, r"max_distance=8\): 8 distances have a bucket of their own"),
        ({"max_distance": 16, "bidirectional": False}, r"max_distance=16\): 16 distances"),
        ({"max_distance": 0}, r"max_distance=0\)"),
        ({"bidirectional": "yes"}, r"bidirectional='yes'\)"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=rf"RelativeBias\({message}"):
        positions.RelativeBias(**arguments)


def test_buckets_use_no_logarithm_of_zero():
    with np.errstate(all="raise"):
        positions.RelativeBias(4, 2).buckets(range(-5, 6))
        positions.RelativeBias(2, 2, bidirectional=False).buckets(range(-5, 6))
