"""`QuestionAnswerer`: extracts the answer to a question from a context."""

import typing

import numpy as np

from keras_attention import data, training
from keras_attention.core.checks import check_many
from keras_attention.core.lazy import blocks, keras, models, visualization
from keras_attention.data.preprocessors.answer_spans import locate_answer, place_in_window
from keras_attention.files.io import number_errors, prefix_errors
from keras_attention.tasks.explaining import Choice, RecordedExample
from keras_attention.tasks.interface import draw_map
from keras_attention.tasks.runners import check_spelling
from keras_attention.tasks.sentence_task import size_characters
from keras_attention.tasks.task import Task
from keras_attention.training.scores.answers import compute_answer_f1, find_threshold

PICTURED = 24  # maximum number of tokens in a figure
ROWS = 64  # windows per batch


class FoundAnswer(typing.NamedTuple):
    """An answer, and its probability among all possible answers, from 0 to 1.

    `answer` is `context[start:end]`. If the model finds no answer in the context, `answer` is an
    empty string, and `start` and `end` are None.
    """

    answer: str
    probability: float
    start: int | None
    end: int | None


class QuestionAnswerer(Task):
    """Extracts the answer to a question from a context (extractive question answering).

    Args:
        model: functional `keras.Model`, such as `ka.models.question_answerer`. Its input is a dict
            with `token_ids` and `segment_ids`, both (B, T), and any other inputs that the
            preprocessor makes. Its output is a dict with `start_logits` and `end_logits`, both
            (B, T).
        preprocessor: `ka.data.QuestionPreprocessor`.
        no_answer: bool, whether `predict` may return that the context contains no answer. Set the
            attribute of the same name to False to always get an answer.
        threshold: float, a difference of logits. `predict` returns no answer if the score of "no
            answer" exceeds the score of the best answer by more than `threshold`.
        builder: str, the name of the function of `ka.models` that built the model, one of the
            class attribute `builders`. It is stored with the task, and chooses the recipe of
            `fit`. None is the first of them.

    Example:

    ```python
    import keras_attention as ka


    def ask(word):
        context = f"The cat sat on the {word}, and slept."
        answer = ka.data.Answer(word, context.index(word))
        return ka.data.Question("What did the cat sit on?", context, (answer,))


    train = [ask(word) for word in ("mat", "hat", "chair", "table", "bed", "roof")] * 8
    task = ka.tasks.QuestionAnswerer.from_data(
        train, num_layers=1, num_heads=2, hidden_dim=16, dropout=0.0
    )
    task.fit(train, epochs=4, batch_size=4, learning_rate=0.02, verbose=False)
    (answer,) = task.predict([("What did the cat sit on?", "The cat sat on the shelf, and slept.")])
    assert (answer.answer, answer.start, answer.end) == ("shelf", 19, 24)
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
        no_answer, options = _lack_answers(data_set.train), recipe.data
        preprocessor = data.QuestionPreprocessor.build(
            data_set.train,
            min_count=options.min_count,
            lowercase=options.lowercase,
            characters=options.characters,
            word_length=options.word_length,
            maximum_length=options.max_length,
            maximum_question=options.maximum_question,
            maximum_answer=options.maximum_answer,
            stride=options.stride,
        )
        embedding = {"num_segments": 2, "exact_match": True}
        embedding["characters"] = size_characters(preprocessor)
        model = models.question_answerer(
            len(preprocessor.tokenizer), no_answer=no_answer, **recipe.list_keywords(**embedding)
        )
        return model, preprocessor, {"no_answer": no_answer}

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
        """Return the first question of the test split, or of another split if test is empty.

        `data_set` is a `DataSet` of `Question`.
        """
        examples = data_set.test or data_set.dev or data_set.train
        return examples[0].question if examples else self.example

    def hold_out(self, train, dev, seed):
        """Return (train, dev). If `dev` is empty, questions are moved from `train` to `dev`.

        `train` and `dev` are lists of `Question`. A tenth of the contexts is moved, each with all
        its questions. `seed` is an int that determines the choice.
        """
        if dev or not train:
            return train, dev
        held = data.Question.collect(train, seed=seed)
        return held.train, held.dev

    def adapt(self, data_set):
        """Set `no_answer` to True if the dataset has questions without an answer, and return ().

        Raises:
            ValueError: the model was built without a score for "no answer".
        """
        if self.no_answer or not _lack_answers(data_set.train):
            return ()
        span = next(x for x in self.model.layers if isinstance(x, blocks.SpanLogits))
        if not span.no_answer:
            raise ValueError(
                "Some of the questions have no answer, and the model always gives one. Leave them "
                "out, or make a new model with from_data."
            )
        self.no_answer = True
        self.forget_runner()
        return ()

    def make_training_batches(self, examples, recipe):
        """Return shuffled batches of windows of the contexts, with the position of each answer.

        `examples` is a list of `Question`, and `recipe` a `Recipe`, the hyperparameters. If
        `no_answer` is False, windows without an answer are skipped.
        """
        windows, spans = self._encode_all(examples, "The train part")
        if not self.no_answer:
            answered = [i for i, (first, _) in enumerate(spans) if first >= 0]
            windows, spans = [windows[i] for i in answered], [spans[i] for i in answered]
        if not windows:
            raise ValueError("No question has an answer in the part of its context that is read.")
        options = {"shuffle": True, "seed": recipe.seed}
        pairs = list(zip(windows, spans, strict=True))
        return data.batches(pairs, self.preprocessor, recipe.batch_size, **options)

    def make_batches(self, examples, where):
        if not examples:
            return None
        pairs = list(zip(*self._encode_all(examples, where), strict=True))
        return data.batches(pairs, self.preprocessor, ROWS)

    def _encode(self, question):
        return self.preprocessor.encode(question.question, question.context)

    def _encode_all(self, examples, where):
        """Split the contexts of questions into windows that fit the model, and locate the answers.

        If a question has several answers, the most frequent one is used.

        Returns:
            A list of windows, and a list with the (first, last) token positions of the answer in
            each window. For a window without an answer this is (0, 0), the position that means "no
            answer", or (-1, -1) if `no_answer` is False.
        """
        windows, spans, no_span = [], [], (0, 0) if self.no_answer else (-1, -1)
        with prefix_errors(where):
            encodings = number_errors("Question", examples, self._encode)
            for question, encoded in zip(examples, encodings, strict=True):
                counts = {answer: question.answers.count(answer) for answer in question.answers}
                answer = max(counts, key=counts.get, default=None)
                tokens = answer and locate_answer(encoded.spans, answer)
                for window in encoded.windows:
                    windows.append(window)
                    span = place_in_window(window, tokens) if tokens else None
                    spans.append(span or no_span)
        return windows, spans

    def make_metrics(self):
        longest = self.preprocessor.maximum_answer
        return [lambda: training.SpanF1(longest)]

    def make_loss(self, recipe, train):
        return training.SpanCrossentropy(label_smoothing=recipe.label_smoothing)

    def tune(self, examples):
        """Choose the `threshold` with the highest F1 on questions of the development split.

        `examples` is a list of `Question`.
        """
        if not (self.no_answer and examples):
            return
        results = self._search(examples, "The dev part")
        scores, missing = [], []
        for question, (best, null, _) in zip(examples, results, strict=True):
            text = question.context[best.start : best.end]
            answers = [answer.text for answer in question.answers] or [""]
            scores.append(
                tuple(max(compute_answer_f1(x, answer) for answer in answers) for x in (text, ""))
            )
            missing.append(null - best.score)
        self.threshold = round(find_threshold(scores, missing)[0], 6)

    def compute_scores(self, examples, where):
        """Compute exact match and F1 as in the official SQuAD script.

        The script is version 2.0 if some questions have no answer, and otherwise version 1.1.
        `examples` is a list of `Question`. Error messages begin with `where`, a str.
        """
        if not examples:
            return {}
        texts = [answer.answer for answer in self._answer(examples, where)]
        answers = [[answer.text for answer in question.answers] for question in examples]
        version = "1.1" if all(answers) else "2.0"
        scores = training.score_answers(texts, answers, version=version)
        return {name: round(score, 6) for name, score in scores.items()}

    def check_runner(self, path, run):
        check_spelling(path, run.inspection, self.preprocessor)

    def predict(self, inputs):
        """Answer each question.

        Args:
            inputs: list of `ka.data.Question`, or of tuples (question, context) of two str.

        Returns:
            A list with a `FoundAnswer` for each question.
        """
        check_many(inputs, "text", of="(question, context)")
        return self._answer([_as_question(pair) for pair in inputs], "The inputs")

    def check_inputs(self, inputs):
        check_many(inputs, "text", of="(question, context)")
        list(number_errors("Question", [_as_question(pair) for pair in inputs], self._encode))

    def _answer(self, questions, where):
        answers = []
        results = self._search(questions, where)
        for question, (best, null, total) in zip(questions, results, strict=True):
            if null is not None and null - best.score > self.threshold:
                answers.append(FoundAnswer("", float(np.exp(null - total)), None, None))
                continue
            share = float(np.exp(best.score - total))
            text = question.context[best.start : best.end]
            answers.append(FoundAnswer(text, share, best.start, best.end))
        return answers

    def _search(self, questions, where):
        """Find the most probable answer to each question: return the results of `search_span`."""
        with prefix_errors(where):
            encoded = list(number_errors("Question", questions, self._encode))
        windows = [(i, w) for i, one in enumerate(encoded) for w in range(len(one.windows))]
        windows.sort(key=lambda pair: len(encoded[pair[0]].windows[pair[1]].tokens))
        logits = {}
        for k in range(0, len(windows), ROWS):
            batch = windows[k : k + ROWS]
            outputs = self.runner(
                self.preprocessor.stack([encoded[i].windows[w] for i, w in batch])
            )
            pairs = zip(outputs["start_logits"], outputs["end_logits"], strict=True)
            logits |= dict(zip(batch, pairs, strict=True))
        options = {"maximum_answer": self.preprocessor.maximum_answer, "no_answer": self.no_answer}
        results = []
        for i, one in enumerate(encoded):
            starts, ends = zip(*(logits[i, w] for w in range(len(one.windows))), strict=True)
            results.append(data.search_span(starts, ends, one, **options))
        return results

    def record_example(self, example):
        question = _as_question(example)
        encoded = self.preprocessor.encode(question.question, question.context)
        encoded = encoded._replace(windows=encoded.windows[:1])
        (window,) = encoded.windows
        logits = [self.model.output[name] for name in ("start_logits", "end_logits")]
        model = keras.Model(self.model.input, keras.ops.stack(logits, axis=-1))
        recorded = RecordedExample.run(model, self.preprocessor.stack([window]))
        starts, ends = np.moveaxis(recorded.logits, -1, 0)
        best, _, _ = data.search_span(
            starts, ends, encoded, maximum_answer=self.preprocessor.maximum_answer
        )
        tokens, choices = list(window.tokens), []
        for k, (kind, edge) in enumerate({"first": best.start, "last": best.end}.items()):
            words = np.flatnonzero(encoded.spans[window.first :, k] == edge)
            place = window.begin + int(words[-k])
            choices.append(Choice(f"{kind} word: {tokens[place]}", (place, k), place))
        return recorded._replace(tokens=tokens, choices=choices)

    def attention(self, example, path=None):
        question = _as_question(example)
        (answer,) = self.predict([question])
        window = self.preprocessor.encode(question.question, question.context).windows[0]
        with visualization.record_attention(self.model) as maps:
            self.model(self.preprocessor.stack([window]))
        tokens = list(window.tokens)
        caption = f"what each token attended to; answer: {answer.answer or 'none'}"
        return draw_map(maps, tokens, tokens, caption, path, most=PICTURED)

    def find_pictured(self, data_set):
        """Return the shortest question with its context, a `Question`, from a `DataSet`.

        `data_set` is the dataset. The first 500 questions of the test split are compared, or of the
        development split if test is empty.
        """
        examples = (data_set.test or data_set.dev)[:500]
        return min(examples, key=lambda q: len(q.question + q.context))


def _as_question(pair):
    """Return a `Question` unchanged, or convert a tuple (question, context) to one."""
    if isinstance(pair, data.Question):
        return pair
    if isinstance(pair, str) or len(pair) != 2 or not all(isinstance(x, str) for x in pair):
        raise ValueError(f"{pair!r:.60} is not a question: expected (question, context), two str.")
    return data.Question(*pair)


def _lack_answers(questions):
    return any(not question.answers for question in questions)
