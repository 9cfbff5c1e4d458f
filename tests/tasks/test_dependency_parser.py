"""`DependencyParser`: scores equal the official ones, and (slow) all commands on a small run."""

import json
import random

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.cli import main
from keras_attention.data.readers.dependency_trees import explain_no_tree
from keras_attention.tasks.dependency_parser import score_trees
from tests.small_runs import SMALL

RELATIONS = {"DET": "det", "ADJ": "amod", "PUNCT": "punct", "VERB": "root"}
WORDS = [  # before the verb, and from it on
    {"DET": ["the"], "ADJ": ["big", "old"], "NOUN": ["cat", "dog"]},
    {"DET": ["a"], "ADJ": ["red", "new"], "NOUN": ["house", "tree"], "VERB": ["saw"], "PUNCT": "."},
]


def make_trees(count, seed):
    """Make sentences such as `the big cat saw a red house .`"""
    generator, trees = random.Random(seed), []
    for _ in range(count):
        phrases = [["DET", *["ADJ"] * generator.randrange(3), "NOUN"] for _ in range(2)]
        kinds = [*phrases[0], "VERB", *phrases[1], "PUNCT"]
        verb, heads, relations = 1 + len(phrases[0]), [], []
        for place, kind in enumerate(kinds, start=1):
            noun = next(i for i, k in enumerate(kinds, start=1) if k == "NOUN" and i >= place or
                        i == len(kinds))  # fmt: skip
            heads.append({"VERB": 0, "NOUN": verb, "PUNCT": verb}.get(kind, noun))
            subject = "nsubj" if place < verb else "obj"
            relations.append(subject if kind == "NOUN" else RELATIONS[kind])
        words = [WORDS[place >= verb][kind] for place, kind in enumerate(kinds, start=1)]
        tokens = tuple(map(generator.choice, words))
        trees.append(ka.data.DependencyTree(tokens, tuple(heads), tuple(relations)))
    return trees


def write_trees(path, trees):
    lines = []
    for tree in trees:
        for number, (token, head, relation) in enumerate(zip(*tree, strict=True), start=1):
            lines.append("\t".join([str(number), token, *"____", str(head), relation, "_", "_"]))
        lines.append("")
    path.write_text("\n".join(lines) + "\n", "utf-8")


def make_task(trees, **options):
    size = dict(num_layers=1, num_heads=2, hidden_dim=16, dropout=0.0)
    return ka.tasks.DependencyParser.from_data(trees, **{**size, **options})


# By udtools 0.2.9, the script of the CoNLL 2018 shared task: UAS 17 / 26, LAS 10 / 26.
RIGHT = [
    ([3, 0, 2], ["advmod", "root", "punct"]),
    ([3, 3, 0, 5, 2], ["advmod", "nsubj", "root", "advmod", "nsubj"]),
    ([0, 3, 7, 5, 1, 7, 5, 1], "root obj punct advmod advmod nsubj:pass advmod obj".split()),
    ([4, 0, 4, 2], ["punct", "root", "obj", "nsubj:pass"]),
    ([2, 4, 4, 0, 3, 1], ["punct", "obj", "punct", "root", "obj", "nsubj"]),
]
FOUND = [
    ([3, 0, 2], ["punct", "root", "nsubj:pass"]),
    ([3, 3, 0, 5, 2], ["advmod", "nsubj", "root", "advmod", "nsubj:pass"]),
    ([0, 3, 7, 5, 1, 7, 5, 1], "root punct punct punct obj nsubj:pass advmod nsubj".split()),
    ([3, 4, 4, 0], ["det", "det", "punct", "root"]),
    ([6, 6, 1, 3, 1, 0], ["obj", "advmod", "obj", "punct", "advmod", "root"]),
]


def test_scores_equal_those_of_the_official_script():
    assert score_trees(FOUND, RIGHT) == {"las": 0.384615, "uas": 0.653846}
    assert score_trees(RIGHT, RIGHT) == {"las": 1.0, "uas": 1.0}


def test_every_answer_is_a_tree():
    """Check an untrained model, with sentences in a batch and one by one."""
    trees = make_trees(12, seed=0)
    task = make_task(trees)
    sentences = [tree.tokens for tree in trees] + [("cat",)]
    parsed = task.predict(sentences)
    for tokens, words in zip(sentences, parsed, strict=True):
        assert tuple(word.token for word in words) == tokens
        assert explain_no_tree([word.head for word in words]) is None
        assert all(0 < word.probability <= 1 for word in words)
    (alone,) = task.predict([sentences[3]])
    assert [word[:3] for word in alone] == [word[:3] for word in parsed[3]]
    np.testing.assert_allclose(
        [word.probability for word in alone], [w.probability for w in parsed[3]], rtol=1e-4
    )


