"""The equation in NumPy, from the papers, with loops over b, n, t and s."""

import numpy as np
from scipy import optimize


def attention(query, key, value, score, normalize, allows):
    """Return the output (B, T, N, H) and the weights (B, N, T, S).

    `score(q, k, n)` is a number for one query, key and head. `normalize(scores)` maps the scores of
    the keys that `allows(i, j)`, at least one, to their weights.
    """
    (B, T, N, _), S = query.shape, key.shape[1]
    output, weights = np.zeros((B, T, N, value.shape[-1])), np.zeros((B, N, T, S))
    for b in range(B):
        for n in range(N):
            for i in range(T):
                seen = [j for j in range(S) if allows(b, i, j)]
                if not seen:
                    continue  # nothing to see: zeros
                scores = [score(query[b, i, n], key[b, j, n], n) for j in seen]
                for j, weight in zip(seen, normalize(np.array(scores)), strict=True):
                    weights[b, n, i, j] = weight
                    output[b, i, n] += weight * value[b, j, n]
    return output, weights


def scores(layer):
    """Return `score(q, k, n)` of each kind. Those with weights read them from `layer`."""
    weights = [np.asarray(w, "float64") for w in getattr(layer, "weights", [])]

    def cosine(q, k, n):
        scale = np.exp(min(weights[0][n], np.log(100))) if weights else layer.scale
        return scale * q @ k / np.linalg.norm(q) / np.linalg.norm(k)

    return {
        "dot": lambda q, k, n: q @ k,
        "scaled_dot": lambda q, k, n: q @ k / np.sqrt(len(q)),
        "cosine": cosine,
        "bilinear": lambda q, k, n: q @ weights[0][n] @ k,
        "concat": lambda q, k, n: np.tanh(np.concatenate([q, k]) @ weights[0][n]) @ weights[1][n],
        "additive": lambda q, k, n: np.tanh(q @ weights[0][n] + k @ weights[1][n]) @ weights[2][n],
        "squared_distance": lambda q, k, n: -np.sum((q - k) ** 2) * layer.scale,
    }


def softmax(z):
    e = np.exp(z - z.max())
    return e / e.sum()


def entmax(alpha):
    """Return entmax: p = [(alpha - 1) z - tau]+ ^ (1 / (alpha - 1)), tau such that p sums to 1."""

    def normalize(z):
        z = (alpha - 1) * z.astype("float64")

        def weights(tau):
            return np.maximum(z - tau, 0) ** (1 / (alpha - 1))

        tau = optimize.brentq(
            lambda t: weights(t).sum() - 1, z.max() - 1 - 1e-9, z.max(), xtol=1e-15
        )
        return weights(tau)

    return normalize


def top(k):
    def normalize(z):
        is_among = z >= np.sort(z)[-min(k, len(z))]
        return np.where(is_among, np.exp(z - z.max()), 0) / np.exp(z - z.max())[is_among].sum()

    return normalize


def soft_capped_plus_one(z, temperature=2.0, cap=3.0):
    z = cap * np.tanh(z / cap) / temperature
    return np.exp(z) / (1 + np.exp(z).sum())


def projected(layer, query, value):
    """Return queries (B, T, N, H), keys (B, S, N, H) and values (B, S, N, Hv) of a layer.

    Grouped heads are repeated: head h has the keys and values of head h // (N / K).
    """
    heads = [_project(layer, name, x) for name, x in zip(NAMES, (query, value, value), strict=True)]
    group = heads[0].shape[2] // heads[1].shape[2]
    return heads[0], *(np.repeat(x, group, axis=2) for x in heads[1:])


NAMES = ("query", "key", "value")


def _project(layer, name, x):
    kernel, bias = weight(layer, f"{name}/kernel"), weight(layer, f"{name}/bias")
    return np.tensordot(x.astype("float64"), kernel, axes=1) + bias


def merged(layer, heads):
    """Map (B, T, N, Hv) -> (B, T, D)."""
    kernel, bias = (weight(layer, f"attention_output/{name}") for name in ("kernel", "bias"))
    return np.tensordot(heads, kernel, axes=2) + bias


def weight(layer, name):
    """Return the weight of `layer` whose path ends in `name`, in float64."""
    (variable,) = [w for w in layer.weights if w.path.endswith(f"/{name}")]
    return np.asarray(variable, "float64")


def by_head(query, key, value, score, normalize, allows):
    """Compute `attention` with a normalizer and a mask for each head: `allows(b, n, i, j)`."""
    parts = [
        attention(
            *(x[:, :, n : n + 1] for x in (query, key, value)),
            lambda q, k, _, n=n: score(q, k, n),
            normalize[n],
            lambda b, i, j, n=n: allows(b, n, i, j),
        )
        for n in range(query.shape[2])
    ]
    output, weights = zip(*parts, strict=True)
    return np.concatenate(output, axis=2), np.concatenate(weights, axis=1)


def scaled_dot(q, k, n):
    return q @ k / np.sqrt(len(q))


def randomize(layer, scale=0.7):
    """Draw all weights anew, because zeros, ones and the identity hide errors."""
    random = np.random.default_rng(5)
    for w in layer.weights:
        if "float" in w.dtype:
            w.assign(random.normal(size=w.shape, scale=scale))
