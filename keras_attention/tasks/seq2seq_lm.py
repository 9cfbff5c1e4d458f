"""`Seq2SeqLM`: text-to-text models, Transformers or recurrent networks with attention."""

import numpy as np

from keras_attention import data, training
from keras_attention.core.checks import check_many, check_not_a_path, check_whole_number
from keras_attention.core.lazy import generation, models
from keras_attention.data.readers.dialogues import join_turns
from keras_attention.data.tokenizers.building import build_tokenizer
from keras_attention.files.fields import MOST_TOKENS
from keras_attention.tasks.explaining import Choice, RecordedExample
from keras_attention.tasks.generators import generate_texts, get_generation_options
from keras_attention.tasks.labels import make_accuracy, make_perplexity
from keras_attention.tasks.writing import Writing
from keras_attention.tasks.writing_task import WritingTask
from keras_attention.training.scores.texts import check_scorer, score_texts

# Bucket boundaries if the model is not compiled for each length. They need a third less padding
# than the default boundaries.
FINE = (*range(2, 64, 2), *range(64, 512, 8))
ROWS = 64  # pairs per batch for scoring
PICTURED = range(12, 27)  # numbers of source tokens for which the attention map is easy to read
REPLIES = 1000  # maximum number of replies that are sampled for the scores of dialogues
TEMPERATURE = 0.8  # for sampling replies
PERPLEXITY = "perplexity"
LATIN = "\u024f"  # the last character that is available in every font


