"""`TextEmbedder`, with checkpoints, and the commands on a small run."""

import json

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.cli.show import show
from tests.small_runs import train
from tests.tasks.test_checkpoints import copy

SIZE = dict(num_layers=1, num_heads=2, hidden_dim=16, dropout=0.0, min_count=1)
FAST = dict(epochs=10, batch_size=8, learning_rate=0.02, verbose=False)
TOPICS = ("password", "weather", "bread", "train", "money", "music", "garden", "window")


def make_pairs(negatives=False):
    """Make questions, and answers with the same topic."""
    pairs = []
    for k, topic in enumerate(TOPICS):
        for verb in ("find", "lose", "change"):
            negative = f"all about {TOPICS[k - 1]}" if negatives else None
            pairs.append(
                ka.data.MatchingTexts(f"how to {verb} {topic} ?", f"all about {topic}", negative)
            )
    return pairs


PAIRS = make_pairs()
CORPUS = [f"all about {topic}" for topic in TOPICS]


def make_task(pairs=PAIRS, **options):
    keras.utils.set_random_seed(0)
    return ka.tasks.TextEmbedder.from_data(pairs, **SIZE | options)


@pytest.fixture(scope="module")
def embedder():
    """Return a trained task. Its vectors also work with 4 of 16 components."""
    task = make_task()
    task.fit(PAIRS, PAIRS, dimensions=(8, 4), **FAST)
    return task


def test_search_finds_the_topic(embedder):
    queries = ["how to open password ?", "music ?"]
    results = embedder.search(queries, CORPUS, top_k=3)
    assert [row[0].text for row in results] == ["all about password", "all about music"]
    for row in results:
        assert len(row) == 3 and all(CORPUS[one.index] == one.text for one in row)
        assert [one.score for one in row] == sorted((one.score for one in row), reverse=True)
        assert -1 <= row[-1].score <= row[0].score <= 1.00001
    vectors = embedder.predict(CORPUS)
    assert embedder.search(queries, CORPUS, 3, vectors=vectors) == results
    assert len(embedder.search(queries, CORPUS[:2])[0]) == 2
    assert embedder.search([], CORPUS) == [] and embedder.search(queries, []) == [[], []]


def test_vectors_have_length_one_and_do_not_depend_on_the_batch(embedder):
    texts = [*CORPUS, PAIRS[0].text] * 9
    vectors = embedder.predict(texts)
    assert vectors.shape == (81, 16) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    (single,) = embedder.predict([PAIRS[0].text])
    np.testing.assert_allclose(vectors[8], single, atol=1e-5)
    assert embedder.predict([]).shape == (0, 16)


def test_shorter_vectors_are_the_first_components(embedder):
    assert embedder.dimensions == (16, 8, 4)
    whole, short = embedder.predict(CORPUS), embedder.predict(CORPUS, dimension=4)
    expected = whole[:, :4] / np.linalg.norm(whole[:, :4], axis=1, keepdims=True)
    np.testing.assert_allclose(short, expected, atol=1e-6)
    ((one,),) = embedder.search(["password"], CORPUS, 1, vectors=whole, dimension=4)
    assert one.text == "all about password"
    with pytest.raises(ValueError, match="dimension=5: expected one of 16, 8, 4, the sizes"):
        embedder.predict(CORPUS, dimension=5)


def test_scores_follow_from_search(embedder):
    """Check texts with two matching texts, and hard negatives, which are documents, too."""
    pairs = [*make_pairs(True)[:9], ka.data.MatchingTexts("music ?", "all about bread")]
    pairs += [ka.data.MatchingTexts("music ?", "all about music")]
    queries = list(dict.fromkeys(one.text for one in pairs))
    corpus = list(dict.fromkeys(x for one in pairs for x in one[1:] if x))
    rows = {"recall@1": [], "recall@5": [], "mrr": [], "ndcg@10": []}
    for query, results in zip(queries, embedder.search(queries, corpus, 99), strict=True):
        right = {one.match for one in pairs if one.text == query}
        hits = [result.text in right for result in results]
        rows["recall@1"].append(hits[0] / len(right))
        rows["recall@5"].append(sum(hits[:5]) / len(right))
        rows["mrr"].append(1 / (1 + hits.index(True)))
        gains = [hit / np.log2(2 + rank) for rank, hit in enumerate(hits[:10])]
        rows["ndcg@10"].append(sum(gains) / sum(1 / np.log2(2 + np.arange(len(right)))))
    scores = embedder.evaluate(pairs)
    assert list(scores) == list(rows)
    for name, values in rows.items():
        assert scores[name] == pytest.approx(np.mean(values), abs=1e-6)
    assert embedder.evaluate(PAIRS)["recall@1"] > 0.9


