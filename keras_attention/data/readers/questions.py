"""Questions with a context that holds the answer: in memory, and from files."""

import functools
import pathlib
import re
import typing

from keras_attention.data.dataset import DataSet
from keras_attention.data.problems import report_problems
from keras_attention.data.readers.columns import UTF_8, line_error, read_lines
from keras_attention.data.splits import hold_out, read_parts
from keras_attention.files.fields import MOST_ID
from keras_attention.files.io import parse_json, quote_value, read_json

SENTENCES = "wiki-sentences.tsv"  # of QAMR, beside its questions
SUFFIXES = (".json", ".jsonl", ".tsv")


class Answer(typing.NamedTuple):
    """A text, and the index of its first character in the context."""

    text: str
    start: int

    @property
    def end(self):
        """int, the index of the character after its last."""
        return self.start + len(self.text)


class Question(typing.NamedTuple):
    """A question, a context that may answer it, the answers that people marked, and an id.

    Without `answers` the context does not answer it. Of several, which people marked on their own,
    the one that most of them gave is trained on, and the best for a prediction is scored.
    """

    question: str
    context: str
    answers: tuple = ()
    id: str | None = None

    @classmethod
    def collect(cls, train=(), dev=(), test=(), *, dev_fraction=0.1, seed=0):
        """A `DataSet` from lists of questions. Without `dev`, some contexts of train become it.

        An answer that is not in its context where it says is a ValueError.

        Example:

        ```python
        import keras_attention as ka

        context = "The cat sat on the mat."
        asked = ka.data.Question("What sat?", context, (ka.data.Answer("cat", 4),))
        data = ka.data.Question.collect([asked], dev_fraction=0)
        assert data.train[0].answers[0].end == 7
        ```
        """
        train, dev, test = ([_check(question) for question in part] for part in (train, dev, test))
        if train and not dev and dev_fraction:
            train, dev = _hold_out_contexts(train, dev_fraction, seed)
        return DataSet.from_parts(cls, train, dev, test, dev_fraction=0, seed=seed)


def _check(question):
    """A `Question` of a tuple like one."""
    question = Question(*question)
    answers = tuple(Answer(*answer) for answer in question.answers)
    for answer in answers:
        if not answer.text.strip() or question.context[answer.start : answer.end] != answer.text:
            raise ValueError(describe_misplaced(question, answer))
    return question._replace(answers=answers)


def describe_misplaced(question, answer):
    """What is wrong with an answer that is not in its context where it says."""
    there = question.context[max(0, answer.start) : max(0, answer.end)]
    return (
        f"the answer {answer.text[:40]!r} to {question.question[:40]!r} is not at {answer.start} "
        f"of its context: {there[:40]!r} is"
    )


def _hold_out_contexts(train, fraction, seed):
    """(train, dev), which share no context: about them, too, a model has learnt something."""
    contexts = list(dict.fromkeys(question.context for question in train))
    if len(contexts) < 2:
        raise ValueError(
            "All questions are about one context, so that none can be held out as a development "
            "part. Give a development part, or dev_fraction=0 for none."
        )
    _, held = hold_out(len(contexts), fraction, seed)
    held = {contexts[i] for i in held}
    return (
        [question for question in train if question.context not in held],
        [question for question in train if question.context in held],
    )


