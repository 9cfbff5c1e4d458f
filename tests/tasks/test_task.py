"""Tasks in Python: made from parts or data, trained, saved, and opened by commands."""

import copy
import io
import json
import pathlib
import pickle
import shutil
import zipfile

import h5py
import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.small_runs import SMALL, WORDS

SIZE = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "dropout": 0.0}


def make_sentences(count, seed, tag=lambda tag: tag):
    """Make sentences such as `the cat saw a tree .`"""
    draw = np.random.default_rng(seed)
    results = []
    for _ in range(count):
        tags = ["DET", "NOUN", "VERB", *["DET", "NOUN"] * draw.integers(2), "PUNCT"]
        words = tuple(WORDS[name][draw.integers(len(WORDS[name]))] for name in tags)
        results.append(ka.data.Sentence(words, tuple(map(tag, tags))))
    return results


def mark_entity(tag):
    return {"NOUN": "B-thing", "DET": "O", "VERB": "O", "PUNCT": "O"}[tag]


@pytest.fixture(scope="module")
def task():
    """Train a small tagger in Python."""
    train = make_sentences(80, 0)
    task = ka.tasks.SequenceLabeler.from_data(train, learning_rate=0.02, batch_size=8, **SIZE)
    task.fit(train, epochs=3, verbose=False)
    return task


@pytest.fixture(scope="module")
def preset(task, tmp_path_factory):
    folder = tmp_path_factory.mktemp("presets") / "small-tagger"
    task.save_to_preset(folder)
    return folder


@pytest.mark.slow
def test_fit_returns_history_and_evaluate_returns_scores(preset):
    task, test = ka.tasks.from_preset(preset), make_sentences(10, 9)
    assert task.evaluate(test)["accuracy"] == 1.0
    assert task.evaluate(ka.data.Sentence.collect(test=test)) == {
        "accuracy": 1.0,
        "macro_f1": 1.0,
    }
    assert task.evaluate([]) == {}
    history = task.fit(test, make_sentences(4, 3), epochs=2, verbose=False)
    assert isinstance(history, keras.callbacks.History) and history.epoch == [0, 1]
    assert {"loss", "accuracy", "val_accuracy"} <= set(history.history)
    assert len(history.history["loss"]) == 2 and history.model is task.model


def test_sentences_over_the_limit_are_left_out_and_counted(task, caplog):
    short = ka.data.Sentence(("the",), ("DET",))
    long = ka.data.Sentence(("the",) * 513, ("DET",) * 513)
    assert task.evaluate([long, short]) == task.evaluate([short])
    assert caplog.messages == ["sentences of more than 512 tokens are not scored: 1 of 2"]
    batches = list(task.make_training_batches([long, short, long], task.recipe))
    assert sum(labels.shape[0] for _, labels in batches) == 1
    data = ka.data.Sentence.collect([long, short, long], [long, short], [short])
    assert task.describe_data(data) == (
        "sentences of more than 512 tokens are left out: 2 of train, 1 of dev",
    )
    with pytest.raises(ValueError, match=r"The examples has no example .* max_length=\.$"):
        task.evaluate([long])
    with pytest.raises(ValueError, match=r"The train part has no example .* max_length=\.$"):
        task.fit([long] * 4)
    with pytest.raises(ValueError, match="513 tokens, over this model's limit of 512"):
        task.predict([long.tokens])


def test_predict_takes_texts_and_lists_of_tokens(task):
    ((the, cat, sat),) = task.predict(["The cat sat"])
    assert (the.token, the.tag, cat.tag, sat.tag) == ("The", "DET", "NOUN", "VERB")
    assert 0.5 < cat.probability <= 1
    assert task.predict([["The", "cat", "sat"]])[0] == [the, cat, sat]
    with pytest.raises(ValueError, match="'The cat' is one text: pass a list of str"):
        task.predict("The cat")


