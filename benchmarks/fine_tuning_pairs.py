"""Fine-tuning of a caption translator: BLEU on new sentences and on captions, before and after.

    python benchmarks/fine_tuning_pairs.py TATOEBA MULTI30K [--minutes 9.5] [--learning-rate ...]

Fine-tunes `multi30k-de-en` on four fifths of Tatoeba's German and English sentences. Prints BLEU on
the other fifth and on the official test split of Multi30k.

TATOEBA contains tatoeba.deu-eng.deu and .eng (https://github.com/facebookresearch/LASER, 1,000
pairs). MULTI30K contains test_2016_flickr.de and .en, and train.de and .en. First the vocabulary is
extended by `--vocabulary` subwords of the sentences. With `--mix K` an epoch contains each sentence
K times, and `--captions` captions per sentence, which reduces forgetting. There are too few
sentences for a development split, so the epoch and the length penalty are chosen on 50 training
sentences. If other programs are running, the printed CPU seconds are more reliable than the elapsed
time.
"""

import argparse
import dataclasses
import pathlib
import time

import keras

import keras_attention as ka

PENALTIES = (1.0, 1.1, 1.2, 1.3)


def read(folder, name, languages):
    paths = [folder / f"{name}.{language}" for language in languages]
    paths = [p if p.exists() else p.with_name(f"{p.name}.gz") for p in paths]
    return list(ka.data.from_pair_files(test=tuple(paths)).test)


def fine_tune(task, sentences, captions, arguments):
    """Train a task on the sentences, mixed with captions."""
    if arguments.vocabulary:
        task.extend_vocabulary(sentences, arguments.vocabulary)
    times = max(1, arguments.mix)
    train = times * sentences
    if arguments.mix:
        train = train + captions[: int(arguments.captions * len(train))]
    started = time.process_time()
    task.fit(
        train,
        sentences[:50],
        epochs=arguments.epochs // times,
        minutes=arguments.minutes,
        learning_rate=arguments.learning_rate,
        max_tokens=512,
        average=arguments.average / times,
        seed=arguments.seed,
        label_smoothing=arguments.label_smoothing,
    )
    seconds = time.process_time() - started
    print(f"fit took {seconds:.0f} s of a core, {seconds / 120:.1f} minutes of two", flush=True)


def choose_length_penalty(task, sentences):
    """Return the task with the length penalty of the best BLEU on `sentences`.

    Among equal scores the smallest penalty wins.
    """
    settings, scores = {"score": task.score, "builder": task.builder}, {}
    for penalty in PENALTIES:
        writing = dataclasses.replace(task.writing, length_penalty=penalty)
        one = ka.tasks.Seq2SeqLM(task.model, task.preprocessor, writing=writing, **settings)
        bleu = one.evaluate(sentences)["bleu"]
        print(f"length penalty {penalty}: BLEU {bleu:.2f} on what was trained on", flush=True)
        scores.setdefault(bleu, one)
    return scores[max(scores)]


def show_bleu(when, task, parts):
    for name, examples in parts.items():
        print(f"{when}: {name} BLEU {task.evaluate(examples)['bleu']:.2f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tatoeba", type=pathlib.Path)
    parser.add_argument("multi30k", type=pathlib.Path)
    parser.add_argument("--vocabulary", type=int, default=1000, help="number of new subwords")
    parser.add_argument("--minutes", type=float, default=9.5)
    parser.add_argument("--epochs", type=int, default=40, help="epochs over the sentences")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--mix", type=int, default=8)
    parser.add_argument("--captions", type=float, default=0.4, help="for each sentence")
    parser.add_argument("--average", type=float, default=4.0, help="epochs to average weights over")
    parser.add_argument("--label-smoothing", type=float)
    parser.add_argument("--length-penalty", type=float, help="instead of choosing one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=pathlib.Path, help="folder for the preset")
    arguments = parser.parse_args()
    keras.utils.set_random_seed(arguments.seed)
    pairs = read(arguments.tatoeba, "tatoeba.deu-eng", ("deu", "eng"))
    parts = {
        "Tatoeba": pairs[::5],
        "Multi30k": read(arguments.multi30k, "test_2016_flickr", ("de", "en")),
    }
    sentences = [pair for k, pair in enumerate(pairs) if k % 5]
    captions = read(arguments.multi30k, "train", ("de", "en"))
    task = ka.tasks.from_preset("multi30k-de-en", "keras")
    fine_tune(task, sentences, captions, arguments)
    if arguments.length_penalty is None:
        task = choose_length_penalty(task, sentences[:50])
    else:
        task.writing = dataclasses.replace(task.writing, length_penalty=arguments.length_penalty)
    if arguments.output is not None:
        task.save_to_preset(arguments.output)
    show_bleu("after", task, parts)
    show_bleu("before", ka.tasks.from_preset("multi30k-de-en", "keras"), parts)
