"""A BERT encoder, forward and training step, compared with keras.layers and PyTorch.

    python benchmarks/encoder.py [policies] [forward] [train]

`train` also measures PyTorch if it is installed.
"""

import importlib.util
import sys

import keras
import numpy as np
import tensorflow as tf
from measure import compare

import keras_attention as ka

LAYERS, BATCH, HEAD = 2, 8, 64
KERAS = "keras.layers.MultiHeadAttention"


def ours(length, width=768, **settings):
    x = inputs = keras.Input((length, width))
    for _ in range(LAYERS):
        x = ka.blocks.EncoderBlock(
            attention=ka.attention.MultiHeadAttention(width // HEAD, HEAD, **settings),
            feed_forward=ka.blocks.FeedForward(4 * width, "gelu", **settings),
            norm="post",
            **settings,
        )(x)
    return keras.Model(inputs, x)


def theirs(length, width=768):
    x = inputs = keras.Input((length, width))
    for _ in range(LAYERS):
        attention = keras.layers.MultiHeadAttention(width // HEAD, HEAD)
        x = keras.layers.LayerNormalization(epsilon=1e-6)(x + attention(x, x))
        y = keras.layers.Dense(4 * width, activation="gelu")(x)
        y = keras.layers.Dense(width)(y)
        x = keras.layers.LayerNormalization(epsilon=1e-6)(x + y)
    return keras.Model(inputs, x)


def forward(model, x):
    function = tf.function(lambda x: model(x, training=False), autograph=False)
    return lambda: function(x)


def training_step(model, x, optimizer):
    """Return a function that runs one training step with a squared loss, and returns the loss."""
    optimizer.build(model.trainable_variables)

    @tf.function(autograph=False)
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.cast(model(x, training=True), "float32")))
        variables = [v.value for v in model.trainable_variables]
        optimizer.apply(tape.gradient(loss, variables), model.trainable_variables)
        return loss

    return lambda: step(x).numpy()


def torch_training_step(weights, x):
    """Return the same training step in PyTorch. `weights` are those of the Keras encoder."""
    import torch
    from torch.nn.functional import gelu, layer_norm, linear, scaled_dot_product_attention

    weights = [torch.tensor(weight, requires_grad=True) for weight in weights]
    optimizer = torch.optim.AdamW(weights, lr=1e-3, weight_decay=0.004, eps=1e-7)
    x = torch.tensor(x)

    def block(x, parts):
        heads = []
        for kernel, bias in zip(parts[0:6:2], parts[1:6:2], strict=True):
            heads.append((x @ kernel.flatten(1) + bias.flatten()).unflatten(-1, (-1, HEAD)))
        attended = scaled_dot_product_attention(*(y.transpose(1, 2) for y in heads))
        attended = linear(attended.transpose(1, 2).flatten(2), parts[6].flatten(0, 1).T, parts[7])
        x = layer_norm(x + attended, x.shape[-1:], parts[8], parts[9], 1e-6)
        y = gelu(x @ parts[10] + parts[11]) @ parts[12] + parts[13]
        return layer_norm(x + y, x.shape[-1:], parts[14], parts[15], 1e-6)

    def step():
        optimizer.zero_grad(set_to_none=True)
        y = x
        for i in range(LAYERS):
            y = block(y, weights[16 * i : 16 * (i + 1)])
        loss = y.square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def make_inputs(length, width=768):
    return np.random.default_rng(0).normal(size=(BATCH, length, width)).astype("float32")


def policies():
    """Compare our encoder under `fastest_dtype_policy()` with Keras's under both policies."""
    policy = ka.training.fastest_dtype_policy()
    for length in (128, 512):
        x = tf.constant(make_inputs(length))
        base = theirs(length)
        keras.config.set_dtype_policy("mixed_bfloat16")
        mixed = theirs(length)
        keras.config.set_dtype_policy("float32")
        fast = ours(length, dtype=policy)
        mixed.set_weights(base.get_weights())
        copy_weights(base, fast)
        models = {
            f"{KERAS}, float32": base,
            "the same, mixed_bfloat16": mixed,
            f"keras_attention, {policy}": fast,
        }
        for model in models.values():
            np.testing.assert_allclose(base(x), tf.cast(model(x), "float32"), atol=6e-2)
        compare(
            f"encoder, B{BATCH} T{length}, forward, by dtype policy",
            {name: forward(model, x) for name, model in models.items()},
        )


def compare_forward():
    for length in (128, 512):
        x = tf.constant(make_inputs(length))
        models = {KERAS: theirs(length), "keras_attention": ours(length)}
        copy_weights(*models.values())
        np.testing.assert_allclose(*(model(x) for model in models.values()), atol=2e-4)
        compare(
            f"encoder, {LAYERS} layers of 768, B{BATCH} T{length}, forward",
            {name: forward(model, x) for name, model in models.items()},
        )


def compare_training():
    """Compare training steps with each library's AdamW. Ours also runs under the fastest policy."""
    policy = ka.training.fastest_dtype_policy()
    for width, length in ((256, 512), (768, 128), (768, 512)):
        x = make_inputs(length, width)
        base = theirs(length, width)
        models = {"keras_attention": ours(length, width)}
        if policy != "float32":
            models[f"keras_attention, {policy}"] = ours(length, width, dtype=policy)
        steps = {KERAS: training_step(base, x, keras.optimizers.AdamW())}
        for name, model in models.items():
            copy_weights(base, model)
            steps[name] = training_step(model, x, ka.training.AdamW())
        if importlib.util.find_spec("torch") is not None:
            steps["PyTorch"] = torch_training_step(base.get_weights(), x)
        for _ in range(2):  # the second loss depends on the optimizer's update
            losses = [step() for step in steps.values()]
            np.testing.assert_allclose(losses, losses[0], rtol=1e-4 if len(models) < 2 else 1e-2)
        compare(f"encoder, {LAYERS} layers of {width}, B{BATCH} T{length}, a training step", steps)


PARTS = {"policies": policies, "forward": compare_forward, "train": compare_training}


def main():
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()


def copy_weights(source, target):
    """Copy the weights of `source`, which has five layers per block, to the blocks of `target`."""
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
