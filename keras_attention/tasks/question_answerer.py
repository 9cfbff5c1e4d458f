"""`QuestionAnswerer`: questions, contexts, and the words of a context that answer."""

import typing

import numpy as np

from keras_attention import data, training
from keras_attention.core.checks import check_many
from keras_attention.core.lazy import blocks, models, visualization
from keras_attention.data.preprocessors.answer_spans import locate_answer, place_in_window
from keras_attention.files.io import number_errors, prefix_errors
from keras_attention.tasks.interface import AttentionMaps
from keras_attention.tasks.runners import check_spelling
from keras_attention.tasks.sentence_task import size_characters
from keras_attention.tasks.task import Task
from keras_attention.training.scores.answers import compute_answer_f1, find_threshold

PICTURED = 24  # tokens of a question and its context whose picture is easy to read
ROWS = 64  # windows that are scored at a time


class FoundAnswer(typing.NamedTuple):
    """An answer, and how likely the model finds it of all that it could give, from 0 to 1.

    It is the context from character `start` to before `end`. Where the context has no answer, the
    text is empty, and both are None.
    """

    answer: str
    probability: float
    start: int | None
    end: int | None


class QuestionAnswerer(Task):
    """Answers questions with words of a context.

    Args:
        model: functional `keras.Model`, a dict of `token_ids` and `segment_ids` (B, T), and what
            else its preprocessor makes -> `start_logits` and `end_logits` (B, T), as
            `ka.models.question_answerer`.
        preprocessor: `ka.data.QuestionPreprocessor`.
        no_answer: bool, whether it may say that a context has no answer. The attribute of this name
            may be set later: with False it answers every question.
        threshold: float, by how much the logits of no answer have to be above those of the best
            one for that.

    Example:

    ```python
    import keras_attention as ka


    def ask(place):
        context = f"The cat sat on the {place}, and slept."
        answer = ka.data.Answer(place, context.index(place))
        return ka.data.Question("What did the cat sit on?", context, (answer,))


    train = [ask(place) for place in ("mat", "hat", "chair", "table", "bed", "roof")] * 8
    task = ka.tasks.QuestionAnswerer.from_data(
        train, num_layers=1, num_heads=2, hidden_dim=16, dropout=0.0
    )
    task.fit(train, epochs=4, batch_size=4, learning_rate=0.02, verbose=False)
    (found,) = task.predict([("What did the cat sit on?", "The cat sat on the shelf, and slept.")])
    assert (found.answer, found.start, found.end) == ("shelf", 19, 24)
    ```
    """

    builders = ("question_answerer",)
    example_kind, holds = data.Question, "questions with contexts"
    unit = "questions"
    example = "Where did the cat sit?"
    takes_context = True

    def __init__(self, model, preprocessor, *, no_answer=False, threshold=0.0, builder=None):
        super().__init__(model, preprocessor, builder=builder)
        self.no_answer, self.threshold = bool(no_answer), float(threshold)

    @classmethod
    def make_parts(cls, data_set, recipe, builder):
        no_answer = _lack_answers(data_set.train)
        preprocessor = _build_preprocessor(data_set.train, recipe.data)
        embedding = {"num_segments": 2, "exact_match": True}
        embedding["characters"] = size_characters(preprocessor)
        model = models.question_answerer(
            len(preprocessor.tokenizer), no_answer=no_answer, **recipe.list_keywords(**embedding)
        )
        return model, preprocessor, dict(no_answer=no_answer)

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        return data.QuestionPreprocessor.load(folder)

    @classmethod
    def read_settings(cls, fields):
        return {"no_answer": fields.flag("no_answer"), "threshold": fields.number("threshold")}

    @property
    def settings(self):
        return {"no_answer": self.no_answer, "threshold": self.threshold}

    def find_example(self, data_set):
        """Return the first question of the data."""
        every = data_set.test or data_set.dev or data_set.train
        return every[0].question if every else self.example

    def hold_out(self, train, dev, seed):
        """Return (train, dev): without dev, a tenth of the contexts of train becomes it."""
        if dev or not train:
            return train, dev
        held = data.Question.collect(train, seed=seed)
        return held.train, held.dev

    def adapt(self, data_set):
        """Lets the model say that there is no answer, where it can and `data_set` has such."""
        if self.no_answer or not _lack_answers(data_set.train):
            return ()
        span = next(x for x in self.model.layers if isinstance(x, blocks.SpanLogits))
        if not span.no_answer:
            raise ValueError(
                "Some of the questions have no answer, and the model always gives one: leave them "
                "out, or make a new model with from_data."
            )
        self.no_answer = True
        self.forget_runner()
        return ()

    def make_training_batches(self, examples, recipe):
        """Make batches of windows with their answers.

        Windows without one are left out where the model always gives an answer.
        """
        windows, places = self._encode_all(examples, "The train part")
        if not self.no_answer:
            kept = [i for i, (first, _) in enumerate(places) if first >= 0]
            windows, places = [windows[i] for i in kept], [places[i] for i in kept]
        if not windows:
            raise ValueError("None of the questions has an answer in what the model sees of it.")
        options = {"shuffle": True, "seed": recipe.seed}
        pairs = list(zip(windows, places, strict=True))
        return data.batches(pairs, self.preprocessor, recipe.batch_size, **options)

    def make_batches(self, examples, where):
        if not examples:
            return None
        pairs = list(zip(*self._encode_all(examples, where), strict=True))
        return data.batches(pairs, self.preprocessor, ROWS)

    def _encode(self, question):
        return self.preprocessor.encode(question.question, question.context)

    def _encode_all(self, examples, where):
        """Return all windows of questions, and the (first, last) places of their answers there.

        Of several answers it is the one that most people gave. Windows without an answer have the
        first place, which says so, or -1 where there always is one.
        """
        windows, places, nothing = [], [], (0, 0) if self.no_answer else (-1, -1)
        with prefix_errors(where):
            found = number_errors("Question", examples, self._encode)
            for question, encoded in zip(examples, found, strict=True):
                answer = _choose_answer(question.answers)
                tokens = answer and locate_answer(encoded.spans, answer)
                for window in encoded.windows:
                    found = place_in_window(window, tokens) if tokens else None
                    windows.append(window)
                    places.append(found or nothing)
        return windows, places

    def make_metrics(self):
        longest = self.preprocessor.maximum_answer
        return [lambda: training.SpanF1(longest)]

    def make_loss(self, recipe, train):
        return training.SpanCrossentropy(label_smoothing=recipe.label_smoothing)

    def tune(self, examples):
        """Chooses the threshold of no answer for the highest F1 on examples."""
        if not (self.no_answer and examples):
            return
        found = self._search(examples, "The dev part")
        scores, missing = [], []
        for question, (best, null, _) in zip(examples, found, strict=True):
            text = question.context[best.start : best.end]
            answers = [answer.text for answer in question.answers] or [""]
            scores.append(
                tuple(max(compute_answer_f1(x, answer) for answer in answers) for x in (text, ""))
            )
            missing.append(null - best.score)
        self.threshold = round(find_threshold(scores, missing)[0], 6)

    def compute_scores(self, examples, where):
        """Return exact match and F1; where some have no answer, by the script of SQuAD 2.0."""
        if not examples:
            return {}
        texts = [found.answer for found in self._answer(examples, where)]
        answers = [[answer.text for answer in question.answers] for question in examples]
        version = "1.1" if all(answers) else "2.0"
        scores = training.score_answers(texts, answers, version=version)
        return {name: round(score, 6) for name, score in scores.items()}

    def check_runner(self, path, run):
        check_spelling(path, run.inspection, self.preprocessor)

    def predict(self, inputs):
        """Return the answers to questions.

        Args:
            inputs: list of (question, context), two str, or of `ka.data.Question`.

        Returns:
            For each a `FoundAnswer`.
        """
        check_many(inputs, "text", of="(question, context)")
        return self._answer([_as_question(given) for given in inputs], "The inputs")

    def _answer(self, questions, where):
        answers = []
        found = self._search(questions, where)
        for question, (best, null, total) in zip(questions, found, strict=True):
            if null is not None and null - best.score > self.threshold:
                answers.append(FoundAnswer("", float(np.exp(null - total)), None, None))
                continue
            share = float(np.exp(best.score - total))
            text = question.context[best.start : best.end]
            answers.append(FoundAnswer(text, share, best.start, best.end))
        return answers

    def _search(self, questions, where):
        """Return what `search_span` finds for each question."""
        with prefix_errors(where):
            encoded = list(number_errors("Question", questions, self._encode))
        windows = [(i, w) for i, one in enumerate(encoded) for w in range(len(one.windows))]
        windows.sort(key=lambda at: len(encoded[at[0]].windows[at[1]].tokens))
        logits = {}
        for k in range(0, len(windows), ROWS):
            batch = windows[k : k + ROWS]
            outputs = self.runner(
                self.preprocessor.stack([encoded[i].windows[w] for i, w in batch])
            )
            both = zip(outputs["start_logits"], outputs["end_logits"], strict=True)
            logits |= dict(zip(batch, both, strict=True))
        options = {"maximum_answer": self.preprocessor.maximum_answer, "no_answer": self.no_answer}
        found = []
        for i, one in enumerate(encoded):
            starts, ends = zip(*(logits[i, w] for w in range(len(one.windows))), strict=True)
            found.append(data.search_span(starts, ends, one, **options))
        return found

    def attention(self, example, path=None):
        question = _as_question(example)
        (found,) = self.predict([question])
        window = self.preprocessor.encode(question.question, question.context).windows[0]
        with visualization.record_attention(self.model) as maps:
            self.model(self.preprocessor.stack([window]))
        layer, weights = list(maps.items())[-1]
        tokens = list(window.tokens)
        figure = visualization.attention_map(
            weights[:, :, :PICTURED, :PICTURED],
            tokens[:PICTURED],
            title=f"{layer}: what each token looked at; the answer: {found.answer or 'none'}",
            path=path,
        )
        return AttentionMaps(dict(maps), tokens, tokens, figure)

    def find_pictured(self, data_set):
        """Return a short question."""
        every = (data_set.test or data_set.dev)[:500]
        return min(every, key=lambda q: len(q.question + q.context))


def _build_preprocessor(questions, options):
    """Build the `QuestionPreprocessor` of a recipe, of questions to train on."""
    return data.QuestionPreprocessor.build(
        questions,
        min_count=options.min_count,
        lowercase=options.lowercase,
        characters=options.characters,
        word_length=options.word_length,
        maximum_length=options.max_length,
        maximum_question=options.maximum_question,
        maximum_answer=options.maximum_answer,
        stride=options.stride,
    )


def _as_question(given):
    """Return a `Question` of one, or of a pair of texts."""
    if isinstance(given, data.Question):
        return given
    if isinstance(given, str) or len(given) != 2 or not all(isinstance(x, str) for x in given):
        raise ValueError(f"{given!r:.60} is no question with its context: expected two texts.")
    return data.Question(*given)


def _lack_answers(questions):
    """Return whether some of the questions have no answer in their context."""
    return any(not question.answers for question in questions)


def _choose_answer(answers):
    """Return the `Answer` that most people gave, the first of those; None where there is none."""
    counts = {answer: answers.count(answer) for answer in answers}
    return max(counts, key=counts.get, default=None)
