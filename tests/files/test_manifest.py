"""The manifest of a folder, its writers, and preprocessors read from it."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import keras_attention as ka
from keras_attention.files import manifest


@pytest.mark.parametrize(
    "content, message",
    [
        ("{", " is not valid JSON: .* Fix or remove it"),
        ("", " is not valid JSON"),
        (b"\xff", " is not valid JSON: 'utf-8' codec"),
        ("[" * 100_000, " is not valid JSON: it is nested too deeply"),
        ("[]", ": it holds a list: expected an object"),
        ("null", ": it holds null: expected an object"),
        ('{"files": ["a"]}', ": files is a list: expected an object"),
        ('{"files": {"a.tflite": 3}}', ": files.a.tflite is 3: expected an object"),
        (
            '{"files": {"../a.tflite": {}}}',
            ": a name in files is '../a.tflite': expected the plain",
        ),
    ],
)
def test_a_manifest_of_another_kind_is_refused(tmp_path, content, message):
    (tmp_path / "manifest.json").write_bytes(
        content if type(content) is bytes else content.encode()
    )
    with pytest.raises(ValueError, match=rf"{tmp_path}/manifest\.json{message}"):
        manifest.read_manifest(tmp_path)


def test_a_missing_manifest_is_empty(tmp_path):
    assert manifest.read_manifest(tmp_path) == {}


WRITER = """
import sys
from keras_attention.files import manifest

folder, name = sys.argv[1:]
sys.stdin.readline()  # all begin at once
for i in range(40):
    manifest.change_manifest(folder, lambda content: {**content, name: i})