def test_attention_returns_arrays_and_a_picture(task, tmp_path):
    maps = task.attention("the cat sat .", tmp_path / "picture.png")
    (weights,) = maps.weights.values()
    assert weights.shape == (1, 2, 4, 4) and maps.keys == ["the", "cat", "sat", "."]
    assert maps.queries[1] == "cat  NOUN" and maps.figure.axes
    assert ": (1, 2, 4, 4)}, queries=[" in repr(maps)
    np.testing.assert_allclose(np.asarray(weights).sum(axis=-1), 1, rtol=1e-5)
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_saved_and_loaded_task_predicts_the_same(task, preset):
    again = ka.tasks.from_preset(preset)
    assert type(again) is ka.tasks.SequenceLabeler
    assert again.predict(["the cat saw a tree ."]) == task.predict(["the cat saw a tree ."])
    assert {path.name for path in preset.iterdir()} == {
        "README.md", "characters.txt", "labels.txt", "manifest.json", "model.keras",
        "scores.json", "words.txt",
    }  # fmt: skip
    assert "save_to_preset" in (preset / "README.md").read_text("utf-8")
    assert ka.tasks.SequenceLabeler.from_preset(preset).metadata == again.metadata
    with pytest.raises(ValueError, match="is a SequenceLabeler, not a TextClassifier"):
        ka.tasks.TextClassifier.from_preset(preset)
    with pytest.raises(ValueError, match="already contains a finished model"):
        task.save_to_preset(preset)


@pytest.mark.slow
def test_commands_take_a_preset_saved_in_python(run, preset, corpus, tmp_path):
    folder = shutil.copytree(preset, tmp_path / "copy")
    code, out, err = run("predict", folder, "the cat sat.")
    tags = [line.split()[1] for line in out.splitlines()]
    assert (code, err, tags) == (0, "", ["DET", "NOUN", "VERB", "PUNCT"])
    code, out, _ = run("export", folder, "--quantization", "int8_weights")
    assert code == 0 and "checks passed" in out
    again = ka.tasks.from_preset(folder, "litert-int8")
    assert [token.tag for token in again.predict(["the cat sat."])[0]] == tags
    with pytest.raises(ValueError, match="has no model.keras. model.int8.tflite can predict"):
        (folder / "model.keras").unlink()
        ka.tasks.from_preset(folder).fit(make_sentences(4, 0))


@pytest.mark.slow
def test_float16_halves_the_file(task, preset, tmp_path):
    task.save_to_preset(tmp_path / "half", weights_dtype="float16")
    sizes = [(path / "model.keras").stat().st_size for path in (tmp_path / "half", preset)]
    assert sizes[0] < 0.8 * sizes[1]
    half = ka.tasks.from_preset(tmp_path / "half")
    assert {w.dtype for w in half.model.weights} == {w.dtype for w in task.model.weights}
    for ours, theirs in zip(half.model.get_weights(), task.model.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-6)
    half.fit(make_sentences(8, 0), epochs=1, verbose=False)
    with pytest.raises(ValueError, match="weights_dtype='int8': expected one of float16"):
        task.save_to_preset(tmp_path / "int8", weights_dtype="int8")
    assert not (tmp_path / "int8").exists()


@pytest.mark.slow
def test_new_labels_get_a_new_last_layer_with_a_log_message(preset, capsys, caplog):
    task = ka.tasks.from_preset(preset)
    before = task.model.get_layer("words").get_weights()
    entities = make_sentences(40, 5, mark_entity)
    task.fit(entities, epochs=3, learning_rate=0.02, verbose=2)
    out = capsys.readouterr().out
    assert caplog.messages[0].startswith("the last layer is new, for 2 labels instead of 4: the m")
    assert "Epoch 3/3" in out and "val_entity_f1:" in out
    (line,) = [line for line in out.splitlines() if line.startswith("Kept the weights")]
    best, score = task.scores["best_epoch"], task.scores["dev"]["entity_f1"]
    assert line == f"Kept the weights of epoch {best} of 3: entity_f1 {score:.4f}."
    assert task.preprocessor.labels.names == ("O", "B-thing")
    assert task.metadata["labels"] == ["O", "B-thing"]
    (results,) = task.predict(["the cat saw a tree ."], group_entities=True)
    assert [(e.text, e.label, e.start, e.end) for e in results] == [
        ("cat", "thing", 1, 2),
        ("tree", "thing", 4, 5),
    ]
    after = task.model.get_layer("words").get_weights()
    changes = [np.abs(one - other).max() for one, other in zip(before, after, strict=True)]
    assert 0 < max(changes) < 1  # it resumed there


