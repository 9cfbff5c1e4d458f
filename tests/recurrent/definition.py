"""Recurrent attention as the papers write it: NumPy, one row and one step at a time."""

import numpy as np

B, T, S, D, E, U, A = 2, 5, 7, 3, 11, 13, 17


def tensors():
    """Return targets (B, T, D), a source (B, S, E) and its mask (B, S). Row 1 has 4 tokens."""
    random = np.random.default_rng(0)
    targets = random.normal(size=(B, T, D)).astype("float32")
    encoded = random.normal(size=(B, S, E)).astype("float32")
    return targets, encoded, np.arange(S) < np.array([[S], [4]])


def drawn(layer):
    """Give `layer` random weights."""
    random = np.random.default_rng(1)
    for weight in layer.weights:
        if "seed" not in weight.path and "teacher" not in weight.path:
            weight.assign(random.normal(size=weight.shape, scale=0.5))
    return layer


def arrays(layer):
    return [np.asarray(weight, "float64") for weight in layer.weights]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(cell, x, h):
    """Compute a GRU (Cho et al., 2014) as Keras does, with the reset gate after the product."""
    kernel, recurrent, bias = arrays(cell)
    x, h_in = x @ kernel + bias[0], h @ recurrent + bias[1]
    n = len(h)
    z, r = sigmoid(x[:n] + h_in[:n]), sigmoid(x[n : 2 * n] + h_in[n : 2 * n])
    return z * h + (1 - z) * np.tanh(x[2 * n :] + r * h_in[2 * n :])


def softmax_of(scores):
    scores = np.exp(np.array(scores) - max(scores))
    return scores / scores.sum()


def lay_out(weights):
    """Put weights of tokens into a row of all S keys."""
    return np.pad(weights, (0, S - len(weights)))


def bahdanau(cell, targets, encoded, mask):
    """Return outputs [s_t, c_t] and weights of Bahdanau et al. (2015), section 3.1."""
    w, u, v = (x[0] for x in arrays(cell.score))
    outputs, looked = np.zeros((B, T, U + E)), np.zeros((B, T, S))
    for b in range(B):
        source, state = encoded[b, mask[b]], np.zeros(U)
        for t in range(T):
            weights = softmax_of([v @ np.tanh(state @ w + h @ u) for h in source])
            context = sum(a * h for a, h in zip(weights, source, strict=True))
            state = gru(cell.cell, np.concatenate([targets[b, t], context]), state)
            outputs[b, t], looked[b, t] = np.concatenate([state, context]), lay_out(weights)
    return outputs, looked


def luong(cell, targets, encoded, mask, focus=lambda state, source: 1.0):
    """Return outputs h̃_t and weights of Luong et al. (2015), sections 3.1 to 3.3, *general*."""
    (w,) = (x[0] for x in arrays(cell.score))
    (combine,) = arrays(cell._combine)
    outputs, looked = np.zeros((B, T, A)), np.zeros((B, T, S))
    for b in range(B):
        source, state, attentional = encoded[b, mask[b]], np.zeros(U), np.zeros(A)
        for t in range(T):
            fed = [targets[b, t], attentional] if cell.input_feeding else [targets[b, t]]
            state = gru(cell.cell, np.concatenate(fed), state)
            near, factors = focus(state, source) if cell.local else (np.ones(len(source), bool), 1)
            scores = [state @ w @ h if n else -1e9 for h, n in zip(source, near, strict=True)]
            weights = softmax_of(scores) * factors
            context = sum(a * h for a, h in zip(weights, source, strict=True))
            attentional = np.tanh(np.concatenate([context, state]) @ combine)
            outputs[b, t], looked[b, t] = attentional, lay_out(weights)
    return outputs, looked


def local_window(window):
    """Return the near keys and the Gaussian of Luong et al. (2015), section 3.2."""
    w, v = arrays(window)

    def focus(state, source):
        p = len(source) * sigmoid(np.tanh(state @ w) @ v)[0]
        distances = np.arange(len(source)) - p
        sigma = window.half_width / 2
        return np.abs(distances) <= window.half_width, np.exp(-(distances**2) / (2 * sigma**2))

    return focus


def coverage(cell, targets, encoded, mask):
    """Return outputs, weights and coverage losses of See et al. (2017), equations 10 and 11."""
    w, u, v = (x[0] for x in arrays(cell.score))
    wc = np.asarray(cell.coverage_kernel, "float64")
    outputs, looked, losses = np.zeros((B, T, U + E)), np.zeros((B, T, S)), np.zeros((B, T))
    for b in range(B):
        source, state = encoded[b, mask[b]], np.zeros(U)
        covered = np.zeros(len(source))
        for t in range(T):
            scores = [
                v @ np.tanh(state @ w + h @ u + wc * c)
                for h, c in zip(source, covered, strict=True)
            ]
            weights = softmax_of(scores)
            losses[b, t] = sum(min(a, c) for a, c in zip(weights, covered, strict=True))
            covered = covered + weights
            context = weights @ source
            state = gru(cell.cell, np.concatenate([targets[b, t], context]), state)
            outputs[b, t], looked[b, t] = np.concatenate([state, context]), lay_out(weights)
    return outputs, looked, losses