class Seq2SeqLM(WritingTask):
    """Generates a target text from a source text: translation, normalization, summarization.

    Args:
        model: functional `keras.Model`, such as `ka.models.seq2seq_transformer` or
            `ka.models.seq2seq_recurrent`. It converts source ids (B, S) and target ids (B, T) to
            logits (B, T, V), where V is the size of the target vocabulary.
        preprocessor: `ka.data.SequencePreprocessor` with a source tokenizer.
        writing: `ka.tasks.Writing`, the settings of beam search. None uses the defaults.
        score: str, the score that `evaluate` computes: `"bleu"`, `"exact_match"`, `"rouge"` for
            summaries, or `"perplexity"` for dialogues. None selects `"bleu"`.
        turns: int, for a model of dialogues: the number of previous turns that it reads to generate
            the next turn. None if the data is not dialogues.
        builder: str, the name of the function of `ka.models` that built the model, one of the
            class attribute `builders`. It is stored with the task, and chooses the recipe of
            `fit`. None is the first of them.

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
    example_kind, holds, example = (
        data.Pair,
        "pairs of source and target text",
        "Ein Mann fährt Fahrrad.",
    )
    unit = "pairs"
    score_names = ("bleu", "exact_match", "rouge", PERPLEXITY)

    predict_options, rows, extends = ("beam",), ROWS, True

    def __init__(self, model, preprocessor, *, writing=None, score=None, turns=None, builder=None):
        super().__init__(model, preprocessor, writing=writing, score=score, builder=builder)
        self.turns = turns and check_whole_number("Seq2SeqLM", "turns", turns, most=MOST_TOKENS)

    @property
    def converses(self):
        """bool, whether the model was trained on dialogues, which enables `reply`."""
        return self.turns is not None

    @property
    def lower_is_better(self):
        """bool, whether lower values are better for the metric that selects the best epoch."""
        return self.score == PERPLEXITY

    @classmethod
    def collect(cls, examples):
        check_not_a_path(examples)
        return data.Pair.collect(train=[data.Pair(*pair) for pair in examples], dev_fraction=0)

    @classmethod
    def make_parts(cls, data_set, recipe, builder):
        options = recipe.data
        turns = data_set.about.get("turns")  # if the data are dialogues
        score = options.score if turns is None else PERPLEXITY
        check_scorer(score)
        preprocessor = _build_preprocessor(data_set.train, options.tokens, options.vocabulary_size)
        size = len(preprocessor.target)
        shared = builder == "seq2seq_transformer" and preprocessor.source is preprocessor.target
        build = models.seq2seq_recurrent
        if builder == "seq2seq_transformer":
            build = models.seq2seq_transformer
        model = build(len(preprocessor.source), None if shared else size, **recipe.list_keywords())
        writing = Writing(options.beam, options.length_penalty, options.max_length)
        return model, preprocessor, {"writing": writing, "score": score, "turns": turns}

    @classmethod
    def read_settings(cls, fields):
        turns = fields.whole("turns", most=MOST_TOKENS, default=None)
        return super().read_settings(fields) | {"turns": turns}

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        return data.SequencePreprocessor.load(folder)

    @property
    def settings(self):
        turns = {} if self.turns is None else {"turns": self.turns}
        return super().settings | turns

    def describe_data(self, data_set):
        """Return a tuple with a sentence on the pairs that are too long for training.

        The tuple is empty if no pair is too long. `data_set` is a `DataSet` of `Pair`.
        """
        long = len(data_set.train) - len(self._select(data_set.train))
        if not long:
            return ()
        most = self.writing.max_new_tokens
        return (f"{long:,} pairs of more than {most} tokens were not trained on",)

    def extend_vocabulary(self, pairs, vocabulary_size=1000):
        """Add subwords for a new domain, whose words the model splits into many short subwords.

        Call this before `fit` with pairs from the new domain. The embedding of a new subword is
        initialized with the mean of the embeddings of the subwords that it replaces
        (`ka.models.extend_vocabulary`). So the model keeps its quality on the old domain, and
        text from the new domain is split into fewer tokens.

        Args:
            pairs: list of training pairs.
            vocabulary_size: int, the number of subwords to learn from `pairs`. Only the subwords
                that the vocabulary lacks are added. For example, about 500 of 1,000 subwords that
                were learned from 800 sentences were new.

        Raises:
            ValueError: source and target do not share a subword vocabulary.
        """
        subwords = self.preprocessor.target
        if not isinstance(subwords, data.Subwords) or subwords != self.preprocessor.source:
            raise ValueError(
                f"extend_vocabulary: the tokens are {subwords!r} and "
                f"{self.preprocessor.source!r}: expected subwords that source and target share. "
                "Train a new model on these pairs with Seq2SeqLM.from_data(pairs)."
            )
        pairs = self.as_data(pairs).train
        longer = subwords.extend([text for pair in pairs for text in pair[:2]], vocabulary_size)
        spellings = subwords.spell(longer.pieces(range(len(subwords), len(longer))))
        self._model = models.extend_vocabulary(self.model, spellings)
        self.preprocessor = data.SequencePreprocessor(longer, longer)
        self.forget_runner()

    def find_example(self, data_set):
        """Return a source of medium length, in Latin letters, to show in the model card.

        `data_set` is a `DataSet` of `Pair`.
        """
        sources = [pair.source for pair in data_set.test or data_set.dev]
        if not sources:
            return self.example
        lengths = map(len, self.preprocessor.source_ids(sources))
        fitting = [s for s, n in zip(sources, lengths, strict=True) if n in PICTURED]
        return next((s for s in fitting if max(s) <= LATIN), sources[0])

    def _select(self, pairs):
        """Return the pairs whose source and target each have at most `max_new_tokens` tokens.

        The end token counts, too. With the tokenizer of a checkpoint only the target is checked,
        because the tokenizer truncates long sources.
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
        """Return a `Job` for training, with development batches as large as training batches.

        `train` and `dev` are lists of `Pair`, and `recipe` is a `Recipe`, the hyperparameters. A
        `Job` has the model, batches, loss and metrics.
        """
        job = super().make_job(train, [], recipe)
        if dev:
            sizes = _choose_sizes(recipe)
            job.dev = data.batches(dev, self.preprocessor, **sizes)
        return job

    def make_metrics(self):
        return METRICS[self.score]

    def compute_scores(self, examples, where):
        """Generate text for each source, and score it against the target.

        `examples` is a list of `Pair`. Error messages begin with `where`, a str.
        """
        if not examples:
            return {}
        if self.score == PERPLEXITY:
            return self._score_replies(examples, where)
        written = self.predict([pair.source for pair in examples])
        return score_texts(self.score, written, [pair.target for pair in examples])

    def predict(self, inputs, *, beam=None):
        """Generate a target text for each source text.

        Args:
            inputs: list of str, the source texts.
            beam: int, the beam width. None uses the beam width in the task's `writing`.

        Returns:
            A list with a str for each source.

        Raises:
            ValueError: a source is empty. The message contains its number (from 1). All sources are
                checked before the first text is generated.
        """
        self.check_inputs(inputs)
        return generate_texts(self.runner, self.preprocessor, list(inputs), beam, self.deadline)

    def check_inputs(self, inputs):
        check_many(inputs, "text", of="str")
        for number, text in enumerate(inputs, 1):
            if not text.strip():
                place = f"Text {number}: " if len(inputs) > 1 else ""
                raise ValueError(f"{place}{text!r} has no word: expected one or more.")

    def _score_replies(self, examples, where):
        """Score a model of dialogues: the diversity of its replies, and perplexity.

        Perplexity is that of the replies in `examples`. It is left out if the task runs an exported
        file.
        """
        scores = {}
        if not self.runs_a_file:
            metric = make_perplexity()
            for inputs, labels in self.make_batches(examples, where):
                metric.update_state(labels, self.model(inputs, training=False))
            scores["perplexity"] = float(metric.result())
        sources = [pair.source for pair in examples[:REPLIES]]
        written = self._draw_replies(sources, TEMPERATURE, seed=0)
        scores |= training.score_diversity(written)
        return {name: round(score, 6) for name, score in scores.items()}

    def _draw_replies(self, sources, temperature, seed):
        """Generate a reply to each of `sources`, and return a list of str.

        The Keras model samples, with `temperature` and `seed`. A file uses beam search.
        """
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
        """Sample the next turn of a dialogue.

        Args:
            turns: list of str, the dialogue so far. Only the last `self.turns` turns are read.
            temperature: float, the sampling temperature. It is ignored if the task runs an exported
                file, which uses beam search.
            seed: int, makes the reply reproducible. None samples differently in each call.

        Returns:
            The reply, a str.

        Raises:
            ValueError: the model was not trained on dialogues, or a turn is empty.
        """
        if not self.converses:
            raise ValueError(
                "The model was not trained on dialogues: train one with "
                "ka.data.pair_dialogues(data, turns=3) of ka.data.from_dialogue_files."
            )
        if isinstance(turns, str) or not turns or not str(turns[-1]).strip():
            raise ValueError(f"{turns!r:.60}: expected a list of turns, none of them empty.")
        return self._draw_replies([join_turns(list(turns), self.turns)], temperature, seed)[0]

    def record_example(self, example):
        """Generate a text, and record the model as it predicts each token of this text.

        `example` is the source, a str. Return a `RecordedExample`.
        """
        ids, names = self.preprocessor([example]), self.preprocessor.target.pieces
        _, written = self.write_greedily(ids, return_scores=True)
        start = np.atleast_1d(get_generation_options(self.metadata)["start_token_id"])
        target = np.concatenate([start, written[:-1]]).astype("int32")[None]
        recorded = RecordedExample.run(self.model, {"source_ids": ids, "target_ids": target})
        first = len(start) - 1  # the position that predicts the first token
        choices = [
            Choice(name, (first + k, int(token)), first + k)
            for k, (name, token) in enumerate(zip(names(written), written, strict=True))
        ]
        return recorded._replace(
            tokens=self.preprocessor.source.pieces(ids[0]),
            outputs=[*names(start[1:]), *names(written)],
            choices=choices,
        )

    def attention(self, example, path=None):
        """Generate a text, and plot which source tokens each generated token attended to.

        `example` is the source, a str. The figure is saved at `path`, unless this is None. Return
        the attention weights of all layers and the figure as `AttentionMaps`.
        """
        ids = self.preprocessor([example])

        def name_keys(count):
            return self.preprocessor.source.pieces(ids[0])

        caption = "what each written token attended to"
        return self.draw_writing(ids, name_keys, caption, path)

    def find_pictured(self, data_set):
        return self.find_example(data_set)


