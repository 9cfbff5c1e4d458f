"""`QuestionAnswerer`: answers, missing answers, long contexts, checkpoints, and the commands."""

import json

import numpy as np
import pytest

import keras_attention as ka
from tests.pretrained.make_checkpoints import FOLDER
from tests.small_runs import train
from tests.tasks.test_checkpoints import PIECES, copy

PLACES = ("mat", "hat", "chair", "table", "bed", "roof")
SIZE = dict(
    encoder=ka.models.TransformerEncoder.of_size(1, 2, 16, 32, position=["alibi", "relative_bias"]),
    hidden_dim=16,
    dropout=0.0,
    min_count=1,
)
FAST = dict(epochs=6, batch_size=4, learning_rate=0.01, verbose=False)


def ask(place, answerable=True, who="cat"):
    context = f"The {who} sat on the {place}, and slept."
    question = f"What did the {who} sit on?" if answerable else "Who paid the old bill?"
    answers = (ka.data.Answer(place, context.index(place)),) if answerable else ()
    return ka.data.Question(question, context, answers)


ANSWERABLE = [ask(place) for place in PLACES] * 8
MIXED = [ask(place, k % 2 == 0) for k in range(2) for place in PLACES] * 6


@pytest.fixture(scope="module")
def answerer():
    task = ka.tasks.QuestionAnswerer.from_data(ANSWERABLE, **SIZE)
    task.fit(ANSWERABLE, ANSWERABLE[:6], **FAST)
    return task


@pytest.fixture(scope="module")
def doubter():
    """Make a task that may answer that there is no answer."""
    task = ka.tasks.QuestionAnswerer.from_data(MIXED, **SIZE)
    task.fit(MIXED, MIXED[:12], **FAST | {"epochs": 12})
    return task


def test_answers_are_characters_of_the_context(answerer):
    (results,) = answerer.predict([("What did the cat sit on?", "The cat sat on the SHELF, no?")])
    assert results[0] == "SHELF" and results[2:] == (19, 24) and 0 < results.probability <= 1
    assert answerer.evaluate(ANSWERABLE[:6]) == {"exact_match": 1.0, "f1": 1.0}
    assert not answerer.no_answer and answerer.builder == "question_answerer"


def test_probability_is_a_softmax_over_all_spans(answerer):
    """Compare with the definition: a softmax of the sum of both logits over all spans."""
    question = ANSWERABLE[0]
    preprocessor = answerer.preprocessor
    (window,) = preprocessor.encode(*question[:2]).windows
    outputs = answerer.model(preprocessor.stack([window]))
    start, end = (np.asarray(outputs[f"{name}_logits"])[0] for name in ("start", "end"))
    span = range(window.begin, window.begin + window.count)
    scores = [start[i] + end[j] for i in span for j in span if i <= j < i + 30]
    (results,) = answerer.predict([question])
    assert results.probability == pytest.approx(
        np.exp(max(scores)) / np.exp(scores).sum(), rel=1e-4
    )


def test_answer_at_the_end_of_a_long_context_is_found(answerer):
    filler = "Nobody came, and nothing was heard all day. " * 60
    context = f"{filler}The cat sat on the roof, and slept. {filler}"
    question = ("What did the cat sit on?", context)
    assert len(answerer.preprocessor.encode(*question).windows) > 2
    (results,) = answerer.predict([question])
    assert context[results.start : results.end] == results.answer


@pytest.mark.slow
def test_model_may_answer_that_there_is_no_answer(doubter):
    assert doubter.no_answer and doubter.model.get_layer("span").no_answer
    scores = doubter.evaluate(MIXED[:12])
    assert scores == {
        "exact_match": 1.0,
        "f1": 1.0,
        "answerable_exact_match": 1.0,
        "answerable_f1": 1.0,
        "unanswerable_exact_match": 1.0,
    }
    (none,) = doubter.predict([ask("hat", False)])
    assert (none.answer, none.start, none.end) == ("", None, None) and none.probability > 0.5
    before = doubter.threshold
    doubter.threshold = 1e9
    assert doubter.predict([ask("hat", False)])[0].answer != ""
    doubter.threshold = -1e9
    assert doubter.predict([ask("hat")])[0].answer == ""
    doubter.tune(MIXED[:12])
    assert doubter.threshold == before


def test_model_without_no_answer_refuses_questions_without_answers(answerer):
    with pytest.raises(ValueError, match="Some of the questions have no answer, and the model alw"):
        answerer.fit(MIXED, epochs=1, verbose=False)
    with pytest.raises(ValueError, match="No question has an answer"):
        answerer.make_training_batches([ask("mat", False)], answerer.recipe)


def test_most_frequent_answer_is_the_target():
    context = "one two three four"
    words = {word: ka.data.Answer(word, context.index(word)) for word in context.split()}
    answers = tuple(words[word] for word in ("one", "two", "three", "two"))
    task = ka.tasks.QuestionAnswerer.from_data(
        [ka.data.Question("Which?", context, answers)], **SIZE
    )
    _, spans = task._encode_all([ka.data.Question("Which?", context, answers)], "x")
    assert spans == [(5, 5)]  # <cls> Which ? <sep> one two
    _, spans = task._encode_all([ka.data.Question("Which?", context, answers[:1])], "x")
    assert spans == [(4, 4)]


