import gzip
import pathlib

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.data import Sentence, TaggerPreprocessor
from keras_attention.data.splits import hold_out


def test_dev_is_held_out_of_train_by_seed():
    whole = ka.data.read_conllu(TINY)
    first = ka.data.from_conllu(TINY, test=TINY, dev_fraction=0.2, seed=3)
    again = ka.data.from_conllu(TINY, test=TINY, dev_fraction=0.2, seed=3)
    other = ka.data.from_conllu(TINY, test=TINY, dev_fraction=0.2, seed=4)
    assert len(first.dev) == 6 and len(first.train) == 24 and first.test == whole
    assert sorted(first.train + first.dev) == sorted(whole)
    assert first == again and first.dev != other.dev
    assert ka.data.from_conllu(TINY, dev_fraction=0).dev == []


def test_dev_does_not_change_if_it_is_passed():
    data = ka.data.from_conllu(TINY, dev=TINY)
    assert data.train == data.dev == ka.data.read_conllu(TINY)


def test_labels_of_every_part():
    parts = [[ka.data.Sentence(("a",), (tag,))] for tag in ("N", "O", "A")]
    data = Sentence.collect(*parts)
    assert data.labels == ("O", "A", "N")
    assert repr(data) == "DataSet(Sentence: train=1, dev=1, test=1, 3 labels)"


def test_held_out_indices():
    remaining, held = hold_out(11, 0.25, seed=0)
    assert len(held) == 3 and sorted([*remaining, *held]) == list(range(11))
    assert list(held) == sorted(held) and len(hold_out(5, 0.01, 0)[1]) == 1
    with pytest.raises(ValueError, match="dev_fraction=1.0: expected a number from 0 to below 1"):
        hold_out(11, 1.0, 0)
    with pytest.raises(ValueError, match="The training part has 1 example"):
        hold_out(1, 0.1, 0)


def write_conll(folder, text, name="made.conll"):
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_two_columns_and_a_blank_line_with_a_tab(tmp_path):
    path = write_conll(tmp_path, "#ada\tB-person\nLovelace\tI-person\n\t\nsmiles\tO\n\n\n")
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
    path = write_conll(tmp_path, CONLL_2003)
    assert ka.data.read_conll(path) == [(("EU", "rejects"), ("B-ORG", "O"))]
    assert ka.data.read_conll(path, label_column=1)[0].tags == ("NNP", "VBZ")
    assert ka.data.read_conll(path, 3, 0) == [(("B-ORG", "O"), ("EU", "rejects"))]


def test_tokens_with_spaces_where_tabs_separate(tmp_path):
    path = write_conll(tmp_path, "New York\tB-LOC\nis\tO\n")
    assert ka.data.read_conll(path)[0].tokens == ("New York", "is")


def test_labels_begin_with_o(tmp_path):
    path = write_conll(tmp_path, "a\tI-x\nb\tB-x\nc\tO\nd\tA\n")
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
def test_broken_lines_of_conll(tmp_path, text, message):
    with pytest.raises(ValueError, match=f"made.conll{message}"):
        ka.data.from_conll(write_conll(tmp_path, text))


def test_wrong_columns_of_conll(tmp_path):
    path = write_conll(tmp_path, "a\tO\n")
    with pytest.raises(ValueError, match=":1: label_column=5: the line has 2 columns"):
        ka.data.from_conll(path, label_column=5)
    with pytest.raises(ValueError, match=":1: token_column=-3: the line has 2 columns"):
        ka.data.from_conll(path, token_column=-3)
    with pytest.raises(ValueError, match="made.conll holds no sentence"):
        ka.data.from_conll(write_conll(tmp_path, "\n\t\n"))
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


TINY = pathlib.Path(__file__).with_name("tiny.conllu")
ROW = "{}\t{}\tlemma\t{}\tNN\tCase=Nom\t0\troot\t_\t_\n"


def write_conllu(folder, *rows, end="\n"):
    path = folder / "made.conllu"
    path.write_text("".join(ROW.format(*row) for row in rows) + end, "utf-8")
    return path


def test_words_only():
    sentences = ka.data.read_conllu(TINY)
    assert len(sentences) == 30
    assert sentences[4].tokens == ("He", "did", "n't", "answer", "her", "letter", ".")
    assert sentences[4].tags == ("PRON", "AUX", "PART", "VERB", "PRON", "NOUN", "PUNCT")
    # an empty node after "apples", which also has a tag, is not a word
    assert " ".join(sentences[9].tokens) == "She bought three apples and a pear ."
    assert len({tag for sentence in sentences for tag in sentence.tags}) == 16


def test_the_library_conllu_reads_the_same_words():
    conllu = pytest.importorskip("conllu")
    parsed = conllu.parse(TINY.read_text("utf-8"))
    words = [[word for word in sentence if isinstance(word["id"], int)] for sentence in parsed]
    for column in ("upos", "lemma"):
        expected = [tuple((w["form"], w[column]) for w in sentence) for sentence in words]
        sentences = ka.data.read_conllu(TINY, column)
        assert [tuple(zip(*sentence, strict=True)) for sentence in sentences] == expected


