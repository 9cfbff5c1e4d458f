"""A BERT encoder, forward and training step, compared with keras.layers and PyTorch.

    python benchmarks/encoder.py [--rounds 9] [--cases "forward d768 T128" ...]

Two layers, batches of 8. Every stack works in its own process, and the processes take turns. They
run the same weights, and their outputs or losses are compared first. Ratios are to Keras in
float32. All stacks also run under XLA, and under `--policy`, by default the one that
`ka.training.fastest_dtype_policy()` returns. PyTorch takes part if it is installed, without XLA,
and with autocast for bfloat16. The last column is the share of the rate of one large matrix product
in TensorFlow, of the same dtype, in the same run.
"""

import argparse
import contextlib
import importlib.util
import statistics

import keras
import numpy as np
import tensorflow as tf
import workers

import keras_attention as ka

LAYERS, BATCH, HEAD, ROUNDS, PRODUCT = 2, 8, 64, 9, 2048
BASE = "Keras, float32"


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


def forward(model, x, jit_compile=False):
    function = tf.function(
        lambda x: tf.cast(model(x, training=False), "float32"),
        autograph=False,
        jit_compile=jit_compile,
    )
    return lambda: function(x).numpy()


def training_step(model, x, optimizer, jit_compile=False):
    """Return a function that runs one training step with a squared loss, and returns the loss."""
    optimizer.build(model.trainable_variables)

    @tf.function(autograph=False, jit_compile=jit_compile)
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.cast(model(x, training=True), "float32")))
        variables = [v.value for v in model.trainable_variables]
        optimizer.apply(tape.gradient(loss, variables), model.trainable_variables)
        return loss

    return lambda: step(x).numpy()


def run_torch(kind, weights, x, policy):
    """Return the forward pass or the training step in PyTorch, with the Keras encoder's weights."""
    import torch
    from torch.nn.functional import gelu, layer_norm, linear, scaled_dot_product_attention

    training = kind == "train"
    weights = [torch.tensor(weight, requires_grad=training) for weight in weights]
    x = torch.tensor(x)

    def block(x, parts):
        heads = []
        for kernel, bias in zip(parts[0:6:2], parts[1:6:2], strict=True):
            heads.append(linear(x, kernel.flatten(1).T, bias.flatten()).unflatten(-1, (-1, HEAD)))
        attended = scaled_dot_product_attention(*(y.transpose(1, 2) for y in heads))
        attended = linear(attended.transpose(1, 2).flatten(2), parts[6].flatten(0, 1).T, parts[7])
        x = layer_norm(x + attended, x.shape[-1:], parts[8], parts[9], 1e-6)
        y = linear(gelu(linear(x, parts[10].T, parts[11])), parts[12].T, parts[13])
        return layer_norm(x + y, x.shape[-1:], parts[14], parts[15], 1e-6)

    def encode():
        with contextlib.ExitStack() as stack:
            if policy != "float32":
                stack.enter_context(torch.autocast("cpu", torch.bfloat16))
            y = x
            for i in range(LAYERS):
                y = block(y, weights[16 * i : 16 * (i + 1)])
        return y.float()

    if not training:

        def infer():
            with torch.inference_mode():
                return encode().numpy()

        return infer
    optimizer = torch.optim.AdamW(weights, lr=1e-3, weight_decay=0.004, eps=1e-7)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = encode().square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def make_inputs(length, width=768):
    return np.random.default_rng(0).normal(size=(BATCH, length, width)).astype("float32")


def make(stack, kind, width, length):
    """Return a function that computes the case with a stack, such as `"Keras, float32, XLA"`."""
    library, policy, *options = stack.split(", ")
    xla, x = "XLA" in options, make_inputs(length, width)
    keras.utils.set_random_seed(0)
    source = theirs(length, width)  # the same weights in every process
    if library == "PyTorch":
        return run_torch(kind, source.get_weights(), x, policy)
    if library == "keras_attention":
        model, optimizer = ours(length, width, dtype=policy), ka.training.AdamW()
        copy_weights(source, model)
    else:
        keras.config.set_dtype_policy(policy)
        model, optimizer = theirs(length, width), keras.optimizers.AdamW()
        model.set_weights(source.get_weights())
        keras.config.set_dtype_policy("float32")
    if kind == "train":
        return training_step(model, tf.constant(x), optimizer, xla)
    return forward(model, tf.constant(x), xla)


