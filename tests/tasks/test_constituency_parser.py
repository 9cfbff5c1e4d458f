"""`ConstituencyParser`: answers are trees, and (slow) all commands on a small run."""

import json
import random

import pytest

import keras_attention as ka
from keras_attention.cli import main
from tests.small_runs import SMALL

WORDS = {
    "DT": ["the", "a"],
    "JJ": ["old", "big"],
    "NN": ["cat", "dog", "house"],
    "VBD": ["saw", "liked"],
}


def make_trees(count, seed):
    """Make trees such as `(S (NP (DT the) (NN cat)) (VP (VBD saw) (NP (DT a) (NN dog))))`."""
    generator, trees = random.Random(seed), []

    def leaf(tag):
        return ka.data.ConstituencyTree(tag, (generator.choice(WORDS[tag]),))

    def phrase():
        tags = ["DT", *["JJ"] * generator.randrange(3), "NN"]
        return ka.data.ConstituencyTree("NP", tuple(map(leaf, tags)))

    for _ in range(count):
        verb = ka.data.ConstituencyTree("VP", (leaf("VBD"), phrase()))
        trees.append(ka.data.ConstituencyTree("S", (phrase(), verb)))
    return trees


def make_task(trees, **options):
    size = dict(num_layers=1, num_decoder_layers=1, num_heads=2, hidden_dim=16, dropout=0.0)
    return ka.tasks.ConstituencyParser.from_data(trees, **{**size, **options})


@pytest.mark.slow
def test_every_answer_is_a_tree_over_its_words():
    """Check an untrained model, in batches of several lengths."""
    task = make_task(make_trees(12, seed=0))
    sentences = ["cat", "the cat", "unheard of words ( and ) brackets", "a " * 9]
    trees = task.predict(sentences)
    for text, tree in zip(sentences, trees, strict=True):
        assert tree.tokens == tuple(text.split())
        assert ka.data.build_tree(ka.data.linearize_tree(tree), tree.tokens) == tree
    assert task.predict(sentences[1:2]) == trees[1:2]
    scores = task.evaluate(make_trees(3, seed=1))
    assert set(scores) == {"f1", "precision", "recall", "exact", "tags"}


def test_large_trees_are_neither_trained_on_nor_scored():
    trees = make_trees(30, seed=0)
    task = make_task(trees, max_length=6)
    large = sum(len(tree.tokens) > 6 for tree in trees)
    data = ka.data.ConstituencyTree.collect(trees, dev_fraction=0)
    assert large and task.describe_data(data) == (
        f"sentences of more than 6 tokens are left out: {large} of train",
    )
    assert task.describe_scored(trees) == (
        f"sentences of more than 6 tokens are not scored: {large} of 30",
    )
    task.spare_constituents = 0
    assert "trees that need more than 0 spare constituents" in task.describe_data(data)[-1]
    with pytest.raises(ValueError, match="all sentences have more than 2 tokens"):
        make_task(trees, max_length=2).fit(trees, verbose=False)


@pytest.mark.sweep
def test_spare_constituents_fit_the_deepest_tree():
    (deep,) = ka.data.parse_brackets("(A " * 12 + "(X a)" + ")" * 12)
    task = make_task([deep] * 8)
    assert task.spare_constituents == 12
    assert task.settings["writing"]["max_new_tokens"] == 128 + 2 * (12 + 256) + 1
    task.fit([deep] * 8, epochs=30, batch_size=8, learning_rate=0.02, verbose=False)
    assert task.predict(["a"]) == [deep]


def test_wrong_inputs_are_refused():
    task = make_task(make_trees(4, seed=0), max_length=9)
    with pytest.raises(ValueError, match="is one text: pass a list of str"):
        task.predict("the cat")
    with pytest.raises(ValueError, match="10 tokens, over this model's limit of 9"):
        task.predict(["the " * 10])
    other = ka.data.parse_brackets("(X (NN cat))")
    with pytest.raises(ValueError, match="labels or tags that the model cannot write"):
        task.fit(other * 4, verbose=False)


@pytest.mark.slow
def test_attention_of_labels_is_drawn(tmp_path):
    trees = make_trees(4, seed=0)
    maps = make_task(trees).attention(trees[0].tokens, tmp_path / "labels.png")
    assert (tmp_path / "labels.png").stat().st_size > 10_000
    assert maps.keys == list(trees[0].tokens)
    tags = [name for name in maps.queries if name != ")" and not name.startswith("(")]
    assert [name.split()[1] for name in tags] == maps.keys


@pytest.fixture(scope="module")
def parser(tmp_path_factory):
    """Train a small parser with `train`. Return its folder, and the folder of the data."""
    files = tmp_path_factory.mktemp("trees")
    for seed, (part, count) in enumerate([("train", 96), ("dev", 12), ("test", 12)]):
        text = "\n".join(f"( {tree} )" for tree in make_trees(count, seed))
        (files / f"{part}.mrg").write_text(text)
    parts = [word for p in ("train", "dev", "test") for word in (f"--{p}", f"{files}/{p}.mrg")]
    options = ["--epochs", "8", "--learning-rate", "0.02", "--batch-size", "8", *SMALL]
    options += ["--max-length", "12"]
    folder = tmp_path_factory.mktemp("models") / "parser"
    with pytest.raises(SystemExit) as stop:
        main(["train", "constituency_parser", *parts, "--output", str(folder), *options])
    assert stop.value.code == 0
    return folder, files


@pytest.mark.sweep
def test_commands_train_evaluate_and_predict(parser, run):
    folder, files = parser
    scores = json.loads((folder / "scores.json").read_text())
    f1 = scores["test"]["keras"]["f1"]
    assert f1 > 0.9 and scores["test"]["litert"]["f1"] == f1
    assert scores["test"]["litert-int8"]["f1"] > f1 - 0.01
    assert (folder / "attention.png").exists()
    expected = "(S (NP (DT the) (JJ big) (NN dog)) (VP (VBD saw) (NP (DT a) (NN house))))"
    for kind in ("keras", "saved_model", "litert", "litert-int8"):
        code, out, err = run("predict", folder, "the big dog saw a house", "--with", kind)
        assert (code, out.strip()) == (0, expected), err
    code, out, _ = run("evaluate", folder, "--file", files / "test.mrg", "--with", "litert")
    assert code == 0 and f"{100 * f1:.2f} %" in out


@pytest.mark.slow
def test_files_without_trees_are_refused(run, tmp_path):
    (tmp_path / "bad.mrg").write_text("(S (NN a)\n")
    words = ("train", "constituency_parser", "--train", tmp_path / "bad.mrg")
    code, out, err = run(*words, "--output", tmp_path / "new")
    assert (code, out) == (2, "") and "bad.mrg: line 1: the tree that begins here is not" in err