@pytest.mark.slow
def test_saved_and_loaded_task_predicts_the_same(doubter, tmp_path):
    doubter.save_to_preset(tmp_path / "preset")
    manifest = json.loads((tmp_path / "preset" / "manifest.json").read_text())
    assert manifest["no_answer"] is True and manifest["threshold"] == doubter.threshold
    card = (tmp_path / "preset" / "README.md").read_text()
    assert '--question "Where did the cat sit?" --context FILE' in card
    again = ka.tasks.from_preset(tmp_path / "preset")
    asked = [ask("chair"), ask("bed", False)]
    assert again.predict(asked) == doubter.predict(asked)


def test_attention_is_drawn(answerer, tmp_path):
    data = ka.data.Question.collect([], [], ANSWERABLE[:3])
    assert answerer.draw_examples(data, tmp_path) == ["attention.png"]
    assert (tmp_path / "attention.png").read_bytes().startswith(b"\x89PNG")
    maps = answerer.attention(ANSWERABLE[0])
    assert maps.queries[0] == "<cls>" and "mat" in maps.keys
    assert all(w.shape[2:] == (len(maps.keys),) * 2 for w in maps.weights.values())


def test_an_answer_is_explained_by_its_first_and_last_word(answerer):
    pair = ("What did the cat sit on?", "The cat sat on the SHELF, no?")
    explained = answerer.explain(pair)
    assert explained.outputs == ["first word: SHELF", "last word: SHELF"]
    assert explained.relevance.shape == (2, len(explained.tokens))
    np.testing.assert_allclose(explained.relevance.sum(axis=1), 1)
    first = explained.tokens.index("SHELF")
    inputs = answerer.preprocessor.stack(answerer.preprocessor.encode(*pair).windows)
    scores = ka.visualization.relevance(
        answerer.model, inputs, lambda outputs: outputs["start_logits"][:, first]
    )
    expected = scores[0, first] - np.eye(len(explained.tokens))[first]
    np.testing.assert_allclose(explained.relevance[0], expected / expected.sum(), atol=1e-6)


@pytest.mark.parametrize("inputs", ["Who?", ["Who?"], [("Who?",)], [("Who?", 3)]])
def test_predict_refuses_questions_without_text_or_context(answerer, inputs):
    with pytest.raises(
        ValueError, match="pass a list of .question, context|expected .question, context"
    ):
        answerer.predict(inputs)
    with pytest.raises(ValueError, match="The inputs: '' .* no word"):
        answerer.predict([("", "a context")])
    with pytest.raises(ValueError, match="The inputs: Question 2: '' .* no word"):
        answerer.predict([("Who?", "a context"), ("", "a context")])


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("quantization", [None, "int8_weights"])
def test_a_file_of_fixed_shapes_answers_alike(answerer, quantization, tmp_path):
    answerer.save_to_preset(tmp_path / "preset")
    path = tmp_path / "preset" / "model.tflite"
    answerer.export(path, batch_size=2, sequence_length=40, quantization=quantization)
    file = ka.tasks.from_preset(tmp_path / "preset", "litert")
    for results, expected in zip(
        file.predict(ANSWERABLE[:3]), answerer.predict(ANSWERABLE[:3]), strict=True
    ):
        assert results[0] == expected[0] and results[2:] == expected[2:]
        tolerance = 1e-4 if quantization is None else 0.1
        assert results.probability == pytest.approx(expected.probability, abs=tolerance)


# Checkpoints.


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bert-answers", "distilbert-answers", "electra-answers"])
def test_checkpoint_with_a_question_head_answers(name, tmp_path):
    """Compare with the best span by the logits of the checkpoint's model."""
    pytest.importorskip("tokenizers")
    folder = copy(name, tmp_path / "folder")
    tokenizer = ka.data.PretrainedTokenizer.from_vocabulary(PIECES, lowercase=True)
    (folder / "tokenizer.json").write_bytes(tokenizer.files["tokenizer.json"])
    task = ka.tasks.from_preset(folder)
    assert type(task) is ka.tasks.QuestionAnswerer and task.preprocessor.maximum_length == 16
    (results,) = task.predict([("dog?", "a good film")])
    ids = np.array([[2, 10, 1, 3, 9, 5, 7, 3]])
    segments = np.array([[0, 0, 0, 0, 1, 1, 1, 1]])
    outputs = ka.pretrained.load(folder)({"token_ids": ids, "segment_ids": segments})
    start, end = (np.asarray(outputs[f"{name}_logits"])[0, 4:7] for name in ("start", "end"))
    _, i, j = max((start[i] + end[j], i, j) for i in range(3) for j in range(i, 3))
    assert results.answer == " ".join(["a", "good", "film"][i : j + 1])


