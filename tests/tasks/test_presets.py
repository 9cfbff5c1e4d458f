"""Presets by name: in folders, and behind a URL on loopback."""

import functools
import http.server
import json
import shutil
import threading

import pytest

import keras_attention as ka
from keras_attention.tasks import presets


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """Hide all presets, and use a new cache."""
    monkeypatch.setattr(presets, "CLONE", tmp_path / "no-clone")
    monkeypatch.setattr(presets, "WHEEL", tmp_path / "no-wheel")
    monkeypatch.setenv("KERAS_ATTENTION_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KERAS_ATTENTION_PRESETS", raising=False)
    monkeypatch.delenv("KERAS_ATTENTION_PRESETS_URL", raising=False)


@pytest.fixture
def zoo(tagger, tmp_path):
    """Make a folder with one preset, and an index."""
    shutil.copytree(tagger, tmp_path / "zoo" / "small-tagger")
    (tmp_path / "zoo" / "notes").mkdir()
    presets.write_index(tmp_path / "zoo")
    return tmp_path / "zoo"


@pytest.fixture
def served(zoo):
    """Serve the zoo on 127.0.0.1, and record the requested paths in `asked`."""
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, form, *arguments):
            asked.append(self.path)

    handler = functools.partial(Handler, directory=str(zoo))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()


def test_presets_of_a_clone_are_listed():
    names = {preset.name: preset for preset in ka.tasks.list_presets()}
    assert {"digits-vit", "pos-tagger-en-ewt", "multi30k-de-en"} <= set(names)
    assert names["digits-vit"].task == "vision_transformer"
    assert names["digits-vit"].score["accuracy"] > 0.9 and names["digits-vit"].size > 10**5
    assert ka.tasks.from_preset("digits-vit").preprocessor.image_size == (8, 8)


def test_folders_of_the_environment_variable_come_first(alone, zoo, monkeypatch, tmp_path):
    assert ka.tasks.list_presets() == []
    with pytest.raises(ValueError, match="Presets in no folder: none. More are in saved_models"):
        ka.tasks.from_preset("small-tagger")
    monkeypatch.setenv("KERAS_ATTENTION_PRESETS", f"{tmp_path / 'absent'}:{zoo}")
    (info,) = ka.tasks.list_presets()
    assert (info.name, info.task, info.place) == (
        "small-tagger",
        "sequence_labeler",
        str(zoo / "small-tagger"),
    )
    assert info.parameters > 10**4
    assert ka.tasks.from_preset("small-tagger").predict(["the cat"])


def test_downloaded_files_are_checked_and_cached(alone, served, monkeypatch, run, tagger):
    url, asked = served
    monkeypatch.setenv("KERAS_ATTENTION_PRESETS_URL", url)
    (info,) = ka.tasks.list_presets()
    assert info.name == "small-tagger" and info.place == f"{url}/small-tagger"
    assert info.score["accuracy"] > 0.9
    expected = ka.tasks.from_preset(tagger).predict(["the cat sat"])
    assert ka.tasks.from_preset("small-tagger").predict(["the cat sat"]) == expected
    fetched = len(asked)
    assert any(path.endswith("variables.index") for path in asked)
    code, out, _ = run("predict", "small-tagger", "the cat sat")
    assert code == 0 and out.split()[1] == expected[0][0].tag
    assert set(asked[fetched:]) == {"/index.json"}  # the files are in the cache


def test_damaged_file_in_the_cache_is_downloaded_again(alone, served, monkeypatch, tmp_path):
    monkeypatch.setenv("KERAS_ATTENTION_PRESETS_URL", served[0])
    folder = presets.find_preset("small-tagger")
    assert tmp_path / "cache" in folder.parents
    (folder / "words.txt").write_text("damaged")
    assert presets.find_preset("small-tagger") == folder
    assert (folder / "words.txt").read_text() != "damaged"


def test_file_with_another_hash_is_refused(alone, served, zoo, monkeypatch, tmp_path):
    monkeypatch.setenv("KERAS_ATTENTION_PRESETS_URL", served[0])
    path = zoo / "small-tagger" / "words.txt"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(ValueError, match="words.txt has the SHA-256 .* Nothing is written"):
        ka.tasks.from_preset("small-tagger")
    assert not [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "a\\x", "", "a//b"])
def test_index_with_paths_out_of_the_preset_is_refused(
    alone, served, zoo, monkeypatch, tmp_path, path
):
    index = json.loads((zoo / "index.json").read_text())
    files = index["presets"]["small-tagger"]["files"]
    files[path] = files.pop("words.txt")
    (zoo / "index.json").write_text(json.dumps(index))
    monkeypatch.setenv("KERAS_ATTENTION_PRESETS_URL", served[0])
    with pytest.raises(ValueError, match="is not a path inside a preset"):
        presets.find_preset("small-tagger")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("{url}/nowhere", "nowhere/index.json answers 404 .*: check KERAS_ATTENTION_PRESETS_URL"),
        ("http://127.0.0.1:9", "cannot be reached"),
        ("ftp://example.org", "must begin with http"),
        ("{url}/small-tagger/labels.txt?", "index.json is not JSON .*: check KERAS"),
    ],
)
def test_invalid_urls_are_refused(alone, served, monkeypatch, url, message):
    monkeypatch.setenv("KERAS_ATTENTION_PRESETS_URL", url.format(url=served[0]))
    with pytest.raises(ValueError, match=message):
        ka.tasks.from_preset("small-tagger")


def test_folder_without_presets_gets_no_index(tmp_path):
    with pytest.raises(ValueError, match="has no preset"):
        presets.write_index(tmp_path)
