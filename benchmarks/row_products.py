"""The matrix products of one token at GPT-2's size, in several forms, as a share of the bandwidth.

    python benchmarks/row_products.py

One row times all kernels of 12 layers and the table, without attention. *Transposed* kernels are
stored as (outputs, inputs), and *fused* ones hold queries, keys and values. The bandwidth is that
of one row times a large matrix. Run it with `TF_ENABLE_ONEDNN_OPTS=0`, too.
"""

import numpy as np
import tensorflow as tf
from measure import compare

LAYERS, WIDTH, HIDDEN, VOCABULARY = 12, 768, 3072, 50257
LARGE = (20_000, 6_000)


def variable(*shape):
    return tf.Variable(0.03 * np.random.default_rng(0).normal(size=shape).astype("float32"))


def make_step(transposed=False, fused=False, xla=False):
    """Return a function that computes the products of a token."""

    def kernel(inputs, outputs):
        return variable(outputs, inputs) if transposed else variable(inputs, outputs)

    def multiply(x, weight):
        return tf.matmul(x, weight, transpose_b=transposed)

    heads = [3 * WIDTH] if fused else [WIDTH] * 3
    layers = [
        [
            [kernel(WIDTH, size) for size in heads],
            *(kernel(WIDTH, WIDTH), kernel(WIDTH, HIDDEN), kernel(HIDDEN, WIDTH)),
        ]
        for _ in range(LAYERS)
    ]
    table, x = variable(VOCABULARY, WIDTH), variable(1, WIDTH)

    @tf.function(autograph=False, jit_compile=xla)
    def step():
        y = x.value()
        for to_heads, to_output, to_hidden, back in layers:
            products = [multiply(y, weight) for weight in to_heads]
            query, key, value = tf.split(products[0], 3, axis=1) if fused else products
            y += multiply(query + key + value, to_output)
            y += multiply(tf.nn.relu(multiply(y, to_hidden)), back)
        return tf.matmul(y, table, transpose_b=True)

    return lambda: step().numpy()


def make_bandwidth():
    matrix, row = tf.ones(LARGE), tf.ones((1, LARGE[0]))
    product = tf.function(lambda: tf.matmul(row, matrix))
    return lambda: product().numpy()


def main():
    forms = {
        "as Keras stores kernels": {},
        "fused": {"fused": True},
        "transposed": {"transposed": True},
        "fused and transposed": {"fused": True, "transposed": True},
    }
    steps = {name: make_step(**form) for name, form in forms.items()}
    steps |= {f"{name}, XLA": make_step(**form, xla=True) for name, form in forms.items()}
    ratios = compare("products of one token", {"one large product": make_bandwidth(), **steps})
    size = VOCABULARY * WIDTH + LAYERS * (4 * WIDTH**2 + 2 * WIDTH * HIDDEN)
    for name in steps:
        share = size / (LARGE[0] * LARGE[1]) / ratios[name]
        print(f"  {name:42} {share:.2f} of the bandwidth")


if __name__ == "__main__":
    main()
