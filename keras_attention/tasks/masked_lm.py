"""`MaskedLM`: running text, and what stood where a token is hidden."""

import typing
from functools import partial

import numpy as np

from keras_attention import data
from keras_attention.core.checks import check_many
from keras_attention.core.lazy import models, visualization
from keras_attention.data.tokenizers.building import build_tokenizer
from keras_attention.data.tokenizers.subwords import MASK_TOKEN
from keras_attention.export import inspection
from keras_attention.files.io import number_errors, prefix_errors
from keras_attention.tasks.interface import AttentionMaps
from keras_attention.tasks.labels import check_top, make_accuracy
from keras_attention.tasks.runners import compute_logits, score_batches
from keras_attention.tasks.running_text import collect_text, hold_out_text, make_perplexity
from keras_attention.tasks.task import Task

ROWS = 32  # windows at a time
PICTURED = 24  # tokens
TOP = 5  # tokens that are given for each [MASK]


class Candidate(typing.NamedTuple):
    """A token for a `[MASK]`, and how likely the model finds it, from 0 to 1."""

    token: str
    probability: float


class MaskedLM(Task):
    """Says which tokens fit where a text has `[MASK]`; pretrains encoders.

    Args:
        model: functional `keras.Model`, token ids (B, T) -> logits (B, T, V), as
            `ka.models.masked_language_model`.
        preprocessor: `ka.data.MaskedLMPreprocessor`.

    Its examples are text: a str, or a list of them, which are one text after another.

    Example:

    ```python
    import keras_attention as ka

    text = "the cat sat on the mat. " * 40
    task = ka.tasks.MaskedLM.from_data(
        text,
        tokens="characters",
        max_length=24,
        num_layers=1,
        num_heads=2,
        hidden_dim=32,
        dropout=0.0,
    )
    task.fit(text, epochs=2, steps=20, batch_size=8, learning_rate=0.01, verbose=False)
    ((best, *others),) = task.predict(["the c[MASK]t sat"], top=3)[0]
    assert best.probability >= others[0].probability and len(others) == 2
    ```
    """

    builders = ("masked_language_model",)
    example_kind, holds, unit = str, "running text", "characters"
    example = "The cat [MASK] on the mat."
    predict_options = ("top",)
    lower_is_better = True

    @classmethod
    def collect(cls, examples):
        return collect_text(examples)

    def hold_out(self, train, dev, seed):
        return hold_out_text(train, dev)

    @classmethod
    def make_parts(cls, data_set, recipe, builder):
        options = recipe.data
        tokenizer = build_tokenizer(
            options.tokens, [data_set.train], options.vocabulary_size, mask_token=True
        )
        preprocessor = data.MaskedLMPreprocessor(tokenizer, options.max_length)
        model = models.masked_language_model(len(tokenizer), **recipe.list_keywords())
        return model, preprocessor, dict()

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        return data.MaskedLMPreprocessor.load(folder)

    def make_training_batches(self, examples, recipe):
        windows = self._cut_windows(examples, recipe.data.steps)
        return self._batch(windows, batch_size=recipe.batch_size, seed=recipe.seed)

    def make_batches(self, examples, where):
        """Return windows one after another, in which every pass hides the same tokens."""
        if not examples:
            return None
        with prefix_errors(where):
            return self._batch(self._cut_windows(examples), batch_size=ROWS)

    def _cut_windows(self, text, steps=None):
        tokenizer, length = self.preprocessor.tokenizer, self.preprocessor.maximum_length
        return data.MaskedWindows(self.preprocessor.encode_plain(text), length, tokenizer, steps)

    def _batch(self, windows, batch_size, seed=0):
        batches = data.batches(windows, batch_size=batch_size, seed=seed)
        return batches.map(lambda ids, labels: (self.preprocessor.as_inputs(ids), labels))

    def make_metrics(self):
        return [make_perplexity, make_accuracy]

    def compute_scores(self, examples, where):
        """Compute perplexity and accuracy of the hidden tokens."""
        batches = self.make_batches(examples, where)
        return score_batches(self.runner, batches, self.make_metrics())

    def check_runner(self, path, run):
        tokens = self.preprocessor.vocabulary_size
        sizes = {next(iter(run.inputs)): tokens}
        inspection.check_sizes(run.inspection, labels=tokens, vocabularies=sizes)

    def predict(self, inputs, *, top=TOP):
        """Return the likeliest tokens of every `[MASK]`.

        Args:
            inputs: list of str, each with one `[MASK]` or several.
            top: int, how many tokens for each.

        Returns:
            For each text a list with an entry for each `[MASK]`: a list of `Candidate`, the
            likeliest first.
        """
        check_many(inputs, "text", of="texts")
        check_top(top)
        return list(number_errors("Text", inputs, partial(self._find_candidates, top=top)))

    def _find_candidates(self, text, top):
        """Return a list of `Candidate` for each `[MASK]` of one text."""
        ids = self.preprocessor([text])
        (masks,) = self.preprocessor.candidates(ids, compute_logits(self.runner, ids), top)
        if not masks:
            raise ValueError(f"{text[:40]!r} holds no {MASK_TOKEN}: put one where to look.")
        return [[Candidate(**entry) for entry in mask] for mask in masks]

    def attention(self, example, path=None):
        ids = self.preprocessor.ids(example)[None, :PICTURED]
        with visualization.record_attention(self.model) as maps:
            self.model(self.preprocessor.as_inputs(ids))
        layer, weights = list(maps.items())[-1]
        tokens = self.preprocessor.tokenizer.name_tokens(ids[0])
        figure = visualization.attention_map(
            weights, tokens, tokens, title=f"{layer}: what each token looked at", path=path
        )
        return AttentionMaps(dict(maps), tokens, tokens, figure)

    def find_pictured(self, data_set):
        text = data_set.test or data_set.dev or data_set.train
        ids = self.preprocessor.encode_plain(text)
        count = min(PICTURED, self.preprocessor.maximum_length // 2)
        return self.preprocessor.tokenizer.decode([np.asarray(ids[:count])])[0]
