"""The folder of a run, its manifest, and the checks that its files belong to one model."""

import json
import re
import shutil

import keras
import pytest

import keras_attention as ka
from keras_attention.cli.console import format_error
from keras_attention.cli.readers import READERS
from keras_attention.files.fields import Fields
from keras_attention.tasks.folders import (
    MissingFileError,
    RunFolder,
    find_model_file,
    flatten,
    refuse_links,
)
from keras_attention.tasks.recipes import RECIPES
from keras_attention.tasks.registry import TASKS, get_task_class
from tests.tables import assert_lists


def test_results_are_moved_together_and_the_state_is_deleted(tmp_path):
    folder = RunFolder(tmp_path / "new", {"seed": 0})
    folder.start()
    with folder.collect_results() as result:
        (result / "model.keras").write_text("model")
        assert not (folder.path / "model.keras").exists()
    assert [path.name for path in folder.path.iterdir()] == ["model.keras"]


def test_error_in_the_results_keeps_the_unfinished_run(tmp_path):
    folder = RunFolder(tmp_path, {})
    folder.start()
    with pytest.raises(RuntimeError), folder.collect_results() as result:
        (result / "model.keras").write_text("half")
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == [".training"]
    assert RunFolder(tmp_path, {}).resumed
    with folder.collect_results() as result:
        assert list(result.iterdir()) == []


def test_run_with_other_settings_is_refused_with_the_name_of_the_setting(tmp_path):
    RunFolder(tmp_path, {"recipe": {"seed": 0, "epochs": 2}}).start()
    with pytest.raises(ValueError, match=r"recipe\.seed: 0 there, 1 here"):
        RunFolder(tmp_path, {"recipe": {"seed": 1, "epochs": 2}})
    assert RunFolder(tmp_path, {"recipe": {"seed": 0, "epochs": 2}}).resumed


def test_settings_may_contain_layers_and_functions(tmp_path):
    """Check settings such as those of `from_data(data, score=ka.scores.Additive(4))`."""

    def settings(units):
        model = {"score": ka.scores.Additive(units), "activation": keras.activations.relu}
        return {"recipe": {"model": model}}

    RunFolder(tmp_path, settings(4)).start()
    assert RunFolder(tmp_path, settings(4)).resumed
    with pytest.raises(
        ValueError, match=r"other settings \(recipe.model.score.config.units: 4 there"
    ):
        RunFolder(tmp_path, settings(5))


