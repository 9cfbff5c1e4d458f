"""Checkpoints of Hugging Face as tasks: labels, tokens, new heads, presets and the command line."""

import json
import shutil
import sys
import types

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.cli import main
from keras_attention.files import manifest as manifests
from keras_attention.tasks import exporting, recipes
from keras_attention.tasks.training import train_parts
from tests.pretrained.make_checkpoints import FOLDER

pytest.importorskip("tokenizers")
pytestmark = pytest.mark.tensorflow

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film", "##s", "a", "dog"]
TEXTS = [ka.data.Text("a good film", "yes"), ka.data.Text("bad dogs", "no")] * 12
SENTENCES = [ka.data.Sentence(("a", "dogs"), ("DET", "NOUN")),
             ka.data.Sentence(("good", "films"), ("ADJ", "NOUN"))] * 10  # fmt: skip


def copy(name, folder, **config):
    """Copy a checkpoint with changes of its `config.json`, and write a vocabulary."""
    shutil.copytree(FOLDER / name, folder)
    (folder / "vocab.txt").write_text("\n".join(PIECES))
    config_file = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config_file | config))
    return folder


def test_checkpoint_with_a_text_head_classifies_texts(tmp_path):
    names = {"0": "low", "1": "middle", "2": "high"}
    folder = copy("bert-texts", tmp_path / "bert", id2label=names)
    task = ka.tasks.from_preset(folder)
    assert type(task) is ka.tasks.TextClassifier
    inputs = ka.pretrained.tokenizer(folder)(["good films"])
    logits = np.asarray(ka.pretrained.load(folder)(inputs))[0]
    (results,) = task.predict(["good films"], top=3)
    assert [one.label for one in results] == [list(names.values())[i] for i in np.argsort(-logits)]
    shares = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(
        [one.probability for one in results], sorted(shares)[::-1], rtol=1e-4
    )


def test_checkpoint_with_a_token_head_tags_words_by_their_first_piece(tmp_path):
    names = {str(i): name for i, name in enumerate("ABCD")}
    folder = copy("bert-tokens", tmp_path / "bert", id2label=names)
    task = ka.tasks.from_preset(f"{folder}")
    assert type(task) is ka.tasks.SequenceLabeler
    (tokens,) = task.predict([["dogs", "bad", "films"]])
    ids = [2, 10, 8, 6, 7, 8, 3]
    model = ka.pretrained.load(folder)
    logits = np.asarray(model({"token_ids": np.array([ids]), "segment_ids": np.zeros((1, 7), int)}))
    best = [names[str(i)] for i in logits[0, [1, 3, 4]].argmax(-1)]
    assert [token.tag for token in tokens] == best
    maps = task.attention(["dogs", "bad"])
    assert maps.keys == ["[CLS]", "dog", "##s", "bad", "[SEP]"]


@pytest.mark.sweep
def test_new_head_is_trained_saved_and_loaded(tmp_path, caplog):
    folder = copy("bert-masked", tmp_path / "bert")
    task = ka.tasks.TextClassifier.from_preset(folder)
    task.fit(TEXTS, epochs=25, batch_size=8, learning_rate=0.03, lora_rank=2, lora_targets="all")
    assert "the model did not have" in caplog.text
    assert not [v for v in task.model.weights if "lora" in v.path]
    assert task.evaluate(TEXTS)["accuracy"] > 0.9
    task.save_to_preset(tmp_path / "preset")
    again = ka.tasks.from_preset(tmp_path / "preset")
    assert again.predict(["a good film"]) == task.predict(["a good film"])
    assert again.recipe.batch_size == 32  # the recipe for checkpoints
    again.fit(TEXTS, epochs=1, freeze="all", verbose=False)
    assert all(layer.trainable for layer in again.model.layers)
    again.export(tmp_path / "preset" / "model.tflite", sequence_length=16, batch_size=1)
    file = ka.tasks.from_preset(tmp_path / "preset", "litert")
    (results,) = file.predict(["a good film"])
    (expected,) = again.predict(["a good film"])
    assert (
        results.label == expected.label and abs(results.probability - expected.probability) < 1e-4
    )


@pytest.mark.slow
def test_padding_id_may_differ_from_0(tmp_path):
    """Check that files of fixed shapes use the padding id of their model."""
    folder = copy("bert", tmp_path / "bert")  # pad_token_id 5
    task = ka.tasks.TextClassifier.from_preset(folder)
    assert task.preprocessor.padding_id == 5
    task.save_to_preset(tmp_path / "preset")
    task.export(tmp_path / "preset" / "model.tflite", sequence_length=12, batch_size=2)
    file = ka.tasks.from_preset(tmp_path / "preset", "litert")
    for results, expected in zip(file.predict(["a dog", "film"]), task.predict(["a dog", "film"]),
                               strict=True):  # fmt: skip
        np.testing.assert_allclose(results.probability, expected.probability, atol=1e-5)


