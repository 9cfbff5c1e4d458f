"""Constituency trees: read from brackets, as labels and back, and as batches."""

import gzip

import pytest

import keras_attention as ka
from keras_attention.data.readers.constituency_trees import (
    count_spare_constituents,
    decode_tree,
    encode_tree,
)

CAT = "(S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .))"
WSJ = """
( (S
    (NP-SBJ-1 (DT The) (NN cat) )
    (VP (VBD sat)
      (NP (-NONE- *T*-1) )
      (PP-LOC=2 (IN on) (NP (-LRB- -LRB-) (NN mat))))
    (. .) ))
( (NN Yes) (. .))
"""


def parse(text):
    return ka.data.parse_brackets(text)


def test_treebanks_are_read(tmp_path):
    path = tmp_path / "a.mrg"
    path.write_text(WSJ)
    data = ka.data.from_bracketed_files(train=path, test=path, dev_fraction=0.5)
    assert list(map(str, data.test)) == [
        "(S (NP (DT The) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (-LRB- -LRB-) (NN mat)))) (. .))",
        "(TOP (NN Yes) (. .))",
    ]
    assert data.labels[:5] == ("(NP", "(PP", "(S", "(TOP", "(VP")
    assert data.labels[5:] == ("-LRB-", ".", "DT", "IN", "NN", "VBD")
    assert repr(data) == "DataSet(ConstituencyTree: train=1, dev=1, test=2, 11 labels)"
    zipped = tmp_path / "a.mrg.gz"
    zipped.write_bytes(gzip.compress(WSJ.encode()))
    assert ka.data.read_bracketed_trees(zipped) == data.test


def test_trees_without_words_are_dropped():
    assert parse("(S (NP (-NONE- *))) (S (NN a))") == parse("(S (NN a))")
    assert str(parse("(NN a)")[0]) == "(TOP (NN a))"


def test_lines_in_a_tree_may_begin_at_the_edge():
    assert parse("(S\n(NP (NN a))\n(VP (VBD sat)))\n(S (NN b))") == parse(
        "(S (NP (NN a)) (VP (VBD sat))) (S (NN b))"
    )