@pytest.mark.parametrize(
    "column, tag", [("upos", "NOUN"), ("xpos", "NN"), ("feats", "Case=Nom"), ("deprel", "root")]
)
def test_columns(tmp_path, column, tag):
    data = ka.data.from_conllu(test=write_conllu(tmp_path, (1, "Dogs", "NOUN")), column=column)
    assert data.test == [ka.data.Sentence(("Dogs",), (tag,))] and data.labels == (tag,)


@pytest.mark.parametrize("end", ["", "\n", "\n\n \n"])
def test_ends_of_files_and_of_lines(tmp_path, end):
    path = write_conllu(tmp_path, (1, "a", "X"), (2, "b", "Y"), end=end)
    assert ka.data.read_conllu(path) == [(("a", "b"), ("X", "Y"))]
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert ka.data.read_conllu(path) == [(("a", "b"), ("X", "Y"))]


def test_words_keep_unusual_characters(tmp_path):
    words = ["1 000", "a\u2028b", "\u00a0", "#", "_"]
    path = write_conllu(tmp_path, *((i, word, "X") for i, word in enumerate(words, 1)))
    assert list(ka.data.read_conllu(path)[0].tokens) == words


def test_several_gzipped_files(tmp_path):
    path = tmp_path / "no-suffix-needed"
    path.write_bytes(gzip.compress(TINY.read_bytes()))
    data = ka.data.from_conllu([path, TINY], dev=TINY, test=str(TINY))
    assert [len(split) for split in (data.train, data.dev, data.test)] == [60, 30, 30]


@pytest.mark.parametrize(
    "second_line, message",
    [
        ("1\tdogs\tNOUN\n", r":2: expected 10 columns separated by tabs, found 3: '1\\tdogs"),
        (ROW.format("x", "b", "X"), ":2: 'x' is not an ID: expected an integer, 3-4 or 5.1"),
        (ROW.format("²", "b", "X"), ":2: '²' is not an ID"),
        (ROW.format("3", "b", "X"), ":2: expected the word with ID 2, found ID 3"),
        (ROW.format("1", "b", "X"), ":2: expected the word with ID 2, found ID 1"),
        (ROW.format("2", "", "X"), r":2: the word \(FORM, column 2\) is empty"),
        (ROW.format("2", "b", "_"), r":2: the word 'b' has no upos \(column 4 is '_'\)"),
        (ROW.format("2", "b", ""), r":2: the word 'b' has no upos \(column 4 is ''\)"),
    ],
)
def test_broken_lines_of_conllu(tmp_path, second_line, message):
    path = write_conllu(tmp_path, (1, "a", "X"), end=second_line)
    with pytest.raises(ValueError, match=f"made.conllu{message}"):
        ka.data.from_conllu(path)


def test_broken_files(tmp_path):
    path = tmp_path / "broken"
    path.write_bytes(b"# one\n# two\n1\t\xff\n")
    with pytest.raises(ValueError, match=r"broken:3: not UTF-8: byte 0xff at position 14\."):
        ka.data.from_conllu(path)
    path.write_bytes(gzip.compress(TINY.read_bytes())[:-20])
    with pytest.raises(ValueError, match="broken is a broken gzip file"):
        ka.data.from_conllu(path)
    path.write_text("# text = nothing\n\n")
    with pytest.raises(ValueError, match="broken holds no sentence"):
        ka.data.from_conllu(path)
    with pytest.raises(FileNotFoundError, match=r"There is no file .*missing\.conllu"):
        ka.data.from_conllu(tmp_path / "missing.conllu")
    with pytest.raises(IsADirectoryError, match=f"{tmp_path.name} is a folder"):
        ka.data.from_conllu(tmp_path)
    with pytest.raises(ValueError, match="tiny.conllu has nothing in its column xpos"):
        ka.data.from_conllu(TINY, column="xpos")


def test_wrong_columns_of_conllu():
    with pytest.raises(ValueError, match="column='pos': expected one of lemma, upos, xpos"):
        ka.data.from_conllu(TINY, column="pos")
    with pytest.raises(ValueError, match="No file given"):
        ka.data.from_conllu()


def test_english_web_treebank(data_root):
    folder = data_root / "tfds-universal-dependencies"
    paths = {s: folder / f"en_ewt-ud-{s}.conllu.gz" for s in ("train", "dev", "test")}
    data = ka.data.from_conllu(**paths)
    assert (len(data.train), len(data.dev), len(data.test)) == (12543, 2001, 2077)
    assert len(data.labels) == 17 and max(len(s.tokens) for s in data.train) == 159


def test_chinese(data_root):
    paths = [
        data_root / f"pos-ud-chinese-gsdsimp/zh_gsdsimp-ud-{s}.conllu.gz" for s in ("dev", "test")
    ]
    words = [sum(len(s.tokens) for s in ka.data.read_conllu(path)) for path in paths]
    assert words == [12663, 12012]
    data = ka.data.from_conllu(dev=paths[0], test=paths[1], column="xpos")
    assert len(data.labels) == 37 and data.train == []


