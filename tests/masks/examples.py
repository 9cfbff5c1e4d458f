"""Examples of every mask, for tests of all masks and for the contract."""

from keras_attention import masks

EXAMPLES = [
    masks.Full(),
    masks.Causal(),
    masks.Window(2),
    masks.Dilated(2, 2),
    masks.Strided(3),
    masks.Prefix(2),
    masks.Global(1),
    masks.Global((0, 3)),
    masks.Chunked(2),
    masks.Window2D(2, (2, 2), prefix=1),
    masks.Blockwise(masks.Causal(), 2),
    masks.BlockSparse([[1, 0, 1, 0], [0, 1, 1, 1], [1, 0, 0, 0]], 2),
    masks.Random(2, 6),
    masks.Longformer(2),
    masks.BigBird(6, 1, num_global_blocks=1, num_random_blocks=2),
]
COMBINATIONS = [
    masks.Causal() & (masks.Window(2) | masks.Strided(3)),
    masks.Global(1) | masks.Window(2),
    ~masks.Window(2),
]
