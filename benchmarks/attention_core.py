"""Time and memory of attention without projections: causal, windowed and additive.

    python benchmarks/attention_core.py

The peers are `keras.ops.dot_product_attention` and `keras.layers.AdditiveAttention`, in TensorFlow
graphs. The results are checked against each other before anything is timed.
"""

import sys

import keras
import numpy as np
import tensorflow as tf
from measure import compare, peak_memory, report_memory

import keras_attention as ka


def inputs(batch, length, heads, size):
    random = np.random.default_rng(0)
    shape = (batch, length, heads, size)
    return [tf.constant(random.normal(size=shape), "float32") for _ in range(3)]


def keras_causal(q, k, v):
    return keras.ops.dot_product_attention(q, k, v, is_causal=True)


def keras_band(window):
    def attend(q, k, v):
        i = np.arange(q.shape[1])
        band = np.abs(i[:, None] - i[None]) <= window
        return keras.ops.dot_product_attention(q, k, v, mask=tf.constant(band[None, None]))

    return attend


def ours(mask, implementation=None):
    def attend(q, k, v):
        how = {"return_weights": False, "implementation": implementation}
        return ka.attention.attend(q, k, v, mask=mask, **how)

    return attend


def forward(attend, arrays):
    function = tf.function(attend, autograph=False)
    return lambda: function(*arrays)


def both_passes(attend, arrays, xla=False):
    @tf.function(autograph=False, jit_compile=xla)
    def step(*arrays):
        with tf.GradientTape() as tape:
            tape.watch(arrays)
            output = attend(*arrays)
        return tape.gradient(output, arrays, output)

    return lambda: step(*arrays)


def check(functions, tolerance=2e-4):
    results = [tf.nest.flatten(run()) for run in functions.values()]
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            scale = max(1.0, float(tf.reduce_max(tf.abs(a))))
            np.testing.assert_allclose(a, b, atol=tolerance * scale)


def to_float32(tensors):
    return [tf.cast(x, "float32") for x in tensors]


def timed(title, functions):
    check(functions)
    return compare(title, functions)


def causal():
    arrays = inputs(8, 512, 8, 32)
    for title, way in (("forward", forward), ("forward and backward", both_passes)):
        timed(
            f"causal, B8 T512 N8 H32, {title}",
            {
                "keras.ops.dot_product_attention": way(keras_causal, arrays),
                "dense": way(ours("causal", "dense"), arrays),
                "chunked": way(ours("causal", "chunked"), arrays),
            },
        )
    halves = [tf.cast(x, "bfloat16") for x in arrays]
    functions = {
        "keras.ops.dot_product_attention, float32": both_passes(keras_causal, arrays),
        "the same, bfloat16": both_passes(keras_causal, halves),
        "chunked, bfloat16": both_passes(ours("causal", "chunked"), halves),
    }
    exact = {name: lambda run=run: to_float32(run()) for name, run in functions.items()}
    check(exact, tolerance=4e-2)
    compare("causal, B8 T512 N8 H32, forward and backward, bfloat16", functions)
    arrays = inputs(1, 4096, 8, 64)
    timed(
        "causal, B1 T4096 N8 H64, forward",
        {
            "keras.ops.dot_product_attention": forward(keras_causal, arrays),
            "ours (chunked)": forward(ours("causal"), arrays),
        },
    )


def window():
    for length, way, title in (
        (4096, forward, "forward"),
        (4096, both_passes, "forward and backward"),
    ):
        arrays = inputs(1, length, 8, 64)
        timed(
            f"window of 128 to each side, B1 T{length} N8 H64, {title}",
            {
                "keras.ops.dot_product_attention, band mask": way(keras_band(128), arrays),
                "ours (banded)": way(ours(ka.masks.Window(129)), arrays),
            },
        )


def growth():
    functions = {
        f"T {length}": forward(ours(ka.masks.Window(129)), inputs(1, length, 8, 64))
        for length in (2048, 4096, 8192, 16384)
    }
    compare("window of 128 to each side, N8 H64, forward, as T grows", functions)


