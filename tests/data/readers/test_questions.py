"""Questions from SQuAD's JSON, JSON lines and QAMR's columns, and errors of other files."""

import json

import pytest

import keras_attention as ka

CONTEXT = "Ångström’s cat 🐈 sat on the mat, near Århus. It slept."
ASKED = [
    {"id": "a", "question": "Who sat?", "answers": [{"text": "cat 🐈", "answer_start": 11}]},
    {
        "id": "b",
        "question": "Where?",
        "answers": [
            {"text": "the mat", "answer_start": 24},
            {"text": "Århus", "answer_start": 38},
        ],
    },
    {"id": "c", "question": "Why?", "answers": [], "is_impossible": True},
]


def write_squad(path, asked=ASKED, context=CONTEXT):
    content = {"version": "v2.0", "data": [{"paragraphs": [{"context": context, "qas": asked}]}]}
    path.write_text(json.dumps(content), "utf-8")
    return path


def write_lines(path):
    lines = []
    for asked in ASKED:
        texts = [answer["text"] for answer in asked["answers"]]
        starts = [answer["answer_start"] for answer in asked["answers"]]
        answers = {"text": texts, "answer_start": starts}
        line = {"id": asked["id"], "context": CONTEXT, "question": asked["question"]}
        lines.append(json.dumps(line | {"answers": answers}))
    path.write_text("\n".join(lines) + "\n\n", "utf-8")
    return path


@pytest.mark.parametrize("write, name", [(write_squad, "x.json"), (write_lines, "x.jsonl")])
def test_questions_and_characters(write, name, tmp_path):
    """Starts count characters, not bytes."""
    first, second, third = ka.data.read_questions(write(tmp_path / name))
    assert first == ("Who sat?", CONTEXT, (("cat 🐈", 11),), "a")
    assert [CONTEXT[a.start : a.end] for a in second.answers] == ["the mat", "Århus"]
    assert third.answers == () and third.id == "c"
    data = ka.data.from_question_files(test=tmp_path / name)
    assert data.train == [] and len(data.test) == 3
    assert repr(data) == "DataSet(Question: train=0, dev=0, test=3)"


SENTENCE = "Liam `` had his whole life '' , said Andy Logan ."
ROW = "S:1\t1 2\t7\t0\t1\tWho said it?\t9 10\t3:9 10\t4:10"


def write_qamr(path, row=ROW, sentence=f"S:1\t{SENTENCE}"):
    path.write_text(row + "\n", "utf-8")
    (path.parent / "wiki-sentences.tsv").write_text(sentence + "\n", "utf-8")
    return path


def test_qamr_counts_words(tmp_path):
    (asked,) = ka.data.read_questions(write_qamr(tmp_path / "dev.tsv"))
    assert asked.question == "Who said it?" and asked.context == SENTENCE
    assert [answer.text for answer in asked.answers] == ["Andy Logan", "Andy Logan", "Logan"]
    assert all(SENTENCE[a.start : a.end] == a.text for a in asked.answers)
    refused = ROW.replace("3:9 10", "3:Invalid").replace("4:10", "4:Redundant-2")
    (asked,) = ka.data.read_questions(write_qamr(tmp_path / "dev.tsv", refused))
    assert len(asked.answers) == 1