def test_training_changes_the_temperature(embedder):
    assert embedder.settings["dimensions"] == [16, 8, 4]
    temperature = embedder.temperature
    assert temperature != 0.05 and 0.01 - 1e-6 <= temperature < 0.1
    assert embedder.scores["dev"]["contrastive_accuracy"] > 0.5


def test_errors_say_what_is_expected(embedder):
    cases = [
        (lambda: embedder.predict("music"), "is one text: pass a list of str"),
        (lambda: embedder.predict(["a", ""]), "^Text 2: '' .* no word"),
        (lambda: embedder.search(["a"], "music"), "is one text: pass a list of str"),
        (lambda: embedder.search(["a"], CORPUS, 0), "top_k must be a whole number of at least 1"),
        (
            lambda: embedder.search(["a"], CORPUS, vectors=np.ones((3, 16))),
            r"an array of shape \(3, 16\) for 8 texts: expected \(8, 16\). Compute it with",
        ),
        (lambda: make_task().fit(PAIRS, dimensions=(17,)), "dimensions must be .* at most 16"),
        (lambda: ka.tasks.TextEmbedder.from_data([("a",)]), "has no matching text: expected"),
        (lambda: embedder.evaluate([("a", " ")]), "^The examples: ' ' holds no word"),
    ]
    for compute, message in cases:
        with pytest.raises(ValueError, match=message):
            compute()


@pytest.mark.parametrize("negatives", [False, True])
def test_batches_have_the_texts_of_pairs(negatives):
    task = make_task()
    pairs = make_pairs(negatives)
    pairs[0] = pairs[0]._replace(negative=None)
    job = task.make_job(pairs, PAIRS[:4], task.recipe)
    assert job.monitor == "contrastive_accuracy"
    count = 3 if negatives else 2
    for part in (job.train, job.dev):
        for inputs, numbers in part.as_numpy_iterator():
            assert len(inputs) == numbers.shape[1] == count
            logits = job.model(inputs)
            assert logits.shape == (len(numbers), 1, (count - 1) * len(numbers))
    first, second = task.take_inputs(job.dev, 1)
    assert task.model(first).shape == task.model(second).shape == (4, 16)


def test_texts_that_are_cut_are_counted():
    task = make_task(max_length=4)
    data = ka.data.MatchingTexts.collect(PAIRS, test=PAIRS[:1], dev_fraction=0)
    (note,) = task.describe_data(data)
    assert note == "only the first 4 words of 25 long examples are used"
    assert task.find_example(data) == PAIRS[0].text


def test_attention_and_vectors_are_shown(embedder, tmp_path, capsys):
    maps = embedder.attention(PAIRS[0].text, tmp_path / "x.png")
    assert maps.queries == PAIRS[0].text.split() and (tmp_path / "x.png").exists()
    show(embedder, CORPUS[:2], {})
    lines = capsys.readouterr().out.splitlines()
    shown = np.array([line.split() for line in lines], float)
    np.testing.assert_allclose(shown, embedder.predict(CORPUS[:2]), atol=1e-6)


def test_preset_keeps_vectors_and_settings(embedder, tmp_path):
    embedder.save_to_preset(tmp_path / "preset")
    loaded = ka.tasks.from_preset(tmp_path / "preset")
    assert isinstance(loaded, ka.tasks.TextEmbedder)
    np.testing.assert_allclose(loaded.predict(CORPUS), embedder.predict(CORPUS), atol=1e-6)
    assert loaded.settings == embedder.settings
    assert loaded.dimensions == (16, 8, 4)


@pytest.mark.slow
@pytest.mark.parametrize("quantization", [None, "int8_weights"])
def test_exported_file_returns_vectors_of_length_one(embedder, quantization, tmp_path):
    report = embedder.export(tmp_path / "x.tflite", quantization=quantization)
    assert report.max_abs_error < (1e-5 if quantization is None else 0.05)
    run = ka.export.load(tmp_path / "x.tflite")
    (outputs,) = run({"token_ids": embedder.preprocessor(CORPUS)}).values()
    np.testing.assert_allclose(np.linalg.norm(outputs, axis=1), 1, atol=1e-5)
    opened = ka.tasks.TextEmbedder.from_preset(tmp_path / "x.tflite")
    ((result,),) = opened.search(["password ?"], CORPUS, 1)
    assert result.text == "all about password"


