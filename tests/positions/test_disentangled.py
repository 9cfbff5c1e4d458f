import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_attention import attention, normalizers, positions

B, T, S, N, H = 2, 5, 7, 3, 11
RANDOM = np.random.default_rng(0)
QUERY = RANDOM.normal(size=(B, T, N, H)).astype("float32")
KEY = RANDOM.normal(size=(B, S, N, H)).astype("float32")


def built(max_distance=3, heads=N, size=H, **kwargs):
    position = positions.Disentangled(max_distance, initializer="random_normal", **kwargs)
    position.build((B, None, heads, size))
    return position


def delta(i, j, k):
    """Compute equation 3 of the paper."""
    distance = int(i) - int(j)
    return 0 if distance <= -k else 2 * k - 1 if distance >= k else distance + k


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("scale", [None, 0.5])
def test_biases_equal_the_definition(batch, scale):
    i, j = RANDOM.integers(0, 9, (B, T)), RANDOM.integers(0, 9, (B, S))
    if not batch:
        i, j = i[0], j[0]
    position = built(scale=scale)
    keys, queries = position.get_weights()
    assert keys.shape == queries.shape == (6, N, H) and not np.array_equal(keys, queries)
    bias = position.bias(i, j, QUERY, KEY)
    assert bias.shape == (B, N, T, S) and "float32" in str(bias.dtype)
    i, j = np.broadcast_to(i, (B, T)), np.broadcast_to(j, (B, S))
    for b in range(B):
        for n in range(N):
            for t in range(T):
                for s in range(S):
                    d = delta(i[b, t], j[b, s], 3)
                    c2p, p2c = QUERY[b, t, n] @ keys[d, n], KEY[b, s, n] @ queries[d, n]
                    expected = (c2p + p2c) * (H**-0.5 if scale is None else scale)
                    assert float(bias[b, n, t, s]) == pytest.approx(expected, abs=1e-5)


def test_grouped_keys():
    query = RANDOM.normal(size=(B, T, 4, H)).astype("float32")
    key = RANDOM.normal(size=(B, S, 2, H)).astype("float32")
    position = built(heads=4)
    repeated = position.bias(None, None, query, np.repeat(key, 2, axis=2))
    np.testing.assert_allclose(position.bias(None, None, query, key), repeated, atol=1e-6)


def log_bucket(distance, rows, max_position):
    """Compute `make_log_bucket_position` of DeBERTa's code for one distance."""
    mid = rows // 2
    if -mid < distance < mid or abs(distance) <= mid:
        return distance
    sign = 1 if distance > 0 else -1
    steps = math.ceil(
        math.log(abs(distance) / mid) / math.log((max_position - 1) / mid) * (mid - 1) - 1e-9
    )
    return sign * (mid + steps)


@pytest.mark.parametrize("num_buckets, max_distance", [(256, 512), (8, 16), (5, 30), (4, 4)])
def test_buckets_equal_debertas(num_buckets, max_distance):
    position = positions.Disentangled(max_distance, num_buckets)
    steps = np.arange(-2 * max_distance, 2 * max_distance + 1)
    rows = position.buckets(steps)
    for step, row in zip(steps, rows, strict=True):
        expected = log_bucket(int(step), num_buckets, max_distance) + num_buckets
        assert row == min(max(expected, 0), 2 * num_buckets - 1)
    assert np.all(np.diff(rows) >= 0)


def test_golden_buckets():
    """Compare with DeBERTa v3, 256 buckets and 512 positions: exact to 128, then wider."""
    position = positions.Disentangled(512, 256)
    assert position.buckets([0, 1, -1, 127, 128]).tolist() == [256, 257, 255, 383, 384]
    assert position.buckets([129, 130, 256, 511, 512, 5000]).tolist() == [
        *(385, 386, 448, 511, 511, 511)
    ]
    assert position.buckets([-129, -511, -512, -5000]).tolist() == [127, 1, 0, 0]


