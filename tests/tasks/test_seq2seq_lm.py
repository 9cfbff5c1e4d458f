"""`Seq2SeqLM` with a Transformer and with a recurrent network."""

import contextlib
import dataclasses
import json
import pathlib
import sys

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.cli import jobs
from keras_attention.cli import train as command
from keras_attention.cli.sources import Source
from keras_attention.tasks import generators, recipes
from keras_attention.tasks.writing_task import find_last_of_source
from keras_attention.training.scores import texts as text_scores
from tests.cli.test_evaluate import printed

ROOT = pathlib.Path(__file__).parents[2]
PAIRS = ka.data.Pair.collect(
    [("drei vier", "three four"), ("vier", "four"), ("drei drei vier drei", "three three")] * 4,
    test=[("vier drei", "four three"), ("drei", "three"), ("vier vier vier", "four")],
    dev_fraction=0.25,
)
SMALL = {"epochs": 1, "batch_size": 4, "num_layers": 1, "hidden_dim": 8, "max_length": 14}


def make_task(builder, dataset="dates", seed=0, **options):
    """Make a small untrained task, which always writes the same."""
    keras.utils.set_random_seed(seed)
    heads = {"num_heads": 2} if builder == "seq2seq_transformer" else {}
    recipe = recipes.choose_recipe(builder, dataset, SMALL | heads | options)
    return ka.tasks.Seq2SeqLM.build(PAIRS, recipe, builder)


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    """Save a small untrained Transformer of subwords, and return its folder."""
    folder = tmp_path_factory.mktemp("models") / "translator"
    # With this seed, the outputs for different texts differ.
    task = make_task("seq2seq_transformer", None, seed=3, vocabulary_size=18, beam=3)
    task.save_to_preset(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("builder", ["seq2seq_recurrent", "seq2seq_transformer"])
def test_task_of_characters_writes_texts(builder, tmp_path):
    task = make_task(builder)
    long = sum(len(pair.source) >= 14 for pair in PAIRS.train)
    left_out = (f"{long} pairs of more than 14 tokens were not trained on",) if long else ()
    assert task.describe_data(PAIRS) == left_out
    job = task.make_job(PAIRS.train, PAIRS.dev, task.recipe)
    assert [metric().name for metric in job.metrics] == ["exact_match", "accuracy"]
    sizes = [sum(len(labels) for _, labels in part) for part in (job.train, job.dev)]
    assert sizes == [len(PAIRS.train) - long, len(PAIRS.dev)]
    inputs, labels = next(iter(job.train))
    assert job.model(inputs).shape[:2] == labels.shape
    assert task.metadata["task"] == builder and task.metadata["writing"] == {
        "beam": 1, "length_penalty": 0.0, "max_new_tokens": 14, "padding_id": 0,
        "start_token_id": 2, "end_token_id": 3
    }  # fmt: skip
    assert task.draw_examples(PAIRS, tmp_path) == ["attention.png"]
    assert (tmp_path / "attention.png").read_bytes().startswith(b"\x89PNG")
    batches = task.make_batches(PAIRS.test, "test")
    assert sum(len(labels) for _, labels in batches) == 3
    assert task.make_batches([], "dev") is None


def test_only_the_transformer_shares_the_embedding_of_one_vocabulary():
    options = {"vocabulary_size": 18}
    task = make_task("seq2seq_transformer", None, **options)
    encoder, decoder = (task.model.get_layer(side) for side in ("encoder", "decoder"))
    assert encoder.get_layer("embedding").table is decoder.get_layer("embedding").table
    assert make_task("seq2seq_recurrent", None, **options).model.output_shape[-1] == 18


def test_corpus_of_too_long_pairs_is_refused():
    with pytest.raises(ValueError, match="Every pair .* more than 3 tokens.*max_length="):
        task = make_task("seq2seq_transformer", max_length=3)
        task.make_job(PAIRS.train, PAIRS.dev, task.recipe)


def test_example_comes_from_the_data(translator, tmp_path):
    task = ka.tasks.from_preset(translator)
    assert task.example == type(task).example and "example" not in task.metadata
    task.example = task.find_example(PAIRS)
    assert task.example in [pair.source for pair in PAIRS.test]
    for example, typed in [(task.example, f'"{task.example}"'), ('$5 "or"', "'$5 \"or\"'")]:
        task.example = example
        task.save_to_preset(tmp_path / "again", overwrite=True)
        assert f"predict . {typed}\n" in (tmp_path / "again" / "README.md").read_text()
        assert ka.tasks.from_preset(tmp_path / "again").example == example


def test_score_file_stops_at_the_deadline_and_reports_progress(translator, monkeypatch, capsys):
    now = iter([0.0, 1.0])  # at the first and at the second batch
    monkeypatch.setattr(generators.time, "perf_counter", lambda: next(now))
    monkeypatch.setattr(generators, "ROWS", 2)
    monkeypatch.setattr(jobs, "keep_informed", lambda text: contextlib.nullcontext())
    monkeypatch.setattr(ka.tasks.Seq2SeqLM, "runner", staticmethod(lambda ids, beam: ids))
    task = ka.tasks.from_preset(translator)
    assert jobs.score_file(task, translator / "model.keras", PAIRS.test, deadline=0.5) == {}
    output = capsys.readouterr().out
    assert (
        "model.keras is not scored, because the time is over (2 of 3 outputs were generated)"
        in output
    )


def test_some_of_the_minutes_are_reserved_for_writing_files():
    recipe = recipes.choose_recipe("seq2seq_transformer")
    reserved = [
        jobs.reserve_seconds(task, dataclasses.replace(recipe, minutes=minutes))
        for task in (ka.tasks.Seq2SeqLM, ka.tasks.TextClassifier)
        for minutes in (3.0, 0.5, None)
    ]
    assert reserved == [90.0, 15.0, 0.0, 25.0, 15.0, 0.0]  # half of them at most


@pytest.mark.slow
def test_texts_are_written_in_their_order_whatever_the_batches(translator, monkeypatch):
    task = ka.tasks.from_preset(translator)
    texts = ["drei vier drei", "vier", "drei drei", "vier vier drei vier"]
    together = task.predict(texts)
    monkeypatch.setattr(generators, "ROWS", 2)
    assert task.predict(texts) == together
    expected = ka.generation.generate(
        task.model,
        task.preprocessor(texts),
        14,
        ka.generation.Beam(3, length_penalty=1.0),
        start_token_id=2,
        end_token_id=3,
    )
    assert together == task.preprocessor.texts(expected) and len(set(together)) > 1
    assert task.predict(texts, beam=1) != together


@pytest.mark.slow
def test_evaluate_and_predict(run, translator, tmp_path):
    (tmp_path / "test.tsv").write_text("source\ttarget\ndrei vier\tthree four\nvier\tfour\n")
    code, out, _ = run("evaluate", translator, "--file", tmp_path / "test.tsv")
    assert code == 0 and "\nbleu_lowercase  " in out and "%" not in out
    code, out, _ = run("predict", translator, "drei vier", "vier")
    assert code == 0 and len(out.splitlines()) == 2
    code, _, err = run("predict", translator, " ")
    assert code == 2 and "' ' has no word:" in err
    code, _, err = run("predict", translator, "vier", " ")
    assert code == 2 and "Input 2: ' ' has no word:" in err


def test_scores_of_every_kind():
    assert text_scores.score_texts("exact_match", ["a", "b", "c"], ["a", "c", "c"]) == {
        "exact_match": 0.666667
    }
    text, other = "a small dog runs over the green grass .", "A small dog runs over green grass ."
    bleu = pytest.importorskip("sacrebleu").corpus_bleu
    scores = text_scores.score_texts("bleu", [text], [other])
    assert scores["bleu"] == round(bleu([text], [[other]]).score, 4) > 0
    assert scores["bleu"] < scores["bleu_lowercase"] < 100


def test_task_without_sacrebleu_fails_before_training(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(ImportError, match=r"pip install 'keras-attention-zoo\[nlp\]'"):
        make_task("seq2seq_transformer", None)


def test_the_picture_shows_the_last_layer_that_attends_to_the_source():
    maps = {"block_0/attention": 1, "block_0/cross_attention": 2, "block_1/cross_attention": 3}
    assert find_last_of_source(maps) == "block_1/cross_attention"
    assert find_last_of_source({"recurrent_decoder/attention": 4}) == "recurrent_decoder/attention"


def test_aligned_files_are_found_by_their_languages(tmp_path):
    import gzip

    (tmp_path / "a.de").write_text("drei\nvier\n")
    with gzip.open(tmp_path / "a.en.gz", "wt") as file:
        file.write("three\nfour\n")
    source = Source(files={"test": tmp_path / "a", "train": None}, languages="de-en")
    loaded = source.load("seq2seq_transformer")
    assert loaded.test == [("drei", "three"), ("vier", "four")]
    entries = source.describe("seq2seq_transformer", loaded)
    assert entries["name"] == "a (de-en)" and entries["counts"] == {"test pairs": 2}


BAD = [
    (["seq2seq_transformer", "--languages", "de", "--train", "x"], "--languages de: expected two"),
    (["seq2seq_transformer", "--languages", "de-en", "--train", "x"], "There is no file x.de"),
    (["seq2seq_transformer", "--train", "x.txt"], "There is no file or folder x.txt"),
    (["seq2seq_transformer", "--dataset", "digits"], "images, which seq2seq_transformer does not"),
    (
        ["seq2seq_recurrent", "--dataset", "dates", "--num-heads", "2"],
        "--num-heads does not apply to seq2seq_rec",
    ),
    (
        ["sequence_labeler", "--train", "x", "--languages", "de-en"],
        "does not apply to files of t",
    ),
    (
        ["sequence_labeler", "--train", "x", "--beam", "2"],
        "--beam does not apply to sequence",
    ),
]


@pytest.mark.parametrize(("words", "message"), BAD)
def test_bad_input_is_one_sentence(run, tmp_path, words, message):
    code, _, err = run("train", *words, "--output", tmp_path / "new")
    assert code == 2 and message in err and err.count("\n") == 1
    assert not (tmp_path / "new").exists()


def write_numbers(folder):
    """Write aligned files of German and English numbers."""
    generator = np.random.default_rng(0)
    words = {"de": "null eins zwei drei vier".split(), "en": "zero one two three four".split()}
    for part, count in [("train", 400), ("dev", 20), ("test", 20)]:
        rows = [generator.integers(5, size=generator.integers(1, 5)) for _ in range(count)]
        for language, names in words.items():
            lines = [" ".join(names[k] for k in row) + "." for row in rows]
            (folder / f"{part}.{language}").write_text("\n".join(lines) + "\n")


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("seq2seq_transformer", ["--num-heads", "2", "--hidden-dim", "32", "--beam", "3"]),
        pytest.param(
            "seq2seq_recurrent", ["--hidden-dim", "64", "--beam", "1"], marks=pytest.mark.sweep
        ),
    ],
)
def test_all_files_of_a_translator_write_the_same(run, tmp_path, task, options):
    write_numbers(tmp_path)
    files = [w for part in ("train", "dev", "test") for w in (f"--{part}", tmp_path / part)]
    options += ["--epochs", "16", "--num-layers", "1", "--dropout", "0", "--vocabulary-size", "24"]
    options += ["--max-tokens", "256", "--learning-rate", "0.01", "--max-length", "24"]
    folder = tmp_path / "model"
    words = ["train", task, "--languages", "de-en", *files, "--output", folder, *options]
    code, out, err = run(*words)
    assert (code, err) == (0, ""), err
    assert "perplexity" in out
    scores = json.loads((folder / "scores.json").read_text("utf-8"))["test"]
    assert scores["keras"]["bleu"] == scores["litert"]["bleu"] > 50
    assert scores["litert-int8"]["bleu"] > 50
    written = {
        kind: run("predict", folder, "drei vier.", "eins null.", "--with", kind)[:2]
        for kind in ("keras", "saved_model", "litert")
    }
    assert written["keras"][0] == 0 and len(set(written.values())) == 1
    code, out, _ = run("evaluate", folder, "--file", tmp_path / "test", "--with", "saved_model")
    assert code == 0 and f"bleu            {scores['keras']['bleu']:.2f}" in out
    fixed = ["--batch-size", "2", "--sequence-length", "16"]
    code, out, err = run("export", folder, *fixed)
    assert (code, err) == (0, "")
    code, out, _ = run("predict", folder / "model.2x16.tflite", "drei vier.", "eins null.")
    assert (code, out) == written["keras"]


