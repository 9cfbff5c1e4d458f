"""Text files in other encodings than UTF-8, and errors that suggest an encoding."""

import gzip

import pytest

import keras_attention as ka

ROW = "{}\t{}\t_\t{}\t_\t_\t_\t_\t_\t_\n"
CONLLU = ROW.format(1, "Größe", "N") + ROW.format(2, "zählt", "V") + "\n"

READERS = {
    "conll": (ka.data.from_conll, "a.conll", "Größe\tN\nzählt\tV\n", "test"),
    "conllu": (ka.data.from_conllu, "a.conllu", CONLLU, "test"),
    "csv": (ka.data.from_text_files, "a.csv", 'label,text\nja,"Größe, die\nzählt"\n', "test"),
    "jsonl": (ka.data.from_text_files, "a.jsonl", '{"text": "Größe", "label": "ß"}\n', "test"),
    "pairs": (ka.data.from_pair_files, "a.tsv", "source\ttarget\nGröße\tsize\n", "test"),
    "plain": (ka.data.from_plain_text, "a.txt", "Größe zählt.\n", "test"),
}


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8", "utf-8-sig", "cp1252", "utf-16", "latin-1"])
@pytest.mark.parametrize("name", READERS)
def test_examples_do_not_depend_on_the_encoding(tmp_path, name, encoding):
    read, file, text, part = READERS[name]
    (tmp_path / file).write_bytes(text.encode("utf-8"))
    expected = getattr(read(**{part: tmp_path / file}), part)
    (tmp_path / file).write_bytes(text.encode(encoding))
    examples = getattr(read(**{part: tmp_path / file}, encoding=encoding), part)
    assert examples == expected and "Größe" in str(examples)


def test_aligned_files_and_folders(tmp_path):
    for name in ("test.de", "test.en", "good/1.txt", "good/deep/2.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes("Größe\r\n".encode("latin-1"))
    (tmp_path / "test.de").unlink()
    (tmp_path / "test.de.gz").write_bytes(gzip.compress("Größe\n".encode("latin-1")))
    aligned = (tmp_path / "test.de.gz", tmp_path / "test.en")
    assert ka.data.from_pair_files(test=aligned, encoding="latin-1").test == [("Größe", "Größe")]
    texts = ka.data.from_text_files(test=tmp_path, encoding="latin-1").test
    assert texts == [("Größe", "good")]
    texts = ka.data.from_plain_text(test=tmp_path, encoding="latin-1").test
    assert texts == "Größe\n\nGröße\n"


@pytest.mark.parametrize("name", READERS)
def test_error_names_the_byte_that_is_not_utf_8(tmp_path, name):
    read, file, text, part = READERS[name]
    content = text.encode("cp1252")
    (tmp_path / file).write_bytes(content)
    place = content.index("ö".encode("cp1252")) if b"\xf6" in content else None
    line = 1 + content.count(b"\n", 0, place)
    message = (
        rf"{file}:{line}: not UTF-8: byte 0xf6 at position {place}\. Name the encoding of the "
        r"file, such as encoding='cp1252'\.$"
    )
    with pytest.raises(ValueError, match=message):
        read(**{part: tmp_path / file})


@pytest.mark.parametrize(
    ("content", "encoding", "message"),
    [
        (b"a\nb\xc3", "utf-8", r"a.txt:2: not UTF-8: byte 0xc3 at position 3\. Name the encoding"),
        (
            "Größe".encode("utf-16"),
            "utf-8",
            r"0xff at position 0\. .* encoding='utf-16'\.$",
        ),
        (
            b"a\nb\xf6",
            "ascii",
            r"a.txt:2: not ascii: byte 0xf6 .* such as encoding='utf-8'",
        ),
        (b"a\x00b", "utf-16", r"a.txt:1: not utf-16: byte 0x62 at position 2"),
        (b"a", "utf-9", r"encoding='utf-9': expected an encoding of text that Python has"),
        (b"a", "hex", "encoding='hex': expected an encoding of text"),
        (b"a", "", "encoding='': expected an encoding of text"),
        (b"a", None, "encoding=None: expected an encoding of text"),
    ],
)
def test_wrong_encodings_are_errors(tmp_path, content, encoding, message):
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        ka.data.from_plain_text(tmp_path / "a.txt", encoding=encoding)
