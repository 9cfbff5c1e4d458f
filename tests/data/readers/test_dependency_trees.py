"""Dependency trees: read from CoNLL-U and TFDS, checked, and as batches."""

import pytest

import keras_attention as ka
from keras_attention.data.readers.dependency_trees import explain_no_tree

CAT = ka.data.DependencyTree(("The", "cat", "sat"), (2, 3, 0), ("det", "nsubj", "root"))
RAN = ka.data.DependencyTree(("Dogs", "ran"), (2, 0), ("nsubj", "root"))


def write(path, *trees, extra=""):
    text = ""
    for tree in trees:
        for k, (word, head, relation) in enumerate(zip(*tree, strict=True), start=1):
            text += "\t".join([str(k), word, *"____", str(head), relation, "_", "_"]) + "\n"
        text += extra + "\n"
    path.write_text(text)
    return path


def test_files_are_read(tmp_path):
    nodes = "3-4\tcannot" + "\t_" * 8 + "\n" + "3.1\tempty" + "\t_" * 8 + "\n"
    path = write(tmp_path / "a.conllu", CAT, RAN, extra=nodes)
    data = ka.data.from_conllu_trees(train=path, test=path, dev_fraction=0.5)
    assert data.test == [CAT, RAN] and sorted(data.train + data.dev) == sorted([CAT, RAN])
    assert data.labels == ("det", "nsubj", "root")
    assert repr(data) == "DataSet(DependencyTree: train=1, dev=1, test=2, 3 labels)"


@pytest.mark.parametrize(
    "heads, reason",
    [
        ((0, 1, 5), "the head 5 is not one of 0 to 3"),
        ((0, 0, 1), "2 words have the head 0"),
        ((2, 3, 1), "0 words have the head 0"),
        ((0, 2, 2), "the heads of word 2 go round in a circle"),
        ((3, 0, 1), "the heads of word 1 go round in a circle"),
    ],
)
def test_heads_without_a_tree_are_errors(heads, reason, tmp_path):
    assert explain_no_tree(heads).startswith(reason)
    path = write(tmp_path / "a.conllu", RAN, CAT._replace(heads=heads))
    with pytest.raises(ValueError, match=f"a.conllu: sentence 2, 'The cat sat': {reason}"):
        ka.data.read_conllu_trees(path)
    with pytest.raises(ValueError, match=f"'The cat sat': {reason}"):
        ka.data.DependencyTree.collect([CAT._replace(heads=heads)])


@pytest.mark.parametrize(
    "column, value, message",
    [
        (6, "_", r":2: the word 'b' has the head '_' \(column 7\): expected an integer"),
        (6, "9" * 30, ":2: the word 'b' has the head '99999"),
        (6, "-1", ":2: the word 'b' has the head '-1'"),
        (7, "_", r":2: the word 'b' has no relation \(column 8 is '_'\)"),
        (1, "", ":2: the word .FORM, column 2. is empty"),
    ],
)
def test_broken_lines(column, value, message, tmp_path):
    rows = [["1", "a", *"____", "0", "root", "_", "_"], ["2", "b", *"____", "1", "obj", "_", "_"]]
    rows[1][column] = value
    path = tmp_path / "a.conllu"
    path.write_text("".join("\t".join(row) + "\n" for row in rows))
    with pytest.raises(ValueError, match=message):
        ka.data.read_conllu_trees(path)


def test_batches_hold_the_heads_of_their_sentences():
    trees = [CAT, RAN] * 9
    sentences = [ka.data.Sentence(tree.tokens, tree.relations) for tree in trees]
    preprocessor = ka.data.TaggerPreprocessor.build(sentences, characters=False)
    seen = 0
    for ids, labels in ka.data.batches(trees, preprocessor, 4, shuffle=True, seed=3):
        ids, labels = ids.numpy(), {name: x.numpy() for name, x in labels.items()}
        for row, heads, relations in zip(ids, *labels.values(), strict=True):
            words = [preprocessor.tokenizer.entries[i] for i in row if i]
            tree = next(t for t in (CAT, RAN) if list(t.tokens) == words)
            assert heads.tolist() == [*tree.heads, *[-1] * (len(row) - len(words))]
            names = [preprocessor.labels.names[i] for i in relations if i >= 0]
            assert tuple(names) == tree.relations
            seen += 1
    assert seen == len(trees)


def test_english_web_treebank(data_root):
    folder = data_root / "tfds-universal-dependencies"
    data = ka.data.from_conllu_trees(
        dev=folder / "en_ewt-ud-dev.conllu.gz", test=folder / "en_ewt-ud-test.conllu.gz"
    )
    assert (len(data.dev), len(data.test)) == (2001, 2077)
    assert sum(len(tree.tokens) for tree in data.test) == 25094
    assert len(data.labels) == 49
