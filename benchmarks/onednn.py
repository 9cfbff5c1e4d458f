"""TensorFlow with oneDNN compared with TensorFlow without it, for the work that users wait for.

    python benchmarks/onednn.py [--rounds 7] [--cases "encoder T128" "decode, batch 4" ...]

Two processes work in turn. They differ only in the environment variable TF_ENABLE_ONEDNN_OPTS. The
encoder and the training steps are those of encoder.py: 2 layers, batches of 8. Decoding writes 16
tokens after 8 with random weights of GPT-2's size. The column "to batch 1" divides a decoding time
by that of one row in the same process.
"""

import argparse
import functools
import os
import statistics

import numpy as np
import workers

ROUNDS, NEW, PROMPT, VOCABULARY = 7, 16, 8, 50257
SETTINGS = {"without oneDNN": "0", "with oneDNN": "1"}


def encode(length, width=768):
    import encoder

    model, x = encoder.ours(length, width), encoder.make_inputs(length, width)
    return encoder.forward(model, encoder.tf.constant(x))


def train(length, width):
    import encoder

    import keras_attention as ka

    model, x = encoder.ours(length, width), encoder.make_inputs(length, width)
    return encoder.training_step(model, x, ka.training.AdamW())


def decode(rows, sampler="greedy"):
    import keras_attention as ka

    ids = np.random.default_rng(0).integers(1, VOCABULARY, (rows, PROMPT)).astype("int32")
    return lambda: ka.generation.generate(make_decoder(), ids, NEW, sampler=sampler)


@functools.cache
def make_decoder():
    import keras_attention as ka

    size = ka.models.sizes("causal_language_model")["GPT-2"]
    return ka.models.causal_language_model(VOCABULARY, **size)


def decode_with_beams():
    import keras_attention as ka

    return decode(1, ka.generation.Beam(4))


CASES = {
    "encoder d768 T128": lambda: encode(128),
    "encoder d768 T512": lambda: encode(512),
    "training step d256 T512": lambda: train(512, 256),
    "training step d768 T128": lambda: train(128, 768),
    "decode, batch 1": lambda: decode(1),
    "decode, batch 2": lambda: decode(2),
    "decode, batch 4": lambda: decode(4),
    "decode, batch 8": lambda: decode(8),
    "decode, beam of 4": decode_with_beams,
}
ONE_ROW = "decode, batch 1"


def work():
    made = {}

    def answer(name):
        if name not in made:
            made[name] = CASES[name]()
            made[name]()
        made[name]()

    workers.serve(answer)


def main(names, rounds):
    processes = {}
    for name, setting in SETTINGS.items():
        os.environ |= {"TF_ENABLE_ONEDNN_OPTS": setting, "TF_CPP_MIN_LOG_LEVEL": "3"}
        processes[name] = workers.Worker(__file__, "--work")
    print(f"{'':26} {'ms without':>10} {'ms with':>10} {'ratio':>6}  spread         to batch 1")
    one_row = {}
    for name in names:
        workers.in_turn(processes, name, 1)
        turns = workers.in_turn(processes, name, rounds)
        seconds = {k: statistics.median(turn["wall"] for turn in v) for k, v in turns.items()}
        ratio, low, high = workers.ratios(turns, "without oneDNN")["with oneDNN"]
        if name == ONE_ROW:
            one_row = seconds
        shares = ""
        if name.startswith("decode") and one_row:
            shares = ", ".join(f"{seconds[k] / one_row[k]:.2f}" for k in SETTINGS)
        milliseconds = " ".join(f"{1000 * x:10.1f}" for x in seconds.values())
        print(
            f"{name:26} {milliseconds} {ratio:6.2f}  {low:.2f} to {high:.2f}   {shares}", flush=True
        )
    for process in processes.values():
        process.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--work", action="store_true")
    arguments = parser.parse_args()
    work() if arguments.work else main(arguments.cases, arguments.rounds)
