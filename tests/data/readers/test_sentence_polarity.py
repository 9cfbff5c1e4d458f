"""NLTK's archive, or a small one in its place if it is missing."""

import hashlib
import importlib
import zipfile

import pytest

import keras_attention as ka

load = ka.data.sentence_polarity
module = importlib.import_module(load.__module__)  # the function has taken its name in ka.data


@pytest.fixture
def published(tmp_path, monkeypatch):
    """Twenty sentences of each class, published at a `file:` address."""
    path = tmp_path / "published.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("neg", "pos"):
            lines = "".join(f"{name} {i} . \n" for i in range(20))
            archive.writestr(f"sentence_polarity/rt-polarity.{name}", lines)
    monkeypatch.setattr(module, "URL", path.as_uri())
    monkeypatch.setattr(module, "SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    return path


def test_archive_is_downloaded_once_and_split_by_seed(published, tmp_path):
    data = load(tmp_path / "cache")
    published.unlink()
    assert load(tmp_path / "cache") == data != load(tmp_path / "cache", seed=1)
    parts = (data.train, data.dev, data.test)
    assert [len(part) for part in parts] == [32, 4, 4]
    assert len({text for part in parts for text in part}) == 40
    for part in parts:
        assert sum(text.label == "positive" for text in part) * 2 == len(part)
        assert all(text.text[:3] == text.label[:3] for text in part)
    assert data.labels == ("negative", "positive")


def test_load_refuses_an_archive_with_wrong_content(published, tmp_path):
    (tmp_path / "sentence_polarity.zip").write_bytes(b"something else")
    with pytest.raises(ValueError, match="is not the archive that NLTK publishes"):
        load(tmp_path)
    assert (tmp_path / "sentence_polarity.zip").read_bytes() == b"something else"


def test_no_network(published, tmp_path):
    published.unlink()
    with pytest.raises(ConnectionError, match="sentence_polarity.zip could not be fetched"):
        load(tmp_path / "cache")


def test_published_archive(data_root):
    folder = data_root / "sentiment-sentence-polarity"
    if not folder.is_dir():
        pytest.skip("no sentence polarity among the real data")
    data = ka.data.sentence_polarity(folder)
    assert [len(part) for part in (data.train, data.dev, data.test)] == [8530, 1066, 1066]
    trained_on = {text for text, _ in data.train + data.dev}
    assert not [text for text, _ in data.test if text in trained_on]
