"""Questions about a context, with answers marked in the context."""

import functools
import pathlib
import re
import typing

from keras_attention.data.dataset import DataSet
from keras_attention.data.problems import report_problems
from keras_attention.data.readers.tables import line_error, read_lines, read_objects
from keras_attention.data.splits import hold_out, read_parts
from keras_attention.files.fields import Fields
from keras_attention.files.io import prefix_errors, quote_value, read_json

SENTENCES = "wiki-sentences.tsv"  # QAMR's contexts, next to its questions
SUFFIXES = (".json", ".jsonl", ".tsv")


class Answer(typing.NamedTuple):
    """An answer: its `text`, and `start`, the index of its first character in the context."""

    text: str
    start: int

    @property
    def end(self):
        """int, the index in the context of the character after the answer."""
        return self.start + len(self.text)


class Question(typing.NamedTuple):
    """A question, its context, the answers that people marked in the context, and an id.

    `answers` is empty if the context does not answer the question. If there are several answers,
    training uses the most frequent one, and a prediction is scored against the answer that it
    matches best. `id` is None if the question has no id.
    """

    question: str
    context: str
    answers: tuple = ()
    id: str | None = None

    @classmethod
    def collect(cls, train=(), dev=(), test=(), *, dev_fraction=0.1, seed=0):
        """Make a `DataSet` from lists of questions for train, dev and test.

        If `dev` is empty, a random share `dev_fraction` of `train`, chosen by the int `seed`, is
        moved to it. All questions about a context stay in the same split. Raise a ValueError if an
        answer is not in its context at its `start`.
        """
        train, dev, test = ([_check(question) for question in part] for part in (train, dev, test))
        if train and not dev and dev_fraction:
            train, dev = _hold_out_contexts(train, dev_fraction, seed)
        return DataSet.from_parts(cls, train, dev, test, dev_fraction=0, seed=seed)


def _check(question):
    """Return `question` as a `Question`. Raise a ValueError if the context lacks an answer."""
    question = Question(*question)
    question = question._replace(answers=tuple(Answer(*answer) for answer in question.answers))
    for answer in question.answers:
        text = question.context[max(0, answer.start) : max(0, answer.end)]
        if not answer.text.strip() or answer.start < 0 or text != answer.text:
            raise ValueError(
                f"the answer {answer.text[:40]!r} to {question.question[:40]!r} is not at "
                f"{answer.start} of its context: {text[:40]!r} is"
            )
    return question


def _hold_out_contexts(train, fraction, seed):
    """Split questions at random into (train, dev), such that both parts have different contexts.

    dev has a share `fraction` of the contexts. A shared context would make dev too easy, because a
    model also learns about contexts.
    """
    contexts = list(dict.fromkeys(question.context for question in train))
    if len(contexts) < 2:
        raise ValueError(
            "All questions are about one context: give a development part, or dev_fraction=0."
        )
    _, held = hold_out(len(contexts), fraction, seed)
    held = {contexts[i] for i in held}
    parts = [], []
    for question in train:
        parts[question.context in held].append(question)
    return parts


def from_question_files(
    train=None, dev=None, test=None, *, dev_fraction=0.1, seed=0, on_error="raise"
):
    """Read a `DataSet` of `Question` from files.

    - `.json`: SQuAD 1.1 or 2.0 (Rajpurkar et al., 2016, 2018), also used by XQuAD.
    - `.jsonl`: an object on each line with `question`, `context` and `answers`. `answers` has the
      lists `text` and `answer_start`, as in SQuAD exported from the library `datasets`.
    - `.tsv`: QAMR's columns (Michael et al., 2018), with `wiki-sentences.tsv` in the same folder.

    Raise a ValueError with file and place for broken questions.

    Args:
        train, dev, test: a path, a list of paths, or None.
        dev_fraction: float, the share of the contexts in train that becomes dev, with all their
            questions.
        seed: int, for the random choice of these contexts.
        on_error: `"raise"` an error for broken examples, or `"skip"` them with a warning.

    ```python
    import json
    import pathlib
    import keras_attention as ka

    path = pathlib.Path("questions.json")
    asked = {"id": "1", "question": "What sat?", "answers": [{"text": "cat", "answer_start": 4}]}
    paragraphs = [{"context": "The cat sat.", "qas": [asked]}]
    path.write_text(json.dumps({"version": "1.1", "data": [{"paragraphs": paragraphs}]}))
    data = ka.data.from_question_files(test=path)
    assert data.test[0].answers == (ka.data.Answer("cat", 4),)
    ```
    """
    parts = read_parts(read_questions, train, dev, test, on_error)
    return Question.collect(**parts, dev_fraction=dev_fraction, seed=seed)


@report_problems
def read_questions(path, *, problems=None):
    """Read one file of questions, and return a list of `Question`.

    Errors are collected in `problems`, a `Problems`. If it is None, they are raised together as one
    error.
    """
    path = pathlib.Path(path)
    readers = {".json": _read_squad, ".jsonl": _read_lines, ".tsv": _read_qamr}
    if path.suffix not in readers:
        raise ValueError(
            f"{path} is not a file of questions: expected a name that ends in "
            f"{', '.join(SUFFIXES)}."
        )
    questions = readers[path.suffix](path, problems)
    if not questions and not problems:
        raise ValueError(f"{path} holds no question.")
    return questions


