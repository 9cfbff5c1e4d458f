"""Memory, compile time and run time of deep stacks, with and without `remat` and `scan_layers`.

    python benchmarks/deep_stacks.py [memory] [time]

KERAS_BACKEND selects the backend. On TensorFlow and PyTorch, memory is the growth of a new process.
On JAX it is what the compiler reports for the program.
"""

import dataclasses
import itertools
import statistics
import sys
import time

import keras
import numpy as np
from measure import compare, peak_memory, report_memory

import keras_attention as ka

BACKEND = keras.backend.backend()
SIZE = dict(num_heads=4, hidden_dim=128, intermediate_dim=512, dropout=0.1, attention_dropout=0.1)
SHAPE = (8, 256, SIZE["hidden_dim"])
SETTINGS = [{}, {"remat": True}]
if BACKEND == "jax":
    SETTINGS += [{"scan_layers": True}, {"remat": True, "scan_layers": True}]


def name(settings):
    return " and ".join(settings) or "neither"


def make(layers, **settings):
    keras.utils.set_random_seed(0)
    x = keras.Input(SHAPE[1:])
    encoder = ka.models.TransformerEncoder.of_size(layers, **SIZE)
    return keras.Model(x, dataclasses.replace(encoder, **settings)(x))


def differentiate(model):
    """Return a function that computes a loss and its gradients, and waits for the result."""
    x = np.random.default_rng(0).normal(size=SHAPE).astype("float32")
    return {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}[BACKEND](model, x)


def _tensorflow(model, x):
    import tensorflow as tf

    weights = [weight.value for weight in model.trainable_variables]

    @tf.function(autograph=False)
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True)))
        return loss, [tf.reduce_sum(gradient) for gradient in tape.gradient(loss, weights)]

    x = tf.constant(x)
    step.get_concrete_function(x)
    return lambda: step(x)[0].numpy()


def _torch(model, x):
    x = keras.ops.convert_to_tensor(x)

    def step():
        for weight in model.trainable_variables:
            weight.value.grad = None
        loss = model(x, training=True).square().mean()
        loss.backward()
        return loss.item()

    return step


def _jax(model, x):
    compiled, values = compile_jax(model, x)[:2]
    return lambda: compiled(*values)[0][0].block_until_ready()


def compile_jax(model, x):
    """Return (compiled step, its arguments, lines of StableHLO, CPU seconds to compile)."""
    import jax

    def lose(trained, frozen):
        output, frozen = model.stateless_call(trained, frozen, x, training=True)
        return keras.ops.mean(keras.ops.square(output)), frozen

    groups = model.trainable_variables, model.non_trainable_variables
    values = [[variable.value for variable in group] for group in groups]
    start = time.process_time()
    lowered = jax.jit(jax.value_and_grad(lose, has_aux=True)).lower(*values)
    compiled = lowered.compile()
    return compiled, values, lowered.as_text().count("\n"), time.process_time() - start


def measure_programs(depths=(1, 4, 16)):
    """Print the size, compile time and memory of the program for each depth, on JAX."""
    x = np.random.default_rng(0).normal(size=SHAPE).astype("float32")
    print(f"\n  {'':28} layers   lines  compile CPU s  temporary MB")
    for settings, layers in itertools.product(SETTINGS, depths):
        compiled, _, lines, seconds = compile_jax(make(layers, **settings), x)
        size = compiled.memory_analysis().temp_size_in_bytes / 2**20
        print(f"  {name(settings):28} {layers:6} {lines:7} {seconds:14.1f} {size:13.1f}")


def measure_growth(layers, runs=3):
    """Print how much a process grows, in MB, on TensorFlow and PyTorch."""
    grown = {name(settings): [] for settings in SETTINGS}
    for settings in SETTINGS * runs:
        result = peak_memory(__file__, "process", layers, *settings)
        grown[name(settings)].append(result["megabytes"])
        print(f"{BACKEND}, {layers} layers, {name(settings)}: {result['megabytes']:.0f} MB")
    plain, remat = grown.values()
    ratios = sorted(a / b for a, b in zip(remat, plain, strict=True))
    print(f"ratio {statistics.median(ratios):.2f}, {ratios[0]:.2f} to {ratios[-1]:.2f}")


def measure_time(layers):
    steps = {name(settings): differentiate(make(layers, **settings)) for settings in SETTINGS}
    losses = [float(step()) for step in steps.values()]
    np.testing.assert_allclose(losses, losses[0], rtol=1e-6)
    compare(f"{BACKEND}, {layers} layers, loss and gradients, B T D = {SHAPE}", steps)


def main(layers=8):
    if sys.argv[1:2] == ["process"]:
        settings = dict.fromkeys(sys.argv[3:], True)
        report_memory(differentiate(make(int(sys.argv[2]), **settings)))
        return
    parts = sys.argv[1:] or ["memory", "time"]
    if "memory" in parts:
        measure_programs() if BACKEND == "jax" else measure_growth(layers)
    if "time" in parts:
        measure_time(layers)


if __name__ == "__main__":
    main()
