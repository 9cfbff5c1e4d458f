"""`CausalLM`: running text, and its continuation."""

import math

import numpy as np

from keras_attention import data, training
from keras_attention.core.checks import check_many, check_whole_number
from keras_attention.core.lazy import generation, models, visualization
from keras_attention.data.readers.dialogues import SEPARATOR, TURNS
from keras_attention.data.tokenizers.building import build_tokenizer
from keras_attention.files.fields import MOST_TOKENS
from keras_attention.files.io import prefix_errors
from keras_attention.tasks.generators import check_ids
from keras_attention.tasks.interface import AttentionMaps
from keras_attention.tasks.language_models import (
    ExportedLanguageModel,
    KerasLanguageModel,
    check_temperature,
    compute_mean_loss,
    read_choice,
)
from keras_attention.tasks.runners import check_vocabularies
from keras_attention.tasks.running_text import collect_text, hold_out_text, make_perplexity
from keras_attention.tasks.task import Task

ROWS = 32  # windows at a time
PICTURED = 24  # tokens
PART = "\ufffd"  # what a decoder gives for bytes of a character that are not all there
WRITTEN = 300  # tokens that are written unless another number is asked for
REPLIES = 500  # that are drawn for the scores of dialogues
REPLY = 64  # tokens of one at most