def sentences_of(lengths):
    """Return different sentences: token k of sentence i is `i-k`, its tag the parity of k."""
    return [
        Sentence(tuple(f"{i}-{k}" for k in range(n)), tuple("EO"[k % 2] for k in range(n)))
        for i, n in enumerate(lengths)
    ]


def read(batches, preprocessor):
    """Return the sentences of batches, decoded from their ids."""
    sentences = []
    for inputs, labels in batches:
        for ids, tags in zip(np.asarray(inputs["token_ids"]), np.asarray(labels), strict=True):
            length = int((tags >= 0).sum())
            assert (ids[:length] != 0).all() and (ids[length:] == 0).all()
            assert (tags[length:] == -1).all()
            tokens = tuple(preprocessor.tokenizer.entries[i] for i in ids[:length])
            sentences.append(
                Sentence(tokens, tuple(preprocessor.labels.names[i] for i in tags[:length]))
            )
    return sentences


LENGTHS = [1, 8, 9, 3, 16, 17, 40, 2, 8, 5, 24, 7, 1]


@pytest.mark.slow
@pytest.mark.parametrize("shuffle", [False, True])
def test_every_sentence_once_with_its_neighbours_in_length(shuffle):
    sentences = sentences_of(LENGTHS)
    preprocessor = TaggerPreprocessor.build(sentences, word_length=5)
    batches = ka.data.batches(sentences, preprocessor, 3, shuffle=shuffle, seed=1)
    assert sorted(read(batches, preprocessor)) == sorted(sentences)
    widths = sorted(labels.shape[1] for _, labels in batches)
    assert widths == [8, 8, 8, 16, 24, 40]  # 8 sentences up to 8 long, 2 to 16, 2 to 24, 1 of 40
    assert len(batches) == len(list(batches)) == 6


def test_inputs_equal_the_preprocessors():
    data = ka.data.from_conllu(TINY)
    preprocessor = TaggerPreprocessor.build(data.train[:9], data.labels, word_length=6)
    inputs, labels = next(iter(ka.data.batches(data.train, preprocessor, 4, edges=[])))
    first = data.train[:4]
    length = max(len(s.tokens) for s in data.train)
    expected = preprocessor([s.tokens for s in first], sequence_length=length)
    for name, value in expected.items():
        np.testing.assert_array_equal(inputs[name], value)
        assert inputs[name].dtype == "int32" and labels.dtype == "int32"
    for row, sentence in zip(np.asarray(labels), first, strict=True):
        assert row[: len(sentence.tags)].tolist() == data_ids(data.labels, sentence.tags)


def data_ids(labels, tags):
    return [labels.index(tag) for tag in tags]


@pytest.mark.slow
def test_shuffling_changes_by_epoch_and_repeats_by_seed():
    sentences = sentences_of([4] * 20)
    preprocessor = TaggerPreprocessor.build(sentences, word_length=5)

    def epochs(seed):
        batches = ka.data.batches(sentences, preprocessor, 4, shuffle=True, seed=seed)
        return [read(batches, preprocessor) for _ in range(2)]

    first, second = epochs(1)
    assert first != second and [first, second] == epochs(1) and first != epochs(2)[0]
    plain = ka.data.batches(sentences, preprocessor, 4)
    assert read(plain, preprocessor) == sentences


def test_batches_of_words_have_chosen_edges():
    sentences = sentences_of([2, 3, 7])
    preprocessor = TaggerPreprocessor.build(sentences, characters=False)
    batches = list(ka.data.batches(sentences, preprocessor, 2, edges=[4, 6]))
    assert [ids.shape.as_list() for ids, _ in batches] == [[2, 4], [1, 7]]


@pytest.mark.slow
def test_fits_with_a_known_number_of_steps():
    data = ka.data.from_conllu(TINY)
    preprocessor = TaggerPreprocessor.build(data.train, data.labels, characters=False)
    model = keras.Sequential(
        [
            keras.layers.Embedding(len(preprocessor.tokenizer), 8, mask_zero=True),
            keras.layers.Dense(len(preprocessor.labels)),
        ]
    )
    model.compile(
        "adam",
        ka.training.MaskedSparseCategoricalCrossentropy(),
        metrics=[ka.training.MaskedSparseCategoricalAccuracy(name="accuracy")],
    )
    batches = ka.data.batches(data.train, preprocessor, 8, shuffle=True)
    history = model.fit(batches, validation_data=batches, shuffle=False, verbose=0).history
    assert np.isfinite(history["val_loss"]).all() and 0 < history["val_accuracy"][0] < 1


def test_errors():
    preprocessor = TaggerPreprocessor.build(sentences_of([2]))
    with pytest.raises(ValueError, match="There is no example"):
        ka.data.batches([], preprocessor)
    with pytest.raises(
        ValueError, match=r"Sentence \d+ tags .* as 'Z', which is not among the labels: E, O"
    ):
        ka.data.batches([Sentence(("a",), ("Z",))], preprocessor)