@pytest.mark.slow
def test_new_head_is_trained_and_saved(tmp_path):
    pytest.importorskip("tokenizers")
    still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    folder = copy("bert-masked", tmp_path / "bert", max_position_embeddings=16, **still)
    task = ka.tasks.QuestionAnswerer.from_preset(folder)
    context = "a dogs film"
    train = [
        ka.data.Question(word, context, (ka.data.Answer("film", 7),)) for word in ("good", "bad")
    ] + [ka.data.Question("film", context)]
    data = ka.data.Question.collect(train * 8, train)
    task.fit(data, epochs=30, batch_size=4, learning_rate=0.01, verbose=False)
    assert task.no_answer
    assert [results.answer for results in task.predict(train)] == ["film", "film", ""]
    ka.pretrained.save(task.model, tmp_path / "saved", checkpoint=folder)
    config = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert config["architectures"] == ["BertForQuestionAnswering"]
    again = ka.tasks.from_preset(tmp_path / "saved")
    asked = train[:2]
    results = [one.answer for one in again.predict(asked)]
    assert results == ["film", "film"]
    task.save_to_preset(tmp_path / "preset")
    loaded = ka.tasks.from_preset(tmp_path / "preset")
    assert loaded.predict(train) == task.predict(train) and loaded.recipe.batch_size == 32


def test_checkpoint_with_a_question_head_is_not_a_labeler():
    with pytest.raises(ValueError, match="A new head needs num_classes="):
        ka.pretrained.load(FOLDER / "bert-answers", task="sequence_labeler")
    model = ka.pretrained.load(FOLDER / "bert-answers", task="sequence_labeler", num_classes=3)
    assert model.output_shape == (None, None, 3)
    with pytest.raises(ValueError, match="num_classes=2 is for"):
        ka.pretrained.load(FOLDER / "bert", task="question_answerer", num_classes=2)
    described = ka.pretrained.describe(FOLDER / "bert", task="question_answerer")
    assert described.fresh_head and described.keywords["no_answer"]


# The commands.


def write_squad(path, questions):
    paragraphs = [
        {
            "context": question.context,
            "qas": [
                {
                    "id": str(k),
                    "question": question.question,
                    "answers": [{"text": t, "answer_start": s} for t, s in question.answers],
                }
            ],
        }
        for k, question in enumerate(questions)
    ]
    path.write_text(json.dumps({"version": "v2.0", "data": [{"paragraphs": paragraphs}]}))
    return path


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    """Train a small answerer with `train`, and return its folder."""
    folder = tmp_path_factory.mktemp("answers")
    words = ["question_answerer"]
    asked = [ask(place, k % 2 == 0, who) for k in range(2) for place in PLACES
             for who in ("cat", "dog")]  # fmt: skip
    for part, questions in (("train", asked * 12), ("dev", asked), ("test", asked)):
        words += [f"--{part}", str(write_squad(folder / f"{part}.json", questions))]
    options = ["--epochs", "10", "--batch-size", "4", "--learning-rate", "0.01"]
    size = ["--num-layers", "1", "--num-heads", "2", "--hidden-dim", "16", "--dropout", "0"]
    train([*words, *options, *size], folder / "preset")
    return folder / "preset"


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("kind", ["keras", "saved_model", "litert", "litert-int8"])
def test_every_format_gives_the_same_answers(run, preset, kind, tmp_path):
    scores = json.loads((preset / "scores.json").read_text())
    assert scores["test"]["litert"]["exact_match"] == 1.0
    text = tmp_path / "text.txt"
    text.write_text("The cat sat on the roof,\nand slept.\n")
    asked = ["--question", "What did the cat sit on?", "--question", "Who paid the old bill?"]
    code, out, err = run("predict", preset, *asked, "--context", text, "--with", kind, "--json")
    assert (code, err) == (0, "")
    first, second = (json.loads(line) for line in out.splitlines())
    assert first["input"] == asked[1] and first["prediction"]["answer"] == "roof"
    assert [first["prediction"][name] for name in ("start", "end")] == [19, 23]
    assert second["prediction"]["answer"] == "" and second["prediction"]["start"] is None
    code, out, _ = run("predict", preset, *asked, "--context", text, "--with", kind)
    assert code == 0 and out.startswith("roof ") and "(no answer)" in out
    code, out, _ = run("evaluate", preset, "--file", preset.parent / "test.json", "--with", kind)
    assert code == 0 and "unanswerable_exact_match" in out


@pytest.mark.slow
@pytest.mark.tensorflow
def test_commands_name_missing_options(run, preset, tmp_path):
    empty = tmp_path / "empty.txt"
    empty.write_text("\n")
    for words, message in [
        (("Who?",), "name the file that contains it with --context"),
        (("--question", "Who?", "--context", empty), "is empty"),
        (("--context", empty), "There is nothing to predict"),
    ]:
        code, _, err = run("predict", preset, *words)
        assert code == 2 and message in err and err.count("\n") == 1
