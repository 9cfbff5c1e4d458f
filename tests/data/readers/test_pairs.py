import gzip

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.data import Characters, Pair, SequencePreprocessor

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
    assert data.test == PAIRS + PAIRS and repr(data) == "DataSet(Pair: train=2, dev=1, test=6)"
    assert ka.data.from_pair_files(dev=aligned).dev == ka.data.read_pairs(aligned) == PAIRS


COLUMNS = "text_column", "label_column"


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
    names = {} if columns is None else dict(zip(COLUMNS, columns, strict=True))
    pairs = ka.data.read_pairs(path, **names)
    expected = PAIRS[:2]
    if '"Danke".' in text:  # in a .tsv nothing is quoted
        expected = [PAIRS[0], Pair('"Danke".', "Thank you.")]
    assert pairs == expected
    zipped = tmp_path / f"{name}.gz"
    zipped.write_bytes(gzip.compress(text.encode()))
    assert ka.data.from_pair_files(test=str(zipped), **names).test == expected


def test_fields_of_csv_may_hold_line_ends(tmp_path):
    path = write(tmp_path, "a.csv", 'source,target\n"zwei\nZeilen, ""so""",7\n')
    assert ka.data.read_pairs(path) == [Pair('zwei\nZeilen, "so"', "7")]
    path = write(tmp_path, "a.jsonl", '{"source": "sieben", "target": 7}\n')
    assert ka.data.read_pairs(path) == [Pair("sieben", "7")]


