"""Random language models generate the same in a graph, in eager code, and from the whole text.

They combine positions, masks, head structures and attention layers, also with one head or one key
head, and prompts of unequal lengths. Each model has one or two layers, and a few tokens.
"""

import inspect

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.grids import ALL, sampled

A, M, P = ka.attention, ka.masks, ka.positions
V, D, NEW = 19, 8, 4
DRAWS = 200 if ALL else 16
PROMPTS = [[3, 5, 7], [11, 2, 13, 17, 4]]


def shaw():
    """Adds vectors of the size of a key to values, which must be of that size then."""
    return P.Shaw(3)


MASKS = [
    "causal",
    M.Causal() & M.Window(3),
    M.Causal() & M.Strided(2),
    M.Causal() & (M.Window(2) | M.Global((0,))),
    M.Causal() & M.Dilated(2, 2),
    M.Causal() & M.Chunked(4),
    M.Causal() | M.Prefix(2),
]
POSITIONS = [
    None,
    "rotary",
    "xpos",
    "alibi",
    ["rotary", "alibi"],
    P.LearnedALiBi,
    "relative_bias",
    shaw,
    "transformer_xl",
    lambda: P.Disentangled(4),
]
EMBEDDED = [None, None, "sinusoidal", lambda: P.Scalar(length=16), lambda: P.Learned(16)]
NORMALIZERS = [
    "softmax",
    "sparsemax",
    "entmax",
    "sigmoid",
    "relu",
    ka.normalizers.TopK(2),
    ka.normalizers.Softmax(plus_one=True),
    ka.normalizers.Softmax(temperature=2.0, soft_cap=5.0),
]
LAYERS = ["multi-head", "multi-head", "differential", "latent", "linear", "residual", "memorizing"]


class Draws:
    """Random choices for a model, recorded for the message of a failed test."""

    def __init__(self, number):
        self.random, self.found = np.random.default_rng(number), {}

    def one(self, name, *choices):
        chosen = choices[self.random.integers(len(choices))]
        self.found[name] = chosen
        return chosen() if inspect.isclass(chosen) or inspect.isfunction(chosen) else chosen


def heads_of(draws):
    heads, groups = draws.one("heads", (1, 1), (1, 1), (2, 1), (2, 2), (4, 2))
    return heads, {"num_key_value_heads": groups}


def rotated_or_biased(draws):
    mask = draws.one("mask", *MASKS[:3], *MASKS)
    return {"mask": mask, "position": draws.one("position", *POSITIONS)}


def parts_of(draws):
    normalizer = draws.one("normalizer", *NORMALIZERS[:1] * 4, *NORMALIZERS)
    score = draws.one("score", "scaled_dot", "scaled_dot", *ka.scores.NAMES)
    return {"normalizer": normalizer, "score": score, **rotated_or_biased(draws)}


def structures_of(draws):
    result = {
        "qk_norm": draws.one("qk_norm", None, None, "rms_norm", "layer_norm"),
        "num_memory_slots": draws.one("num_memory_slots", 0, 0, 2),
        "talking_heads": draws.one("talking_heads", False, False, True),
        "use_gate": draws.one("use_gate", False, True),
        "value_dim": draws.one("value_dim", None, 4 if draws.found["position"] is shaw else 6),
    }
    if draws.found["normalizer"] == "softmax":
        result["sink"] = draws.one("sink", False, True)
    return result


def multi_head(draws):
    heads, groups = heads_of(draws)
    return A.MultiHeadAttention(heads, 4, **groups, **parts_of(draws), **structures_of(draws))


def differential(draws):
    heads, groups = heads_of(draws)
    inputs = parts_of(draws)
    inputs["value_dim"] = 4 if draws.found["position"] is shaw else None
    return A.DifferentialAttention(heads, 4, **groups, **inputs)


def latent(draws):
    mask, normalizer = draws.one("mask", *MASKS), draws.one("normalizer", *NORMALIZERS)
    inputs = {"query_latent_dim": draws.one("query_latent_dim", None, 3)}
    inputs["position"] = draws.one("position", "rotary", None, "xpos")
    heads = draws.one("heads", 1, 2, 4)
    return A.LatentAttention(heads, 4, 6, 2, mask=mask, normalizer=normalizer, **inputs)


def linear(draws):
    heads, groups = heads_of(draws)
    features = draws.one("features", "elu", "relu", "favor")
    return A.LinearAttention(heads, 4, feature_map=features, mask="causal", **groups)


