"""Every score × normalizer × mask equals the definition, element by element."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.attention import definition
from tests.grids import thinned
from tests.tables import assert_lists

B, N, T, S, H = 2, 3, 5, 7, 11
random = np.random.default_rng(0)
QUERY, KEY, VALUE = (
    random.normal(size=(B, length, N, H)).astype("float32") for length in (T, S, S)
)
LENGTHS = np.array([S, S - 3])
PADDING = np.arange(S) < LENGTHS[:, None]  # (B, S)

NORMALIZERS = {
    "softmax": ("softmax", definition.softmax),
    "soft cap, temperature, plus one": (
        ka.normalizers.Softmax(temperature=2.0, soft_cap=3.0, plus_one=True),
        definition.soft_capped_plus_one,
    ),
    "sparsemax": ("sparsemax", definition.entmax(2.0)),
    "entmax": ("entmax", definition.entmax(1.5)),
    "entmax 1.2": (ka.normalizers.Entmax(1.2), definition.entmax(1.2)),
    "entmax 3": (ka.normalizers.Entmax(3.0), definition.entmax(3.0)),
    "sigmoid": ("sigmoid", lambda z: 1 / (1 + np.exp(-z))),
    "relu": ("relu", lambda z: np.maximum(z, 0)),
    "top_k": (ka.normalizers.TopK(2), definition.top(2)),
    "activation": (ka.normalizers.Activation("tanh"), np.tanh),
}
PLACES = np.arange(8)[:, None], np.arange(8)[None]
RANDOM = ka.masks.Random(2, 8)
BIG_BIRD = ka.masks.BigBird(
    8, block_size=1, num_window_blocks=1, num_global_blocks=1, num_random_blocks=2
)
DRAWN, DRAWN_BLOCKS = (np.asarray(mask.allows(*PLACES)) for mask in (RANDOM, BIG_BIRD))
MASKS = {
    "none": (None, lambda i, j: True),
    "full": ("full", lambda i, j: True),
    "causal": ("causal", lambda i, j: j <= i),
    "window": (ka.masks.Window(2), lambda i, j: abs(i - j) < 2),
    "dilated": (ka.masks.Dilated(2, 3), lambda i, j: abs(i - j) < 6 and (i - j) % 3 == 0),
    "strided": (ka.masks.Strided(3), lambda i, j: (i - j) % 3 == 0),
    "prefix": (ka.masks.Prefix(2), lambda i, j: j < 2),
    "global": (ka.masks.Global((0, 4)), lambda i, j: i in (0, 4) or j in (0, 4)),
    "chunked": (ka.masks.Chunked(2), lambda i, j: i // 2 == j // 2),
    "and, or": (
        ka.masks.Causal() & (ka.masks.Window(2) | ka.masks.Strided(4)),
        lambda i, j: j <= i and (abs(i - j) < 2 or (i - j) % 4 == 0),
    ),
    "not": (~ka.masks.Window(3), lambda i, j: abs(i - j) >= 3),
    "blockwise": (ka.masks.Blockwise(ka.masks.Causal(), 2), lambda i, j: j // 2 <= i // 2),
    "block_sparse": (
        ka.masks.BlockSparse(((1, 0, 1), (0, 1, 0), (1, 1, 1)), 3),
        lambda i, j: ((1, 0, 1), (0, 1, 0), (1, 1, 1))[i // 3][j // 3] == 1,
    ),
    "window_2d": (
        ka.masks.Window2D(2, grid=(2, 3), prefix=1),
        lambda i, j: (
            0 in (i, j)
            or (abs((i - 1) // 3 - (j - 1) // 3) < 2 and abs((i - 1) % 3 - (j - 1) % 3) < 2)
        ),
    ),
    "longformer": (ka.masks.Longformer(2), lambda i, j: 0 in (i, j) or abs(i - j) <= 1),
    "random": (RANDOM, lambda i, j: DRAWN[i, j]),
    "big_bird": (BIG_BIRD, lambda i, j: DRAWN_BLOCKS[i, j]),
}


def built(name):
    score = ka.scores.get(name)
    if isinstance(score, keras.layers.Layer):
        score.build(QUERY.shape, KEY.shape)
        for weight in score.weights:
            weight.assign(random.normal(size=weight.shape, scale=0.5))
    return score


SCORES = {name: built(name) for name in ka.scores.NAMES}


@pytest.mark.parametrize("score, normalizer, mask", thinned(SCORES, NORMALIZERS, MASKS, every=True))
def test_equals_the_definition(score, normalizer, mask):
    part, normalize = NORMALIZERS[normalizer]
    structure, rule = MASKS[mask]
    # There are fewer queries than tokens of the grid.
    positions = {"query_positions": np.arange(QUERY.shape[1])} if mask == "window_2d" else {}
    output, weights = ka.attention.attend(
        QUERY,
        KEY,
        VALUE,
        score=SCORES[score],
        normalizer=part,
        mask=ka.attention.Visibility(structure, key_mask=PADDING, **positions),
    )
    expected, expected_weights = definition.attention(
        QUERY,
        KEY,
        VALUE,
        definition.scores(SCORES[score])[score],
        normalize,
        lambda b, i, j: j < LENGTHS[b] and rule(i, j),
    )
    np.testing.assert_allclose(weights, expected_weights, atol=2e-5, rtol=1e-4)
    np.testing.assert_allclose(output, expected, atol=5e-5, rtol=1e-4)


def test_every_part_is_covered():
    for name, table, family in (
        ("NORMALIZERS", NORMALIZERS, ka.normalizers),
        ("MASKS", MASKS, ka.masks),
    ):
        classes = set(family.NAMES.values())
        listed = classes & {type(family.get(part)) for part, _ in table.values()}
        assert_lists(f"{name} of tests/attention/test_definition.py", listed, classes)