@pytest.mark.parametrize(
    "text, message",
    [
        ("(S (NP (NN a))", "line 1: the tree that begins here is not closed, 1 brackets .* end$"),
        (
            "(S (NN a))\n\n( (S\n  (NN b)\n",
            "line 3: .* not closed, 2 brackets are open at the end$",
        ),
        (
            "(S (NN a))\n(S\n (NN b)\n(S (NN c))\n(S (NN d))",
            "line 2: .* is not closed, 1 brackets .*. Perhaps .* before line 4, which begins with",
        ),
        ("(S (NN a)))", r"line 1: '\)' is outside"),
        ("(S (NN a))\nword", "line 2: 'word' is outside"),
        ("(S (NN a b))", r"line 1: \(NN a b\) is neither a constituent"),
        ("(S (NN a) b)", r"line 1: \(S \(NN a\) b\) is neither"),
        ("(S (NP))", r"line 1: \(NP\) is neither"),
        ("()", r"line 1: \(\) is neither"),
        ("\n" + "(S " * 300, "line 2: more than 200 nested brackets"),
    ],
)
def test_brackets_without_a_tree_are_errors(text, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        parse(text)
    (tmp_path / "a.mrg").write_text(text)
    with pytest.raises(ValueError, match=f"a.mrg: {message}"):
        ka.data.read_bracketed_trees(tmp_path / "a.mrg")


def test_files_without_trees_are_errors(tmp_path):
    (tmp_path / "a.mrg").write_text("\n")
    with pytest.raises(ValueError, match="a.mrg: .* found no tree"):
        ka.data.read_bracketed_trees(tmp_path / "a.mrg")
    with pytest.raises(ValueError, match="'cat' is not a constituent"):
        ka.data.ConstituencyTree.collect(["cat"])


def test_labels_are_a_tree_and_back():
    (tree,) = parse(CAT)
    names = ka.data.linearize_tree(tree)
    assert names == ["(S", "(NP", "DT", "NN", ")", "(VP", "VBD", ")", ".", ")"]
    assert ka.data.build_tree(names, tree.tokens) == tree
    assert count_spare_constituents(tree) == 2
    assert count_spare_constituents(parse("(A (A (A (A (X a)))))")[0]) == 4


@pytest.mark.parametrize(
    "names, message",
    [
        (["(S", "DT", ")"], "0 brackets are open at the end, and 1 words"),
        (["(S", "DT", "NN"], "1 brackets are open at the end, and 0 words"),
        (["(S", "DT", "NN", "NN", ")"], "label 3, the tag 'NN', has no word"),
        (["DT", "NN"], "label 0, the tag 'DT', has no bracket"),
        (["(S", "(NP", ")", "DT", "NN", ")"], "label 2 closes no word"),
        ([")"], "label 0 closes nothing"),
        (["(S", "DT", "NN", ")", "(S"], "label 4, '.S', is after the end"),
    ],
)
def test_labels_without_a_tree_are_errors(names, message):
    with pytest.raises(ValueError, match=message):
        ka.data.build_tree(names, ("The", "cat"))


def test_ids_are_a_tree_and_back():
    (tree,) = parse(CAT)
    labels = ka.data.Labels(ka.data.ConstituencyTree.collect([tree], dev_fraction=0).labels)
    ids = encode_tree(tree, labels)
    assert (ids[0], ids[-1]) == (1, 2)
    assert decode_tree([*ids[1:], 0, 0], labels, tree.tokens) == tree
    with pytest.raises(ValueError, match="no end"):
        decode_tree(ids[1:-1], labels, tree.tokens)
    with pytest.raises(ValueError, match="the label '.X', which is not among the labels"):
        encode_tree(parse("(X (NN a))")[0], labels)


@pytest.mark.slow
def test_batches_hold_the_labels_of_their_words():
    trees = parse(CAT + "(S (NP (NN Dogs)) (VP (VBD ran)))") * 9
    labels = ka.data.ConstituencyTree.collect(trees).labels
    sentences = [ka.data.Sentence(tree.tokens, tree.tags) for tree in trees]
    for characters in (True, False):
        preprocessor = ka.data.TaggerPreprocessor.build(sentences, labels, characters=characters)
        seen = 0
        batches = ka.data.batches(trees, preprocessor, 4, shuffle=True, seed=3)
        for inputs, following in batches:
            assert ("character_ids" in inputs) == characters
            for row in range(len(following)):
                words = [preprocessor.tokenizer.entries[i] for i in inputs["token_ids"][row] if i]
                target_ids = inputs["target_ids"][row].numpy()
                next_ids = following[row].numpy()
                number = (target_ids > 0).sum()
                assert (next_ids[number:] == -1).all() and next_ids[number - 1] == 2
                assert (target_ids[1:number] == next_ids[: number - 1]).all() and target_ids[0] == 1
                assert decode_tree(next_ids, preprocessor.labels, tuple(words)) in trees
                seen += 1
        assert seen == len(trees)


def test_the_treebank_sample(data_root):
    import zipfile

    archive = zipfile.ZipFile(data_root / "parsing-nltk-treebank" / "treebank.zip")
    names = sorted(name for name in archive.namelist() if name.endswith(".mrg"))
    trees = [tree for name in names[-20:] for tree in parse(archive.read(name).decode())]
    assert (len(names), len(trees)) == (199, 245)
    for tree in trees:
        assert ka.data.build_tree(ka.data.linearize_tree(tree), tree.tokens) == tree


def test_a_deep_tree_is_written_and_read():
    """Write a tree deeper than Python's stack, with brackets in words."""
    names = [*["(S"] * 3000, "SYM", *[")"] * 3000]
    tree = ka.data.build_tree(names, ["(:"])
    assert ka.data.linearize_tree(tree) == names
    assert tree.tokens == ("(:",) and tree.tags == ("SYM",)
    assert str(tree) == "(S " * 3000 + "(SYM -LRB-:)" + ")" * 3000
    (small,) = ka.data.parse_brackets("(S (SYM -LRB-:))")
    assert str(small) == "(S (SYM -LRB-:))"