def test_a_finished_model_is_replaced_only_when_asked_to(tmp_path):
    for name in ("scores.json", "manifest.json", "old.png"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(ValueError, match="already contains a finished model"):
        RunFolder(tmp_path, {})
    folder = RunFolder(tmp_path, {}, replace=True)
    folder.start()
    assert (tmp_path / "old.png").exists()
    with folder.collect_results() as result:
        (result / "new.png").write_text("")
    assert [path.name for path in tmp_path.iterdir()] == ["new.png"]


def test_other_files_are_never_replaced(tmp_path):
    (tmp_path / "thesis.txt").write_text("")
    with pytest.raises(ValueError, match="already contains other files"):
        RunFolder(tmp_path, {}, replace=True)
    with pytest.raises(ValueError, match="is a file"):
        RunFolder(tmp_path / "thesis.txt", {})


def test_nothing_is_written_before_the_start(tmp_path):
    RunFolder(tmp_path / "new", {})
    assert not (tmp_path / "new").exists()


@pytest.fixture
def trained(tmp_path):
    (tmp_path / "saved_model").mkdir()
    (tmp_path / "saved_model" / "saved_model.pb").write_bytes(b"")
    (tmp_path / "model.tflite").write_bytes(b"\0\0\0\0TFL3")
    return tmp_path


@pytest.mark.parametrize(
    ("inside", "kind", "path"),
    [
        ("", None, "saved_model"),
        ("", "litert", "model.tflite"),
        ("saved_model", None, "saved_model"),
        ("model.tflite", None, "model.tflite"),
        ("model.tflite", "saved_model", "saved_model"),
    ],
)
def test_find_model_file_returns_the_first_or_requested_file(trained, inside, kind, path):
    assert find_model_file(trained / inside, kind) == (trained, trained / path)


def test_find_model_file_names_the_missing_file(trained, tmp_path):
    with pytest.raises(ValueError, match="no file or folder .*absent"):
        find_model_file(trained / "absent")
    with pytest.raises(ValueError, match="has no model.int8.tflite"):
        find_model_file(trained, "litert-int8")
    (tmp_path / "empty").mkdir()
    (trained / "model.keras").write_text("model")
    with pytest.raises(MissingFileError, match=r"Export model\.keras to make it\.$") as error:
        find_model_file(trained, "litert-int8")
    command = rf"make it: `keras-attention export {trained} --quantization int8_weights`\.$"
    assert re.search(command, format_error(error.value))
    with pytest.raises(ValueError, match="has no model: expected one of model.keras, saved_model"):
        find_model_file(tmp_path / "empty")
    (tmp_path / "x.keras").write_text("hello")
    with pytest.raises(ValueError, match="x.keras is not a model"):
        find_model_file(tmp_path / "x.keras")


def test_flatten_joins_nested_keys():
    assert flatten({"a": 1, "b": {"c": {"d": 2}, "e": []}}) == {"a": 1, "b.c.d": 2, "b.e": []}
    assert flatten(json.loads("{}")) == {}


def test_output_path_must_not_be_a_file(tmp_path):
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(ValueError, match="notes.txt/a/b: .*notes.txt is a file"):
        RunFolder(tmp_path / "notes.txt" / "a" / "b", {})


RIGHT = {
    "sequence_labeler": {"labels": ["a"], "maximum_length": 8},
    "dependency_parser": {"labels": ["a"], "maximum_length": 8},
    "constituency_parser": {
        "labels": ["(A", "a"],
        "maximum_length": 8,
        "spare_constituents": 8,
        "writing": {
            **{"beam": 1, "max_new_tokens": 8, "start_token_id": 1, "end_token_id": 2},
            "padding_id": 0,
        },
    },
    "text_classifier": {},
    "image_generator": {
        "labels": ["a"],
        "image_size": [8, 8],
        "channels": 1,
        "num_levels": 16,
        "writing": {"temperature": 0.8, "max_length": 64, "max_new_tokens": 64},
    },
    "multi_label_classifier": {"labels": ["a"], "thresholds": [0.5]},
    "speech_recognizer": {"characters": ["a"], "inputs": "waveform", "sampling_rate": 8000},
    "vision_transformer": {"labels": ["a"], "image_size": [8, 8], "channels": 1},
    "seq2seq_transformer": {
        "score": "bleu",
        "writing": {"beam": 2, "max_new_tokens": 8, "start_token_id": 2, "end_token_id": 3},
    },
    "causal_language_model": {
        "maximum_length": 8,
        "writing": {"temperature": 0.8, "max_length": 32, "max_new_tokens": 16, "end_token_id": 3},
    },
}
RIGHT["speech_to_text"] = RIGHT["seq2seq_transformer"] | {
    "score": "translation",
    "inputs": "features",
    "num_features": 13,
}
RIGHT["masked_language_model"] = {}
RIGHT["object_detector"] = RIGHT["vision_transformer"] | {
    "resizing": {"interpolation": "bilinear", "size": None}
}
RIGHT["image_to_sequence"] = RIGHT["seq2seq_transformer"] | {
    "score": "map",
    "labels": ["a"],
    "image_size": [8, 8],
    "channels": 1,
    "resizing": {"interpolation": "bilinear", "size": None},
}
RIGHT["image_text_matcher"] = {
    **{"temperature": 0.07, "bias": -10.0, "image_size": [8, 8], "channels": 1},
    "resizing": {"interpolation": "bilinear", "size": None},
}
RIGHT["text_embedder"] = {"temperature": 0.05, "dimensions": [16, 8]}
RIGHT["question_answerer"] = {"no_answer": True, "threshold": 0.5}
RIGHT["seq2seq_recurrent"] = RIGHT["seq2seq_transformer"]


FINE = {("temperature", 10**12), ("threshold", -1), ("threshold", 10**12)}
FINE |= {("size", KeyError), ("size", None)}
FINE |= {("bias", KeyError), ("bias", None), ("bias", -1)}


def list_paths(entries, outer=()):
    """List the paths of all fields."""
    for name, value in entries.items():
        yield (*outer, name)
        if isinstance(value, dict):
            yield from list_paths(value, (*outer, name))


def test_every_task_is_listed():
    assert_lists("RIGHT of tests/tasks/test_folders.py", RIGHT, TASKS)
    assert_lists("READERS of keras_attention/cli/readers.py", READERS, TASKS)
    recipes = {name for name in RECIPES if "/" not in name}
    assert_lists("RECIPES in keras_attention/tasks/recipes/", recipes, TASKS)


@pytest.mark.parametrize("task", sorted(RIGHT))
def test_every_field_of_a_manifest_is_checked(task):
    get_task_class(task).read_settings(Fields("m/manifest.json", RIGHT[task]))
    for place in list_paths(RIGHT[task]):
        for value in (KeyError, None, [], "no", -1, 10**12, {"x": 1}):
            entries = json.loads(json.dumps(RIGHT[task]))
            inner = entries
            for name in place[:-1]:
                inner = inner[name]
            if value is KeyError:
                del inner[place[-1]]
            else:
                inner[place[-1]] = value
            if any((place[-1], value) == fine for fine in FINE):
                continue
            with pytest.raises(ValueError, match=rf"^m/manifest.json: {'.'.join(place[:1])}"):
                get_task_class(task).read_settings(Fields("m/manifest.json", entries))


def change(folder, **entries):
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | entries))