@pytest.mark.slow
def test_fewer_labels_keep_the_last_layer(preset, caplog):
    task = ka.tasks.from_preset(preset)
    head = task.model.layers[-1]
    task.fit([s for s in make_sentences(30, 1) if len(s.tokens) == 4], epochs=1)
    assert task.model.layers[-1] is head and "last layer" not in caplog.text


@pytest.mark.slow
def test_own_model_becomes_a_preset(run, corpus, tmp_path):
    """Check a model of layers of this package with a preprocessor."""
    sentences = make_sentences(60, 2)
    preprocessor = ka.data.TaggerPreprocessor.build(sentences, characters=False)
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    x = ka.blocks.TokenEmbedding(len(preprocessor.tokenizer), 16)(ids)
    x = x + ka.attention.MultiHeadAttention(2, 8, mask=ka.masks.Window(2))(x, x)
    logits = keras.layers.Dense(len(preprocessor.labels), name="tags")(x)
    task = ka.tasks.SequenceLabeler(keras.Model(ids, logits, name="my_tagger"), preprocessor)
    task.fit(sentences, epochs=3, learning_rate=0.02, batch_size=8, verbose=False)
    task.save_to_preset(tmp_path / "mine")
    code, out, err = run("predict", tmp_path / "mine", "the cat sat .")
    assert (code, err) == (0, "") and out.split()[1::4] == ["DET", "NOUN", "VERB", "PUNCT"]
    lines = [f"{word}\t{tag}" for s in sentences for word, tag in zip(*s, strict=True)]
    (tmp_path / "test.conll").write_text("\n".join(lines) + "\n")
    code, out, _ = run("evaluate", tmp_path / "mine", "--file", tmp_path / "test.conll")
    assert code == 0 and "accuracy" in out
    code, out, _ = run("export", tmp_path / "mine")
    assert code == 0 and "checks passed" in out
    assert run("predict", tmp_path / "mine" / "model.tflite", "the cat sat .")[0] == 0


@pytest.mark.slow
def test_export_writes_the_file_with_its_vocabularies(task, tmp_path):
    report = task.export(tmp_path / "tagger.tflite", quantization="int8_weights")
    assert report.size > 0 and (tmp_path / "manifest.json").is_file()
    assert json.loads((tmp_path / "manifest.json").read_text())["task"] == "sequence_labeler"
    examples = make_sentences(8, 4)
    task.export(tmp_path / "full.tflite", quantization="int8", calibration=examples)
    with pytest.raises(ValueError, match="measures activations on real inputs"):
        task.export(tmp_path / "no.tflite", quantization="int8")
    with pytest.raises(ValueError, match="a SavedModel is float32"):
        task.export(tmp_path / "saved_model", quantization="float16")


