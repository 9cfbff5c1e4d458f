"""The time to generate a token: early and late in a cache, with a window, in LiteRT, with beams.

    python benchmarks/decoding.py

Each comparison runs two functions in turn, and prints the ratio of their times.
"""

import pathlib
import tempfile

import measure
import numpy as np
import tensorflow as tf

import keras_attention as ka
from keras_attention.core import scope

VOCABULARY = 8000
SIZE = dict(num_layers=4, num_heads=8, hidden_dim=256, intermediate_dim=1024, dropout=0.0)


def model(**settings):
    return ka.models.causal_language_model(VOCABULARY, **SIZE, **settings)


def stepper(decoder, cache, index):
    """Return a function without arguments that computes one token at position `index`."""
    specs = {name: tf.TensorSpec(x.shape, x.dtype) for name, x in cache.items()}
    scalar, token = tf.TensorSpec((), "int32"), tf.TensorSpec((1, 1), "int32")
    step = tf.function(decoder.step, autograph=False)
    with scope.NativeGraph():  # as in `generate`
        step = step.get_concrete_function(token, specs, scalar)
    one, index = tf.ones((1, 1), "int32"), tf.constant(index)
    return lambda: step(one, cache, index)[0].numpy()


def positions():
    decoder = ka.generation.Decoder(model())
    cache = decoder.start(1, 1024)
    functions = {f"position {i} of 1,024": stepper(decoder, cache, i) for i in (16, 1000)}
    measure.compare("a token, early and late", functions)
    decoder = ka.generation.Decoder(model(mask=ka.masks.Window(128)))
    cache = decoder.start(1, 20_000)
    functions = {f"window of 128, at {i:,}": stepper(decoder, cache, i) for i in (200, 10_000)}
    measure.compare("a token through a window, early and late", functions)


def litert(length=64):
    network = model()
    # In a file with dynamic lengths, LiteRT computes all shapes again in each call.
    measure_litert(network, length, "lengths fixed", batch_size=1, sequence_length=length)
    measure_litert(network, length, "any lengths")


def measure_litert(network, length, form, **fixed):
    """Measure the last of `length` tokens on LiteRT, with and without a cache.

    `fixed` are keywords of `to_litert` that fix shapes, and `form` describes them.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.tflite"
        steps = ka.export.Generation([], max_length=length)
        ka.export.to_litert(network, path, generate=steps, **fixed)
        whole = pathlib.Path(folder) / "whole.tflite"
        ka.export.to_litert(network, whole, **fixed)
        step, uncached = ka.export.load(path, "step"), ka.export.load(whole)
        ids = np.ones((1, length), "int32")
        shapes = ka.generation.Decoder(network).start(1, length)
        cache = {name: np.zeros(x.shape, step.inputs[name]) for name, x in shapes.items()}
        if "start" in step.inputs:
            cache["start"] = np.zeros(1, "int32")
        token = {"token_ids": ids[:, :1], "index": np.int32(length - 1), **cache}
        times = range(length)  # the calls run one after another
        functions = {
            "the whole text each time": lambda: [uncached({"token_ids": ids}) for _ in times],
            "step, with a cache": lambda: [step(token) for _ in times],
        }
        measure.compare(f"token {length} on LiteRT {length} times, {form}", functions)


def beams():
    network, prompt = model(), np.ones((1, 16), "int32")
    samplers = {"greedy": "greedy", "beam of 4": ka.generation.Beam(4)}
    functions = {
        name: lambda sampler=sampler: ka.generation.generate(network, prompt, 48, sampler)
        for name, sampler in samplers.items()
    }
    measure.compare("48 tokens, one row", functions)


if __name__ == "__main__":
    positions()
    litert()
    beams()