@pytest.mark.sweep
def test_score_of_the_translator_preset(run, data_root):
    """Score the preset in saved_models on the official test split with its LiteRT file."""
    folder = ROOT / "saved_models" / "multi30k-de-en"
    code, out, _ = run("predict", folder, "Ein Mann fährt Fahrrad.")
    assert code == 0 and out == "A man is riding a bicycle.\n"
    test = data_root / "mt-multi30k-de-en" / "test_2016_flickr"
    code, out, _ = run("evaluate", folder, "--file", test, "--with", "litert-int8")
    assert code == 0 and printed(out, "bleu") > 38


@pytest.mark.slow
def test_extend_vocabulary_adds_words_of_new_pairs(translator, tmp_path):
    task = ka.tasks.from_preset(translator)
    before = len(task.preprocessor.target)
    new_pairs = [("vierzig", "forty"), ("dreizehn", "thirteen")] * 6
    task.extend_vocabulary(new_pairs, 40)
    size = len(task.preprocessor.target)
    assert task.preprocessor.source is task.preprocessor.target and size > before
    assert task.model.output_shape[-1] == size
    task.save_to_preset(tmp_path / "longer")
    loaded = ka.tasks.from_preset(tmp_path / "longer")
    assert loaded.preprocessor == task.preprocessor
    ids = task.preprocessor(["vierzig drei"])
    assert ids.max() >= before  # of a new piece
    inputs = {"source_ids": ids, "target_ids": np.array([[2, size - 1]])}
    np.testing.assert_allclose(loaded.model(inputs), task.model(inputs), atol=1e-5)