@pytest.mark.slow
def test_interrupted_fit_resumes_in_its_folder(tmp_path):
    class Stop(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 2:
                raise KeyboardInterrupt

    train = make_sentences(24, 0)
    options = dict(epochs=3, batch_size=8, backup_dir=tmp_path / "run")
    task = ka.tasks.SequenceLabeler.from_data(train, **SIZE)
    with pytest.raises(KeyboardInterrupt):
        task.fit(train, callbacks=[Stop()], **options)
    trained = []
    count = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: trained.append(epoch))
    again = ka.tasks.SequenceLabeler.from_data(train, **SIZE)
    history = again.fit(train, callbacks=[count], **options)
    assert trained == [2] and len(history.epoch) == 3
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t: t.fit([], epochs=1), "nothing to train on"),
        (lambda t: t.fit(make_sentences(4, 0), steps=3), "steps=3 is not a number for training"),
        (lambda t: t.fit(make_sentences(4, 0), epoch=3), "epoch=3 is not a number for training"),
        (lambda t: t.fit(make_sentences(4, 0), max_length=9), "max_length=9 is fixed when a m"),
        (lambda t: t.predict([" "]), "' ' has no word"),
        (lambda t: t.predict(["a", " "]), "^Text 2: ' ' has no word"),
        (lambda t: t.predict(["a"], group_entities=True), "group_entities= is for tags such as"),
        (lambda t: type(t)(t.model, t.preprocessor, builder="x"), "builder='x'.: expected one of"),
        (lambda t: type(t)(t.model, t.preprocessor, maximum_length=0), "maximum_length"),
        (lambda t: type(t).from_data(make_sentences(4, 0), num_layer=1), "num_layer"),
        (lambda t: type(t).from_data(make_sentences(4, 0), builder="x"), "builder='x'"),
        (lambda t: ka.tasks.from_preset("no-such-preset"), "no preset of that name. Presets in "),
    ],
)
def test_task_refuses_invalid_data_options_and_presets(task, make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make(task)


def test_entities_of_tags_that_break_the_scheme():
    from keras_attention.tasks.sequence_labeler import TaggedToken, find_entities

    tags = "I-a I-a I-b B-b I-b O I-b B-a B-a".split()
    tokens = [TaggedToken(str(k), tag, 1 - k / 10) for k, tag in enumerate(tags)]
    results = [(e.text, e.label, e.start, e.end) for e in find_entities(tokens)]
    assert results == [
        ("0 1", "a", 0, 2), ("2", "b", 2, 3), ("3 4", "b", 3, 5), ("6", "b", 6, 7),
        ("7", "a", 7, 8), ("8", "a", 8, 9),
    ]  # fmt: skip
    assert find_entities(tokens)[0].probability == pytest.approx(0.9)


def test_entities_of_tags_that_mark_last_tokens():
    from keras_attention.tasks.sequence_labeler import (
        TaggedToken,
        find_entities,
        marks_entities,
    )

    tags = "S-a S-a B-a E-a I-a O E-b E-b U-b B-b L-b".split()
    assert marks_entities(tags) and not marks_entities(["O", "NOUN", "S"])
    results = find_entities([TaggedToken(str(k), tag, 1.0) for k, tag in enumerate(tags)])
    assert [(e.start, e.end) for e in results] == [
        (0, 1), (1, 2), (2, 4), (4, 5), (6, 7), (7, 8), (8, 9), (9, 11),
    ]  # fmt: skip


def test_predict_reads_files_and_writes_json(run, preset, tmp_path, monkeypatch):
    (tmp_path / "texts.txt").write_text("the cat sat\n\na dog ran\n")
    code, out, _ = run("predict", preset, "--file", tmp_path / "texts.txt", "--json")
    first, blank, second = (json.loads(line) for line in out.splitlines())
    assert code == 0 and first["input"] == "the cat sat"
    assert blank == {"input": "", "prediction": None}
    assert [token["tag"] for token in second["prediction"]] == ["DET", "NOUN", "VERB"]
    assert set(second["prediction"][0]) == {"token", "tag", "probability"}
    monkeypatch.setattr("sys.stdin", io.StringIO((tmp_path / "texts.txt").read_text()))
    assert run("predict", preset, "-", "--json")[1] == out
    code, _, err = run("predict", preset)
    assert code == 2 and "There is nothing to predict" in err
    code, _, err = run("predict", preset, "x", "--group-entities")
    assert code == 2 and "--group-entities is for tags such as B-person" in err
    code, _, err = run("predict", preset, "x", "--beam", 2)
    assert code == 2 and "--beam does not apply to sequence_labeler" in err


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["lines", "json"])
def test_predict_checks_every_line_before_it_starts(run, tmp_path, options):
    (tmp_path / "texts.txt").write_text(f"the cat sat\n\n{'word ' * 600}\na dog ran\n")
    code, out, err = run("predict", "pos-tagger-en-ewt", "--file", tmp_path / "texts.txt", *options)
    assert code == 2 and out == ""
    assert err.startswith("keras-attention: Input 3: The text has 600 tokens, over this model's")


