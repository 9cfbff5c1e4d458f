import numpy as np
import pytest
from keras import ops

from keras_attention import attention, positions

B, T, S, N, H, D = 2, 5, 7, 3, 4, 10
RANDOM = np.random.default_rng(0)
QUERY = RANDOM.normal(size=(B, T, N, H)).astype("float32")
KEY = RANDOM.normal(size=(B, S, N, H)).astype("float32")


def built(hidden_dim=D, **kwargs):
    position = positions.TransformerXL(hidden_dim, initializer="random_normal", **kwargs)
    position.build((B, None, N, H))
    for weight in position.weights:
        weight.assign(RANDOM.normal(size=weight.shape))
    return position


def waves(distance, width=D, max_wavelength=10000):
    """Compute r(d) of the paper: all sines, then all cosines."""
    angle = distance / max_wavelength ** (2 * np.arange(width // 2) / width)
    return np.concatenate([np.sin(angle), np.cos(angle)])


def by_definition(position, i, j, query=QUERY, key=KEY):
    """Compute terms b, c and d of section 3.3, one number at a time."""
    W, u, v = (np.asarray(w) for w in position.get_weights())
    B, T, N, H = query.shape
    bias = np.zeros((B, N, T, key.shape[1]))
    group = N // key.shape[2]
    i, j = (np.broadcast_to(p, (B, np.shape(p)[-1])) for p in (i, j))
    for b in range(B):
        for n in range(N):
            for t in range(T):
                for s in range(key.shape[1]):
                    r = np.einsum("d,dh->h", waves(i[b, t] - j[b, s]), W[:, n])
                    terms = (query[b, t, n] + v[n]) @ r + u[n] @ key[b, s, n // group]
                    bias[b, n, t, s] = terms / np.sqrt(H)
    return bias


@pytest.mark.parametrize("batch", ["neither", "queries", "keys", "both"])
def test_biases_equal_the_definition(batch):
    i, j = RANDOM.integers(0, 50, (B, T)), RANDOM.integers(0, 50, (B, S))
    i = i if batch in ("queries", "both") else i[0]
    j = j if batch in ("keys", "both") else j[0]
    position = built()
    bias = position.bias(i, j, QUERY, KEY)
    assert "float32" in str(bias.dtype)
    np.testing.assert_allclose(bias, by_definition(position, i, j), atol=2e-5)


def test_grouped_keys():
    query = RANDOM.normal(size=(B, T, 4, H)).astype("float32")
    key = RANDOM.normal(size=(B, S, 2, H)).astype("float32")
    position = positions.TransformerXL()
    position.build((B, None, 4, H))
    W = position.kernel.shape[0]
    assert W == 4 * H  # N · H
    for weight in position.weights:
        weight.assign(RANDOM.normal(size=weight.shape))
    kernel, u, v = position.get_weights()
    bias = np.asarray(position.bias(None, None, query, key))
    for n in range(4):
        r = np.stack([[waves(t - s, W) @ kernel[:, n] for s in range(S)] for t in range(T)])
        expected = np.einsum("bth,tsh->bts", query[:, :, n] + v[n], r)
        expected += np.einsum("bsh,h->bs", key[:, :, n // 2], u[n])[:, None]
        np.testing.assert_allclose(bias[:, n], expected / np.sqrt(H), atol=2e-5)


def shift(x):
    """Shift (T, L) for distances L - 1 ... -(T - 1), as in appendix B of the paper."""
    T, L = x.shape
    padded = np.concatenate([np.zeros((T, 1)), x], axis=1).reshape(L + 1, T)
    return padded[1:].reshape(T, L)


def test_biases_equal_the_relative_shift():
    """Compare shifted products with the biases of the past, with and without a memory."""
    position = built()
    W, u, v = position.get_weights()
    for memory in (0, 3):
        L = T + memory
        key = np.zeros((1, L, N, H), "float32")
        bias = position.bias(np.arange(T) + memory, np.arange(L), QUERY[:1], key)
        for n in range(N):
            r = np.stack([waves(d) @ W[:, n] for d in range(L - 1, -1, -1)])  # L - 1, ..., 0
            expected = shift((QUERY[0, :, n] + v[n]) @ r.T) / np.sqrt(H)
            for t in range(T):
                past = t + memory + 1
                np.testing.assert_allclose(bias[0, n, t, :past], expected[t, :past], atol=2e-5)


@pytest.mark.slow
def test_parity_with_keras_hub():
    """Compare with XLNet, which shifts the products of all distances from S to -T + 1."""
    relative = pytest.importorskip("keras_hub.src.models.xlnet.relative_attention")
    position = built()
    W, u, v = position.get_weights()
    r = np.stack([np.einsum("d,dnh->nh", waves(d), W) for d in range(S, -T, -1)])
    products = np.einsum("btnh,lnh->bntl", QUERY + v, r).astype("float32")
    theirs = relative._rel_shift(ops.convert_to_tensor(products), klen=S)
    theirs = theirs + np.einsum("bsnh,nh->bns", KEY, u)[:, :, None]
    ours = position.bias(np.arange(T) + S - T, np.arange(S), QUERY, KEY)
    np.testing.assert_allclose(ours, theirs / np.sqrt(H), atol=2e-5)


def test_a_memory_gives_the_same_as_one_long_segment():
    """Compare a segment after a memory with the second half of both segments at once."""
    layer = attention.MultiHeadAttention(N, H, position="transformer_xl", mask="causal")
    x = RANDOM.normal(size=(B, 8, 12)).astype("float32")
    whole = layer(x, x)
    where = np.arange(4, 8)
    part = layer(x[:, 4:], x, query_positions=where)
    np.testing.assert_allclose(part, whole[:, 4:], atol=1e-6)
    counted_back = layer(x[:, 4:], x, query_positions=where - 4, value_positions=np.arange(-4, 4))
    np.testing.assert_allclose(counted_back, part, atol=1e-6)


def test_biases_are_exact_far_into_a_stream():
    position = built()
    near = position.bias(np.arange(T), np.arange(S), QUERY, KEY)
    far = position.bias(np.arange(T) + 10**8, np.arange(S) + 10**8, QUERY, KEY)
    np.testing.assert_array_equal(near, far)


def test_half_precision_adds_in_float32():
    query, key = ops.cast(QUERY, "bfloat16"), ops.cast(KEY, "bfloat16")
    position = built(dtype="mixed_bfloat16")
    exact = position.bias(None, None, ops.cast(query, "float32"), ops.cast(key, "float32"))
    np.testing.assert_array_equal(position.bias(None, None, query, key), exact)


def test_it_needs_the_keys():
    with pytest.raises(ValueError, match=r"TransformerXL depends on the keys: pass the key"):
        built().bias(None, None, QUERY)


def test_an_unbuilt_position_is_an_error():
    with pytest.raises(ValueError, match="TransformerXL has no weights yet"):
        positions.TransformerXL().bias(None, None, QUERY, KEY)


def test_an_odd_width_is_refused():
    with pytest.raises(ValueError, match="3 heads of size 5 have 15 waves"):
        positions.TransformerXL().build((None, None, 3, 5))
    with pytest.raises(ValueError, match=r"hidden_dim=7\) has a sine and a cosine"):
        positions.TransformerXL(7).build((None, None, 3, 4))


@pytest.mark.parametrize(
    "arguments", [{"hidden_dim": 1}, {"max_wavelength": 0}, {"scale": float("nan")}]
)
def test_arguments_are_checked(arguments):
    ((name, value),) = arguments.items()
    with pytest.raises(ValueError, match=rf"TransformerXL\({name}={value!r}\)"):
        positions.TransformerXL(**arguments)