@pytest.mark.slow
def test_a_model_with_new_tokens_learns_them(translator):
    task = ka.tasks.from_preset(translator)
    new_pairs = [("vierzig", "forty"), ("dreizehn", "thirteen")] * 12
    task.extend_vocabulary(new_pairs, 40)
    table = task.model.get_layer("encoder").get_layer("embedding").table
    before = np.array(table.embeddings)
    options = {"learning_rate": 0.03, "batch_size": 8, "verbose": False}
    perplexity = task.fit(new_pairs, new_pairs, epochs=5, **options).history["val_perplexity"]
    assert perplexity[-1] < 0.8 * perplexity[0]
    new = [i for i in task.preprocessor.target_ids(["forty"])[0] if i >= 18]
    assert new and np.all(np.abs(np.array(table.embeddings) - before)[new].max(-1) > 0.01)


def test_vocabulary_of_characters_cannot_be_extended():
    task = make_task("seq2seq_transformer")
    with pytest.raises(ValueError, match="expected subwords that source and target share"):
        task.extend_vocabulary([("eins", "one")])


def test_train_from_a_preset_adds_subwords(run, translator, tmp_path, monkeypatch):
    trained = []
    monkeypatch.setattr(command, "run_job", lambda task, *arguments, **named: trained.append(task))
    path = tmp_path / "train.tsv"
    path.write_text("source\ttarget\n" + "vierzig\tforty\ndreizehn\tthirteen\n" * 9)
    start = ("train", "seq2seq_transformer", "--from", translator, "--train", path)
    for name, options in (("same", ()), ("more", ("--vocabulary-size", 40))):
        code, _, err = run(*start, "--output", tmp_path / name, *options)
        assert code == 0, err
    same, more = trained
    assert len(same.preprocessor.target) == 18 < len(more.preprocessor.target)
    assert more.model.output_shape[-1] == len(more.preprocessor.target)
    code, _, err = run(*start, "--output", tmp_path / "x", "--beam", 2)
    assert code == 2 and "--beam is fixed by the model of --from" in err


@pytest.mark.slow
def test_fit_counts_the_pairs_that_are_too_long(caplog):
    pairs = [("ab", "ba")] * 8 + [("a" * 30, "b" * 30)] * 2
    sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": 8}
    task = ka.tasks.Seq2SeqLM.from_data(pairs, tokens="characters", max_length=8, **sizes)
    task.fit(pairs, validation_data=pairs[:2], epochs=1, batch_size=8)
    assert "2 pairs of more than 8 tokens were not trained on" in caplog.text