@pytest.mark.slow
def test_train_command_continues_from_a_preset(run, preset, corpus, tmp_path):
    words = ["train", "sequence_labeler", "--from", preset, "--train", corpus / "train.conllu"]
    words += ["--test", corpus / "test.conllu", "--output", tmp_path / "tuned"]
    code, out, err = run(*words, "--epochs", 3, "--learning-rate", 0.02, "--batch-size", 8)
    assert (code, err) == (0, "") and "the last layer is new, for 5 labels instead of 4" in out
    assert f"Fine-tuned from {preset}" in (tmp_path / "tuned" / "README.md").read_text("utf-8")
    scores = json.loads((tmp_path / "tuned" / "scores.json").read_text("utf-8"))
    assert scores["test"]["keras"]["accuracy"] > 0.8
    refused = [
        (["--num-layers", 2], "--num-layers is fixed by the model of --from"),
        (["--max-length", 9], "--max-length is fixed by the model of --from"),
    ]
    for more, message in refused:
        code, _, err = run(*words[:-1], tmp_path / "new", *more)
        assert code == 2 and message in err and not (tmp_path / "new").exists()
    code, _, err = run("train", "text_classifier", *words[2:-1], tmp_path / "new")
    assert code == 2 and "is a sequence_labeler: train sequence_labeler" in err


@pytest.mark.slow
def test_train_command_reads_class_folders(run, tmp_path):
    draw = np.random.default_rng(0)
    for label, light in [("day", 200), ("night", 60)]:
        (tmp_path / "pictures" / label).mkdir(parents=True)
        for k in range(30):
            pixels = np.clip(draw.normal(light, 20, (10, 14, 3)), 0, 255)
            keras.utils.save_img(tmp_path / "pictures" / label / f"{k}.png", pixels, scale=False)
    words = ["train", "vision_transformer", "--train", tmp_path / "pictures", "--image-size", 16]
    code, out, err = run(*words, "--output", tmp_path / "model", "--epochs", 2, *SMALL)
    assert (code, err) == (0, "") and "train images" in out
    assert "resized to 16 x 16" in (tmp_path / "model" / "README.md").read_text("utf-8")
    picture = tmp_path / "pictures" / "day" / "0.png"
    code, out, _ = run("predict", tmp_path / "model", picture, "--json", "--top", 1)
    (results,) = json.loads(out)["prediction"]
    assert code == 0 and results["label"] == "day"
    code, out, _ = run("evaluate", tmp_path / "model", "--file", tmp_path / "pictures")
    assert code == 0 and "accuracy" in out
    code, _, err = run(*words, "--output", tmp_path / "new", "--encoding", "latin-1")
    assert code == 2 and "--encoding latin-1 does not apply to folders of images" in err


@pytest.mark.slow
def test_train_command_reads_folders_in_another_encoding(run, tmp_path):
    for label, text in [("gut", "schön und größer"), ("schlecht", "übel und öde")]:
        (tmp_path / "texts" / label).mkdir(parents=True)
        for k in range(20):
            (tmp_path / "texts" / label / f"{k}.txt").write_bytes(text.encode("latin-1"))
    words = ["train", "text_classifier", "--train", tmp_path / "texts", "--num-heads", 2]
    code, _, err = run(*words, "--output", tmp_path / "no", "--epochs", 1)
    assert code == 2 and "UTF-8" in err and not (tmp_path / "no").exists()
    words += ["--encoding", "latin-1", "--hidden-dim", 16, "--learning-rate", 0.02]
    code, out, err = run(*words, "--output", tmp_path / "model", "--epochs", 3)
    assert (code, err) == (0, "")
    code, out, _ = run("predict", tmp_path / "model", "größer", "--json")
    assert json.loads(out)["prediction"]["label"] == "gut"


@pytest.mark.slow
def test_commands_for_masked_language_models(run, tmp_path):
    (tmp_path / "text.txt").write_text("the cat sat on the mat. the dog ran to the tree. " * 60)
    words = ["train", "masked_language_model", "--train", tmp_path / "text.txt", "--steps", 20]
    words += ["--tokens", "characters", "--max-length", 24, "--output", tmp_path / "model"]
    code, out, err = run(*words, "--epochs", 2, "--learning-rate", 0.01, *SMALL)
    assert (code, err) == (0, "") and "perplexity: train" in out
    code, out, _ = run("predict", tmp_path / "model", "the c[MASK]t", "--top", 2)
    assert code == 0 and len(out.splitlines()) == 2
    code, out, _ = run("evaluate", tmp_path / "model", "--file", tmp_path / "text.txt")
    assert code == 0 and "perplexity" in out
    code, _, err = run("predict", tmp_path / "model", "the cat")
    assert code == 2 and "has no [MASK]" in err


