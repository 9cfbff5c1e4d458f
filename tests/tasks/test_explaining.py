"""`Task.explain`: scores of each input for each output, against `ka.visualization.relevance`."""

import numpy as np
import pytest

import keras_attention as ka
from tests.conftest import ROOT
from tests.tasks.test_task import make_sentences
from tests.visualization.test_attention_page import read_page

SIZE = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "dropout": 0.0}
SENTENCE = ["the", "cat", "sat", "."]


def share(scores):
    """Return scores without the 1 that each position begins with, as shares that sum to 1."""
    return scores / scores.sum(axis=-1, keepdims=True)


def test_a_classifier_explains_a_label(tmp_path):
    train = [ka.data.Text("a joy to watch", "good"), ka.data.Text("a real bore", "bad")]
    task = ka.tasks.TextClassifier.from_data(train, **SIZE)
    text, path = "a joy to <script>", tmp_path / "page.html"
    explained = task.explain(text, path=path)
    (predicted,) = task.predict([text])
    assert explained.outputs == [predicted.label]
    assert explained.tokens == ["a", "joy", "to", "<", "script", ">"]
    ids = task.preprocessor([text])
    for number, label in enumerate(task.preprocessor.labels.names):
        expected = ka.visualization.relevance(task.model, ids, number)[0] - np.eye(6)
        for target in (label, number):
            scores = task.explain(text, target).relevance
            np.testing.assert_allclose(scores, [share(expected.mean(axis=0))], atol=1e-6)
    page = read_page(path.read_text("utf-8"))
    assert page["title"] == f"Why “{predicted.label}”?"
    (written,) = page["relevance"]
    np.testing.assert_allclose(written["scores"], explained.relevance[0], atol=1e-5)
    assert str(explained).startswith(f"Explanation(outputs=['{predicted.label}'], tokens=['a', ")
    for target in ("fine", 2, -1, "x" * 9):
        message = "there is no such output. Expected a number from 0 to 1, or one of bad, good."
        with pytest.raises(ValueError, match=message):
            task.explain(text, target)


@pytest.mark.parametrize(("pooling", "rows"), [("cls", [0]), ("max", [0, 1, 2]), ("last", [2])])
def test_a_classifier_is_explained_at_the_positions_that_it_reads(pooling, rows):
    train = [ka.data.Text("a joy", "good"), ka.data.Text("a real bore", "bad")]
    task = ka.tasks.TextClassifier.from_data(train, pooling=pooling, **SIZE)
    explained = task.explain("a real joy", "good")
    tokens = ["<class>"] * (pooling == "cls") + ["a", "real", "joy"]
    assert explained.tokens == tokens
    ids = task.preprocessor(["a real joy"])
    scores = ka.visualization.relevance(task.model, ids, 1)[0] - np.eye(len(tokens))
    np.testing.assert_allclose(explained.relevance, [share(scores[rows].mean(axis=0))], atol=1e-6)


@pytest.mark.parametrize("crf", [False, True])
def test_a_tagger_explains_each_tag(crf, tmp_path):
    task = ka.tasks.SequenceLabeler.from_data(make_sentences(20, 0), crf=crf, **SIZE)
    explained = task.explain(SENTENCE, path=tmp_path / "page.html")
    (tagged,) = task.predict([SENTENCE])
    assert explained.outputs == [f"{word.token}  {word.tag}" for word in tagged]
    assert explained.relevance.shape == (4, 4)
    np.testing.assert_allclose(explained.relevance.sum(axis=1), 1)
    alone = task.explain(SENTENCE, target=2)
    assert alone.outputs == explained.outputs[2:3]
    np.testing.assert_allclose(alone.relevance, explained.relevance[2:3], atol=1e-6)
    if not crf:
        number = task.preprocessor.labels.index(tagged[2].tag)
        inputs = task.preprocessor([SENTENCE])
        scores = ka.visualization.relevance(task.model, inputs, lambda y: y[:, 2, number])
        expected = share(scores[0, 2] - np.eye(4)[2])
        np.testing.assert_allclose(alone.relevance[0], expected, atol=1e-6)
    page = read_page((tmp_path / "page.html").read_text("utf-8"))
    assert page["sequences"] == [{"names": SENTENCE, "ends": explained.outputs}]


@pytest.mark.slow
def test_an_image_is_explained_by_its_patches(tmp_path):
    task = ka.tasks.from_preset(ROOT / "saved_models" / "digits-vit", "keras")
    example = ROOT / "saved_models" / "digits-vit" / "example.png"
    explained = task.explain(example, path=tmp_path / "page.html")
    assert explained.outputs == [task.predict([example])[0].label] and explained.tokens is None
    assert explained.relevance.shape == (1, 16)
    (sequence,) = read_page((tmp_path / "page.html").read_text("utf-8"))["sequences"]
    assert sequence["grid"] == [4, 4] and sequence["picture"]["height"] == 8


@pytest.mark.slow
def test_a_translation_is_explained_by_its_source(tmp_path):
    task = ka.tasks.from_preset(ROOT / "saved_models" / "multi30k-de-en", "keras")
    explained = task.explain("Ein Hund läuft.", path=tmp_path / "page.html")
    assert explained.tokens == ["▁Ein", "▁Hund", "▁läuft", ".", "</s>"]
    best = [explained.tokens[k] for k in explained.relevance.argmax(axis=1)]
    pairs = dict(zip(explained.outputs, best, strict=True))
    assert pairs["▁A"] == "▁Ein" and pairs["▁dog"] == "▁Hund" and pairs["▁running"] == "▁läuft"
    np.testing.assert_allclose(explained.relevance.sum(axis=1), 1)
    page = read_page((tmp_path / "page.html").read_text("utf-8"))
    assert [each["names"] for each in page["sequences"]] == [explained.tokens, explained.outputs]
    assert [layer["keys"] for layer in page["layers"]] == [0, 0, 0, 1, 0, 1, 0, 1, 0]


@pytest.mark.slow
def test_masks_are_explained_by_the_text_around_them():
    options = {"tokens": "characters", "max_length": 16, **SIZE}
    task = ka.tasks.MaskedLM.from_data("the cat sat. " * 30, **options)
    text = "the [MASK]at s[MASK]t."
    explained = task.explain(text)
    assert explained.outputs == [mask[0].token for mask in task.predict([text])[0]]
    assert explained.relevance.shape == (2, len(explained.tokens))
    assert explained.tokens.count("[MASK]") == 2
    with pytest.raises(ValueError, match="has no .MASK.: expected at least one"):
        task.explain("the cat")


@pytest.mark.slow
def test_tasks_without_an_explanation_say_so():
    pairs = [("null eins", "zero one"), ("zwei", "two")]
    options = {"builder": "seq2seq_recurrent", "tokens": "characters", "hidden_dim": 16}
    task = ka.tasks.Seq2SeqLM.from_data(pairs, **options)
    with pytest.raises(ValueError, match="relevance cannot differentiate the weights of recurr"):
        task.explain("null")
    gru = ka.models.RecurrentStack(1, 16, "gru")
    model = ka.models.text_classifier(9, 2, encoder=gru, hidden_dim=16)
    words = ka.data.TextPreprocessor.build([ka.data.Text("a joy", "good")])
    with pytest.raises(ValueError, match="text_classifier has no attention weights to show. Build"):
        ka.tasks.TextClassifier(model, words).explain("a joy")
    recognizer = object.__new__(ka.tasks.SpeechRecognizer)
    with pytest.raises(ValueError, match="SpeechRecognizer has no explanation. Use its method att"):
        recognizer.explain(np.zeros(16000))
