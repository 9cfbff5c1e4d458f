"""`Seq2SeqLM`: texts to texts, by a Transformer or a recurrent network with attention."""

from keras_attention import data, training
from keras_attention.core.checks import check_many, check_whole_number
from keras_attention.core.lazy import generation, models
from keras_attention.data.readers.dialogues import join_turns
from keras_attention.data.tokenizers.building import build_tokenizer
from keras_attention.files.fields import MOST_TOKENS
from keras_attention.files.io import number_errors
from keras_attention.tasks.generators import (
    FileGenerator,
    ModelGenerator,
    generate_texts,
    get_generation_options,
)
from keras_attention.tasks.labels import make_accuracy
from keras_attention.tasks.running_text import make_perplexity
from keras_attention.tasks.task import Task
from keras_attention.tasks.writing import FINISHING_SECONDS, Writing, check_score, draw_writing
from keras_attention.training.scores.texts import check_scorer, score_texts

# Lengths of batches where no program is compiled for each: a third less padding than the default's.
FINE = (*range(2, 64, 2), *range(64, 512, 8))
ROWS = 64  # pairs that are scored at a time
PICTURED = range(12, 27)  # tokens of a source whose picture is easy to read
REPLIES = 1000  # that are drawn for the scores of dialogues
TEMPERATURE = 0.8  # of replies
PERPLEXITY = "perplexity"
LATIN = "\u024f"  # the last letter that every font has