@pytest.mark.slow
def test_export_writes_tokenizer_labels_and_preprocessing_beside_model(tmp_path, monkeypatch):
    """Check that an export has the tokenizer, the labels and the preprocessing beside it."""
    task = ka.tasks.TextClassifier.from_preset(copy("bert", tmp_path / "bert"))
    task.export(tmp_path / "app" / "model.tflite", sequence_length=12, batch_size=2)
    task.save_to_preset(tmp_path / "preset")
    texts = ["a dog", "film"]
    expected = task.predict(texts)
    for name in ("tokenizer.json", "labels.txt"):
        content = (tmp_path / "app" / name).read_bytes()
        assert content == (tmp_path / "preset" / name).read_bytes()
    results = [manifests.read_manifest(tmp_path / name) for name in ("app", "preset")]
    assert results[0]["preprocessing"] == results[1]["preprocessing"]
    assert results[0]["files"].keys() == {"model.tflite", "tokenizer.json", "labels.txt"}
    for one, other in zip(
        ka.tasks.from_preset(tmp_path / "app", "litert").predict(texts), expected, strict=True
    ):
        assert one.label == other.label and abs(one.probability - other.probability) < 1e-5
    replace_nothing(task, tmp_path, monkeypatch)


def replace_nothing(task, folder, monkeypatch):
    """Check that files of another model stay."""
    monkeypatch.setattr(exporting, "export_model", lambda *args, **options: None)
    (folder / "labels.txt").write_text("mine")
    with pytest.warns(
        UserWarning, match="a labels.txt of something else. Give the export a folder"
    ):
        task.export(folder / "m.tflite")
    assert (folder / "labels.txt").read_text() == "mine"
    task.preprocessor = task.with_labels(["bad", "good", "so-so"])
    before = (folder / "app" / "labels.txt").read_bytes()
    with pytest.warns(UserWarning, match="a labels.txt that model.tflite reads. Give the export"):
        task.export(folder / "app" / "other.tflite")
    assert (folder / "app" / "labels.txt").read_bytes() == before
    task.export(folder / "app" / "model.tflite")  # replaces the old one
    assert (folder / "app" / "labels.txt").read_text().split() == ["bad", "good", "so-so"]


@pytest.mark.slow
def test_a_tagger_is_fine_tuned(tmp_path):
    folder = copy("bert-masked", tmp_path / "bert")
    task = ka.tasks.SequenceLabeler.from_preset(folder)
    task.fit(SENTENCES, epochs=12, batch_size=4, learning_rate=0.02, layer_decay=0.9, verbose=False)
    assert task.evaluate(SENTENCES)["accuracy"] > 0.9
    (tokens,) = task.predict(["a dogs"])
    assert [token.token for token in tokens] == ["a", "dogs"]


def test_labels_of_pieces_after_the_first_do_not_count(tmp_path):
    folder = copy("bert-masked", tmp_path / "bert")
    preprocessor = ka.data.TaggerPreprocessor(ka.pretrained.tokenizer(folder), ["A", "N"])
    sentences = [ka.data.Sentence(("dogs", "a"), ("N", "A"))]
    ((inputs, labels),) = ka.data.batches(sentences, preprocessor, edges=(6,))
    assert inputs["token_ids"].numpy().tolist() == [[2, 10, 8, 9, 3]]
    assert labels.numpy().tolist() == [[-1, 1, -1, 0, -1]]


@pytest.mark.parametrize(
    "name, message",
    [
        ("bert", "has no head that labels text or tokens, or marks answers. Open it with"),
        (
            "vit-headless",
            "has no head that classifies images. Open it with ka.tasks.ImageClassifier",
        ),
        ("whisper", "has no no_timestamps_token_id, the token that ends Whisper's prompt"),
    ],
)
def test_checkpoints_without_a_task_head_are_refused(name, message):
    with pytest.raises(ValueError, match=message):
        ka.tasks.from_preset(FOLDER / name)


def test_task_that_takes_no_checkpoint_is_refused():
    class Recurrent(ka.tasks.Seq2SeqLM):
        builders = ("seq2seq_recurrent",)

    with pytest.raises(ValueError, match="Recurrent cannot be made from a checkpoint: load"):
        Recurrent.from_preset(FOLDER / "t5")