@pytest.mark.slow
def test_other_relations_get_a_new_head(caplog):
    task = make_task(make_trees(8, seed=0))
    before = task.model.get_layer("arc_scores")
    other = [tree._replace(relations=("dep",) * len(tree.tokens)) for tree in make_trees(8, 1)]
    task.fit(other, epochs=1, verbose=True)
    assert "the last layer is new, for 1 labels instead of" in caplog.text
    assert task.model.output["label_scores"].shape == (None, None, None, 1)
    assert task.model.get_layer("arc_scores") is before
    assert {word.relation for word in task.predict(["the cat"])[0]} == {"dep"}


def test_wrong_inputs_are_refused():
    task = make_task(make_trees(4, seed=0), max_length=9)
    with pytest.raises(ValueError, match="is one text: pass a list of str"):
        task.predict("the cat")
    with pytest.raises(ValueError, match="10 tokens, over this model's limit of 9"):
        task.predict(["the " * 10])
    with pytest.raises(ValueError, match="The train part has no example .* more than 2 tokens"):
        make_task(make_trees(4, seed=0), max_length=2).fit(make_trees(4, seed=0))


def test_picture_shows_heads(tmp_path):
    trees = make_trees(4, seed=0)
    maps = make_task(trees).attention(trees[0].tokens, tmp_path / "heads.png")
    assert (tmp_path / "heads.png").stat().st_size > 10_000
    assert maps.keys == ["<root>", *trees[0].tokens]
    count = len(trees[0].tokens)
    assert maps.weights["arc_scores"].shape == (1, 1, count, count + 1)
    np.testing.assert_allclose(np.sum(maps.weights["arc_scores"], axis=-1), 1.0, rtol=1e-5)


@pytest.fixture(scope="module")
def parser(tmp_path_factory):
    """Train a small parser with `train`. Return its folder, and the folder of the data."""
    files = tmp_path_factory.mktemp("trees")
    for seed, (part, count) in enumerate([("train", 96), ("dev", 12), ("test", 12)]):
        write_trees(files / f"{part}.conllu", make_trees(count, seed))
    parts = [word for p in ("train", "dev", "test") for word in (f"--{p}", f"{files}/{p}.conllu")]
    options = ["--epochs", "6", "--learning-rate", "0.02", "--batch-size", "8", *SMALL]
    folder = tmp_path_factory.mktemp("models") / "parser"
    with pytest.raises(SystemExit) as stop:
        main(["train", "dependency_parser", *parts, "--output", str(folder), *options])
    assert stop.value.code == 0
    return folder, files


@pytest.mark.slow
def test_commands_train_evaluate_and_predict(parser, run):
    folder, files = parser
    scores = json.loads((folder / "scores.json").read_text())
    las = scores["test"]["keras"]["las"]
    assert las > 0.9 and scores["test"]["litert"]["las"] == las
    assert (folder / "attention.png").exists()
    sentence, answers = "the big dog saw a red house .", []
    for kind in ("keras", "saved_model", "litert"):
        code, out, err = run("predict", folder, sentence, "--with", kind, "--json")
        assert code == 0, err
        answers.append(json.loads(out)["prediction"])
        assert [word["head"] for word in answers[-1]] == [3, 3, 4, 0, 7, 7, 4, 4]
        assert answers[-1][2]["relation"] == "nsubj"
    code, out, err = run("evaluate", folder, "--file", files / "test.conllu", "--with", "litert")
    assert code == 0 and f"{100 * las:.2f} %" in out
    code, out, _ = run("predict", folder, "the cat saw a tree .")
    assert code == 0 and "nsubj" in out and "0 <root>" in out


@pytest.mark.slow
def test_files_without_trees_are_refused(parser, run, tmp_path):
    _, files = parser
    text = (files / "train.conllu").read_text().replace("\t0\troot", "\t1\troot", 1)
    (tmp_path / "bad.conllu").write_text(text)
    words = ("train", "dependency_parser", "--train", tmp_path / "bad.conllu")
    code, out, err = run(*words, "--output", tmp_path / "new")
    assert (code, out) == (2, "") and "bad.conllu: sentence 1, " in err
    code, _, err = run(*words, "--output", tmp_path / "new", "--label-column", "upos")
    assert code == 2 and "--label-column upos does not apply to files of dependency trees" in err
