"""`CausalLM`: text generation, which continues a prompt."""

import math

import numpy as np

from keras_attention import data, training
from keras_attention.core.checks import check_many, check_whole_number
from keras_attention.core.lazy import generation, models, visualization
from keras_attention.data.readers.dialogues import SEPARATOR, TURNS
from keras_attention.data.tokenizers.building import build_tokenizer
from keras_attention.files.fields import MOST_TOKENS
from keras_attention.files.io import number_errors, prefix_errors
from keras_attention.tasks.generators import check_ids
from keras_attention.tasks.interface import draw_map
from keras_attention.tasks.labels import make_perplexity
from keras_attention.tasks.language_models import (
    ExportedLanguageModel,
    KerasLanguageModel,
    check_temperature,
    collect_text,
    compute_mean_loss,
    hold_out_text,
    read_choice,
)
from keras_attention.tasks.runners import check_vocabularies
from keras_attention.tasks.task import Task

ROWS = 32  # windows per batch
PICTURED = 24  # maximum number of tokens in a figure
PART = "\ufffd"  # decoders return it for the bytes of an incomplete character
WRITTEN = 300  # default number of tokens to generate
REPLIES = 500  # maximum number of replies that are sampled for the scores of dialogues
REPLY = 64  # maximum number of tokens in a reply


