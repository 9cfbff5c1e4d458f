import numpy as np
import pytest
from keras import ops

from keras_attention import attention, positions
from tests.attention.definition import softmax

B, T, S, N, H, K = 2, 5, 7, 3, 11, 2
RANDOM = np.random.default_rng(0)
QUERY = RANDOM.normal(size=(B, T, N, H)).astype("float32")
KEY = RANDOM.normal(size=(B, S, N, H)).astype("float32")


def built(shape=(B, None, N, H), max_distance=K, **kwargs):
    position = positions.Shaw(max_distance, initializer="random_normal", **kwargs)
    position.build(shape)
    return position


def row(i, j, k=K):
    """Return the paper's clip(j - i, k), counted from 0."""
    return max(-k, min(k, int(j) - int(i))) + k


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("scale", [None, 0.5])
def test_scores_equal_the_definition(batch, scale):
    i, j = RANDOM.integers(0, 9, (B, T)), RANDOM.integers(0, 9, (B, S))
    if not batch:
        i, j = i[0], j[0]
    position = built(scale=scale)
    keys = np.asarray(position.key_table)
    bias = position.bias(i, j, QUERY, KEY)
    assert bias.shape == (B, N, T, S) and "float32" in str(bias.dtype)
    i, j = np.broadcast_to(i, (B, T)), np.broadcast_to(j, (B, S))
    for b in range(B):
        for n in range(N):
            for t in range(T):
                for s in range(S):
                    product = QUERY[b, t, n] @ keys[row(i[b, t], j[b, s])]
                    expected = product * (H**-0.5 if scale is None else scale)
                    assert float(bias[b, n, t, s]) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("batch", [False, True])
def test_value_terms_equal_the_definition(batch):
    i, j = RANDOM.integers(0, 9, (B, T)), RANDOM.integers(0, 9, (B, S))
    if not batch:
        i, j = i[0], j[0]
    weights = RANDOM.random(size=(B, N, T, S)).astype("float32")
    position = built(value_dim=13)
    table = np.asarray(position.value_table)
    more = position.values(i, j, weights)
    assert more.shape == (B, T, N, 13) and "float32" in str(more.dtype)
    i, j = np.broadcast_to(i, (B, T)), np.broadcast_to(j, (B, S))
    for b in range(B):
        for n in range(N):
            for t in range(T):
                expected = sum(weights[b, n, t, s] * table[row(i[b, t], j[b, s])] for s in range(S))
                np.testing.assert_allclose(more[b, t, n], expected, atol=1e-5)


def test_attention_equals_the_definition():
    """Compare with equations 3 and 5 of the paper, for new queries after a memory."""
    value = RANDOM.normal(size=(B, S, N, H)).astype("float32")
    position, i = built(), np.arange(T) + S - T
    keys, values = (np.asarray(t) for t in (position.key_table, position.value_table))
    visibility = attention.Visibility("causal", query_positions=i)
    output, weights = attention.attend(QUERY, KEY, value, position=position, mask=visibility)
    for b in range(B):
        for n in range(N):
            for t in range(T):
                seen = range(i[t] + 1)
                scores = [
                    QUERY[b, t, n] @ (KEY[b, s, n] + keys[row(i[t], s)]) / np.sqrt(H) for s in seen
                ]
                chosen = softmax(np.array(scores))
                np.testing.assert_allclose(weights[b, n, t, : i[t] + 1], chosen, atol=1e-6)
                expected = sum(
                    w * (value[b, s, n] + values[row(i[t], s)])
                    for s, w in zip(seen, chosen, strict=True)
                )
                np.testing.assert_allclose(output[b, t, n], expected, atol=1e-5)


