"""Fine-tuning of a checkpoint: all weights, LoRA, or only a new head.

    python benchmarks/fine_tuning_pretrained.py CHECKPOINT polarity DATA [full lora frozen ...]

Prints for each method the score on the test split, the number of trained weights, and the time.

CHECKPOINT is a folder with Hugging Face's files, or an id. For `polarity`, DATA is a folder with
sentence_polarity.zip from NLTK. For `wnut17` it contains wnut17train.conll, emerging.dev.conll and
emerging.test.annotated (Derczynski et al., 2017). For `ewt` it contains en_ewt-ud-train.conllu, and
the same for dev and test. These files may be gzipped.
"""

import argparse
import json
import math
import pathlib
import time

import keras

import keras_attention as ka

METHODS = {
    "full": {},
    "decay": {"layer_decay": 0.8},
    "half": {"freeze": 3},
    "lora": {"lora_rank": 8, "learning_rate": 1e-3},
    "frozen": {"freeze": "all", "learning_rate": 3e-3},
}


def read(task, folder):
    if task == "polarity":
        return ka.tasks.TextClassifier, ka.data.sentence_polarity(folder)
    if task == "wnut17":
        names = ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated")
        return ka.tasks.SequenceLabeler, ka.data.from_conll(*[folder / name for name in names])
    paths = [folder / f"en_ewt-ud-{part}.conllu" for part in ("train", "dev", "test")]
    paths = [p if p.exists() else p.with_name(f"{p.name}.gz") for p in paths]
    return ka.tasks.SequenceLabeler, ka.data.from_conllu(*paths)


class Count(keras.callbacks.Callback):
    """Counts the trainable parameters."""

    def on_train_begin(self, logs=None):
        self.trained = sum(math.prod(v.shape) for v in self.model.trainable_variables)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint")
    parser.add_argument("task", choices=("polarity", "wnut17", "ewt"))
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("methods", nargs="*", default=list(METHODS))
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=pathlib.Path, help="folder to save the last preset")
    arguments = parser.parse_args()
    kind, data = read(arguments.task, arguments.data)
    for method in arguments.methods:
        keras.utils.set_random_seed(arguments.seed)
        task = kind.from_preset(arguments.checkpoint)
        options = dict(METHODS[method], seed=arguments.seed)
        for name in ("epochs", "learning_rate", "batch_size"):
            if getattr(arguments, name) is not None:
                options[name] = getattr(arguments, name)
        started, count = time.perf_counter(), Count()
        task.fit(data, callbacks=[count], **options)
        seconds = time.perf_counter() - started
        scores = task.evaluate(data)
        result = {"method": method, "trained": count.trained, "minutes": round(seconds / 60, 2)}
        print(json.dumps({**result, **scores, **options}), flush=True)
        if arguments.save is not None:
            task.save_to_preset(arguments.save, overwrite=True)