def residual(draws):
    heads, groups = heads_of(draws)
    return A.ResidualAttention(heads, 4, **groups, **rotated_or_biased(draws))


def memorizing(draws):
    heads, groups = heads_of(draws)
    return A.MemorizingAttention(heads, 4, 6, num_neighbors=2, **groups, **parts_of(draws))


def attend(kind, draws):
    """Return a function of (B, T, D): an attention layer, a block, or two with shared scores."""
    layer = globals()[kind.replace("-", "_")](draws)
    if kind == "residual":
        config = {**layer.get_config(), "name": f"{layer.name}_again"}
        again = A.ResidualAttention.from_config(config)

        def both(x):
            added, scores = layer(x, x, return_raw_scores=True)
            return x + added + again(x + added, x + added, previous_scores=scores)

        return both
    if draws.one("block", False, True):
        norm = draws.one("norm", "pre", "post", "sandwich")
        block = ka.blocks.EncoderBlock(layer, ka.blocks.FeedForward(10), norm=norm)
        return block
    return lambda x: x + layer(x, x)


def draw_layers(draws):
    """Return the layers of a model, the embedding first, and a dict of the choices."""
    embedded = draws.one("embedded", *EMBEDDED)
    layers = [ka.blocks.TokenEmbedding(V, D, position=embedded)]
    made_of = [draws.found]
    for _ in range(draws.one("layers", 1, 1, 2)):
        draws.found = {}
        layers.append(attend(draws.one("kind", *LAYERS), draws))
        made_of.append(draws.found)
    return layers, made_of


def draw_model(number):
    """Return a random causal language model, and the choices."""
    draws = Draws(number)
    layers, made_of = draw_layers(draws)
    x = tokens = keras.Input((None,), dtype="int32")
    for layer in layers:
        x = layer(x)
    model = keras.Model(tokens, keras.layers.Dense(V)(x))
    for weight in model.weights:
        if len(weight.shape) > 1:
            weight.assign(draws.random.normal(size=weight.shape, scale=0.6).astype("float32"))
    return model, made_of


def read_anew(model, text):
    return keras.ops.convert_to_numpy(model(np.array([text])))[0]


def read_by_steps(model, prompt, new):
    """Return the logits (T, V) in eager code, first for the prompt and then for each new token."""
    cache = ka.generation.initial_cache(model, 1, len(prompt) + len(new))
    result, index = [], 0
    for piece in ([prompt], *([[token]] for token in new)):
        with ka.generation.decoding_scope(cache, index) as decoding:
            result.append(keras.ops.convert_to_numpy(model(np.array(piece)))[0])
        cache, index = decoding.cache, index + len(piece[0])
    return np.concatenate(result)


def log_probabilities(logits):
    logits = logits.astype("float64")
    logits -= logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def check(model):
    result = ka.generation.generate(model, PROMPTS, NEW, return_scores=True)
    for prompt, ids, scores in zip(PROMPTS, result.ids.tolist(), result.scores, strict=True):
        logits = read_anew(model, [*prompt, *ids[:-1]])
        expected = logits[-NEW:]
        assert ids == (1 + expected[:, 1:].argmax(-1)).tolist()
        assert np.abs(expected).max() > 0.1  # there is something to be wrong about
        size = max(1.0, np.abs(logits).max())
        text = log_probabilities(expected)[range(NEW), ids]
        np.testing.assert_allclose(scores, text, atol=1e-4 * size)
    stepped = read_by_steps(model, prompt, ids[:-1])
    np.testing.assert_allclose(stepped, logits, atol=1e-4 * size)
    shorter = read_anew(model, prompt)  # and nothing is read that comes later
    np.testing.assert_allclose(logits[: len(prompt)], shorter, atol=1e-4 * size)


@pytest.mark.slow
def test_differential_attention_of_one_head_without_positions():
    tokens = keras.Input((None,), dtype="int32")
    x = ka.blocks.TokenEmbedding(V, 16)(tokens)
    x = A.DifferentialAttention(1, 4, mask="causal")(x, x)
    model, random = keras.Model(tokens, keras.layers.Dense(V)(x)), np.random.default_rng(0)
    for weight in model.weights:
        if len(weight.shape) > 1:
            weight.assign(random.normal(size=weight.shape, scale=0.5).astype("float32"))
    check(model)


@pytest.mark.slow
@pytest.mark.parametrize("number", sampled(range(DRAWS), 5))
def test_a_random_model_generates_as_from_the_whole_text(number):
    model, made_of = draw_model(number)
    print(made_of)
    check(model)