@pytest.mark.parametrize(
    "preset, one, message",
    [
        ("digits-speech", "said.wav", "'said.wav' is one recording: pass a list of them"),
        ("digits-speech", np.zeros(800), r"An array of shape \(800,\) is one recording"),
        ("digits-vit", pathlib.Path("three.png"), "'three.png' is one image"),
        ("digits-vit", np.zeros((8, 8)), r"An array of shape \(8, 8\) is one image"),
        ("blood-cells", np.zeros((24, 32, 3)), r"An array of shape \(24, 32, 3\) is one image"),
        ("emotions", "How nice!", "'How nice!' is one text: pass a list of str"),
    ],
)
def test_single_input_in_place_of_a_list_is_refused(preset, one, message):
    with pytest.raises(ValueError, match=message):
        ka.tasks.from_preset(preset).predict(one)


@pytest.mark.parametrize(
    "preset, inputs, options, message",
    [
        ("emotions", ["Nice!"], {"top": -1}, r"predict\(top=-1\): top must be a whole number"),
        ("digits-vit", [np.zeros((8, 8, 1))], {"top": 1.5}, r"predict\(top=1.5\): top must"),
        ("blood-cells", [np.zeros((24, 32, 3))], {"threshold": 2}, "threshold=2: expected a score"),
        ("blood-cells", [np.zeros((0, 0, 3))], {}, r"An image of shape \(0, 0, 3\): expected"),
        ("pos-tagger-en-ewt", [["The", ""]], {}, "'' is not a word: expected a str"),
        ("pos-tagger-en-ewt", [["The", 3]], {}, "3 is not a word: expected a str"),
    ],
)
def test_predict_refuses_invalid_inputs_and_options(preset, inputs, options, message):
    with pytest.raises(ValueError, match=message):
        ka.tasks.from_preset(preset).predict(inputs, **options)


def test_a_task_that_has_predicted_is_pickled_and_copied(task):
    words = [("the", "cat", "saw", "a", "tree", ".")]
    expected = task.predict(words)
    assert pickle.loads(pickle.dumps(task)).predict(words) == expected
    copied = copy.deepcopy(task)
    assert copied.predict(words) == expected
    for weight in copied.model.trainable_weights:
        weight.assign(keras.ops.zeros_like(weight))
    assert copied.predict(words) != expected, "the copy runs its own model"
    assert task.predict(words) == expected


@pytest.mark.slow
def test_preset_saved_after_fit_has_no_optimizer(tmp_path):
    texts = [ka.data.Text("a joy", "good"), ka.data.Text("a bore", "bad")] * 4
    size = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16}
    fresh = ka.tasks.TextClassifier.from_data(texts, **size)
    fresh.save_to_preset(tmp_path / "fresh")
    fresh.fit(texts, epochs=1, verbose=False)
    fresh.save_to_preset(tmp_path / "trained")
    fresh.save_to_preset(tmp_path / "half", weights_dtype="float16")
    sizes = [(tmp_path / x / "model.keras").stat().st_size for x in ("fresh", "trained")]
    assert sizes[1] < 1.05 * sizes[0]
    for name in ("trained", "half"):
        with zipfile.ZipFile(tmp_path / name / "model.keras") as archive:
            with h5py.File(io.BytesIO(archive.read("model.weights.h5"))) as weights:
                assert "optimizer" not in weights
    again = ka.tasks.from_preset(tmp_path / "trained")
    assert again.predict(["a joy"]) == fresh.predict(["a joy"])
    assert fresh.model.compiled  # the task can be trained further


def test_entities_have_character_positions():
    from keras_attention.tasks.sequence_labeler import TaggedToken, find_entities, place_entities

    text = "Then, Ada  Lovelace wrote."
    tags = ["O", "O", "B-name", "I-name", "O", "O"]
    tokens = [TaggedToken(w, t, 1.0) for w, t in zip(ka.data.split_words(text), tags, strict=True)]
    (entity,) = place_entities(find_entities(tokens), text)
    start, end = entity.characters
    assert text[start:end] == "Ada  Lovelace"
    assert place_entities(find_entities(tokens), ["Then"])[0].characters is None
