"""Fine-tuning of a translator of captions: BLEU on other pairs, and on captions, before and after.

Fine-tunes `multi30k-de-en` on four fifths of Tatoeba's German and English sentences and prints BLEU
on the other fifth and on the official test part of Multi30k, before and after.

    python benchmarks/fine_tuning_pairs.py TATOEBA MULTI30K [--minutes 8] [--learning-rate ...]

TATOEBA holds tatoeba.deu-eng.deu and .eng (https://github.com/facebookresearch/LASER, 1,000 pairs);
MULTI30K holds test_2016_flickr.de and .en, and train.de and .en: with --mix K all sentences are
trained on K times in an epoch, of which there are fewer, beside as many captions, so that less is
forgotten. Sentences are too few to hold some out: the epoch is chosen on 50 that are trained on,
which means one of the last.
"""

import argparse
import pathlib

import keras

import keras_attention as ka


def read(folder, name, languages):
    paths = [folder / f"{name}.{language}" for language in languages]
    paths = [p if p.exists() else p.with_name(f"{p.name}.gz") for p in paths]
    return list(ka.data.from_pair_files(test=tuple(paths)).test)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tatoeba", type=pathlib.Path)
    parser.add_argument("multi30k", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=9.5)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--mix", type=int, default=8)
    parser.add_argument("--average", type=float, default=8.0, help="epochs of the sentences")
    parser.add_argument("--label-smoothing", type=float)
    parser.add_argument("--length-penalty", type=float)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    smoothing = given.label_smoothing
    keras.utils.set_random_seed(given.seed)
    pairs = read(given.tatoeba, "tatoeba.deu-eng", ("deu", "eng"))
    captions = read(given.multi30k, "test_2016_flickr", ("de", "en"))
    held = pairs[::5]
    train = [pair for k, pair in enumerate(pairs) if k % 5]
    times, few = max(1, given.mix), train[:50]
    if given.mix:
        train = times * train
        train += read(given.multi30k, "train", ("de", "en"))[: len(train)]
    task = ka.tasks.from_preset("multi30k-de-en", "keras")
    if given.length_penalty is not None:
        task.length_penalty = given.length_penalty
    for when in ("before", "after"):
        for name, examples in (("Tatoeba", held), ("Multi30k", captions)):
            print(f"{when}: {name} BLEU {task.evaluate(examples)['bleu']:.2f}", flush=True)
        if when == "before":
            task.fit(
                train,
                few,
                epochs=given.epochs // times,
                minutes=given.minutes,
                learning_rate=given.learning_rate,
                max_tokens=512,
                average=given.average / times,
                seed=given.seed,
                **({} if smoothing is None else {"label_smoothing": smoothing}),
            )