@pytest.mark.parametrize("names", [{"0": "a"}, {"0": "a", "1": "a", "2": "b"}, [1, 2, 3]])
def test_number_of_label_names_must_match_the_outputs(names, tmp_path):
    folder = copy("bert-texts", tmp_path / "bert", id2label=names)
    with pytest.raises(ValueError, match="id2label .* expected 3 different names"):
        ka.tasks.from_preset(folder)


def run(arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    return stop.value.code or 0


@pytest.mark.parametrize("name", ["TextClassifier", "MultiLabelClassifier"])
def test_saved_task_keeps_its_labels(name, tmp_path):
    """Check a head on the vector of the first token, as in Hugging Face's classifiers."""
    folder = copy("bert", tmp_path / "bert")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    modules = [{"type": "Transformer", "path": ""}, {"type": "Pooling", "path": "1_Pooling"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    task_class = getattr(ka.tasks, name)
    mean = task_class.from_preset(folder)
    with pytest.raises(
        ValueError, match="has pooling='mean'. Fine-tune the checkpoint again .* from_preset"
    ):
        ka.pretrained.save(mean, tmp_path / "saved")
    task = task_class.from_preset(folder, pooling="first")
    several = name == "MultiLabelClassifier"
    texts = [(text, (text[0],) if several else text[0]) for text in ("a dog", "bad", "film")]
    data = task_class.example_kind.collect(texts)
    task.adapt(data)  # like `fit` at its start
    ka.pretrained.save(task, tmp_path / "saved")
    config = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert config["id2label"] == {"0": "a", "1": "b", "2": "f"}
    assert (config.get("problem_type") == "multi_label_classification") is several
    again = ka.tasks.from_preset(tmp_path / "saved")
    assert type(again) is task_class
    assert again.predict(["a good film"]) == task.predict(["a good film"])
    with pytest.raises(ValueError, match="pooling= is not an option of a SequenceLabeler"):
        ka.tasks.SequenceLabeler.from_preset(folder, pooling="first")


def test_lora_changes_only_the_named_projections(tmp_path):
    task = ka.tasks.TextClassifier.from_preset(copy("bert-texts", tmp_path / "bert"))
    recipe = recipes.replace_numbers(
        task.recipe, task.builder, {"lora_rank": 2, "lora_targets": ["key", "intermediate"]}
    )
    with train_parts(task.model, recipe):
        trained = {v.path for v in task.model.trainable_variables if "lora" in v.path}
        assert {path.split("/")[-2] for path in trained} == {"key", "intermediate"}
    assert not [v for v in task.model.weights if "lora" in v.path]
    with pytest.raises(ValueError, match="lora_targets='all' needs low-rank updates: give lora_"):
        task.fit(TEXTS, lora_targets="all", verbose=False)


@pytest.mark.slow
def test_train_command_starts_from_a_checkpoint(tmp_path, capsys, monkeypatch):
    folder, fetched = copy("bert-masked", tmp_path / "bert"), []
    hub = types.SimpleNamespace(
        snapshot_download=lambda name, **options: fetched.append(name) or str(folder)
    )
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    train = tmp_path / "train.tsv"
    train.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in TEXTS * 2))
    command = ["train", "text_classifier", "--from", "hf://me/tiny", "--train", str(train)]
    command += ["--test", str(train)]  # each file is opened and scored
    command += ["--output", str(tmp_path / "out"), "--epochs", "2", "--lora-rank", "2"]
    assert run(command) == 0 and set(fetched) == {"me/tiny"}
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"tokenizer.json", "labels.txt", "model.int8.tflite", "model.keras"} <= names
    output = tmp_path / "app" / "reviews.tflite"  # a file that is not in the preset
    assert run(["export", str(tmp_path / "out"), "--output", str(output)]) == 0
    beside = {path.name for path in output.parent.iterdir()}
    assert beside == {"tokenizer.json", "labels.txt", "manifest.json", "reviews.tflite"}
    assert run(["predict", str(tmp_path / "out"), "a good film", "--with", "litert-int8"]) == 0
    assert capsys.readouterr().out.strip()
    targets = ["--lora-targets", "query,nose", "--output", str(tmp_path / "y")]
    assert run([*command[:-2], "--lora-rank", "2", *targets]) == 2
    assert "has no projection 'nose'. It has attention_output" in capsys.readouterr().err
    assert run([*command[:-2], "--freeze", "many", "--output", str(tmp_path / "x")]) == 2
    assert "'many': expected a number of blocks, or all" in capsys.readouterr().err