@pytest.mark.parametrize(
    "write, message",
    [
        (lambda p: write_qamr(p / "x.tsv", ROW.replace("S:1", "S:2")), "has no sentence 'S:2'"),
        (lambda p: write_qamr(p / "x.tsv", ROW.replace("\t9 10\t", "\t9 99\t")), "word 99 of a"),
        (lambda p: write_qamr(p / "x.tsv", "S:1\t1 2"), "x.tsv:1: found 2 columns"),
        (
            lambda p: write_qamr(p / "x.tsv", ROW.replace("9 10", "-").replace("4:10", "")),
            "'-' are",
        ),
        (lambda p: write_qamr(p / "x.tsv", sentence="S:1"), "wiki-sentences.tsv:1: expected an id"),
        (
            lambda p: write_squad(p / "x.json", [{"question": "Who?"}]),
            r"qas\[0\].answers is not there",
        ),
        (
            lambda p: write_squad(p / "x.json", [{}]),
            r"qas\[0\].question is not there: expected a str",
        ),
        (lambda p: write_squad(p / "x.json", ASKED, ""), r"paragraphs\[0\].context is ''"),
        (
            lambda p: write_squad(p / "x.json", [ASKED[0] | {"answers": [{"text": "cat"}]}]),
            r"answers\[0\].answer_start is not there: expected a whole number",
        ),
        (
            lambda p: write_squad(
                p / "x.json", [ASKED[0] | {"answers": [{"text": "dog", "answer_start": 11}]}]
            ),
            "the answer 'dog' to 'Who sat.' is not at 11 of its context: 'cat' is",
        ),
        (lambda p: write_squad(p / "x.json", []), "x.json holds no question"),
    ],
)
def test_damaged_files(write, message, tmp_path):
    with pytest.raises(ValueError, match=message) as error:
        ka.data.read_questions(write(tmp_path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "content, message",
    [
        (
            "[]",
            r'x.json: the content is a list: expected SQuAD\'s object, {"data": .* in .jsonl\.$',
        ),
        ("{}", "data is not there: expected a list"),
        ('{"data": [3]}', r"data\[0\] is 3: expected an object"),
        ("{", "is not valid JSON"),
        ("[" * 1000, "is not valid JSON"),
    ],
)
def test_foreign_json_is_an_error(content, message, tmp_path):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        ka.data.read_questions(path)


def test_files_of_other_kinds(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("x")
    with pytest.raises(ValueError, match="x.txt is not a file of questions: expected a name that"):
        ka.data.read_questions(path)
    with pytest.raises(ValueError, match="The file .*wiki-sentences.tsv is missing: QAMR's"):
        (tmp_path / "y.tsv").write_text(ROW)
        ka.data.read_questions(tmp_path / "y.tsv")
    with pytest.raises(ValueError, match="No Question given"):
        ka.data.Question.collect()


def test_no_context_is_in_two_parts():
    train = [ka.data.Question(f"q{i}?", f"context {i // 3}") for i in range(60)]
    data = ka.data.Question.collect(train, dev_fraction=0.2, seed=1)
    held = {question.context for question in data.dev}
    assert len(held) == 4 and len(data.dev) == 12
    assert not held & {question.context for question in data.train}
    assert not all(question.answers for question in data.train)
    with pytest.raises(ValueError, match="All questions are about one context"):
        ka.data.Question.collect(train[:3])


@pytest.mark.slow
def test_real_files(data_root):
    """Check that all answers of the three sets are at their starts."""
    qamr = ka.data.from_question_files(
        train=data_root / "qa-qamr" / "dev.tsv", test=data_root / "qa-qamr" / "test.tsv"
    )
    assert len(qamr.train) + len(qamr.dev) == 18_908 and len(qamr.test) == 18_770
    squad = ka.data.read_questions(data_root / "qa-squad-v2" / "dev-v2.0.json")
    assert len(squad) > 5000 and any(not question.answers for question in squad)
    for language in ("en", "de", "zh"):
        questions = ka.data.read_questions(data_root / "qa-xquad" / f"xquad.{language}.json")
        assert len(questions) == 1190


def test_made_up_people():
    parts = {part: ka.data.facts(part, 400, seed=3) for part in ("train", "dev", "test")}
    data = ka.data.Question.collect(**parts)  # every answer is where it says
    assert data.train == ka.data.facts("train", 400, seed=3) != ka.data.facts("train", 400)
    for question in data.train:
        for answer in question.answers:
            assert question.context.count(answer.text) == 1 or len(answer.text) <= 5
    answered = [sum(bool(q.answers) for q in part) for part in (data.train, data.dev, data.test)]
    assert all(280 < number < 360 for number in answered)
    shared = {q.context for q in data.train} & {q.context for q in data.test}
    assert not shared
    with pytest.raises(ValueError, match="part='all': expected one of train, dev, test"):
        ka.data.facts("all", 3)