class CausalLM(Task):
    """Continues a prompt, token by token.

    The data is running text: a str, a list of consecutive strings, or the result of
    `ka.data.join_dialogues`. It is cut into windows of `maximum_length` tokens.

    Args:
        model: functional `keras.Model` that converts token ids (B, T) to logits (B, T, V), such as
            `ka.models.causal_language_model`. V is the vocabulary size.
        preprocessor: `ka.data.SequencePreprocessor` with only a target tokenizer, which splits
            text into tokens.
        maximum_length: int, the number of tokens in a window for training and scoring.
        temperature: float, the default sampling temperature of `predict`.
        max_length: int, the maximum number of tokens (prompt and continuation) that an exported
            file can process. None sets it to `4 * maximum_length`.
        max_new_tokens: int, the maximum number of tokens that the `generate` signature of an
            exported file returns. None sets it to `2 * maximum_length`.
        converses: bool, whether the model is trained on dialogues, which enables `reply`.
        builder: str, the name of the function of `ka.models` that built the model, one of the
            class attribute `builders`. It is stored with the task, and chooses the recipe of
            `fit`. None is the first of them.

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
    assert "".join(pieces) == "at on"
    ```
    """

    builders = ("causal_language_model",)
    example_kind, holds, unit = str, "running text", "characters"
    example = "ROMEO:"
    draws = True
    predict_options = ("max_new_tokens", "temperature", "top_k", "top_p", "seed")
    lower_is_better = True
    finishing_seconds = 108.0  # three files with three signatures each

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
        self.maximum_length = check_whole_number(
            type(self).__name__, "maximum_length", maximum_length, most=MOST_TOKENS
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
        settings = {
            "maximum_length": options.max_length,
            "temperature": options.temperature,
            "converses": "dialogues" in data_set.about,
        }
        return model, preprocessor, settings

    def adapt(self, data_set):
        """Prepare the model for training, and enable `reply` if the dataset consists of dialogues.

        Return a tuple of str, notes on changes of the model. `data_set` is the `DataSet` to train
        on.
        """
        self.converses = self.converses or "dialogues" in data_set.about
        return super().adapt(data_set)

    def find_example(self, data_set):
        """Return a prompt, a str, to show in the model card of a preset.

        Args:
            data_set: `ka.data.DataSet`. If it holds dialogues, the prompt is the first turn of one.
        """
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
        """Return batches of consecutive windows of a text, or None if the text is empty.

        The batches are used for scoring. `examples` is the text, a str. Error messages begin with
        `where`, a str.
        """
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
        """Compute the loss (nats per token), the perplexity and the bits per character of a text.

        The text is split into windows of `maximum_length` tokens, and the model sees each window
        without the text before it. For dialogues, the scores of a Keras model also include the
        diversity of sampled replies. `examples` is the text, a str. Error messages begin with
        `where`, a str.
        """
        windows = self.make_batches(examples, where)
        if windows is None:
            return {}
        loss = compute_mean_loss(self.runner, windows)
        ids = self.preprocessor([examples])[0][1:]
        characters = len(self.preprocessor.target.decode([ids])[0])
        scores = {
            "loss": loss,
            "perplexity": math.exp(loss),
            "bits_per_character": loss * len(ids) / math.log(2) / characters,
        }
        if self.converses and not self.runs_a_file:
            scores |= self._score_replies(examples)
        return {name: round(float(value), 6) for name, value in scores.items()}

    def _score_replies(self, text):
        """Sample a reply after each turn of the dialogue `text`, and score their diversity.

        The result is a dict of scores, or {} if the text has fewer than two turns. A reply and the
        turns before it have at most `maximum_length` tokens together, as in training.
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
        """Continue each prompt, and return the prompts with their continuations.

        Args:
            inputs: list of str, the prompts.
            max_new_tokens: int, the maximum number of tokens to generate. None generates up to 300
                tokens, or fewer if an exported file cannot process so many.
            temperature: float, the sampling temperature. 0 always selects the most probable token.
                None uses the task's `temperature`.
            top_k: int, sample from the k most probable tokens. None does not restrict the tokens.
            top_p: float, sample from the smallest set of most probable tokens whose probabilities
                sum to at least `top_p`. None does not restrict the tokens.
            seed: int, makes the result reproducible. None samples differently in each call.

        Returns:
            A list with a str for each prompt.

        Raises:
            ValueError: a prompt is empty or too long for the file. The message contains its number
                (from 1). All prompts are checked before the first is continued.
        """
        options = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
        streams = self.stream(inputs, max_new_tokens=max_new_tokens, **options)
        return [text + "".join(pieces) for text, pieces in zip(inputs, streams, strict=True)]

    def reply(self, turns, *, max_new_tokens=REPLY, **options):
        """Generate the next turn of a dialogue, with a model that was trained on dialogues.

        Args:
            turns: list of str, the dialogue so far.
            max_new_tokens: int, the maximum number of tokens in the reply.
            **options: `temperature`, `top_k`, `top_p` and `seed` for sampling, as in `predict`.

        Returns:
            The reply, a str.

        Raises:
            ValueError: the model was not trained on dialogues, or `turns` is empty.
        """
        if not self.converses:
            raise ValueError(
                "The model is not marked as a model of dialogues. Train it with the corpus of "
                "ka.data.from_dialogue_files, or pass converses=True if its text was dialogues."
            )
        if isinstance(turns, str) or not turns:
            raise ValueError(f"{turns!r:.60}: expected a list of turns.")
        prompt = "".join(turn + SEPARATOR for turn in turns)
        (text,) = self.predict([prompt], max_new_tokens=max_new_tokens, **options)
        return _cut_turn(text[len(prompt) :])

    def stream(
        self, inputs, *, max_new_tokens=None, temperature=None, top_k=None, top_p=None, seed=None
    ):
        """Continue each prompt token by token, and return an iterator over the text for each.

        Args:
            inputs: list of str, the prompts.
            max_new_tokens, temperature, top_k, top_p, seed: as in `predict`.

        Returns:
            A list with an iterator for each prompt. It yields strings, the text that each new token
            adds.
        """
        check_many(inputs, "text", of="str")
        choice = read_choice(self.temperature, temperature, top_k=top_k, top_p=top_p)
        prompts = self._read_prompts(inputs, max_new_tokens)
        return [self._go_on(ids, count, choice, seed) for ids, count in prompts]

    def check_inputs(self, inputs):
        check_many(inputs, "text", of="str")
        self._read_prompts(inputs, None)

    def _read_prompts(self, texts, max_new_tokens):
        """Return a list of (token ids, number of tokens to generate), one pair for each prompt."""

        def read(text):
            ids = self._read_prompt(text)
            return ids, _choose_number(self.runner, ids, max_new_tokens)

        return list(number_errors("Text", texts, read))

    def _read_prompt(self, text):
        ids = self.preprocessor([text])[0]
        if not len(ids):
            raise ValueError(f"{text!r} has no token to continue: give at least one character.")
        return ids

    def _go_on(self, prompt, number, choice, seed):
        """Generate up to `number` ids after the ids `prompt`, and yield the text that each adds.

        `choice` is a `TokenChoice`, which selects an id from logits. If a character consists of
        several ids, its text is yielded after the last of them.
        """
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
        """Plot the attention between the first tokens of `example`, a str.

        The figure is saved at `path`, unless this is None. Return the attention weights of all
        layers and the figure as `AttentionMaps`.
        """
        ids = self._read_prompt(example)[: min(PICTURED, self.max_length)]
        with visualization.record_attention(self.model) as maps:
            self.model(ids.reshape(1, -1))
        signs = {" ": "␣", "\n": "⏎"}  # visible symbols for whitespace
        tokens = [signs.get(piece, piece) for piece in self.preprocessor.target.pieces(ids)]
        caption = "what each token attended to when it predicted the next"
        return draw_map(maps, tokens, tokens, caption, path)

    def find_pictured(self, data_set):
        return data_set.test or data_set.dev or data_set.train


def _cut_turn(text):
    """Return the text before the first separator of turns."""
    return text.split(SEPARATOR.strip())[0].strip()


def _choose_number(run, ids, max_new_tokens):
    """Return the number of tokens that a language model (`run`) generates after the prompt `ids`.

    If `max_new_tokens` is None, this is `WRITTEN`, or fewer if an exported file has a lower limit.

    Raises:
        ValueError: the exported file cannot process so many tokens.
    """
    if run.max_length is None:
        return max_new_tokens or WRITTEN
    room = run.max_length - len(ids) + 1  # the last generated token is not an input
    if room < (max_new_tokens or 1):
        raise ValueError(
            f"The file takes {run.max_length} tokens, and the prompt has {len(ids)}, so that "
            f"{max(room, 0)} can be written. Ask for fewer with max_new_tokens=, give a shorter "
            "prompt, or use model.keras (file='keras'), which has no limit."
        )
    return max_new_tokens or min(WRITTEN, room)