class CausalLM(Task):
    """Goes on with a text, token by token.

    Args:
        model: functional `keras.Model`, token ids (B, T) -> logits (B, T, V), as
            `ka.models.causal_language_model`.
        preprocessor: `ka.data.SequencePreprocessor` without a source.
        maximum_length: int, the tokens of a window that the model is trained on and scored by.
        temperature: float, of the chance with which it writes.
        max_length, max_new_tokens: int, what an exported file has room for, and how many tokens its
            signature that writes gives; None for four and two windows.
        converses: bool, whether its text is dialogues, so that `reply` gives the next turn.

    Its examples are text: a str, or a list of them, which are one text after another; or
    `ka.data.join_dialogues`.

    Example:

    ```python
    import keras_attention as ka

    text = "the cat sat on the mat. " * 40
    task = ka.tasks.CausalLM.from_data(
        text, max_length=16, num_layers=1, num_heads=2, hidden_dim=32, dropout=0.0
    )
    task.fit(text, epochs=3, steps=16, batch_size=8, learning_rate=0.01, verbose=False)
    (written,) = task.predict(["the cat s"], max_new_tokens=5, temperature=0)
    assert written == "the cat sat on"
    (pieces,) = task.stream(["the cat s"], max_new_tokens=5, temperature=0)
    assert "".join(pieces) == "at on"  # one piece after the other, as they are written
    ```
    """

    builders = ("causal_language_model",)
    example_kind, holds, unit = str, "running text", "characters"
    example = "ROMEO:"
    draws = True
    predict_options = ("max_new_tokens", "temperature", "top_k", "top_p", "seed")
    lower_is_better = True
    finishing_seconds = 108.0  # of three endpoints in each of three files

    def __init__(
        self,
        model,
        preprocessor,
        *,
        maximum_length=256,
        temperature=0.8,
        max_length=None,
        max_new_tokens=None,
        converses=False,
        builder=None,
    ):
        super().__init__(model, preprocessor, builder=builder)
        owner = type(self).__name__
        self.maximum_length = check_whole_number(
            owner, "maximum_length", maximum_length, most=MOST_TOKENS
        )
        self.temperature = check_temperature(self, temperature)
        self.max_length = max_length or 4 * maximum_length
        self.max_new_tokens = max_new_tokens or 2 * maximum_length
        self.converses = converses

    @classmethod
    def collect(cls, examples):
        return collect_text(examples)

    def hold_out(self, train, dev, seed):
        return hold_out_text(train, dev)

    @classmethod
    def make_parts(cls, data_set, recipe, builder):
        options = recipe.data
        sizes = options.tokens, [data_set.train], options.vocabulary_size
        preprocessor = data.SequencePreprocessor(build_tokenizer(*sizes))
        model = models.causal_language_model(len(preprocessor.target), **recipe.list_keywords())
        return (
            model,
            preprocessor,
            dict(
                maximum_length=options.max_length,
                temperature=options.temperature,
                converses="dialogues" in data_set.about,
            ),
        )

    def adapt(self, data_set):
        """Learns that it converses from what is dialogues."""
        self.converses = self.converses or "dialogues" in data_set.about
        return super().adapt(data_set)

    def find_example(self, data_set):
        """Return the first turn of dialogues, and where the next one begins."""
        if "dialogues" not in data_set.about:
            return self.example
        text = data_set.test or data_set.dev or data_set.train
        return text.split(SEPARATOR)[0] + SEPARATOR.rstrip()

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        return data.SequencePreprocessor.load(folder)

    @classmethod
    def read_settings(cls, fields):
        writing = fields.object("writing")
        check_ids(writing, "end_token_id")
        return {
            "maximum_length": fields.whole("maximum_length", most=MOST_TOKENS),
            "converses": fields.flag("converses", default=False),
            "temperature": writing.number("temperature", above=0),
            "max_length": writing.whole("max_length", most=MOST_TOKENS),
            "max_new_tokens": writing.whole("max_new_tokens", most=MOST_TOKENS),
        }

    @property
    def settings(self):
        return {
            "maximum_length": self.maximum_length,
            **({"converses": True} if self.converses else {}),
            "writing": {
                "temperature": self.temperature,
                "max_length": self.max_length,
                "max_new_tokens": self.max_new_tokens,
                "end_token_id": self.preprocessor.end_token_id,
            },
        }

    def make_training_batches(self, examples, recipe):
        ids = self.preprocessor([examples])[0]
        if len(ids) <= self.maximum_length:
            raise ValueError(
                f"The text to train on has {len(ids)} tokens, which does not fill one window of "
                f"{self.maximum_length}: train on more, or with a smaller max_length=."
            )
        windows = data.TextWindows(ids, self.maximum_length, steps=recipe.data.steps)
        return data.batches(windows, batch_size=recipe.batch_size, seed=recipe.seed)

    def make_batches(self, examples, where):
        """Return windows one after another."""
        if not examples:
            return None
        with prefix_errors(where):
            ids = self.preprocessor([examples])[0]
            windows = data.TextWindows(ids, self.maximum_length)
            return data.batches(windows, batch_size=ROWS)

    def make_metrics(self):
        return [make_perplexity]

    def open_runner(self, path):
        run = ExportedLanguageModel(path)
        check_vocabularies(path, run.tokens, {})
        return run

    def wrap_model(self, model, path=None):
        run = KerasLanguageModel(model)
        if path is not None:
            check_vocabularies(path, run.tokens, {})
        return run

    def compute_scores(self, examples, where):
        """Loss of a token in nats, perplexity, and bits for each character.

        The text is read in windows as long as those of training, each without the text before it.
        Of dialogues also how different drawn replies are, by a Keras model alone.
        """
        windows = self.make_batches(examples, where)
        if windows is None:
            return {}
        loss = compute_mean_loss(self.runner, windows)
        ids = self.preprocessor([examples])[0][1:]
        characters = len(self.preprocessor.target.decode([ids])[0])
        found = {
            "loss": loss,
            "perplexity": math.exp(loss),
            "bits_per_character": loss * len(ids) / math.log(2) / characters,
        }
        if self.converses and not self.runs_a_file:
            found |= self._score_replies(examples)
        return {name: round(float(value), 6) for name, value in found.items()}

    def _score_replies(self, text):
        """Diversity of what is drawn after each turn of the text; nothing if there is one at most.

        A reply and the turns before it fill one window at most, as in training.
        """
        turns = [turn + SEPARATOR for turn in text.split(SEPARATOR) if turn]
        contexts = ["".join(turns[max(k - TURNS, 0) : k]) for k in range(1, len(turns))]
        contexts = [self._read_prompt(context) for context in contexts[:REPLIES]]
        number = min(REPLY, self.maximum_length // 2)
        room = self.maximum_length - number
        options = {"sampler": generation.Sample(self.temperature)}
        options["end_token_id"] = self.preprocessor.end_token_id
        written = []
        for k in range(0, len(contexts), ROWS):
            prompts = [[*ids[-room:]] for ids in contexts[k : k + ROWS]]
            rows = np.asarray(generation.generate(self.model, prompts, number, seed=k, **options))
            written += [_cut_turn(text) for text in self.preprocessor.target.decode(rows)]
        return training.score_diversity(written) if written else {}

    def predict(
        self, inputs, *, max_new_tokens=None, temperature=None, top_k=None, top_p=None, seed=None
    ):
        """Return the texts, each with its continuation.

        Args:
            inputs: list of str, the beginnings.
            max_new_tokens: int, how many tokens to go on for; None for 300, or the file's room.
            temperature: float, of the chance; 0 takes the best token, None the task's own.
            top_k, top_p: draw from the k best tokens, or the likeliest up to this share.
            seed: int, for the same text again.

        Returns:
            A str for each.
        """
        options = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
        streams = self.stream(inputs, max_new_tokens=max_new_tokens, **options)
        return [text + "".join(pieces) for text, pieces in zip(inputs, streams, strict=True)]

    def reply(self, turns, *, max_new_tokens=REPLY, **options):
        """Return the next turn of a dialogue, by a model of `ka.data.join_dialogues`.

        Args:
            turns: list of str, those so far.
            max_new_tokens: int, the tokens of a reply at most.
            options: as of `predict`.
        """
        if not self.converses:
            raise ValueError(
                "The model is not marked as one of dialogues: train it with the corpus of "
                "ka.data.from_dialogue_files, or set converses=True where it was."
            )
        if isinstance(turns, str) or not turns:
            raise ValueError(f"{turns!r:.60}: expected a list of turns.")
        prompt = "".join(turn + SEPARATOR for turn in turns)
        (text,) = self.predict([prompt], max_new_tokens=max_new_tokens, **options)
        return _cut_turn(text[len(prompt) :])

    def stream(
        self, inputs, *, max_new_tokens=None, temperature=None, top_k=None, top_p=None, seed=None
    ):
        """Go on with texts, token by token.

        Args:
            inputs: list of str. The others as for `predict`.

        Returns:
            For each text an iterator of str, the text that each new token adds.
        """
        check_many(inputs, "text", of="texts")
        choice = read_choice(self.temperature, temperature, top_k=top_k, top_p=top_p)
        prompts = [self._read_prompt(text) for text in inputs]
        numbers = [_choose_number(self.runner, ids, max_new_tokens) for ids in prompts]
        return [
            self._go_on(ids, count, choice, seed)
            for ids, count in zip(prompts, numbers, strict=True)
        ]

    def _read_prompt(self, text):
        ids = self.preprocessor([text])[0]
        if not len(ids):
            raise ValueError(f"{text!r} holds nothing to go on from: give at least one character.")
        return ids

    def _go_on(self, prompt, number, choice, seed):
        """Yields the text that each new token adds; a part of a character waits for the rest."""
        ids, end = list(prompt), self.preprocessor.end_token_id
        decode = self.preprocessor.target.decode
        waits = self.preprocessor.is_pretrained
        (before,) = decode([ids])
        for token in self.runner.stream(prompt, number, choice, end_token_id=end, seed=seed):
            if not np.isin(token, end):
                ids.append(token)
            (text,) = decode([ids])
            if waits and text.endswith(PART):
                continue
            yield text[len(before) :]
            before = text
        (text,) = decode([ids])
        if text != before:
            yield text[len(before) :]

    def attention(self, example, path=None):
        """Return the maps of the first tokens of a text."""
        ids = self._read_prompt(example)[: min(PICTURED, self.max_length)]
        with visualization.record_attention(self.model) as maps:
            self.model(ids.reshape(1, -1))
        layer, weights = list(maps.items())[-1]
        signs = {" ": "␣", "\n": "⏎"}  # of what one cannot see
        tokens = [signs.get(piece, piece) for piece in self.preprocessor.target.pieces(ids)]
        figure = visualization.attention_map(
            weights,
            tokens,
            tokens,
            title=f"{layer}: what each token looked at to say what follows it",
            path=path,
        )
        return AttentionMaps(dict(maps), tokens, tokens, figure)

    def find_pictured(self, data_set):
        return data_set.test or data_set.dev or data_set.train


def _cut_turn(text):
    """Return the first turn of a text."""
    return text.split(SEPARATOR.strip())[0].strip()


def _choose_number(run, ids, wanted):
    """Return how many tokens to write after `ids`; an error if there is no room for as many."""
    if run.max_length is None:
        return wanted or WRITTEN
    room = run.max_length - len(ids) + 1  # the last one takes no place
    if room < (wanted or 1):
        raise ValueError(
            f"The file has room for {run.max_length} tokens, and the prompt has {len(ids)}, which "
            f"leaves {max(room, 0)} to write: ask for fewer with max_new_tokens=, give a shorter "
            "prompt, or use model.keras (file='keras'), which has no limit."
        )
    return wanted or min(WRITTEN, room)