@pytest.mark.slow
def test_hard_negatives_are_learned():
    task = make_task(dimensions=(16, 8))
    task.fit(make_pairs(True), PAIRS, **FAST)
    assert task.dimensions == (16, 8)
    assert task.evaluate(make_pairs(True))["recall@1"] > 0.9


MODULES = [
    {"type": "sentence_transformers.models.Transformer", "path": ""},
    {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
]


@pytest.mark.parametrize("files", [False, True])
def test_checkpoints_open_with_their_pooling(files, tmp_path):
    folder = copy("bert", tmp_path / "bert")
    if files:
        (folder / "modules.json").write_text(json.dumps(MODULES))
        (folder / "1_Pooling").mkdir()
        pooling = {"pooling_mode_max_tokens": True, "pooling_mode_mean_tokens": False}
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
        task = ka.tasks.from_preset(folder)
    else:
        task = ka.tasks.TextEmbedder.from_preset(folder)
    assert isinstance(task, ka.tasks.TextEmbedder) and task.pretrained
    assert task.model.get_layer("pooling").mode == ("max" if files else "mean")
    first = ka.tasks.TextEmbedder.from_preset(folder, pooling="first")
    assert first.model.get_layer("pooling").mode == "cls"
    texts = ["a bad dog film", "bad dogs"]  # "good" has the id of the padding
    hidden = ka.pretrained.load(folder, pooling=None)(task.preprocessor(texts[1:]))[0]
    expected = np.asarray(hidden).max(axis=0) if files else np.asarray(hidden).mean(axis=0)
    expected /= np.linalg.norm(expected)
    np.testing.assert_allclose(task.predict(texts)[1], expected, atol=1e-5)
    assert task.recipe.learning_rate < 1e-4 and task.dimensions == (len(expected),)


@pytest.mark.slow
def test_a_checkpoint_is_fine_tuned(tmp_path):
    task = ka.tasks.TextEmbedder.from_preset(copy("bert", tmp_path / "bert"))
    before = task.predict(["a good film"])
    pairs = [("a dog film", "dogs"), ("a bad film", "bad")] * 8
    task.fit(pairs, epochs=1, batch_size=8, learning_rate=1e-2, lora_rank=2, verbose=False)
    assert np.abs(task.predict(["a good film"]) - before).max() > 1e-4


@pytest.mark.slow
def test_commands_train_predict_and_evaluate(run, tmp_path):
    file, output = tmp_path / "pairs.tsv", tmp_path / "out"
    file.write_text("text\tmatch\n" + "".join(f"{x.text}\t{x.match}\n" for x in PAIRS))
    words = ["text_embedder", "--train", str(file), "--dev", str(file), "--test", str(file)]
    words += ["--num-layers", "1", "--num-heads", "2", "--hidden-dim", "16", "--dropout", "0"]
    words += ["--epochs", "3", "--learning-rate", "0.02", "--dimensions", "8"]
    train(words, output)
    scores = json.loads((output / "scores.json").read_text())["test"]
    assert scores["keras"] == pytest.approx(scores["litert"], abs=1e-4)
    assert list(scores["litert-int8"]) == ["recall@1", "recall@5", "mrr", "ndcg@10"]
    manifest = json.loads((output / "manifest.json").read_text())
    assert manifest["dimensions"] == [16, 8] and manifest["preprocessing"]["kind"] == "embedder"
    code, out, _ = run("predict", output, "how to find music ?", "--json")
    (vector,) = [json.loads(line)["prediction"] for line in out.splitlines()[-1:]]
    task = ka.tasks.from_preset(output)
    assert code == 0
    np.testing.assert_allclose(vector, task.predict(["how to find music ?"])[0], atol=1e-4)
    code, out, _ = run("evaluate", output, "--file", file)
    assert code == 0 and "recall@1" in out and "ndcg@10" in out
    code, _, err = run("train", "text_embedder", "--train", file, "--dimensions", "8,x", "--output",
                       tmp_path / "y")  # fmt: skip
    assert code == 2 and "expected whole numbers separated by commas" in err
