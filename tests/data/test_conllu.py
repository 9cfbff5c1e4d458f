import gzip
import pathlib

import pytest

import keras_attention as ka

TINY = pathlib.Path(__file__).with_name("tiny.conllu")
ROW = "{}\t{}\tlemma\t{}\tNN\tCase=Nom\t0\troot\t_\t_\n"


def write(folder, *rows, end="\n"):
    path = folder / "made.conllu"
    path.write_text("".join(ROW.format(*row) for row in rows) + end, "utf-8")
    return path


def test_words_only():
    sentences = ka.data.read_conllu(TINY)
    assert len(sentences) == 30
    assert sentences[4].tokens == ("He", "did", "n't", "answer", "her", "letter", ".")
    assert sentences[4].tags == ("PRON", "AUX", "PART", "VERB", "PRON", "NOUN", "PUNCT")
    # an empty node after "apples", which has a tag as well, is no word
    assert " ".join(sentences[9].tokens) == "She bought three apples and a pear ."
    assert len({tag for sentence in sentences for tag in sentence.tags}) == 16


@pytest.mark.parametrize(
    "column, tag", [("upos", "NOUN"), ("xpos", "NN"), ("feats", "Case=Nom"), ("deprel", "root")]
)
def test_columns(tmp_path, column, tag):
    data = ka.data.from_conllu(test=write(tmp_path, (1, "Dogs", "NOUN")), column=column)
    assert data.test == [ka.data.Sentence(("Dogs",), (tag,))] and data.labels == (tag,)


@pytest.mark.parametrize("end", ["", "\n", "\n\n \n"])
def test_ends_of_files_and_of_lines(tmp_path, end):
    path = write(tmp_path, (1, "a", "X"), (2, "b", "Y"), end=end)
    assert ka.data.read_conllu(path) == [(("a", "b"), ("X", "Y"))]
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert ka.data.read_conllu(path) == [(("a", "b"), ("X", "Y"))]


def test_words_keep_strange_characters(tmp_path):
    words = ["1 000", "a\u2028b", "\u00a0", "#", "_"]
    path = write(tmp_path, *((i, word, "X") for i, word in enumerate(words, 1)))
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
        (ROW.format("x", "b", "X"), ":2: 'x' is no ID: expected an integer, 3-4 or 5.1"),
        (ROW.format("²", "b", "X"), ":2: '²' is no ID"),
        (ROW.format("3", "b", "X"), ":2: expected the word with ID 2, found ID 3"),
        (ROW.format("1", "b", "X"), ":2: expected the word with ID 2, found ID 1"),
        (ROW.format("2", "", "X"), r":2: the word \(FORM, column 2\) is empty"),
        (ROW.format("2", "b", "_"), r":2: the word 'b' has no upos \(column 4 is '_'\)"),
        (ROW.format("2", "b", ""), r":2: the word 'b' has no upos \(column 4 is ''\)"),
    ],
)
def test_broken_lines(tmp_path, second_line, message):
    path = write(tmp_path, (1, "a", "X"), end=second_line)
    with pytest.raises(ValueError, match=f"made.conllu{message}"):
        ka.data.from_conllu(path)


def test_broken_files(tmp_path):
    path = tmp_path / "broken"
    path.write_bytes(b"# one\n# two\n1\t\xff\n")
    with pytest.raises(ValueError, match=r"broken:3: not UTF-8 \(byte 0xff\)"):
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


def test_wrong_arguments():
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
