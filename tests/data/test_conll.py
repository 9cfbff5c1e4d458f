import pytest

import keras_attention as ka


def write(folder, text, name="made.conll"):
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_two_columns_and_a_blank_line_with_a_tab(tmp_path):
    path = write(tmp_path, "#ada\tB-person\nLovelace\tI-person\n\t\nsmiles\tO\n\n\n")
    assert ka.data.read_conll(path) == [
        (("#ada", "Lovelace"), ("B-person", "I-person")),
        (("smiles",), ("O",)),
    ]


CONLL_2003 = """-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O

-DOCSTART- -X- -X- O
"""


def test_several_columns_with_spaces_and_document_lines(tmp_path):
    path = write(tmp_path, CONLL_2003)
    assert ka.data.read_conll(path) == [(("EU", "rejects"), ("B-ORG", "O"))]
    assert ka.data.read_conll(path, label_column=1)[0].tags == ("NNP", "VBZ")
    assert ka.data.read_conll(path, 3, 0) == [(("B-ORG", "O"), ("EU", "rejects"))]


def test_tokens_with_spaces_where_tabs_separate(tmp_path):
    path = write(tmp_path, "New York\tB-LOC\nis\tO\n")
    assert ka.data.read_conll(path)[0].tokens == ("New York", "is")


def test_labels_begin_with_o(tmp_path):
    path = write(tmp_path, "a\tI-x\nb\tB-x\nc\tO\nd\tA\n")
    assert ka.data.from_conll(test=path).labels == ("O", "A", "B-x", "I-x")


@pytest.mark.parametrize(
    "text, message",
    [
        ("a\tO\nword\n", ":2: expected a token and its tag in columns, found only 'word'"),
        ("a\tO\n\nb\tx\tO\n", r":3: found 3 columns .* have 2: \['b', 'x', 'O'\]"),
        ("a\tO\nb\t \n", r":2: the tag is empty: \['b', ' '\]"),
        ("a\tO\n\tO\n", ":2: the token is empty"),
    ],
)
def test_broken_lines(tmp_path, text, message):
    with pytest.raises(ValueError, match=f"made.conll{message}"):
        ka.data.from_conll(write(tmp_path, text))


def test_wrong_arguments(tmp_path):
    path = write(tmp_path, "a\tO\n")
    with pytest.raises(ValueError, match=":1: there is no column label_column=5: the line has 2"):
        ka.data.from_conll(path, label_column=5)
    with pytest.raises(ValueError, match=":1: there is no column token_column=-3"):
        ka.data.from_conll(path, token_column=-3)
    with pytest.raises(ValueError, match="made.conll holds no sentence"):
        ka.data.from_conll(write(tmp_path, "\n\t\n"))
    with pytest.raises(ValueError, match="No file given"):
        ka.data.from_conll(train=None)


def test_wnut17(data_root):
    folder = data_root / "ner-wnut17"
    names = ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated")
    data = ka.data.from_conll(*(folder / name for name in names))
    splits = (data.train, data.dev, data.test)
    assert [len(split) for split in splits] == [3394, 1009, 1287]
    assert [sum(len(s.tokens) for s in split) for split in splits] == [62730, 15733, 23394]
    begins = [sum(t.startswith("B-") for s in split for t in s.tags) for split in splits]
    assert begins == [1975, 836, 1079] and len(data.labels) == 13
    metric = ka.training.EntityF1(data.labels)
    assert metric.types == [
        "corporation",
        "creative-work",
        "group",
        "location",
        "person",
        "product",
    ]
