import gzip

import pytest

import keras_attention as ka
from keras_attention.data import Pair, Pairs

GERMAN, ENGLISH = "Guten Tag!\nDanke. \nBitte\u2028sehr\n", "Hello!\r\nThank you.\r\nYou're welcome"
PAIRS = [
    Pair("Guten Tag!", "Hello!"),
    Pair("Danke.", "Thank you."),
    Pair("Bitte\u2028sehr", "You're welcome"),
]


@pytest.fixture
def aligned(tmp_path):
    source, target = tmp_path / "all.de.gz", tmp_path / "all.en"
    source.write_bytes(gzip.compress(GERMAN.encode()))
    target.write_bytes(ENGLISH.encode())
    return source, target


def write(folder, name, text):
    (folder / name).write_text(text, "utf-8")
    return folder / name


def test_aligned_files(aligned):
    data = ka.data.from_pair_files(aligned, test=[aligned, aligned], dev_fraction=0.3)
    assert sorted(data.train + data.dev) == sorted(PAIRS) and len(data.dev) == 1
    assert data.test == PAIRS + PAIRS and repr(data) == "Pairs(train=2, dev=1, test=6 pairs)"
    assert ka.data.from_pair_files(dev=aligned).dev == ka.data.read_pairs(aligned) == PAIRS


@pytest.mark.parametrize(
    "name, text, columns",
    [
        ("a.tsv", "Hello!\tGuten Tag!\tCC-BY\nThank you.\tDanke.\tCC-BY\n", (1, 0)),
        ("a.tsv", 'target\tsource\nHello!\t Guten Tag!\n\nThank you.\t"Danke".\n', None),
        ("a.csv", "de,en\nGuten Tag!,Hello!\nDanke.,Thank you.\n", ("de", "en")),
        ("a.csv", 'Guten Tag!,Hello!\n"Danke.","Thank you."\n', (0, 1)),
        (
            "a.jsonl",
            '{"source": "Guten Tag!", "target": "Hello!"}\n\n'
            '{"target": "Thank you.", "id": 4, "source": "Danke."}\n',
            None,
        ),
    ],
)
def test_files_with_columns(tmp_path, name, text, columns):
    path = write(tmp_path, name, text)
    pairs = ka.data.read_pairs(path, *[columns] if columns else [])
    expected = PAIRS[:2]
    if '"Danke".' in text:  # in a .tsv nothing is quoted
        expected = [PAIRS[0], Pair('"Danke".', "Thank you.")]
    assert pairs == expected
    zipped = tmp_path / f"{name}.gz"
    zipped.write_bytes(gzip.compress(text.encode()))
    options = {"columns": columns} if columns else {}
    assert ka.data.from_pair_files(test=str(zipped), **options).test == expected


def test_fields_of_csv_may_hold_line_ends(tmp_path):
    path = write(tmp_path, "a.csv", 'source,target\n"zwei\nZeilen, ""so""",7\n')
    assert ka.data.read_pairs(path) == [Pair('zwei\nZeilen, "so"', "7")]
    path = write(tmp_path, "a.jsonl", '{"source": "sieben", "target": 7}\n')
    assert ka.data.read_pairs(path) == [Pair("sieben", "7")]


@pytest.mark.parametrize(
    "german, english, message",
    [
        ("a\nb\n", "x\n", r"0.txt has 2 lines and .*1.txt has 1: line n of one must belong"),
        ("a\n\nc\n", "x\ny\nz\n", r"0.txt:2: the line is empty; its partner is 'y'"),
        ("a\nb\n", "x\n \t\n", r"1.txt:2: the line is empty; its partner is 'b'"),
        ("a\n\n", "x\n\n", r"0.txt:2: the line is empty; its partner is ''"),
        ("", "", r"0.txt holds no line"),
    ],
)
def test_lines_without_a_partner(tmp_path, german, english, message):
    paths = tuple(write(tmp_path, f"{i}.txt", text) for i, text in enumerate([german, english]))
    with pytest.raises(ValueError, match=message):
        ka.data.from_pair_files(test=paths)


@pytest.mark.parametrize(
    "name, text, options, message",
    [
        (
            "a.txt",
            "a\tb\n",
            {},
            r"a.txt is no file of pairs: .* ends in .csv, .tsv, .jsonl, .*a tup",
        ),
        ("a.tsv", "a\tb\n", {}, r"a.tsv:1: no column 'source'; the first row names a, b"),
        ("a.tsv", "a\tb\n", {"columns": (0, 2)}, r"a.tsv:1: no column 2, .* the row has 2"),
        ("a.tsv", "source\ttarget\na\n", {}, r"a.tsv:2: found 1 fields where the first row has 2"),
        ("a.tsv", "source\ttarget\na\t \n", {}, r"a.tsv:2: 'target' is empty"),
        ("a.tsv", "source\ttarget\n", {}, r"a.tsv holds no row"),
        ("a.csv", 'source,target\n"a,b\n', {}, r"a.csv:3: no CSV: unexpected end of data"),
        ("a.jsonl", "{}\n", {}, r"a.jsonl:1: no 'source'; the object has "),
        ("a.jsonl", "\n[1]\n", {}, r"a.jsonl:2: expected an object, found '\[1\]'"),
        ("a.jsonl", "{\n", {}, r"a.jsonl:1: no JSON: "),
        (
            "a.jsonl",
            '{"source": "a", "target": null}',
            {},
            r"a.jsonl:1: 'target' is null: expected",
        ),
        (
            "a.tsv",
            "a\tb\n",
            {"columns": ("a",)},
            r"columns=\('a',\): expected two names, or two num",
        ),
        ("a.tsv", "a\tb\n", {"columns": ("a", 1)}, r"columns=\('a', 1\): expected two names"),
    ],
)
def test_broken_files(tmp_path, name, text, options, message):
    with pytest.raises(ValueError, match=message):
        ka.data.from_pair_files(test=write(tmp_path, name, text), **options)


def test_errors(tmp_path):
    with pytest.raises(ValueError, match="No file given"):
        ka.data.from_pair_files()
    with pytest.raises(ValueError, match=r"\('a', 'b', 'c'\): expected two paths"):
        ka.data.read_pairs(("a", "b", "c"))
    with pytest.raises(FileNotFoundError, match="There is no file .*gone.de"):
        ka.data.from_pair_files(test=(tmp_path / "gone.de", tmp_path / "gone.en"))
    with pytest.raises(ValueError, match="No pairs given"):
        Pairs.from_lists()
    with pytest.raises(ValueError, match="has 1 example, too few to hold some out"):
        Pairs.from_lists([("a", "b")])


def test_multi30k(data_root):
    here = data_root / "mt-multi30k-de-en"
    dev, test = [
        (here / f"{part}.de.gz", here / f"{part}.en.gz") for part in ("val", "test_2016_flickr")
    ]
    data = ka.data.from_pair_files(dev=dev, test=test)
    assert [len(part) for part in (data.train, data.dev, data.test)] == [0, 1014, 1000]
    assert data.test[0].target == "A man in an orange hat starring at something."
