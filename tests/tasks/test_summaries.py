"""Summaries: pairs from files, long sources in windows, and ROUGE."""

import csv
import random

import pytest

import keras_attention as ka
from keras_attention.training.scores.texts import score_texts

NAMES = ["Ada", "Ben", "Cem", "Dora"]
REST = ["It rained.", "The cat slept.", "Nobody came.", "The bus was late.", "Trees grew."]
SIZE = dict(num_layers=1, num_heads=2, hidden_dim=32, dropout=0.0, vocabulary_size=80)


def write_pairs(path, count, seed):
    generator = random.Random(seed)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["article", "summary"])
        for _ in range(count):
            name, words = generator.choice(NAMES), generator.choices(REST, k=12)
            words.insert(generator.randrange(12), f"{name} called.")
            rows.writerow([" ".join(words), f"{name} called."])
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("news")
    paths = {
        part: write_pairs(folder / f"{part}.csv", count, seed)
        for seed, (part, count) in enumerate([("train", 200), ("dev", 16), ("test", 16)])
    }
    return ka.data.from_pair_files(**paths, text_column="article", label_column="summary")


def test_rouge_equals_the_reference_library():
    scorer = pytest.importorskip("rouge_score.rouge_scorer")
    scorer = scorer.RougeScorer(["rouge1", "rouge2", "rougeL"])
    written = ["the cat sat on the mat", "it rained", "nobody"]
    targets = ["the cat lay on a mat", "it rained all day", "trees grew"]
    scores = score_texts("rouge", written, targets)
    each = [scorer.score(x, y) for x, y in zip(targets, written, strict=True)]
    for name, other in {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL"}.items():
        mean = sum(scores[other].fmeasure for scores in each) / len(each)
        assert scores[name] == pytest.approx(mean, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("mask", [ka.masks.Window(16), ka.masks.Chunked(16)], ids=str)
def test_long_sources_are_read_in_windows(data, mask):
    """Check that tokens far outside of a token's window do not change it."""
    task = ka.tasks.Seq2SeqLM.from_data(
        data, score="rouge", mask=mask, position="rotary", max_length=256, **SIZE
    )
    encoder = task.model.get_layer("encoder")
    ids = task.preprocessor([data.test[0].source * 2])
    other = ids.copy()
    other[:, -30:] = 5
    one, two = (encoder(x)[0, : ids.shape[1] - 46] for x in (ids, other))
    assert ids.shape[1] > 100 and float(abs(one - two).numpy().max()) < 1e-5
    scores = task.evaluate(data.test[:2])
    assert list(scores) == ["rouge_1", "rouge_2", "rouge_l"]


@pytest.mark.sweep
def test_model_learns_to_copy_the_important_words(data, tmp_path):
    task = ka.tasks.Seq2SeqLM.from_data(
        data, score="rouge", mask=ka.masks.Window(16), max_length=128, beam=1, **SIZE
    )
    task.fit(data, epochs=16, batch_size=16, learning_rate=5e-3, verbose=False)
    assert task.evaluate(data)["rouge_l"] > 0.6  # half of it is "called"
    task.export(tmp_path / "model.tflite", quantization="int8_weights")


def test_unknown_score_is_refused(data):
    with pytest.raises(ValueError, match="score='meteor'.: expected one of .*rouge"):
        ka.tasks.Seq2SeqLM.from_data(data, score="meteor", **SIZE)
