"""`MultiLabelClassifier`, with checkpoints, and the commands on a small run."""

import json

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.cli.show import show
from keras_attention.tasks.multi_label_classifier import SHRINKAGE
from keras_attention.tasks.recipes.kinds import LabelData
from tests.small_runs import train
from tests.tasks.test_checkpoints import PIECES, copy

SIGNS = {"joy": "what a joy", "anger": "how dare you", "fear": "oh no"}
SIZE = dict(
    num_layers=1,
    num_heads=2,
    hidden_dim=16,
    dropout=0.0,
    embedding=ka.models.TextEmbedding(),
    min_count=1,
)
FAST = dict(epochs=6, batch_size=8, learning_rate=0.02, verbose=False)


def make_comments(count, seed):
    """Make texts with a phrase for each of their labels, in any order."""
    draw, made = np.random.default_rng(seed), []
    for _ in range(count):
        labels = sorted(draw.choice(sorted(SIGNS), draw.integers(0, 3), replace=False))
        sentences = [SIGNS[label] for label in labels] + ["it is late"]
        draw.shuffle(sentences)
        made.append(ka.data.MultiLabelText(" , ".join(sentences), tuple(map(str, labels))))
    return made


TRAIN, DEV = make_comments(96, 0), make_comments(24, 1)


@pytest.fixture(scope="module")
def classifier():
    task = ka.tasks.MultiLabelClassifier.from_data(TRAIN, **SIZE)
    task.fit(TRAIN, DEV, **FAST)
    return task


def test_texts_may_have_any_number_of_labels(classifier):
    some, none = classifier.predict(["how dare you , what a joy", "it is late"])
    assert {results.label for results in some} == {"anger", "joy"} and none == []
    assert some[0].probability >= some[1].probability
    (top,) = classifier.predict(["it is late"], top=2)
    assert len(top) == 2 and top[0].probability >= top[1].probability
    with pytest.raises(ValueError, match="is one text: pass a list"):
        classifier.predict("it is late")
    with pytest.raises(ValueError, match="^Text 2: '' .* no word"):
        classifier.predict(["it is late", ""])
    with pytest.raises(ValueError, match="^The test part: Text 2: ' ' .* no word"):
        classifier.compute_shares([DEV[0], (" ", ())], "The test part")
    scores = classifier.evaluate(DEV)
    assert list(scores) == ["macro_f1", "micro_f1", "sample_f1"] and scores["macro_f1"] == 1.0
    assert classifier.scores["dev"] == {"macro_f1": 1.0}


def test_thresholds_are_chosen_on_the_development_part(classifier):
    """Compare with `find_label_thresholds` of the task's probabilities."""
    labels = classifier.preprocessor.labels.encode_sets([labels for _, labels in DEV])
    shares = classifier.compute_shares(DEV)
    for k, text in enumerate(DEV[:3]):
        alone = {
            results.label: results.probability
            for results in classifier.predict([text[0]], top=3)[0]
        }
        np.testing.assert_allclose([alone[name] for name in classifier.preprocessor.labels],
                                   shares[k], atol=1e-5)  # fmt: skip
    results = ka.training.find_label_thresholds(labels, shares, SHRINKAGE)
    np.testing.assert_allclose(classifier.thresholds, results, atol=1e-6)
    before = classifier.thresholds
    classifier.thresholds = (0.0, 1.0, 1.0)
    ((only,),) = classifier.predict(["it is late"])
    assert only.label == "anger"  # only the first label, and never another
    classifier.tune(DEV)
    assert classifier.thresholds == before


def test_show_prints_answers(classifier, capsys):
    show(classifier, ["what a joy , how dare you", "it is late"], {})
    lines = capsys.readouterr().out.splitlines()
    assert sorted(line.split()[0] for line in lines[:2]) == ["anger", "joy"]
    assert lines[2].split() == ["(no", "label)", "-", "it", "is", "late"]