def test_far_distances_count_as_the_last_bucket():
    position = built(16, num_buckets=8)
    where = position.bias([0, 1000], [0, 1000], QUERY[:, :2], KEY[:, :2])
    near = position.bias([0, 17], [0, 17], QUERY[:, :2], KEY[:, :2])
    np.testing.assert_array_equal(where, near)


@pytest.mark.slow
@pytest.mark.parametrize("length", [6, 40])
def test_parity_with_keras_hub(length):
    """Compare with DeBERTa v3's attention: a temperature of √3, with its products loaded."""
    deberta = pytest.importorskip("keras_hub.src.models.deberta_v3.disentangled_self_attention")
    theirs = deberta.DisentangledSelfAttention(
        num_heads=2, hidden_dim=8, max_position_embeddings=32, bucket_size=16, dropout=0.0
    )
    x = RANDOM.normal(size=(B, length, 8)).astype("float32")
    embedding = np.broadcast_to(RANDOM.normal(size=(1, 32, 8)), (B, 32, 8)).astype("float32")
    everything = np.ones((B, length, length), bool)  # without a mask their softmax fails
    theirs(x, embedding, attention_mask=everything)
    for weight in theirs.weights:
        weight.assign(RANDOM.normal(size=weight.shape, scale=0.5))
    position = positions.Disentangled(max_distance=32, num_buckets=16)
    ours = attention.MultiHeadAttention(
        2, 4, position=position, normalizer=normalizers.Softmax(temperature=3**0.5)
    )
    ours.build(x.shape, x.shape)
    for name in ("query", "key", "value", "output"):
        projection = getattr(theirs, f"_{name}_dense")
        ours_projection = getattr(ours, f"{name}_dense")
        kernel, bias = projection.get_weights()
        ours_projection.set_weights([kernel.reshape(ours_projection.kernel.shape), bias])
    position.key_table.assign(theirs._key_dense(embedding[:1])[0])
    position.query_table.assign(theirs._query_dense(embedding[:1])[0])
    expected, scores = theirs(x, embedding, attention_mask=everything, return_attention_scores=True)
    output, weights = ours(x, x, return_attention_scores=True)
    np.testing.assert_allclose(weights, scores, atol=1e-5)
    np.testing.assert_allclose(output, expected, atol=1e-4)


def test_a_temperature_divides_all_three_terms():
    """Compare with √(3H) of the paper: √H in score and biases, √3 in their sum."""
    position = built()
    x = {"query": QUERY, "key": KEY, "value": KEY}
    _, ours = attention.attend(
        **x, position=position, normalizer=normalizers.Softmax(temperature=3**0.5)
    )
    content = np.einsum("btnh,bsnh->bnts", QUERY, KEY) / np.sqrt(3 * H)
    terms = np.asarray(position.bias(None, None, QUERY, KEY)) / np.sqrt(3)
    np.testing.assert_allclose(ours, keras.ops.softmax(content + terms), atol=1e-6)


def test_half_precision_adds_in_float32():
    query, key = ops.cast(QUERY, "bfloat16"), ops.cast(KEY, "bfloat16")
    position = built(dtype="mixed_bfloat16")
    exact = position.bias(None, None, ops.cast(query, "float32"), ops.cast(key, "float32"))
    np.testing.assert_array_equal(position.bias(None, None, query, key), exact)


def test_it_needs_the_keys():
    with pytest.raises(ValueError, match="Disentangled depends on the keys"):
        built().bias(None, None, QUERY)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"max_distance": 0}, r"max_distance=0\)"),
        ({"num_buckets": 3}, r"num_buckets=3\).* at least 4"),
        ({"max_distance": 128, "num_buckets": 256}, r"max_distance=128\): 128 .* at least 130"),
        ({"scale": None, "max_distance": 2.5}, r"max_distance=2.5\)"),
        ({"scale": "x"}, r"scale='x'\)"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=rf"Disentangled\({message}"):
        positions.Disentangled(**arguments)