class Seq2SeqLM(Task):
    """Writes a text for a text: translation, normalization, summaries.

    Args:
        model: functional `keras.Model`, source ids (B, S) and target ids (B, T) -> logits
            (B, T, V), as `ka.models.seq2seq_transformer` and `ka.models.seq2seq_recurrent`.
        preprocessor: `ka.data.SequencePreprocessor` with a source.
        writing: `ka.tasks.Writing`, the search and its limits.
        score: what `evaluate` gives: `"bleu"`, `"exact_match"`, of summaries `"rouge"`, or of
            dialogues `"perplexity"`.
        turns: int, how many turns of a dialogue it reads for the next; None for what is none.

    Example:

    ```python
    import keras_attention as ka

    words = {"eins": "one", "zwei": "two"}
    pairs = [ka.data.Pair(source, target) for source, target in words.items()] * 10
    task = ka.tasks.Seq2SeqLM.from_data(
        pairs,
        tokens="characters",
        score="exact_match",
        num_layers=1,
        num_heads=2,
        hidden_dim=32,
        dropout=0.0,
    )
    task.fit(pairs, epochs=20, batch_size=9, learning_rate=0.02, verbose=False)
    assert task.predict(["zwei", "eins"]) == ["two", "one"]
    ```
    """

    builders = ("seq2seq_transformer", "seq2seq_recurrent")
    example_kind, holds, example = data.Pair, "pairs of texts", "Ein Mann fährt Fahrrad."
    unit = "pairs"
    score_names = ("bleu", "exact_match", "rouge", PERPLEXITY)

    predict_options, rows, extends = ("beam",), ROWS, True
    finishing_seconds = FINISHING_SECONDS

    def __init__(self, model, preprocessor, *, writing=None, score=None, turns=None, builder=None):
        super().__init__(model, preprocessor, builder=builder)
        self.writing = Writing() if writing is None else writing
        self.score = check_score(self, score)
        self.turns = turns and check_whole_number("Seq2SeqLM", "turns", turns, most=MOST_TOKENS)

    @property
    def converses(self):
        """Return whether it was trained on dialogues, so that `reply` gives the next turn."""
        return self.turns is not None

    @property
    def lower_is_better(self):
        """Return whether the score that chooses the epoch falls, as perplexity does."""
        return self.score == PERPLEXITY

    @classmethod
    def collect(cls, examples):
        return data.Pair.collect(train=[data.Pair(*pair) for pair in examples], dev_fraction=0)

    @classmethod
    def make_parts(cls, data_set, recipe, builder):
        options = recipe.data
        turns = data_set.about.get("turns")  # of dialogues
        score = options.score if turns is None else PERPLEXITY
        check_scorer(score)
        preprocessor = _build_preprocessor(data_set.train, options.tokens, options.vocabulary_size)
        size = len(preprocessor.target)
        shared = builder == "seq2seq_transformer" and preprocessor.source is preprocessor.target
        model = getattr(models, builder)(
            len(preprocessor.source), None if shared else size, **recipe.list_keywords()
        )
        return (
            model,
            preprocessor,
            dict(
                writing=Writing(options.beam, options.length_penalty, options.max_length),
                score=score,
                turns=turns,
            ),
        )

    @classmethod
    def read_settings(cls, fields):
        return {
            "writing": Writing.read(fields.object("writing")),
            "score": fields.one_of("score", cls.score_names),
            "turns": fields.whole("turns", most=MOST_TOKENS, default=None),
        }

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        return data.SequencePreprocessor.load(folder)

    @property
    def settings(self):
        about = {"score": self.score, "writing": self.writing.describe(self.preprocessor)}
        return about if self.turns is None else about | {"turns": self.turns}

    def open_runner(self, path):
        return FileGenerator(path, self.metadata)

    def wrap_model(self, model, path=None):
        return ModelGenerator(model, self.metadata, path)

    def describe_data(self, data_set):
        """Say how many pairs are too long to train on, if any are."""
        left = len(data_set.train) - len(self._select(data_set.train))
        if not left:
            return ()
        most = self.writing.max_new_tokens
        return (f"{left:,} pairs of more than {most} tokens were not trained on",)

    def extend_vocabulary(self, pairs, vocabulary_size=1000):
        """Makes tokens of the words that the model has to spell in many short subwords.

        For pairs of another kind than those it was trained on, before `fit`. What is new begins as
        the mean of the subwords that spelled it (`ka.models.extend_vocabulary`), so that the model
        is no worse on what it knows; texts are shorter, and less is to be learnt of few pairs.

        Args:
            pairs: list of pairs to train on, the others left out.
            vocabulary_size: int, how many subwords to learn of `pairs`; those that are none yet
                are added. Of 800 sentences 1,000 make about 500 new ones.

        Raises:
            ValueError: source and target do not share subwords.
        """
        subwords = self.preprocessor.target
        if not isinstance(subwords, data.Subwords) or subwords != self.preprocessor.source:
            raise ValueError(
                f"extend_vocabulary: the tokens are {subwords!r} and {self.preprocessor.source!r}: "
                "expected subwords that source and target share. Train a new model on these pairs: "
                "Seq2SeqLM.from_data(pairs)."
            )
        pairs = self.as_data(pairs).train
        longer = subwords.extend([text for pair in pairs for text in pair[:2]], vocabulary_size)
        spellings = subwords.spell(longer.pieces(range(len(subwords), len(longer))))
        self._model = models.extend_vocabulary(self.model, spellings)
        self.preprocessor = data.SequencePreprocessor(longer, longer)
        self.forget_runner()

    def find_example(self, data_set):
        sources = [pair.source for pair in data_set.test or data_set.dev]
        return _choose_source(sources, self.preprocessor) if sources else self.example

    def _select(self, pairs):
        """Return the pairs of which neither side has more than `max_new_tokens`, END included.

        A source that a checkpoint's tokenizer reads may have as many as it does not cut off.
        """
        sources = [()] * len(pairs)
        if not self.preprocessor.is_pretrained:
            sources = self.preprocessor.source_ids([pair.source for pair in pairs])
        targets = self.preprocessor.target_ids([pair.target for pair in pairs])
        fitting = [
            pair
            for pair, source, target in zip(pairs, sources, targets, strict=True)
            if max(len(source), len(target) - 1) <= self.writing.max_new_tokens
        ]
        if not fitting:
            raise ValueError(
                f"Every pair to train on has a side of more than {self.writing.max_new_tokens} "
                "tokens: train with a larger max_length=."
            )
        return fitting

    def make_training_batches(self, examples, recipe):
        fitting, options = self._select(examples), {"shuffle": True, "seed": recipe.seed}
        return data.batches(fitting, self.preprocessor, **options, **_choose_sizes(recipe))

    def make_job(self, train, dev, recipe):
        """Return the batches of the development part are as large as those of training."""
        job = super().make_job(train, [], recipe)
        if dev:
            sizes = _choose_sizes(recipe)
            job.dev = data.batches(dev, self.preprocessor, **sizes)
        return job

    def make_metrics(self):
        return METRICS[self.score]

    def compute_scores(self, examples, where):
        """Return scores of the generated texts beside the given ones."""
        if not examples:
            return {}
        if self.score == PERPLEXITY:
            return self._score_replies(examples, where)
        written = self.predict([pair.source for pair in examples])
        return score_texts(self.score, written, [pair.target for pair in examples])

    def predict(self, inputs, *, beam=None):
        """Return the texts that the model writes.

        Args:
            inputs: list of str.
            beam: int, how many texts the search holds; None for the task's own.

        Returns:
            A str for each.
        """
        check_many(inputs, "text", of="texts")
        list(number_errors("Text", inputs, _check_word))
        return generate_texts(self.runner, self.preprocessor, list(inputs), beam, self.deadline)

    def _score_replies(self, examples, where):
        """Compute perplexity of the right replies, for a Keras model, and diversity of its own."""
        found = {}
        if not self.runs_a_file:
            metric = make_perplexity()
            for inputs, labels in self.make_batches(examples, where):
                metric.update_state(labels, self.model(inputs, training=False))
            found["perplexity"] = float(metric.result())
        sources = [pair.source for pair in examples[:REPLIES]]
        written = self._draw_replies(sources, TEMPERATURE, seed=0)
        found |= training.score_diversity(written)
        return {name: round(score, 6) for name, score in found.items()}

    def _draw_replies(self, sources, temperature, seed):
        """Texts drawn by the Keras model; an exported file searches as it does for `predict`."""
        if self.runs_a_file:
            return self.predict(sources)
        options = get_generation_options(self.metadata)
        options["sampler"] = generation.Sample(temperature)
        del options["generate"]
        written = []
        for k in range(0, len(sources), ROWS):
            ids = self.preprocessor(sources[k : k + ROWS])
            options["seed"] = None if seed is None else seed + k
            written += self.preprocessor.texts(generation.generate(self.model, ids, **options))
        return written

    def reply(self, turns, *, temperature=TEMPERATURE, seed=None):
        """Return the next turn of a dialogue, drawn by chance.

        Args:
            turns: list of str, those so far; the last few are read.
            temperature: float, of the chance. Exported files take the likeliest text.
            seed: int, for the same reply again.
        """
        if not self.converses:
            raise ValueError(
                "The model was not trained on dialogues: train one with "
                "ka.data.pair_dialogues(data, turns=3) of ka.data.from_dialogue_files."
            )
        if isinstance(turns, str) or not turns or not str(turns[-1]).strip():
            raise ValueError(f"{turns!r:.60}: expected a list of turns, none of them empty.")
        return self._draw_replies([join_turns(list(turns), self.turns)], temperature, seed)[0]

    def attention(self, example, path=None):
        """Return the maps of cross-attention, written tokens against those of the source."""
        ids = self.preprocessor([example])

        def name_keys(count):
            return self.preprocessor.source.pieces(ids[0])

        looked = "what each token that was written looked at"
        return draw_writing(self, ids, name_keys, looked, path)

    def find_pictured(self, data_set):
        return self.find_example(data_set)