@pytest.mark.parametrize(
    "german, english, message",
    [
        ("a\nb\n", "x\n", r"0.txt has 2 lines and .*1.txt has 1: line n of one must belong"),
        ("a\n\nc\n", "x\ny\nz\n", r"0.txt:2: the line is empty, its partner is 'y'"),
        ("a\nb\n", "x\n \t\n", r"1.txt:2: the line is empty, its partner is 'b'"),
        ("a\n\n", "x\n\n", r"0.txt:2: the line is empty, its partner is ''"),
        ("", "", r"0.txt has no line"),
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
            "a.text",
            "a\tb\n",
            {},
            r"a.text is not a file of pairs: .* ends in .csv, .tsv, .jsonl, .*a tup",
        ),
        ("a.tsv", "a\tb\n", {}, r"a.tsv:1: no column 'source', the first row names a, b"),
        (
            "a.tsv",
            "a\tb\n",
            {},
            r"Choose with text_column= a name, or a number",
        ),
        (
            "a.tsv",
            "a\tb\n",
            {"text_column": 0, "label_column": 2},
            r"a.tsv:1: no column 2, .* the row has 2",
        ),
        ("a.tsv", "source\ttarget\na\n", {}, r"a.tsv:2: found 1 fields where the first row has 2"),
        ("a.tsv", "source\ttarget\na\t \n", {}, r"a.tsv:2: 'target' is empty"),
        ("a.tsv", "source\ttarget\n", {}, r"a.tsv has no row"),
        ("a.csv", 'source,target\n"a,b\n', {}, r"a.csv:3: not CSV: unexpected end of data"),
        ("a.jsonl", "{}\n", {}, r"a.jsonl:1: no 'source', the object has "),
        ("a.jsonl", "\n[1]\n", {}, r"a.jsonl:2: expected an object, found '\[1\]'"),
        ("a.jsonl", "{\n", {}, r"a.jsonl:1: not JSON: "),
        (
            "a.jsonl",
            '{"source": "a", "target": null}',
            {},
            r"a.jsonl:1: 'target' is null: expected",
        ),
        (
            "a.tsv",
            "a\tb\n",
            {"text_column": "a", "label_column": 1},
            r"columns=\('a', 1\): expected two names",
        ),
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
    with pytest.raises(ValueError, match="No Pair given"):
        Pair.collect()
    with pytest.raises(ValueError, match="has 1 example: give more, a dev part"):
        Pair.collect([("a", "b")])


def test_multi30k(data_root):
    folder = data_root / "mt-multi30k-de-en"
    dev, test = [
        (folder / f"{part}.de.gz", folder / f"{part}.en.gz") for part in ("val", "test_2016_flickr")
    ]
    data = ka.data.from_pair_files(dev=dev, test=test)
    assert [len(part) for part in (data.train, data.dev, data.test)] == [0, 1014, 1000]
    assert data.test[0].target == "A man in an orange hat starring at something."


pytestmark = pytest.mark.tensorflow
LETTERS = "abcdefghijklmnopqrstuvwxyz"
CHARACTERS = Characters.build([LETTERS])
PREPROCESSOR = SequencePreprocessor(CHARACTERS, CHARACTERS)


def pairs_of(lengths):
    """Return different pairs of these lengths, whose first letters encode the lengths."""
    return [
        Pair(LETTERS[i] * source, LETTERS[i] * (target - 1) + "z")
        for i, (source, target) in enumerate(lengths)
    ]


# (source, target), without END and BEGIN: longer sides of 4 to 26
LENGTHS = [(3, 3), (7, 2), (2, 7), (8, 4), (5, 15), (25, 3), (3, 24), (6, 6), (1, 1), (14, 14)]


def read(batches):
    """Return the pairs of batches, decoded from their ids."""
    pairs = []
    for inputs, labels in batches:
        sources, targets = np.asarray(inputs["source_ids"]), np.asarray(inputs["target_ids"])
        labels = np.asarray(labels)
        assert sources.dtype == targets.dtype == labels.dtype == np.int32
        assert targets.shape == labels.shape and len(sources) == len(targets)
        for source, target, label in zip(sources, targets, labels, strict=True):
            n, t = (source != 0).sum(), (target != 0).sum()
            assert (
                (source[n:] == 0).all() and source[n - 1] == 3 and not (source[: n - 1] < 4).any()
            )
            assert target[0] == 2 and (label[t:] == -1).all() and label[t - 1] == 3
            np.testing.assert_array_equal(target[1:t], label[: t - 1])  # labels are the next tokens
            pairs += [Pair(*CHARACTERS.decode([source, label]))]
    return pairs


@pytest.mark.slow
@pytest.mark.parametrize("shuffle", [False, True])
def test_every_pair_once_with_its_neighbours_in_length(shuffle):
    pairs = pairs_of(LENGTHS)
    batches = ka.data.batches(pairs, PREPROCESSOR, 3, shuffle=shuffle, seed=1)
    assert sorted(read(batches)) == sorted(pairs) and len(batches) == len(list(batches)) == 4
    # Sides up to 8 long: 5 pairs. To 16: 3. To 24: none. To the longest, 26: 2.
    sizes = sorted(len(labels) for _, labels in batches)
    assert sizes == [2, 2, 3, 3]


@pytest.mark.slow
def test_both_sides_are_padded_to_edges_of_their_own():
    pairs = pairs_of([(25, 3), (24, 3)])
    ((inputs, labels),) = ka.data.batches(pairs, PREPROCESSOR)
    assert inputs["source_ids"].shape == (2, 26) and labels.shape == (2, 4)
    ((inputs, labels),) = ka.data.batches(pairs, PREPROCESSOR, edges=[30])
    assert inputs["source_ids"].shape == (2, 26) and labels.shape == (2, 4)
    pairs = pairs_of([(25, 3), (24, 3), (3, 25)])
    ((inputs, labels),) = ka.data.batches(pairs, PREPROCESSOR, edges=[8])
    assert inputs["source_ids"].shape == (3, 26) and labels.shape == (3, 26)
    first, second = ka.data.batches(pairs, PREPROCESSOR, 2, edges=[8])
    assert first[1].shape == (2, 8) and second[0]["source_ids"].shape == (1, 8)


def test_token_limit():
    pairs = pairs_of(LENGTHS)
    batches = ka.data.batches(pairs, PREPROCESSOR, 64, max_tokens=32)
    assert sorted(read(batches)) == sorted(pairs) and len(batches) == len(list(batches))
    for inputs, labels in batches:
        assert np.size(inputs["source_ids"]) <= 32 and np.size(labels) <= 32
    sizes = sorted(len(labels) for _, labels in batches)
    assert sizes == [1, 1, 1, 1, 2, 4]  # 4 of 8, 2 of 16 and 1 of 26 are 32 tokens at most
    limited = ka.data.batches(pairs, PREPROCESSOR, 2, max_tokens=32)
    assert max(len(labels) for _, labels in limited) == 2
    with pytest.raises(ValueError, match="max_tokens=20: the longest examples are padded to 26"):
        ka.data.batches(pairs, PREPROCESSOR, max_tokens=20)


@pytest.mark.slow
def test_shuffling_changes_by_epoch_and_repeats_by_seed():
    pairs = pairs_of([(4, 4)] * 20)

    def epochs(seed):
        batches = ka.data.batches(pairs, PREPROCESSOR, 4, shuffle=True, seed=seed)
        return [read(batches) for _ in range(2)]

    first, second = epochs(1)
    assert first != second and [first, second] == epochs(1) and first != epochs(2)[0]
    assert read(ka.data.batches(pairs, PREPROCESSOR, 4)) == pairs


@pytest.mark.slow
def test_fits():
    source, target = (
        keras.Input((None,), name="source_ids"),
        keras.Input((None,), name="target_ids"),
    )
    embed = keras.layers.Embedding(len(CHARACTERS), 8)
    x = embed(target) + keras.ops.mean(embed(source), axis=1, keepdims=True)
    model = keras.Model(
        {"source_ids": source, "target_ids": target}, keras.layers.Dense(len(CHARACTERS))(x)
    )
    model.compile("adam", ka.training.MaskedSparseCategoricalCrossentropy(), jit_compile=False)
    batches = ka.data.batches(pairs_of(LENGTHS), PREPROCESSOR, 4, shuffle=True)
    history = model.fit(batches, epochs=2, shuffle=False, verbose=0).history
    assert history["loss"][1] < history["loss"][0]


def test_batches_refuse():
    with pytest.raises(ValueError, match="There is no example"):
        ka.data.batches([], PREPROCESSOR)
    with pytest.raises(ValueError, match=r"batch_size=0\): .* at least 1"):
        ka.data.batches(pairs_of([(1, 1)]), PREPROCESSOR, 0)
    with pytest.raises(ValueError, match=r"max_tokens=0\): .* at least 1"):
        ka.data.batches(pairs_of([(1, 1)]), PREPROCESSOR, max_tokens=0)
    with pytest.raises(ValueError, match="has no source"):
        ka.data.batches(pairs_of([(1, 1)]), SequencePreprocessor(CHARACTERS))


@pytest.mark.parametrize(
    "content",
    ["Go.\tGeh.\tCC-BY 2.0\nHi.\tHallo!\n", "target\tsource\nGeh.\tGo.\nHallo!\tHi.\n"],
)
def test_a_text_file_with_tabs(tmp_path, content):
    path = tmp_path / "deu.txt"
    path.write_text(content, "utf-8")
    assert ka.data.read_pairs(path) == [("Go.", "Geh."), ("Hi.", "Hallo!")]
    path.write_text("Go. Geh.\nHi.\t\n", "utf-8")
    with pytest.raises(ValueError, match=r"1: expected a source, a tab[^$]*txt:2: the target is"):
        ka.data.read_pairs(path)