def from_question_files(
    train=None, dev=None, test=None, *, dev_fraction=0.1, seed=0, on_error="raise"
):
    """Questions from files; the end of the name says what is in one.

    - `.json`: SQuAD's, version 1.1 or 2.0 (Rajpurkar et al., 2016, 2018), as XQuAD has it, too.
    - `.jsonl`: an object on each line with `question`, `context` and `answers`, which has lists
      `text` and `answer_start`, as the library `datasets` writes SQuAD.
    - `.tsv`: QAMR's columns (Michael et al., 2018), with `wiki-sentences.tsv` in the same folder.

    Args:
        train, dev, test: a path, a list of paths, or None.
        dev_fraction: float, the share of the contexts of train that become dev where no dev file
            is given.
        seed: int, which those are.
        on_error: `"raise"` names all broken questions in one error, `"skip"` leaves them out with a
            warning that says how many.

    Returns:
        A `DataSet` of `Question`.

    A damaged file is a ValueError with the file, the place and what is wrong.

    Example:

    ```python
    import json
    import pathlib
    import tempfile
    import keras_attention as ka

    path = pathlib.Path(tempfile.mkdtemp()) / "questions.json"
    asked = {"id": "1", "question": "What sat?", "answers": [{"text": "cat", "answer_start": 4}]}
    paragraphs = [{"context": "The cat sat.", "qas": [asked]}]
    path.write_text(json.dumps({"version": "1.1", "data": [{"paragraphs": paragraphs}]}))
    data = ka.data.from_question_files(test=path)
    assert data.test[0].answers == (ka.data.Answer("cat", 4),)
    ```
    """
    parts = read_parts(read_questions, {"train": train, "dev": dev, "test": test}, on_error)
    return Question.collect(**parts, dev_fraction=dev_fraction, seed=seed)


@report_problems
def read_questions(path, *, problems=None):
    """The questions of one file, as a list of `Question`. See `from_question_files`."""
    path = pathlib.Path(path)
    readers = {".json": _read_squad, ".jsonl": _read_lines, ".tsv": _read_qamr}
    if path.suffix not in readers:
        raise ValueError(
            f"{path} is no file of questions: expected a name that ends in {', '.join(SUFFIXES)}."
        )
    questions = readers[path.suffix](path, problems)
    if not questions and not problems:
        raise ValueError(f"{path} holds no question.")
    return questions


def _read_squad(path, problems):
    """SQuAD's: articles of paragraphs of questions."""
    content, questions = read_json(path), []
    error = functools.partial(_error, path)
    if isinstance(content, list):
        mend = "save an object on each line, in a file whose name ends in .jsonl"
        raise error("the content", content, f'SQuAD\'s object, {{"data": [...]}}. Or {mend}')
    articles = _get(content, "data", list, error, "")
    for a, article in enumerate(articles):
        where = f"data[{a}]"
        for p, paragraph in enumerate(_get(article, "paragraphs", list, error, where)):
            inside = f"{where}.paragraphs[{p}]"
            context = None
            with problems.note():
                context = _get_text(paragraph, "context", error, inside)
            if context is None:
                continue
            for q, asked in enumerate(_get(paragraph, "qas", list, error, inside)):
                with problems.note():
                    questions.append(_make(context, asked, error, f"{inside}.qas[{q}]"))
    return questions


def _make(context, asked, error, where):
    """A `Question` of an entry of SQuAD."""
    text = _get_text(asked, "question", error, where)
    impossible = asked.get("is_impossible", False)
    if not isinstance(impossible, bool):
        raise error(f"{where}.is_impossible", impossible, "true or false")
    answers = []
    for k, found in enumerate(_get(asked, "answers", list, error, where)):
        inside = f"{where}.answers[{k}]"
        answer = _get_text(found, "text", error, inside)
        answers.append((answer, _get_start(found.get("answer_start"), error, inside)))
    name = asked.get("id")
    if name is not None and not isinstance(name, str | int):
        raise error(f"{where}.id", name, "a string")
    name = None if name is None else str(name)
    question = Question(text, context, () if impossible else tuple(answers), name)
    return _check_at(question, error, where)


def _check_at(question, error, where):
    try:
        return _check(question)
    except ValueError as problem:
        raise ValueError(f"{error.args[0]}: {where}: {problem}.") from problem


def _read_lines(path, problems):
    """An object on each line."""
    questions = []
    for number, line in read_lines(path, UTF_8):
        if line.strip():
            with problems.note():
                questions.append(_read_object(path, number, line))
    return questions