def _build_preprocessor(pairs, tokens, vocabulary_size):
    """Return subwords of both sides, or characters or words of each, of pairs to train on."""
    sources, targets = ([pair[side] for pair in pairs] for side in (0, 1))
    if tokens == "subwords":
        both = build_tokenizer(tokens, sources + targets, vocabulary_size)
        return data.SequencePreprocessor(both, both)
    sides = (build_tokenizer(tokens, texts, vocabulary_size) for texts in (targets, sources))
    return data.SequencePreprocessor(*sides)


def _choose_sizes(recipe):
    """Return keywords of `ka.data.batches`."""
    sizes = {"batch_size": recipe.batch_size, "max_tokens": recipe.data.max_tokens}
    return sizes if recipe.jit_compile else sizes | {"edges": FINE}


def make_exact_match():
    return training.MaskedSequenceAccuracy(name="exact_match")


# Metrics on given targets while training; the first chooses the epoch.
METRICS = {
    "exact_match": [make_exact_match, make_accuracy],
    "bleu": [make_accuracy, make_perplexity],
    "rouge": [make_accuracy, make_perplexity],
    PERPLEXITY: [make_perplexity, make_accuracy],
}


def _choose_source(sources, preprocessor):
    """Return the first source of a good length that every font can draw, or the first."""
    lengths = map(len, preprocessor.source_ids(sources))
    of_length = [s for s, n in zip(sources, lengths, strict=True) if n in PICTURED]
    return next((s for s in of_length if max(s) <= LATIN), sources[0])


def _check_word(text):
    if not text.strip():
        raise ValueError(f"{text!r} holds no word.")