def test_attention_is_drawn(classifier, tmp_path):
    data = ka.data.MultiLabelText.collect([], [], DEV)
    assert classifier.draw_examples(data, tmp_path) == ["attention.png"]
    assert (tmp_path / "attention.png").read_bytes().startswith(b"\x89PNG")
    assert classifier.describe_labels(np.full(3, -9.0)) == "no label"
    assert classifier.describe_labels(np.full(3, 9.0)) == "anger, fear, joy"


def test_rare_labels_weigh_more():
    task = ka.tasks.MultiLabelClassifier.from_data(TRAIN, **SIZE)
    assert task.make_job(TRAIN, DEV, task.recipe).loss.positive_weights is None
    examples = [ka.data.MultiLabelText("a", ("joy",))] * 2 + [ka.data.MultiLabelText("a", ())] * 6
    recipe = ka.tasks.recipes.replace_numbers(task.recipe, task.builder, {"balance": 0.5})
    weights = task.make_job(examples, DEV, recipe).loss.positive_weights
    # joy is true for 2 of 8. A label without examples counts as one of 9.
    assert weights == pytest.approx([8**0.5, 8**0.5, 3**0.5])


@pytest.mark.slow
def test_saved_and_loaded_task_predicts_the_same(classifier, tmp_path):
    classifier.save_to_preset(tmp_path / "preset")
    manifest = json.loads((tmp_path / "preset" / "manifest.json").read_text())
    assert manifest["task"] == "multi_label_classifier"
    assert manifest["thresholds"] == list(classifier.thresholds)
    again = ka.tasks.from_preset(tmp_path / "preset")
    texts = [text for text, _ in DEV]
    assert type(again) is ka.tasks.MultiLabelClassifier
    assert again.predict(texts) == classifier.predict(texts)
    with pytest.raises(ValueError, match="is a MultiLabelClassifier, not a TextClassifier"):
        ka.tasks.TextClassifier.from_preset(tmp_path / "preset")
    manifest["thresholds"] = [0.5]
    (tmp_path / "preset" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="thresholds is .*: expected 3 numbers from 0"):
        ka.tasks.from_preset(tmp_path / "preset")


@pytest.mark.sweep
def test_new_labels_get_a_new_last_layer(classifier, tmp_path):
    classifier.save_to_preset(tmp_path / "preset")
    again = ka.tasks.from_preset(tmp_path / "preset")
    new_texts = [(text, (*labels, "calm")) for text, labels in TRAIN]
    again.fit(new_texts, [*DEV], epochs=1, verbose=False)
    assert tuple(again.preprocessor.labels) == ("anger", "calm", "fear", "joy")
    assert len(again.thresholds) == again.model.output_shape[-1] == 4


@pytest.mark.parametrize("thresholds", [[0.5], [0.5, 0.5, 2.0], []])
def test_number_of_thresholds_must_match_the_labels(classifier, thresholds):
    with pytest.raises(ValueError, match="thresholds=.*: expected 3 numbers from 0 to 1"):
        type(classifier)(classifier.model, classifier.preprocessor, thresholds=thresholds)


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("quantization", [None, "int8_weights"])
def test_litert_file_gives_the_same_labels(classifier, quantization, tmp_path):
    classifier.save_to_preset(tmp_path / "preset")
    path = tmp_path / "preset" / "model.tflite"
    report = classifier.export(path, quantization=quantization)
    assert not any(op.startswith("Flex") for op in report.ops)
    file = ka.tasks.from_preset(tmp_path / "preset", "litert")
    tolerance = 1e-5 if quantization is None else 0.05
    np.testing.assert_allclose(
        file.compute_shares(DEV), classifier.compute_shares(DEV), atol=tolerance
    )
    assert file.evaluate(DEV)["macro_f1"] >= 0.99


# Checkpoints.