def forget_digests(folder):
    """Check a folder that is older than these entries."""
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    for entry in manifest["files"].values():
        entry.pop("sha256", None)
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.fixture
def folder(tagger, tmp_path):
    return shutil.copytree(tagger, tmp_path / "tagger")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["keras", "litert", "saved_model"])
def test_files_of_another_model_are_refused(run, folder, kind):
    """Check also a folder without a manifest."""
    forget_digests(folder)
    words = ["predict", folder, "the cat", "--with", kind]
    assert run(*words)[0] == 0
    manifest = (folder / "manifest.json").read_text("utf-8")
    labels = (folder / "labels.txt").read_text("utf-8")
    (folder / "labels.txt").write_text(labels + "X\n")
    code, out, err = run(*words)
    assert (code, out) == (2, "") and "There are 6 labels, but" in err and "returns 5" in err
    (folder / "labels.txt").write_text("\n".join(reversed(labels.split())) + "\n")
    code, out, err = run(*words)
    assert (code, out) == (2, "") and "labels.txt and" in err and "name different labels" in err
    (folder / "labels.txt").write_text(labels)
    (folder / "manifest.json").write_text(manifest.replace('"word_length": 16', '"word_length": 8'))
    code, out, err = run(*words)
    assert (code, out) == (2, "") and "takes character_ids of size 16" in err and "says 8" in err
    (folder / "manifest.json").write_text(
        manifest.replace('"characters": "characters.txt"', '"characters": null')
    )
    code, out, err = run(*words)
    assert (code, out) == (2, "") and "preprocessing.characters does not belong to" in err


@pytest.mark.slow
def test_pictures_of_another_size_are_refused(run, classifier, tmp_path):
    folder = shutil.copytree(classifier, tmp_path / "classifier")
    picture = tmp_path / "x.png"
    picture.write_bytes(b"")
    for entries, message in [
        ({"image_size": [8, 9]}, "manifest.json has 9 columns in an image, and model.tflite"),
        (
            {"channels": 3},
            "manifest.json has 3 channels, and model.tflite beside it was made with 1",
        ),
        ({"labels": ["a", "b"]}, "There are 2 labels, but "),
    ]:
        shutil.copyfile(classifier / "manifest.json", folder / "manifest.json")
        change(folder, **entries)
        code, _, err = run("predict", folder, picture, "--with", "litert")
        assert code == 2 and message in err and err.count("\n") == 1


@pytest.mark.parametrize("command", ["predict", "evaluate", "export"])
@pytest.mark.parametrize("content", ["[]", "null", '"x"', "{", "[" * 10**5, '{"task": ["x"]}'])
def test_file_that_is_not_a_manifest_is_refused(run, folder, corpus, command, content):
    (folder / "manifest.json").write_text(content)
    tail = {"predict": ["x"], "evaluate": ["--file", corpus / "test.conllu"], "export": []}
    code, out, err = run(command, folder, *tail[command])
    assert (code, out) == (2, "") and "manifest.json" in err and err.count("\n") == 1


def test_errors_do_not_quote_files_outside_of_the_preset(run, folder):
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    manifest["preprocessing"]["words"] = "/etc/passwd"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    code, out, err = run("predict", folder, "x", "--with", "litert")
    assert (code, out) == (2, "") and "root:" not in err
    assert "preprocessing.words is '/etc/passwd': expected the plain name" in err


@pytest.mark.parametrize("name", ["labels.txt", "saved_model/variables.index"])
def test_presets_with_links_out_of_the_folder_are_refused(name, tmp_path):
    folder, secret = tmp_path / "preset", tmp_path / "secret"
    (folder / "saved_model").mkdir(parents=True)
    secret.write_text("secret")
    (folder / name).symlink_to(secret)
    with pytest.raises(ValueError, match=f"{name} is a link to .*secret: expected a file in the"):
        refuse_links(folder)
    (folder / name).unlink()
    (folder / "words.txt").write_text("a")
    (folder / name).symlink_to(folder / "words.txt")
    refuse_links(folder)


def test_reading_a_manifest_checks_links(tagger, tmp_path):
    shutil.copytree(tagger, tmp_path / "preset")
    (tmp_path / "preset" / "labels.txt").rename(tmp_path / "labels.txt")
    (tmp_path / "preset" / "labels.txt").symlink_to(tmp_path / "labels.txt")
    with pytest.raises(ValueError, match="labels.txt is a link"):
        ka.tasks.from_preset(tmp_path / "preset")
    (tmp_path / "link").symlink_to(tagger)
    assert ka.tasks.from_preset(tmp_path / "link").preprocessor is not None