def _read_squad(path, problems):
    content, questions = read_json(path), []
    if isinstance(content, list):
        raise ValueError(
            f"{path}: the content is {quote_value(content)}: expected SQuAD's object, "
            '{"data": [...]}. Or save an object on each line, in a file whose name ends in .jsonl.'
        )
    fields = Fields(path, content)
    for a in range(len(fields.entries("data"))):
        article = fields.entry("data", a)
        for p in range(len(article.entries("paragraphs"))):
            context = None
            with problems.note():
                paragraph = article.entry("paragraphs", p)
                context = _read_text(paragraph, "context")
            if context is None:
                continue
            for k in range(len(paragraph.entries("qas"))):
                with problems.note():
                    questions.append(_make(context, paragraph.entry("qas", k)))
    return questions


def _make(context, asked):
    """Make a `Question` from a context and `asked`, an entry `qas` of SQuAD's JSON (`Fields`)."""
    text, impossible = _read_text(asked, "question"), asked.flag("is_impossible", default=False)
    fields = [asked.entry("answers", k) for k in range(len(asked.entries("answers")))]
    answers = [(_read_text(one, "text"), one.whole("answer_start", least=0)) for one in fields]
    name = asked.get("id")
    if name is not None and not isinstance(name, str | int):
        raise asked.error("id", "a string")
    question = Question(text, context, () if impossible else tuple(answers), name and str(name))
    with prefix_errors(f"{asked.path}: {asked.within}" if asked.within else asked.path):
        return _check(question)


def _read_text(fields, name):
    """Return the string in the field `name`. Raise a ValueError if the string is empty."""
    text = fields.text(name)
    if not text.strip():
        raise fields.error(name, "a text")
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise fields.error(name, "whole characters, not half a pair of surrogates")
    return text


def _read_lines(path, problems):
    rows = read_objects(path, "utf-8", problems)
    return problems.read_each(functools.partial(_read_object, path), rows)


def _read_object(path, number, content):
    fields = Fields(f"{path}:{number}", content)
    lists = fields.object("answers")
    texts, starts = lists.entries("text"), lists.entries("answer_start")
    if len(texts) != len(starts):
        raise line_error(path, number, f"{len(texts)} text and {len(starts)} answer_start")
    pairs = zip(texts, starts, strict=True)
    answers = [{"text": text, "answer_start": start} for text, start in pairs]
    asked = Fields(fields.path, content | {"answers": answers})
    return _make(_read_text(fields, "context"), asked)


def _read_qamr(path, problems):
    """Read a TSV file of QAMR, and return a list of `Question`. Answers are indices of words."""
    sentences = _read_sentences(path.with_name(SENTENCES))
    rows = ((path, n, line.split("\t"), sentences) for n, line in read_lines(path) if line.strip())
    return problems.read_each(_read_row, rows)


def _read_row(path, number, row, sentences):
    if len(row) < 7:
        raise line_error(path, number, f"found {len(row)} columns: expected QAMR's 9")
    name, text = row[0], row[5].strip()
    if name not in sentences:
        raise line_error(path, number, f"{SENTENCES} has no sentence {name[:60]!r}")
    if not text:
        raise line_error(path, number, "the question is empty")
    context, spans = sentences[name]
    # A field has a word instead of indices if a validator rejected the question.
    marked = [row[6], *(field.partition(":")[2] for field in row[7:9])]
    marked = [words for words in marked if re.fullmatch(r"\d+( \d+)*", words.strip())]
    answers = [_find_words(context, spans, words, path, number) for words in marked]
    if not answers:
        raise line_error(path, number, f"{row[6][:40]!r} are not numbers of words")
    return Question(text, context, tuple(answers), f"{path.name}:{number}")


def _read_sentences(path):
    """Read QAMR's sentences: a dict from id to (sentence, [(start, end) of each word])."""
    if not path.exists():
        raise ValueError(f"The file {path} is missing: QAMR's questions are about its sentences.")
    sentences = {}
    for number, line in read_lines(path):
        if not line.strip():
            continue
        name, tab, sentence = line.partition("\t")
        if not tab or not sentence.strip():
            raise line_error(path, number, "expected an id, a tab and a sentence")
        sentences[name] = sentence, [match.span() for match in re.finditer(r"[^ ]+", sentence)]
    return sentences


def _find_words(context, spans, words, path, number):
    """Make an `Answer` from `words`, a str with the indices of its words in a sentence.

    `spans` are the (start, end) characters of all words. `path` and `number` (the line) are for
    error messages.
    """
    numbers = [int(word[:9]) for word in words.split()]
    if max(numbers) >= len(spans):
        raise line_error(path, number, f"word {max(numbers)} of a sentence of {len(spans)} words")
    start, end = spans[min(numbers)][0], spans[max(numbers)][1]
    return Answer(context[start:end], start)