def test_new_tokens_attend_to_a_cache_like_full_sequences():
    layer = attention.MultiHeadAttention(N, 4, position=positions.Shaw(2), mask="causal")
    x = RANDOM.normal(size=(B, 9, 12)).astype("float32")
    whole = layer(x, x)
    for first, last in ((4, 5), (4, 7), (7, 9)):
        where = {"query_positions": np.arange(first, last), "value_positions": np.arange(last)}
        part = layer(x[:, first:last], x[:, :last], **where)
        np.testing.assert_allclose(part, whole[:, first:last], atol=1e-6)


def test_cross_attention_uses_the_positions_of_both_sequences():
    """Use sequences of different lengths, with positions of their own."""
    layer = attention.MultiHeadAttention(N, 4, position="shaw")
    query, value = RANDOM.normal(size=(B, T, 12)), RANDOM.normal(size=(B, S, 12))
    whole = layer(query, value)
    alone = layer(query[:, 3:4], value, query_positions=[3])
    np.testing.assert_allclose(alone, whole[:, 3:4], atol=1e-6)


def test_dropout_applies_to_the_value_terms():
    value, position = np.zeros((B, S, N, H), "float32"), built()
    none, _ = attention.attend(
        QUERY, KEY, value, position=position, dropout=lambda weights: 0 * weights
    )
    np.testing.assert_array_equal(none, np.zeros((B, T, N, H)))
    some, _ = attention.attend(QUERY, KEY, value, position=position)
    assert np.abs(np.asarray(some)).max() > 1e-3


def test_grouped_keys():
    """Group keys, which changes neither the bias nor the values' term."""
    layer = attention.MultiHeadAttention(4, 3, num_key_value_heads=2, position="shaw")
    assert layer(RANDOM.normal(size=(B, T, 12)), RANDOM.normal(size=(B, S, 12))).shape == (B, T, 12)


def test_values_may_have_no_vectors():
    position = built(use_values=False)
    assert len(position.weights) == 1
    assert position.values(None, None, np.ones((B, N, T, S), "float32")) is None


def test_new_tables_of_keys_and_values_differ():
    position = positions.Shaw(2)
    position.build((None, None, N, H))
    assert not np.array_equal(position.key_table, position.value_table)


def test_half_precision_adds_in_float32():
    query = ops.cast(QUERY, "bfloat16")
    position = built(dtype="mixed_bfloat16")
    exact = position.bias(None, None, ops.cast(query, "float32"), KEY)
    np.testing.assert_array_equal(position.bias(None, None, query, KEY), exact)


def test_positions_default_to_a_count():
    position = built()
    weights = RANDOM.random(size=(B, N, T, S)).astype("float32")
    np.testing.assert_array_equal(
        position.values(None, None, weights), position.values(np.arange(T), np.arange(S), weights)
    )


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"max_distance": 0}, r"max_distance=0\)"),
        ({"use_values": 1.5}, r"use_values=1.5\)"),
        ({"value_dim": 0}, r"value_dim=0\)"),
        ({"scale": "big"}, r"scale='big'\)"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=rf"Shaw\({message}"):
        positions.Shaw(**arguments)


@pytest.mark.parametrize("shape", [(B, T, N), (B, T, None, H), (B, T, N, None)])
def test_a_wrong_shape_is_refused(shape):
    with pytest.raises(ValueError, match="Shaw needs queries of shape"):
        positions.Shaw().build(shape)


def test_an_unbuilt_position_is_an_error():
    with pytest.raises(ValueError, match="Shaw has no weights yet"):
        positions.Shaw().bias(None, None, QUERY)


def test_vectors_with_another_size_than_values_are_refused():
    x = np.zeros((2, 3, 8), "float32")
    layer = attention.MultiHeadAttention(2, 4, value_dim=6, position=positions.Shaw(3))
    with pytest.raises(ValueError, match="size 4 to values whose heads have size 6.*value_dim=6"):
        layer(x, x)
    fitting = positions.Shaw(3, value_dim=6)
    layer = attention.MultiHeadAttention(2, 4, value_dim=6, position=fitting)
    assert layer(x, x).shape == (2, 3, 8)
