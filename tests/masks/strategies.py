"""Hypothesis strategies for every mask and for combinations of masks."""

import numpy as np
from hypothesis import strategies as st

from keras_attention import masks

PLAIN = st.one_of(
    st.just(masks.Full()),
    st.just(masks.Causal()),
    st.builds(masks.Window, st.integers(1, 9)),
    st.builds(masks.Dilated, st.integers(1, 4), st.integers(1, 4)),
    st.builds(masks.Strided, st.integers(1, 6)),
    st.builds(masks.Prefix, st.integers(0, 9)),
    st.builds(masks.Global, st.integers(1, 9)),
    st.builds(masks.Global, st.sets(st.integers(0, 9), min_size=1).map(tuple)),
    st.builds(masks.Chunked, st.integers(1, 6)),
    st.builds(
        masks.Window2D,
        st.one_of(st.integers(1, 4), st.tuples(st.integers(1, 4), st.integers(1, 4))),
        st.tuples(st.integers(1, 5), st.integers(1, 5)),
        st.integers(0, 3),
    ),
    st.builds(
        lambda seed, rows, columns, size: masks.BlockSparse(
            np.random.default_rng(seed).random((rows, columns)) < 0.3, size
        ),
        *(st.integers(0, 99), st.integers(1, 5), st.integers(1, 5), st.integers(1, 4)),
    ),
    st.builds(
        masks.Random,
        *(st.integers(1, 3), st.integers(8, 14), st.integers(0, 99)),
        min_distance=st.integers(0, 2),
        start=st.integers(0, 2),
    ),
    st.builds(
        lambda half, tokens, dilation: masks.Longformer(2 * half, tokens, dilation),
        *(st.integers(1, 3), st.integers(1, 4), st.integers(1, 3)),
    ),
    st.builds(
        masks.BigBird,
        length=st.integers(20, 30),
        block_size=st.integers(1, 3),
        num_window_blocks=st.sampled_from([1, 3]),
        num_global_blocks=st.integers(1, 2),
        num_random_blocks=st.integers(1, 2),
        seed=st.integers(0, 99),
    ),
)
ANY = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.builds(masks.Both, inner, inner),
        st.builds(masks.Either, inner, inner),
        st.builds(masks.Not, inner),
        st.builds(masks.Blockwise, inner, st.integers(1, 4)),
    ),
    max_leaves=4,
)