def _read_object(path, number, line):
    """The `Question` of an object on line `number`."""
    try:
        content = parse_json(line)
    except ValueError as problem:
        raise line_error(path, number, f"no JSON: {problem}") from problem
    error = functools.partial(_error, f"{path}:{number}")
    context = _get_text(content, "context", error, "")
    lists = _get(content, "answers", dict, error, "")
    texts, starts = (_get(lists, n, list, error, "answers") for n in ("text", "answer_start"))
    if len(texts) != len(starts):
        raise line_error(path, number, f"{len(texts)} texts and {len(starts)} answer_start")
    answers = [
        {"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)
    ]
    return _make(context, content | {"answers": answers}, error, "the object")


def _error(path, where, value, expected):
    return ValueError(f"{path}: {where} is {quote_value(value)}: expected {expected}.")


def _get(content, name, kind, error, where):
    """The list or object under a name of an object of JSON."""
    expected = {list: "a list", dict: "an object", str: "a string"}[kind]
    if not isinstance(content, dict):
        raise error(where or "the content", content, "an object")
    inside = f"{where}.{name}" if where else name
    if not isinstance(content.get(name), kind):
        raise error(inside, content.get(name), expected)
    return content[name]


def _get_text(content, name, error, where):
    """The text under a name, which is not empty."""
    text = _get(content, name, str, error, where)
    inside = f"{where}.{name}" if where else name
    if not text.strip():
        raise error(inside, text, "a text")
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise error(inside, text, "whole characters, and not half a pair of surrogates")
    return text


def _get_start(value, error, where):
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_ID:
        raise error(f"{where}.answer_start", value, "a whole number from 0")
    return value


def _read_qamr(path, problems):
    """QAMR's columns: the numbers of the words that an answer is made of."""
    sentences = _read_sentences(path.with_name(SENTENCES))
    questions = []
    for number, line in read_lines(path):
        if line.strip():
            with problems.note():
                questions.append(_read_row(path, number, line.split("\t"), sentences))
    return questions


def _read_row(path, number, row, sentences):
    """The `Question` of the fields on line `number`."""
    if len(row) < 7:
        raise line_error(path, number, f"found {len(row)} columns: expected QAMR's 9")
    name, text = row[0], row[5].strip()
    if name not in sentences:
        raise line_error(path, number, f"{SENTENCES} has no sentence {name[:60]!r}")
    if not text:
        raise line_error(path, number, "the question is empty")
    context, places = sentences[name]
    # What validators refused, as in the full version, has a word and no numbers.
    marked = [row[6], *(said.partition(":")[2] for said in row[7:9])]
    marked = [words for words in marked if re.fullmatch(r"\d+( \d+)*", words.strip())]
    answers = [_find_words(context, places, words, path, number) for words in marked]
    if not answers:
        raise line_error(path, number, f"{row[6][:40]!r} are no numbers of words")
    return Question(text, context, tuple(answers), f"{path.name}:{number}")


def _read_sentences(path):
    """{id: (sentence, the (start, end) of its words)}."""
    if not path.exists():
        raise ValueError(f"There is no file {path}, which QAMR's questions are about.")
    found = {}
    for number, line in read_lines(path):
        if not line.strip():
            continue
        name, tab, sentence = line.partition("\t")
        if not tab or not sentence.strip():
            raise line_error(path, number, "expected an id, a tab and a sentence")
        found[name] = sentence, [match.span() for match in re.finditer(r"[^ ]+", sentence)]
    return found


def _find_words(context, places, words, path, number):
    """The `Answer` from the first of the words that have these numbers to the last."""
    wanted = [int(word[:9]) for word in words.split()]
    if max(wanted) >= len(places):
        raise line_error(path, number, f"word {max(wanted)} of a sentence of {len(places)} words")
    start, end = places[min(wanted)][0], places[max(wanted)][1]
    return Answer(context[start:end], start)
