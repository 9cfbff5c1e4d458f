"""`ka.training.AdamW` compared with Keras's AdamW: only the optimizer, and a whole training step.

    python benchmarks/optimizer.py

The first part applies dense gradients to an encoder with 9.5 million weights. The second part
trains a classifier. Each of its batches looks up 2,048 rows of the embedding table.
"""

import keras
import numpy as np
import tensorflow as tf
from measure import compare

import keras_attention as ka

KINDS = {"Keras": keras.optimizers.AdamW, "keras_attention": ka.training.AdamW}


def make_apply(make):
    """Return a function that applies gradients once."""
    generator = np.random.default_rng(0)
    shapes = [(256, 256)] * 80 + [(256, 1024)] * 16 + [(1024,)] * 20 + [(256,)] * 80
    variables = [keras.Variable(generator.normal(size=x).astype("float32")) for x in shapes]
    gradients = [tf.constant(generator.normal(size=x).astype("float32")) for x in shapes]
    optimizer = make(1e-3)
    optimizer.build(variables)

    @tf.function
    def apply():
        optimizer.apply(gradients, variables)
        return optimizer.iterations.value

    return lambda: apply().numpy()


def make_step(make, size, **settings):
    """Return a function that runs one training step of a classifier.

    `size` is the number of rows of its embedding table.
    """
    keras.utils.set_random_seed(0)
    model = ka.models.text_classifier(
        size, 2, num_layers=2, num_heads=4, hidden_dim=128, intermediate_dim=256
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(make(1e-3, **settings), loss, jit_compile=False)
    generator = np.random.default_rng(0)
    ids = generator.integers(1, size, (32, 64)).astype("int32")
    labels = generator.integers(0, 2, 32)
    return lambda: model.train_on_batch(ids, labels)


if __name__ == "__main__":
    compare("apply, 9.5 million weights", {k: make_apply(make) for k, make in KINDS.items()})
    for size in (2_000, 50_000):
        for settings in ({}, {"global_clipnorm": 1.0}):
            steps = {k: make_step(make, size, **settings) for k, make in KINDS.items()}
            compare(
                f"a training step, a table of {size:,} rows, {settings or 'no clipping'}", steps
            )
