import gzip

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.data import Characters


def batch_windows(tokens, window_length, batch_size=32, *, steps=None, **options):
    windows = ka.data.TextWindows(tokens, window_length, steps)
    return ka.data.batches(windows, batch_size=batch_size, **options)


def test_plain_text(tmp_path):
    one, two = tmp_path / "one.txt", tmp_path / "two.txt.gz"
    one.write_bytes(b"first\r\nline\r\n")
    two.write_bytes(gzip.compress("zwölf Boxkämpfer".encode()))
    data = ka.data.from_plain_text([one, two], test=two, dev_fraction=0.25)
    whole = "first\nline\n\nzwölf Boxkämpfer"
    assert data.train + data.dev == whole and len(data.dev) == 7  # a quarter of 28, the end
    assert data.test == "zwölf Boxkämpfer"
    assert repr(data) == "DataSet(str: train=21, dev=7, test=16)"
    data = ka.data.from_plain_text(one, dev=str(two))
    assert data.train == "first\nline\n" and data.dev == data.dev and data.test == ""


def test_a_folder_of_texts(tmp_path):
    for name, content in [
        ("b/2.txt", "four\n"),
        ("b/1.txt", "two\nthree\n"),
        ("a.txt", "one"),
        ("b/empty.txt", "\n"),
        (".hidden.txt", "x"),
        (".git/x.txt", "x"),
        ("notes.md", "x"),
    ]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(b"five\n"))
    data = ka.data.from_plain_text([tmp_path], dev_fraction=0)
    assert data.train == "one\n\ntwo\nthree\n\nfour\n\nfive\n"
    data = ka.data.from_plain_text(tmp_path / "b", dev=tmp_path / "a.txt", test=tmp_path)
    assert data.train == "two\nthree\n\nfour\n" and data.dev == "one" and "five" in data.test


def test_errors_of_folders(tmp_path):
    with pytest.raises(ValueError, match=r"holds no text file: expected names .* \.txt\.gz\.$"):
        ka.data.from_plain_text(tmp_path)
    (tmp_path / "book.pdf").write_bytes(b"%PDF")
    with pytest.raises(ValueError, match=r"or \.txt\.gz, found book\.pdf, for example\.$"):
        ka.data.from_plain_text(tmp_path)
    (tmp_path / "a.txt").write_text("\n \n")
    with pytest.raises(ValueError, match=rf"{tmp_path.name} contains only spaces"):
        ka.data.from_plain_text(tmp_path)


def test_errors_of_plain_text(tmp_path):
    with pytest.raises(ValueError, match="No file given"):
        ka.data.from_plain_text()
    (tmp_path / "empty.txt").write_text("\n ")
    with pytest.raises(ValueError, match="empty.txt contains only spaces"):
        ka.data.from_plain_text(tmp_path / "empty.txt")
    with pytest.raises(ValueError, match="dev_fraction=1: expected a number from 0 to below 1"):
        ka.data.from_plain_text(__file__, dev_fraction=1)


@pytest.mark.tensorflow
@pytest.mark.parametrize("length", [2, 11, 12, 13, 23, 24, 25])
def test_every_token_is_a_label_once_in_consecutive_windows(length):
    tokens = np.arange(1, length + 1)
    batches = batch_windows(tokens, window_length=4, batch_size=2)
    ids = np.concatenate([np.asarray(x) for x, _ in batches]).reshape(-1)
    labels = np.concatenate([np.asarray(y) for _, y in batches]).reshape(-1)
    inside = labels >= 0
    assert labels[inside].tolist() == tokens[1:].tolist()
    assert ids[inside].tolist() == tokens[:-1].tolist() and (ids[~inside] == 0).all()
    assert not inside.all() or (length - 1) % 4 == 0 and len(inside) - inside.sum() < 4
    assert len(batches) == len(list(batches)) == -(-(length - 1) // 8)


@pytest.mark.tensorflow
def test_windows_at_random_places():
    tokens = np.arange(10)

    def epoch(batches):
        parts = [(np.asarray(x), np.asarray(y)) for x, y in batches]
        assert {x.shape for x, _ in parts} == {(5, 7)}
        assert {a.dtype.name for part in parts for a in part} == {"int32"}
        assert all((x + 1 == y).all() and (np.diff(x) == 1).all() for x, y in parts)
        return [x[:, 0].tolist() for x, _ in parts]

    batches = batch_windows(tokens, 7, 5, steps=40, seed=1)
    first, second = epoch(batches), epoch(batches)
    assert len(batches) == len(first) == 40
    begins = np.bincount(np.ravel(first), minlength=3)
    assert len(begins) == 3 and (begins > 40).all()  # of 200, every place about a third
    again = batch_windows(tokens, 7, 5, steps=40, seed=1)
    assert first != second and [epoch(again), epoch(again)] == [first, second]
    assert first != epoch(batch_windows(tokens, 7, 5, steps=40, seed=2))


@pytest.mark.tensorflow
def test_errors_of_windows():
    with pytest.raises(ValueError, match="has 4 tokens: too few for a window of 4 and the token"):
        batch_windows([1, 2, 3, 4], 4, steps=1)
    with pytest.raises(ValueError, match=r"tokens of shape \(1,\) .*two or more. Make them of a"):
        batch_windows([1], 4)
    with pytest.raises(ValueError, match=r"shape \(1, 9\) and dtype int64: expected ints \(L,\)"):
        batch_windows([range(9)], 4)
    with pytest.raises(ValueError, match="dtype <U1: expected ints"):
        batch_windows(list("text"), 4)
    for name in ("window_length", "batch_size", "steps"):
        with pytest.raises(ValueError, match=rf"{name}=0\): .* at least 1"):
            batch_windows([1, 2, 3], **{"window_length": 1, name: 0})


def test_shakespeare(data_root):
    """Split as nanoGPT: the last tenth is dev, and there are 65 characters."""
    data = ka.data.from_plain_text(data_root / "lm-tiny-shakespeare" / "input.txt")
    assert len(data.train) == 1_003_854 and len(data.dev) == 111_540
    characters = Characters.build([data.train])
    assert len(characters) == 4 + 65
    assert characters.decode(characters.encode([data.dev])) == [data.dev]


@pytest.mark.parametrize("length", [25, 26, 36, 37])
def test_rows_continue_in_the_next_batch(length):
    text = np.random.default_rng(0).integers(1, 9, size=length)
    tokens, following = ka.data.contiguous_segments(text, batch_size=3, segment_length=4)
    count = (length - 1) // 12
    assert tokens.shape == following.shape == (3 * count, 4)
    for stream in range(3):
        start = stream * count * 4
        rows = slice(stream, None, 3)
        assert np.array_equal(tokens[rows].ravel(), text[start : start + 4 * count])
        assert np.array_equal(following[rows].ravel(), text[start + 1 : start + 4 * count + 1])


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((np.ones(12), 3, 4), r"\(12,\).*3 streams.*at least 13"),
        ((np.ones((2, 30)), 3, 4), r"\(2, 30\)"),
        ((np.ones(30), 0, 4), "batch_size=0"),
        ((np.ones(30), 3, 1.5), "segment_length=1.5"),
    ],
)
def test_invalid_segments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ka.data.contiguous_segments(*arguments)
