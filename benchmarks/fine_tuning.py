"""Fine-tuning compared with training from scratch, with the same number of epochs: WNUT-17.

    python benchmarks/fine_tuning.py FOLDER [--epochs 6] [--seeds 0 1 2]

Prints entity F1 on the official test split for two taggers of the same size. One starts with the
weights of `pos-tagger-en-ewt`, the other with random weights. Each is trained with its own recipe,
but for the same number of epochs and with the same seeds.

FOLDER contains the files of https://github.com/leondz/emerging_entities_17: wnut17train.conll,
emerging.dev.conll and emerging.test.annotated.
"""

import argparse
import pathlib
import statistics

import keras

import keras_attention as ka

PRESET = "pos-tagger-en-ewt"


def read(folder):
    return ka.data.from_conll(
        train=folder / "wnut17train.conll",
        dev=folder / "emerging.dev.conll",
        test=folder / "emerging.test.annotated",
    )


def tune(data, epochs, seed):
    keras.utils.set_random_seed(seed)
    task = ka.tasks.from_preset(PRESET, "keras")
    task.fit(data, epochs=epochs, seed=seed)
    return task.evaluate(data)


def begin(data, epochs, seed):
    task = ka.tasks.SequenceLabeler.from_data(data, seed=seed)
    task.fit(data, epochs=epochs, seed=seed)
    return task.evaluate(data)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    arguments = parser.parse_args()
    data, results = read(arguments.folder), {tune: [], begin: []}
    for seed in arguments.seeds:
        for way, scores in results.items():
            scores.append(way(data, arguments.epochs, seed)["entity_f1"])
            print(f"{way.__name__}, seed {seed}: entity F1 {100 * scores[-1]:.2f} %", flush=True)
    for way, scores in results.items():
        low, high = min(scores), max(scores)
        mean = statistics.mean(scores)
        print(f"{way.__name__}: {100 * mean:.2f} % ({100 * low:.2f} to {100 * high:.2f})")