CASES = {
    f"{kind} d{width} T{length}": (kind, width, length)
    for kind, width, length in (
        ("forward", 768, 128),
        ("forward", 768, 512),
        ("train", 256, 512),
        ("train", 768, 128),
        ("train", 768, 512),
    )
}


def count_operations(kind, width, length):
    """Return the floating-point operations of the matrix products of a case."""
    forward = LAYERS * BATCH * length * (24 * width**2 + 4 * length * width)
    return forward if kind == "forward" else 3 * forward


def multiply(dtype):
    """Return a function that multiplies two large matrices, to measure the greatest rate."""
    matrix = tf.random.normal((PRODUCT, PRODUCT), dtype=dtype)
    product = tf.function(lambda x: tf.reduce_max(tf.matmul(x, x)))
    return lambda: product(matrix).numpy()


def name_stacks(policy):
    """Return the stacks to compare, in float32 and under the dtype `policy`."""
    policies = ["float32"] if policy == "float32" else ["float32", policy]
    names = [f"{library}, {x}" for library in ("Keras", "keras_attention") for x in policies]
    names += ["Keras, float32, XLA", "keras_attention, float32, XLA"]
    if importlib.util.find_spec("torch") is not None:
        names += [f"PyTorch, {x}" for x in policies]
    return names


def work(stack):
    made = {}

    def answer(case):
        if case not in made:
            made.clear()  # keeps memory small
            product = stack.startswith("product")
            made[case] = multiply(stack.split(", ")[1]) if product else make(stack, *CASES[case])
            made[case]()
        result = made[case]()
        return {"result": float(np.mean(np.abs(result)))}

    workers.serve(answer)


def main(cases, rounds, policy):
    names = name_stacks(policy)
    products = {x: f"product, {x.removeprefix('mixed_')}" for x in ("float32", policy)}
    stacks = {
        name: workers.Worker(__file__, "--work", name) for name in [*names, *products.values()]
    }
    print(ka.training.speed_report())
    for case in cases:
        first = workers.in_turn(stacks, case, 1)
        results = {name: first[name][0]["result"] for name in names}
        for name, result in results.items():
            np.testing.assert_allclose(
                result, results[BASE], rtol=1e-4 if "float32" in name else 2e-2, err_msg=name
            )
        turns = workers.in_turn(stacks, case, rounds)
        print(
            f"\n{case}\n  {'':34} {'ms':>8} {'CPU ms':>8} {'ratio':>6}  spread         of the peak"
        )
        wall, cpu = (
            {name: statistics.median(turn[field] for turn in turns[name]) for name in turns}
            for field in ("wall", "cpu")
        )
        ratios = workers.ratios(turns, BASE)
        for name in names:
            ratio, low, high = ratios[name]
            share = count_operations(*CASES[case]) / wall[name]
            share /= 2 * PRODUCT**3 / wall[products[name.split(", ")[1]]]
            print(
                f"  {name:34} {1000 * wall[name]:8.1f} {1000 * cpu[name]:8.1f} {ratio:6.2f}"
                f"  {low:.2f} to {high:.2f}   {share:5.2f}",
                flush=True,
            )
        for dtype, name in products.items():
            print(f"  {dtype}: {2e-9 * PRODUCT**3 / wall[name]:.0f} billion operations a second")
    for stack in stacks.values():
        stack.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--policy", help="such as float32, by default the fastest")
    parser.add_argument("--work")
    arguments = parser.parse_args()
    if arguments.work:
        work(arguments.work)
    else:
        policy = arguments.policy or ka.training.fastest_dtype_policy()
        main(arguments.cases, arguments.rounds, policy)