@pytest.mark.parametrize("several", [False, True])
def test_checkpoint_of_several_labels_is_opened(several, tmp_path):
    """Check that `problem_type` decides whether a head is replaced."""
    pytest.importorskip("tokenizers")
    config = {"problem_type": "multi_label_classification"} if several else {}
    folder = copy("bert-texts", tmp_path / "bert", **config)
    tokenizer = ka.data.PretrainedTokenizer.from_vocabulary(PIECES, lowercase=True)
    (folder / "tokenizer.json").write_bytes(tokenizer.files["tokenizer.json"])
    task = ka.tasks.MultiLabelClassifier.from_preset(folder)
    logits = np.asarray(ka.pretrained.load(folder)(task.preprocessor(["a good film"])))[0]
    if not several:
        assert type(ka.tasks.from_preset(folder)) is ka.tasks.TextClassifier
        assert task.model.output_shape[-1] == 2
        return
    assert type(ka.tasks.from_preset(folder)) is ka.tasks.MultiLabelClassifier
    (results,) = task.predict(["a good film"], top=len(logits))
    shares = sorted((1 / (1 + np.exp(-logits))).tolist(), reverse=True)
    assert [one.probability for one in results] == pytest.approx(shares, abs=1e-6)
    assert task.recipe.data == LabelData(balance=0.0)


@pytest.mark.sweep
def test_new_head_is_trained(tmp_path):
    pytest.importorskip("tokenizers")
    still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    folder = copy("bert-masked", tmp_path / "bert", **still)
    task = ka.tasks.MultiLabelClassifier.from_preset(folder)
    train = [("good film", ("art", "joy")), ("bad film", ("art",)), ("dogs", ())] * 8
    task.fit(train, train, epochs=30, batch_size=4, learning_rate=0.01, verbose=False)
    results = [
        sorted(one.label for one in labels) for labels in task.predict([t for t, _ in train[:3]])
    ]
    assert results == [["art", "joy"], ["art"], []]


# The commands.


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    """Train a small classifier with `train`, and return its folder."""
    folder, words = tmp_path_factory.mktemp("comments"), ["multi_label_classifier"]
    for seed, (part, count) in enumerate([("train", 96), ("dev", 24), ("test", 24)]):
        path = folder / f"{part}.jsonl"
        lines = [{"said": text, "signs": labels} for text, labels in make_comments(count, seed)]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        words += [f"--{part}", str(path)]
    options = ["--text-column", "said", "--label-column", "signs", "--epochs", "8"]
    options += ["--batch-size", "8", "--learning-rate", "0.02"]
    size = ["--num-layers", "1", "--num-heads", "2", "--hidden-dim", "16", "--dropout", "0"]
    train([*words, *options, *size], folder / "preset")
    return folder / "preset"


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("kind", ["keras", "saved_model", "litert", "litert-int8"])
def test_every_format_gives_the_same_labels(run, preset, kind):
    scores = json.loads((preset / "scores.json").read_text())
    assert scores["test"]["litert"]["macro_f1"] == 1.0
    texts = ["how dare you , what a joy", "it is late"]
    code, out, err = run("predict", preset, *texts, "--with", kind, "--json")
    assert (code, err) == (0, "")
    first, second = (json.loads(line)["prediction"] for line in out.splitlines())
    assert {results["label"] for results in first} == {"anger", "joy"} and second == []
    code, out, _ = run("predict", preset, *texts, "--with", kind, "--top", 1)
    assert code == 0 and len(out.splitlines()) == 2
    code, out, _ = run("evaluate", preset, "--file", preset.parent / "test.jsonl", "--with", kind)
    assert code == 0 and "macro_f1" in out and "sample_f1" in out


@pytest.mark.slow
@pytest.mark.tensorflow
def test_commands_name_missing_options(run, preset, tmp_path):
    test = preset.parent / "test.jsonl"
    words = ("train", "multi_label_classifier", "--output", tmp_path / "new", "--train", test)
    code, _, err = run(*words)
    assert code == 2 and "no 'text', the object has said, signs" in err and err.count("\n") == 1
    code, _, err = run(*words, "--languages", "de-en")
    assert code == 2 and "--languages de-en" in err
