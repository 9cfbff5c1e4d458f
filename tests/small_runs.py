"""Small real runs of the commands, made once and looked at by many tests."""

import random

import pytest

from keras_attention.cli import main, printing
from tests.made_once import make_once

WORDS = {
    "DET": ["the", "a"],
    "ADJ": ["big", "red"],
    "NOUN": ["cat", "dog", "house", "tree"],
    "VERB": ["sat", "ran", "saw"],
    "PUNCT": ["."],
}
SMALL = ["--num-layers", "1", "--num-heads", "2", "--hidden-dim", "16", "--dropout", "0"]


def write_conllu(path, sentences, seed):
    """Write a CoNLL-U file of sentences such as `the big cat saw a tree .`"""
    generator = random.Random(seed)
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(sentences):
            tags = ["DET", *["ADJ"] * generator.randrange(2), "NOUN", "VERB"]
            tags += [*["DET", "NOUN"] * generator.randrange(2), "PUNCT"]
            for number, tag in enumerate(tags, 1):
                word = generator.choice(WORDS[tag])
                print(number, word, "_", tag, *["_"] * 6, sep="\t", file=file)
            print(file=file)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """Return a folder with train.conllu, dev.conllu and test.conllu."""
    folder = tmp_path_factory.mktemp("corpus")
    for seed, (part, sentences) in enumerate([("train", 96), ("dev", 20), ("test", 20)]):
        write_conllu(folder / f"{part}.conllu", sentences, seed)
    return folder


def files(corpus):
    """Return the options that name the corpus."""
    return [word for part in ("train", "dev", "test") for word in option(corpus, part)]


def option(corpus, part):
    return [f"--{part}", str(corpus / f"{part}.conllu")]


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command in this process. Return its exit code, standard output and standard error.

    Progress is not printed: it depends on the speed of the machine.
    """
    monkeypatch.setattr(printing, "SILENCE", 1e6)

    def run(*words):
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        return stop.value.code, *capsys.readouterr()

    return run


@pytest.fixture(scope="session")
def tagger(corpus, tmp_path_factory):
    """Return the folder of a small tagger, trained and exported by `train`."""
    options = ["--epochs", "4", "--learning-rate", "0.02", "--batch-size", "8", *SMALL]
    words = ["sequence_labeler", *files(corpus), *options]
    return make_once(tmp_path_factory, "tagger", lambda folder: train(words, folder))


@pytest.fixture(scope="session")
def classifier(tmp_path_factory):
    """Return the folder of a small vision transformer, trained and exported by `train`."""
    words = ["vision_transformer", "--dataset", "digits", "--epochs", "2", "--batch-size", "64"]
    return make_once(tmp_path_factory, "classifier", lambda path: train([*words, *SMALL], path))


def train(words, folder):
    """`keras-attention train`, in this process."""
    with pytest.raises(SystemExit) as stop:
        main(["train", *words, "--output", str(folder)])
    assert stop.value.code == 0