def _build_preprocessor(pairs, tokens, vocabulary_size):
    """Build a preprocessor from training pairs.

    Subwords are shared by source and target. Characters or words have a vocabulary for each side.
    """
    sources, targets = ([pair[side] for pair in pairs] for side in (0, 1))
    if tokens == "subwords":
        tokenizer = build_tokenizer(tokens, sources + targets, vocabulary_size)
        return data.SequencePreprocessor(tokenizer, tokenizer)
    sides = (build_tokenizer(tokens, texts, vocabulary_size) for texts in (targets, sources))
    return data.SequencePreprocessor(*sides)


def _choose_sizes(recipe):
    """Return the arguments of `ka.data.batches` that determine the sizes of batches."""
    sizes = {"batch_size": recipe.batch_size, "max_tokens": recipe.data.max_tokens}
    return sizes if recipe.jit_compile else sizes | {"edges": FINE}


def make_exact_match():
    return training.MaskedSequenceAccuracy(name="exact_match")


# Metrics with teacher forcing during training. The first one selects the epoch.
METRICS = {
    "exact_match": [make_exact_match, make_accuracy],
    "bleu": [make_accuracy, make_perplexity],
    "rouge": [make_accuracy, make_perplexity],
    PERPLEXITY: [make_perplexity, make_accuracy],
}
