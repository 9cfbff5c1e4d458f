"""A BERT encoder, forward and a training step, against the same from keras.layers.

Run with `python benchmarks/encoder.py`.
"""

import keras
import numpy as np
import tensorflow as tf
from measure import compare

import keras_attention as ka

LAYERS, WIDTH, HEADS = 2, 768, 12


def ours(length):
    x = inputs = keras.Input((length, WIDTH))
    for _ in range(LAYERS):
        x = ka.blocks.EncoderBlock(
            attention=ka.attention.MultiHeadAttention(HEADS, WIDTH // HEADS),
            feed_forward=ka.blocks.FeedForward(4 * WIDTH, "gelu"),
            norm="post",
        )(x)
    return keras.Model(inputs, x)


def theirs(length):
    x = inputs = keras.Input((length, WIDTH))
    for _ in range(LAYERS):
        attention = keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS)
        x = keras.layers.LayerNormalization(epsilon=1e-6)(x + attention(x, x))
        y = keras.layers.Dense(4 * WIDTH, activation="gelu")(x)
        y = keras.layers.Dense(WIDTH)(y)
        x = keras.layers.LayerNormalization(epsilon=1e-6)(x + y)
    return keras.Model(inputs, x)


def forward(model, x):
    function = tf.function(lambda x: model(x, training=False), autograph=False)
    return lambda: function(x)


def training_step(model, x):
    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)

    @tf.function(autograph=False)
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True)))
        variables = [v.value for v in model.trainable_variables]
        optimizer.apply(tape.gradient(loss, variables), model.trainable_variables)
        return loss

    return lambda: step(x)


def policies():
    """The policy that `fastest_dtype_policy` names here, against Keras's."""
    policy = ka.training.fastest_dtype_policy()
    for length in (128, 512):
        x = tf.constant(np.random.default_rng(0).normal(size=(8, length, WIDTH)), "float32")
        base = theirs(length)
        keras.config.set_dtype_policy("mixed_bfloat16")
        mixed = theirs(length)
        keras.config.set_dtype_policy(policy)
        fast = ours(length)
        keras.config.set_dtype_policy("float32")
        mixed.set_weights(base.get_weights())
        copy_weights(base, fast)
        models = {
            "keras.layers.MultiHeadAttention, float32": base,
            "the same, mixed_bfloat16": mixed,
            f"keras_attention, {policy}": fast,
        }
        for model in models.values():
            np.testing.assert_allclose(base(x), tf.cast(model(x), "float32"), atol=6e-2)
        compare(
            f"encoder, B8 T{length}, forward, by dtype policy",
            {name: forward(model, x) for name, model in models.items()},
        )


def main():
    policies()
    for length in (128, 512):
        x = tf.constant(np.random.default_rng(0).normal(size=(8, length, WIDTH)), "float32")
        models = theirs(length), ours(length)
        copy_weights(*models)
        np.testing.assert_allclose(models[0](x), models[1](x), atol=2e-4)
        names = "keras.layers.MultiHeadAttention", "keras_attention"
        for title, way in (("forward", forward), ("training step (Adam)", training_step)):
            compare(
                f"encoder, {LAYERS} layers of {WIDTH}, {HEADS} heads, B8 T{length}, {title}",
                {name: way(model, x) for name, model in zip(names, models, strict=True)},
            )


def copy_weights(source, target):
    """Gives the blocks of `target` the weights of the layers of `source`, five to a block."""
    layers = [layer for layer in source.layers if layer.weights]
    blocks = [layer for layer in target.layers if layer.weights]
    for block, start in zip(blocks, range(0, len(layers), 5), strict=True):
        attention, norm, first, second, last_norm = layers[start : start + 5]
        block.attention.set_weights(attention.get_weights())
        block.feed_forward.set_weights(first.get_weights() + second.get_weights())
        block._attention_branch["norm"].set_weights(norm.get_weights())
        block._feed_forward_branch["norm"].set_weights(last_norm.get_weights())


if __name__ == "__main__":
    main()