def additive():
    random = np.random.default_rng(0)
    for batch, length in ((2, 512), (8, 128)):
        arrays = [
            tf.constant(random.normal(size=(batch, length, 256)), "float32") for _ in range(3)
        ]
        layer = keras.layers.AdditiveAttention()
        layer.build([x.shape for x in arrays])
        score = AsKeras(layer)
        for title, way in (("forward", forward), ("forward and backward", both_passes)):
            timed(
                f"additive, B{batch} T{length} U256, {title}",
                {
                    "keras.layers.AdditiveAttention": way(
                        lambda q, k, v, layer=layer: layer([q, v, k]), arrays
                    ),
                    "ours": way(
                        lambda q, k, v, score=score: ka.attention.attend(
                            *(x[:, :, None] for x in (q, k, v)), score=score, return_weights=False
                        )[:, :, 0],
                        arrays,
                    ),
                },
            )


class AsKeras(ka.scores.Score):
    """Bahdanau's additive score without projections, with the weights of Keras's layer."""

    def __init__(self, layer):
        self.layer = layer

    def __call__(self, query, key):
        query, key = (tf.transpose(x, (0, 2, 3, 1)) for x in (query, key))
        vector = tf.convert_to_tensor(self.layer.scale)[None]
        return ka.scores.sum_over_units(query, key, vector, keras.ops.tanh)


def both_passes_in_xla(attend, arrays):
    return both_passes(attend, arrays, xla=True)


MEMORY = {
    "keras, causal": (keras_causal, 4096, forward),
    "ours, causal": (ours("causal"), 4096, forward),
    "ours, causal, T16384": (ours("causal"), 16384, forward),
    "keras, window": (keras_band(128), 4096, forward),
    "ours, window": (ours(ka.masks.Window(129)), 4096, forward),
    "ours, window, T16384": (ours(ka.masks.Window(129)), 16384, forward),
    "keras, causal, both passes": (keras_causal, 4096, both_passes),
    "ours, causal, both passes": (ours("causal"), 4096, both_passes),
    "keras, causal, both passes, XLA": (keras_causal, 4096, both_passes_in_xla),
    "ours, causal, both passes, XLA": (ours("causal"), 4096, both_passes_in_xla),
    "ours, window, both passes": (ours(ka.masks.Window(129)), 4096, both_passes),
    "ours, window, both passes, XLA": (ours(ka.masks.Window(129)), 4096, both_passes_in_xla),
}


def weights():
    layer = ka.attention.MultiHeadAttention(8, 32)
    x = tf.constant(np.random.default_rng(0).normal(size=(8, 512, 256)), "float32")
    layer(x, x, use_causal_mask=True)

    def asked(x):
        return layer(x, x, use_causal_mask=True, return_attention_scores=True)

    plain = forward(lambda x: layer(x, x, use_causal_mask=True), [x])
    check({"not asked for": plain, "asked for": lambda: forward(asked, [x])()[0]}, 1e-6)
    compare(
        "the weights of a layer, causal, B8 T512 d256 N8",
        {"not asked for": plain, "asked for": forward(asked, [x])},
    )


def memory():
    print("\npeak memory above the start, B1 N8 H64")
    for name in MEMORY:
        memory = peak_memory(__file__, "memory", name)
        if "failed" in memory:
            print(f"  {name:42} failed: {memory['failed']}")
        else:
            print(f"  {name:42} {memory['megabytes']:9.0f} MB {memory['seconds']:9.2f} s")


def main(arguments):
    if arguments[:1] == ["memory"] and arguments[1:]:
        attend, length, way = MEMORY[arguments[1]]
        arrays = inputs(1, length, 8, 64)
        way(attend, inputs(1, 64, 8, 64))()
        report_memory(way(attend, arrays))
        return
    sections = {f.__name__: f for f in (causal, window, growth, additive, weights, memory)}
    for name in arguments or sections:
        sections[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
