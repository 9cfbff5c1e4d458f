"""Questions with a context that holds the answer: in memory, and from files."""

import pathlib
import re
import typing

from keras_attention.data.dataset import DataSet
from keras_attention.data.problems import report_problems
from keras_attention.data.readers.columns import UTF_8, line_error, read_lines, read_objects
from keras_attention.data.splits import hold_out, read_parts
from keras_attention.files.fields import Fields
from keras_attention.files.io import prefix_errors, quote_value, read_json

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
        """Return a `DataSet` from lists of questions.

        Without `dev`, some contexts of train become it.

        An answer that is not in its context where it says is a ValueError.

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
    """Return a `Question` of a tuple like one."""
    question = Question(*question)
    answers = tuple(Answer(*answer) for answer in question.answers)
    for answer in answers:
        if not answer.text.strip() or question.context[answer.start : answer.end] != answer.text:
            raise ValueError(describe_misplaced(question, answer))
    return question._replace(answers=answers)


def describe_misplaced(question, answer):
    """Return what is wrong with an answer that is not in its context where it says."""
    text = question.context[max(0, answer.start) : max(0, answer.end)]
    return (
        f"the answer {answer.text[:40]!r} to {question.question[:40]!r} is not at {answer.start} "
        f"of its context: {text[:40]!r} is"
    )


def _hold_out_contexts(train, fraction, seed):
    """Return (train, dev), which share no context.

    About them, too, a model has learnt something.
    """
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
        dev_fraction, seed, on_error: as in `ka.data.from_text_files`; the share is one of contexts.

    Returns:
        A `DataSet` of `Question`.

    A damaged file is a ValueError with the file, the place and what is wrong.

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
    """Return the questions of one file, as a list of `Question`. See `from_question_files`."""
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
    """Return a `Question` of an entry of SQuAD, `Fields`."""
    text, impossible = _read_text(asked, "question"), asked.flag("is_impossible", default=False)
    answers = []
    for k in range(len(asked.entries("answers"))):
        answer_fields = asked.entry("answers", k)
        answers.append(
            (_read_text(answer_fields, "text"), answer_fields.whole("answer_start", least=0))
        )
    name = asked.get("id")
    if name is not None and not isinstance(name, str | int):
        raise asked.error("id", "a string")
    question = Question(text, context, () if impossible else tuple(answers), name and str(name))
    with prefix_errors(f"{asked.path}: {asked.within}" if asked.within else asked.path):
        return _check(question)


def _read_text(fields, name):
    """Return the text under a name, which is not empty."""
    text = fields.text(name)
    if not text.strip():
        raise fields.error(name, "a text")
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise fields.error(name, "whole characters, and not half a pair of surrogates")
    return text


def _read_lines(path, problems):
    """Return an object on each line."""
    questions = []
    for number, content in read_objects(path, UTF_8, problems):
        with problems.note():
            questions.append(_read_object(path, number, content))
    return questions


def _read_object(path, number, content):
    """Return the `Question` of an object on line `number`."""
    fields = Fields(f"{path}:{number}", content)
    lists = fields.object("answers")
    texts, starts = lists.entries("text"), lists.entries("answer_start")
    if len(texts) != len(starts):
        raise line_error(path, number, f"{len(texts)} texts and {len(starts)} answer_start")
    answers = [
        {"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)
    ]
    asked = Fields(fields.path, content | {"answers": answers})
    return _make(_read_text(fields, "context"), asked)


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
    """Return the `Question` of the fields on line `number`."""
    if len(row) < 7:
        raise line_error(path, number, f"found {len(row)} columns: expected QAMR's 9")
    name, text = row[0], row[5].strip()
    if name not in sentences:
        raise line_error(path, number, f"{SENTENCES} has no sentence {name[:60]!r}")
    if not text:
        raise line_error(path, number, "the question is empty")
    context, spans = sentences[name]
    # What validators refused, as in the full version, has a word and no numbers.
    marked = [row[6], *(field.partition(":")[2] for field in row[7:9])]
    marked = [words for words in marked if re.fullmatch(r"\d+( \d+)*", words.strip())]
    answers = [_find_words(context, spans, words, path, number) for words in marked]
    if not answers:
        raise line_error(path, number, f"{row[6][:40]!r} are no numbers of words")
    return Question(text, context, tuple(answers), f"{path.name}:{number}")


def _read_sentences(path):
    """{id: (sentence, the (start, end) of its words)}."""
    if not path.exists():
        raise ValueError(f"There is no file {path}, which QAMR's questions are about.")
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
    """Return the `Answer` from the first of the words that have these numbers to the last."""
    numbers = [int(word[:9]) for word in words.split()]
    if max(numbers) >= len(spans):
        raise line_error(path, number, f"word {max(numbers)} of a sentence of {len(spans)} words")
    start, end = spans[min(numbers)][0], spans[max(numbers)][1]
    return Answer(context[start:end], start)
