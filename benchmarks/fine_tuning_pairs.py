"""Fine-tuning of a translator of captions: BLEU on other pairs, and on captions, before and after.

Fine-tunes `multi30k-de-en` on four fifths of Tatoeba's German and English sentences and prints BLEU
on the other fifth and on the official test part of Multi30k, before and after.

    python benchmarks/fine_tuning_pairs.py TATOEBA MULTI30K [--minutes 9.5] [--learning-rate ...]

TATOEBA holds tatoeba.deu-eng.deu and .eng (https://github.com/facebookresearch/LASER, 1,000 pairs);
MULTI30K holds test_2016_flickr.de and .en, and train.de and .en. Words of the sentences become
tokens first, with --vocabulary 0 none. With --mix K all sentences are trained on K times in an
epoch, of which there are fewer, beside --captions as many captions, so that less is forgotten.
Sentences are too few to hold some out: the epoch is chosen on 50 that are trained on, which means
one of the last, and so is the length penalty. Where other programs run beside, the seconds of a
core that are printed say how long the training takes alone.
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


def fine_tune(task, sentences, captions, given):
    """Trains on the sentences, each as often as there is time for, beside captions."""
    if given.vocabulary:
        task.extend_vocabulary(sentences, given.vocabulary)
    times = max(1, given.mix)
    train = times * sentences
    if given.mix:
        train = train + captions[: int(given.captions * len(train))]
    started = time.process_time()
    task.fit(
        train,
        sentences[:50],
        epochs=given.epochs // times,
        minutes=given.minutes,
        learning_rate=given.learning_rate,
        max_tokens=512,
        average=given.average / times,
        seed=given.seed,
        label_smoothing=given.label_smoothing,
    )
    seconds = time.process_time() - started
    print(f"fit took {seconds:.0f} s of a core, {seconds / 120:.1f} minutes of two", flush=True)


def choose_length_penalty(task, sentences):
    """The task with the penalty that writes `sentences` best, the smallest of several."""
    settings, found = {"score": task.score, "builder": task.builder}, {}
    for penalty in PENALTIES:
        writing = dataclasses.replace(task.writing, length_penalty=penalty)
        one = ka.tasks.Seq2SeqLM(task.model, task.preprocessor, writing=writing, **settings)
        bleu = one.evaluate(sentences)["bleu"]
        print(f"length penalty {penalty}: BLEU {bleu:.2f} on what was trained on", flush=True)
        found.setdefault(bleu, one)
    return found[max(found)]


def show_bleu(when, task, parts):
    for name, examples in parts.items():
        print(f"{when}: {name} BLEU {task.evaluate(examples)['bleu']:.2f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tatoeba", type=pathlib.Path)
    parser.add_argument("multi30k", type=pathlib.Path)
    parser.add_argument("--vocabulary", type=int, default=1000, help="subwords of the sentences")
    parser.add_argument("--minutes", type=float, default=9.5)
    parser.add_argument("--epochs", type=int, default=40, help="of the sentences")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--mix", type=int, default=8)
    parser.add_argument("--captions", type=float, default=0.4, help="for each sentence")
    parser.add_argument("--average", type=float, default=4.0, help="epochs of the sentences")
    parser.add_argument("--label-smoothing", type=float)
    parser.add_argument("--length-penalty", type=float, help="in place of one that is chosen")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=pathlib.Path, help="folder for the preset")
    given = parser.parse_args()
    keras.utils.set_random_seed(given.seed)
    pairs = read(given.tatoeba, "tatoeba.deu-eng", ("deu", "eng"))
    parts = {
        "Tatoeba": pairs[::5],
        "Multi30k": read(given.multi30k, "test_2016_flickr", ("de", "en")),
    }
    sentences = [pair for k, pair in enumerate(pairs) if k % 5]
    captions = read(given.multi30k, "train", ("de", "en"))
    task = ka.tasks.from_preset("multi30k-de-en", "keras")
    fine_tune(task, sentences, captions, given)
    if given.length_penalty is None:
        task = choose_length_penalty(task, sentences[:50])
    else:
        task.writing = dataclasses.replace(task.writing, length_penalty=given.length_penalty)
    if given.output is not None:
        task.save_to_preset(given.output)
    show_bleu("after", task, parts)
    show_bleu("before", ka.tasks.from_preset("multi30k-de-en", "keras"), parts)