"""


def test_concurrent_writers_keep_all_entries(tmp_path):
    folder, names = tmp_path / "model", ["a", "b", "c"]
    folder.mkdir()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, folder, name],
            cwd=_without_the_rest(tmp_path / "package"),
            stdin=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    for process in processes:
        process.stdin.close()
    assert json.loads((folder / "manifest.json").read_text()) == dict.fromkeys(names, 39)
    assert os.listdir(folder) == ["manifest.json"]


def _without_the_rest(folder):
    """Make a folder with only the modules that the manifest needs, for a quick import."""
    source = pathlib.Path(manifest.__file__).parent
    package = folder / "keras_attention" / "files"
    if not package.exists():
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package.parent / "__init__.py").touch()
        for name in ("manifest.py", "fields.py", "io.py", "word_pattern.py"):
            shutil.copy(source / name, package / name)
    return folder


def make_folder(folder):
    folder.mkdir()
    (folder / "words.txt").write_text("a\nb\n")
    (folder / "saved").mkdir()
    (folder / "saved" / "part").write_text("part")
    manifest.record_files(folder, "words.txt", "saved", labels=["A"])


def test_files_are_recorded_with_their_digests(tmp_path):
    make_folder(tmp_path / "model")
    content = manifest.read_manifest(tmp_path / "model")
    assert content["labels"] == ["A"] and set(content["files"]) == {"words.txt", "saved"}
    assert content["files"]["words.txt"]["size"] == 4
    digest = content["files"]["words.txt"]["sha256"]
    assert digest == hashlib.sha256(b"a\nb\n").hexdigest()
    (tmp_path / "model" / "words.txt").unlink()
    manifest.record_files(tmp_path / "model")
    assert set(manifest.read_manifest(tmp_path / "model")["files"]) == {"saved"}


def test_the_task_stands_first_and_the_files_last(tmp_path):
    (tmp_path / "words.txt").write_text("a\n")
    manifest.record_files(tmp_path, "words.txt", labels=["A"], example="b")
    manifest.record_files(tmp_path, preprocessing={}, task="tagger")
    names = list(manifest.read_manifest(tmp_path))
    assert names == ["task", "preprocessing", "labels", "example", "files"]


def test_check_unchanged_refuses_modified_files(tmp_path):
    folder = tmp_path / "model"
    make_folder(folder)
    for name in ("words.txt", "saved"):
        manifest.check_unchanged(folder / name)
    (folder / "words.txt").write_text("b\na\n")
    with pytest.raises(
        ValueError, match=f"{folder}/words.txt differs from the file that .*json desc"
    ):
        manifest.check_unchanged(folder / "words.txt")
    (folder / "saved" / "part").rename(folder / "saved" / "other")
    with pytest.raises(ValueError, match="remove the sha256 of saved from the manifest"):
        manifest.check_unchanged(folder / "saved")
    manifest.record_files(folder, "words.txt")
    manifest.check_unchanged(folder / "words.txt")


@pytest.mark.parametrize(
    "content", [None, "{", '{"files": ["a.js"]}', '{"files": {"a": {}}}', "{}"]
)
def test_files_without_an_entry_pass(tmp_path, content):
    (tmp_path / "a").touch()
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    manifest.check_unchanged(tmp_path / "a")


SENTENCES = [ka.data.Sentence(("Dogs", "bark"), ("NOUN", "VERB"))]
TEXTS = [ka.data.Text("a joy", "good"), ka.data.Text("a bore", "bad")]
LINES = ["the cat sat", "the cats sit", "a cat, the mat"] * 3


def save(kind, folder):
    """Save a preprocessor in `folder`, and return its class."""
    if kind == "tagger":
        made = ka.data.TaggerPreprocessor.build(SENTENCES)
    elif kind == "classifier":
        made = ka.data.TextPreprocessor.build(TEXTS)
    elif kind == "characters":
        made = ka.data.SequencePreprocessor(
            ka.data.Characters.build(LINES), ka.data.Characters.build(LINES[:1])
        )
    else:
        made = ka.data.SequencePreprocessor(ka.data.Subwords.build(LINES, 18))
    made.save(folder)
    return type(made)


def change(folder, place, value):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    *outer, last = place.split(".")
    inner = manifest["preprocessing"]
    for name in outer:
        inner = inner[name]
    if value is KeyError:
        del inner[last]
    else:
        inner[last] = value
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("tagger", "words"),
        ("tagger", "labels"),
        ("tagger", "characters"),
        ("classifier", "words"),
        ("classifier", "labels"),
        ("characters", "target.file"),
        ("characters", "source.file"),
        ("subwords", "target.file"),
    ],
)
@pytest.mark.parametrize("name", ["/etc/passwd", "../secret.txt", "link.txt", 5, ""])
def test_nothing_outside_the_folder_is_read(tmp_path, kind, place, name):
    folder = tmp_path / "model"
    preprocessor = save(kind, folder)
    (tmp_path / "secret.txt").write_text("<pad>\n<unk>\nsecret\n")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    change(folder, place, name)
    with pytest.raises(ValueError, match=f"manifest.json: preprocessing.{place} is ") as error:
        preprocessor.load(folder)
    assert "root:" not in str(error.value) and "secret\n" not in str(error.value)


@pytest.mark.parametrize(
    ("kind", "place", "value"),
    [
        ("tagger", "word_length", 10**9),
        ("tagger", "word_length", -1),
        ("tagger", "word_length", KeyError),
        ("tagger", "lowercase", "yes"),
        ("tagger", "words", KeyError),
        ("classifier", "maximum_length", 10**12),
        ("classifier", "maximum_length", "512"),
        ("classifier", "labels", KeyError),
        ("characters", "target.kind", ["characters"]),
        ("characters", "target", "target.json"),
        ("characters", "target", KeyError),
        ("subwords", "target.kind", "syllables"),
    ],
)
def test_load_refuses_invalid_preprocessing_in_the_manifest(tmp_path, kind, place, value):
    preprocessor = save(kind, tmp_path)
    change(tmp_path, place, value)
    with pytest.raises(ValueError, match=rf"manifest.json: preprocessing\.{place} .*: expected"):
        preprocessor.load(tmp_path)


@pytest.mark.parametrize("content", [b"[]", b"null", b'"x"', b"", b"\xff", b"[" * 10**5, b"{}"])
def test_invalid_manifests_are_refused(tmp_path, content):
    preprocessor = save("tagger", tmp_path)
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(ValueError, match="manifest.json"):
        preprocessor.load(tmp_path)
    if content != b"{}":  # and it is not overwritten
        with pytest.raises(ValueError, match="manifest.json"):
            save("tagger", tmp_path)


@pytest.mark.parametrize(
    ("kind", "name", "content"),
    [
        ("tagger", "words.txt", b""),
        ("tagger", "words.txt", b"<unk>\n<pad>\n"),
        ("tagger", "words.txt", b"<pad>\n<unk>\na\na\n"),
        ("tagger", "labels.txt", b""),
        ("tagger", "labels.txt", b"X\nX\n"),
        ("tagger", "labels.txt", b"X\n\nY\n"),
        ("tagger", "characters.txt", b"\xff\xfe"),
        ("classifier", "words.txt", b"PK\x03\x04"),
        ("characters", "target.json", b"{}"),
        ("characters", "target.json", b"[]"),
        ("characters", "target.json", b"[["),
        ("characters", "target.json", b'["<pad>","<unk>","<begin>","<end>",["a"]]'),
        ("characters", "target.json", b'["<pad>","<unk>","<begin>","<end>","a","a"]'),
        ("subwords", "target.model", b""),
        ("subwords", "target.model", b"no model"),
    ],
)
def test_errors_name_damaged_vocabularies(tmp_path, kind, name, content):
    preprocessor = save(kind, tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=name):
        preprocessor.load(tmp_path)
    pathlib.Path(tmp_path / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        preprocessor.load(tmp_path)


def test_damaged_subwords_are_detected(tmp_path):
    """Flip a bit in each part of the file: loading names the file, or succeeds."""
    preprocessor = save("subwords", tmp_path)
    path = tmp_path / "target.model"
    content, refused = path.read_bytes(), 0
    for place in range(0, len(content), len(content) // 60):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :])
        try:
            preprocessor.load(tmp_path)(["the cat"])
        except ValueError as error:
            assert "target.model" in str(error)
            refused += 1
    assert refused > 10


def test_lengths_are_limited():
    with pytest.raises(ValueError, match="word_length=1000000000.* of at most 1024"):
        ka.data.TaggerPreprocessor.build(SENTENCES, word_length=10**9)
    with pytest.raises(ValueError, match="maximum_length=1000000000000.* of at most 1048576"):
        ka.data.TextPreprocessor.build(TEXTS, maximum_length=10**12)


def test_the_digest_of_a_folder_covers_names_and_contents(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "a").write_text("text")
    before = manifest.compute_sha256(tmp_path / "m")
    assert (
        before != manifest.compute_sha256(tmp_path / "m" / "a")
        and manifest.count_bytes(tmp_path / "m") == 4
    )
    (tmp_path / "m" / "a").rename(tmp_path / "m" / "b")
    renamed = manifest.compute_sha256(tmp_path / "m")
    (tmp_path / "m" / "b").write_text("tixt")
    assert len({before, renamed, manifest.compute_sha256(tmp_path / "m")}) == 3
