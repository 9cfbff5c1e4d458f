"""A training step of a language model with logits in chunks, compared with all logits at once.

    python benchmarks/chunked_logits.py [--backend tensorflow] [--length 4096] [--rounds 2]

A step is forward pass, backward pass and an SGD update. Each variant runs in its own process, and
they take turns. Memory is the growth of the process. The gradients of both variants are compared
before anything is timed.
"""

import argparse
import os
import statistics
import sys

KINDS = ("whole", "128", "512")


def make_step(kind, arguments, learning_rate=1.0):
    """Return the model, and a function that trains it on a batch and returns the loss.

    `kind` is "whole", or the number of tokens per chunk.
    """
    import keras
    import numpy as np

    import keras_attention as ka

    keras.utils.set_random_seed(0)
    model = ka.models.causal_language_model(
        arguments.vocabulary,
        num_layers=1,
        num_heads=4,
        hidden_dim=arguments.width,
        intermediate_dim=2 * arguments.width,
        dropout=0.0,
        mask=ka.masks.Window(128),
    )
    fitted = model if kind == "whole" else ka.training.ChunkedLogits(model, int(kind))
    loss = ka.training.MaskedSparseCategoricalCrossentropy(ignore_class=0)
    fitted.compile(keras.optimizers.SGD(learning_rate), loss, jit_compile="auto")
    ids = np.random.default_rng(0).integers(1, arguments.vocabulary, (1, arguments.length + 1))
    ids[0, -arguments.length // 8 :] = 0
    return model, lambda: fitted.train_on_batch(ids[:, :-1], ids[:, 1:])


def compare_gradients(arguments):
    """Return the norm of the difference of both gradients, relative to the norm of one."""
    import numpy as np

    after = []
    for kind in ("whole", "128"):
        model, step = make_step(kind, arguments, 1e4)  # the weights are small in comparison
        before = model.get_weights()
        step()
        pairs = zip(model.get_weights(), before, strict=True)
        after.append(np.concatenate([np.ravel(a - b) for a, b in pairs]))
    return np.linalg.norm(after[0] - after[1]) / np.linalg.norm(after[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=(*KINDS, "gradients"))
    parser.add_argument("--backend", default="tensorflow")
    parser.add_argument("--vocabulary", type=int, default=32_000)
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    os.environ["KERAS_BACKEND"] = arguments.backend
    from measure import peak_memory, report_memory

    if arguments.kind == "gradients":
        print(compare_gradients(arguments))
        return
    if arguments.kind:
        report_memory(make_step(arguments.kind, arguments)[1])
        return
    print(f"gradients differ by {compare_gradients(arguments):.1e} of their norm")
    results = {kind: [] for kind in KINDS}
    for _ in range(arguments.rounds):
        for kind in KINDS:
            results[kind].append(peak_memory(__file__, "--kind", kind, *sys.argv[1:]))
    print(f"\n  {'chunk':8} {'MB':>8}  ratio   spread       {'s':>8}  ratio   spread")
    for kind, runs in results.items():
        line = f"  {kind:8}"
        for field in ("megabytes", "seconds"):
            pairs = zip(runs, results["whole"], strict=True)
            ratios = sorted(mine[field] / theirs[field] for mine, theirs in pairs)
            value = statistics.median(each[field] for each in runs)
            line += f" {value:8.1f} {statistics.median(ratios):6.2f}"
            line += f" {ratios[0]:6.2f} to {ratios[-1]:.2f}"
        print(line)


if __name__ == "__main__":
    main()
