"""The programs for texts in docs/on-device give the answers of `predict`."""

import ast
import re

import numpy as np
import pytest

import keras_attention as ka
from tests.browser import session
from tests.conftest import ROOT
from tests.files.test_word_pattern import WORDS

pytestmark = [pytest.mark.slow, pytest.mark.tensorflow]

SIZE = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16}
LENGTH = 48
SPELLINGS = (
    "ΟΔΟΣ İstanbul STRASSE e\u0301 é Élan <pad> <unk> 😂😂😂😂 unforgettably-long-word-indeed"
)


def make_texts(count, seed=0):
    """Texts of words and signs of many scripts, with words that no vocabulary has."""
    draw = np.random.default_rng(seed)
    words = [
        word for text in (*WORDS, SPELLINGS) for word in re.split("[ \n\u00a0]+", text) if word
    ]
    texts = []
    for _ in range(count):
        chosen = [words[k] for k in draw.integers(len(words), size=draw.integers(1, 12))]
        chosen = [word.upper() if draw.random() < 0.2 else word for word in chosen]
        texts.append(draw.choice([" ", "  ", "\u00a0", "\n"]).join(chosen))
    assert max(len(ka.data.split_words(text)) for text in texts) <= LENGTH
    return texts


TEXTS = make_texts(500)


def open_python_program():
    """Return the class of the guide, which imports only NumPy and the runtime."""
    blocks = session.read_guide_blocks("python")
    (code,) = [block for block in blocks if "class TextModel" in block]
    nodes = [n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Import | ast.ImportFrom)]
    modules = {getattr(n, "module", None) or n.names[0].name for n in nodes}
    assert modules == {"json", "pathlib", "re", "numpy", "ai_edge_litert.interpreter"}
    names = {}
    exec(compile(code, "words.md", "exec"), names)
    return names["TextModel"]


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """Return the folder of an exported classifier, and its label for each text."""
    train = [ka.data.Text(text, f"label {k % 7}") for k, text in enumerate(TEXTS[:40])]
    task = ka.tasks.TextClassifier.from_data(train, lowercase=True, min_count=1, **SIZE)
    folder = export(task, tmp_path_factory.mktemp("classifier"))
    expected = [answer.label for answer in task.predict(TEXTS)]
    assert len(set(expected)) > 3  # drawn weights tell texts apart
    return folder, expected


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    """Return the folder of an exported tagger, and its tags for each text."""
    sentences = map(ka.data.split_words, TEXTS[:40])
    train = [ka.data.Sentence(words, [f"tag {len(w) % 7}" for w in words]) for words in sentences]
    task = ka.tasks.SequenceLabeler.from_data(train, lowercase=True, word_length=7, **SIZE)
    folder = export(task, tmp_path_factory.mktemp("tagger"))
    expected = [[tuple(token[:2]) for token in tokens] for tokens in task.predict(TEXTS)]
    assert len({tag for tokens in expected for _, tag in tokens}) > 3
    return folder, expected


def export(task, folder):
    task.export(folder / "model.tflite")
    task.export(folder / "fixed.tflite", batch_size=1, sequence_length=LENGTH)
    return folder


def test_a_classifier_in_python(classifier):
    folder, expected = classifier
    model = open_python_program()(folder)
    assert [model.classify(text) for text in TEXTS] == expected
    assert model.classify(" ") is None


def test_a_tagger_in_python(tagger):
    folder, expected = tagger
    model = open_python_program()(folder)
    assert [model.tag(text) for text in TEXTS] == expected
    assert model.tag(" ") == []


def test_a_classifier_in_javascript(classifier, browser):
    folder, expected = classifier
    answers = browser.answer(folder / "fixed.tflite", "classify", [*TEXTS, " "])
    assert answers == [*expected, None]


def test_a_tagger_in_javascript(tagger, browser):
    folder, expected = tagger
    answers = browser.answer(folder / "fixed.tflite", "tag", [*TEXTS, " "])
    assert [[tuple(token) for token in tokens] for tokens in answers] == [*expected, []]


@pytest.mark.parametrize("name", ["emotions", "pos-tagger-en-ewt"])
def test_shipped_presets(name):
    """Their files have eight bits, so `predict` runs the same file."""
    texts = ["I'm so happy for you 😂😂!!", "Ugh, that's awful ❤\ufe0f", *TEXTS[:100]]
    path = ROOT / "saved_models" / name / "model.int8.tflite"
    task, model = ka.tasks.from_preset(path), open_python_program()(path.parent, path.name)
    if name == "emotions":
        expected = [answers[0].label for answers in task.predict(texts, top=1)]
        assert [model.classify(text) for text in texts] == expected
    else:
        expected = [[tuple(token[:2]) for token in tokens] for tokens in task.predict(texts)]
        assert [model.tag(text) for text in texts] == expected
