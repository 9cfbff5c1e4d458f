"""`MaskedLM`: predicts the most probable tokens for each `[MASK]` in a text."""

import typing

import numpy as np

from keras_attention import data
from keras_attention.core.checks import check_many
from keras_attention.core.lazy import models, visualization
from keras_attention.data.tokenizers.building import build_tokenizer
from keras_attention.data.tokenizers.subwords import MASK_TOKEN
from keras_attention.export import inspection
from keras_attention.files.io import number_errors, prefix_errors
from keras_attention.tasks.explaining import Choice, RecordedExample
from keras_attention.tasks.interface import draw_map
from keras_attention.tasks.labels import check_top, make_accuracy, make_perplexity
from keras_attention.tasks.language_models import collect_text, hold_out_text
from keras_attention.tasks.runners import compute_logits, score_batches
from keras_attention.tasks.task import Task

ROWS = 32  # windows per batch
PICTURED = 24  # maximum number of tokens in a figure
TOP = 5  # default number of candidates for each [MASK]


class Candidate(typing.NamedTuple):
    """A token that could replace a `[MASK]`, and its probability from 0 to 1."""

    token: str
    probability: float


class MaskedLM(Task):
    """Predicts which tokens could replace each `[MASK]` in a text.

    `fit` pretrains an encoder in this way. The data is running text: a str, or a list of
    consecutive strings.

    Args:
        model: functional `keras.Model` that converts token ids (B, T) to logits (B, T, V), such as
            `ka.models.masked_language_model`. V is the vocabulary size.
        preprocessor: `ka.data.MaskedLMPreprocessor`.
        builder: str, the name of the function of `ka.models` that built the model, one of the
            class attribute `builders`. It is stored with the task, and chooses the recipe of
            `fit`. None is the first of them.

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
    ((first, second, third),) = task.predict(["the c[MASK]t sat"], top=3)[0]
    assert first.probability >= second.probability >= third.probability
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
        return model, preprocessor, {}

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        return data.MaskedLMPreprocessor.load(folder)

    def make_training_batches(self, examples, recipe):
        windows = self._cut_windows(examples, recipe.data.steps)
        return self._batch(windows, batch_size=recipe.batch_size, seed=recipe.seed)

    def make_batches(self, examples, where):
        """Return batches of consecutive windows of a text, or None if the text is empty.

        The batches are used for scoring. `examples` is the text, a str. The same tokens are masked
        in every pass over the batches. `where` is a str that errors begin with, such as "dev".
        """
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
        """Compute the perplexity and the accuracy of the model on masked tokens of a text.

        `examples` is the text, a str. Error messages begin with `where`, a str.
        """
        batches = self.make_batches(examples, where)
        return score_batches(self.runner, batches, self.make_metrics())

    def check_runner(self, path, run):
        tokens = self.preprocessor.vocabulary_size
        sizes = {next(iter(run.inputs)): tokens}
        inspection.check_sizes(run.inspection, labels=tokens, vocabularies=sizes)

    def predict(self, inputs, *, top=TOP):
        """Return the most probable tokens for every `[MASK]`.

        Args:
            inputs: list of str, each with one or more `[MASK]`.
            top: int, the number of tokens to return for each `[MASK]`.

        Returns:
            A list with one element for each text. This element is a list with one element for each
            `[MASK]`, which in turn is a list of `top` `Candidate`s, the most probable first.

        Raises:
            ValueError: a text has no `[MASK]`. The message contains its number (from 1). All texts
                are checked before the first prediction.
        """
        self.check_inputs(inputs)
        check_top(top)
        candidates = []
        for text in inputs:
            ids = self.preprocessor([text])
            logits = compute_logits(self.runner, ids)
            (masks,) = self.preprocessor.candidates(ids, logits, top)
            candidates.append([[Candidate(**entry) for entry in mask] for mask in masks])
        return candidates

    def check_inputs(self, inputs):
        check_many(inputs, "text", of="str")
        list(number_errors("Text", inputs, self._check_mask))

    def _check_mask(self, text):
        if self.preprocessor.tokenizer.mask_token_id not in self.preprocessor.ids(text):
            raise ValueError(f"{text[:40]!r} has no {MASK_TOKEN}: expected at least one.")

    def record_example(self, example):
        self._check_mask(example)
        ids = self.preprocessor.ids(example)[None]
        recorded = RecordedExample.run(self.model, self.preprocessor.as_inputs(ids))
        tokenizer = self.preprocessor.tokenizer
        (best,) = self.preprocessor.rule_out_special(recorded.logits).argmax(axis=-1)
        places = np.flatnonzero(ids[0] == tokenizer.mask_token_id)
        choices = [
            Choice(name, (place, best[place]), int(place))
            for place, name in zip(places, tokenizer.name_tokens(best[places]), strict=True)
        ]
        return recorded._replace(tokens=tokenizer.name_tokens(ids[0]), choices=choices)

    def attention(self, example, path=None):
        ids = self.preprocessor.ids(example)[None, :PICTURED]
        with visualization.record_attention(self.model) as maps:
            self.model(self.preprocessor.as_inputs(ids))
        tokens = self.preprocessor.tokenizer.name_tokens(ids[0])
        return draw_map(maps, tokens, tokens, "what each token attended to", path)

    def find_pictured(self, data_set):
        text = data_set.test or data_set.dev or data_set.train
        ids = self.preprocessor.encode_plain(text)
        count = min(PICTURED, self.preprocessor.maximum_length // 2)
        return self.preprocessor.tokenizer.decode([np.asarray(ids[:count])])[0]
