"""`ka.training.AdamW` beside Keras's: a step of the optimizer alone, and of a whole model.

    python benchmarks/optimizer.py

The first part applies gradients as large as the variables, those of an encoder of 9.5 million
weights; the second trains a classifier, a batch of which looks up 2,048 rows of its table.
"""

import keras
import numpy as np
import tensorflow as tf
from measure import compare

import keras_attention as ka

KINDS = {"Keras": keras.optimizers.AdamW, "keras_attention": ka.training.AdamW}


def make_apply(make):
    """A function that applies gradients once."""
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
    """A function that trains a classifier on a batch once."""
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
