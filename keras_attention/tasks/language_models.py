"""Language models of any format as functions of ids: their logits, and what they write or draw."""

import numpy as np

from keras_attention import export
from keras_attention.core.lazy import generation
from keras_attention.export.generation.step_reader import StepReader
from keras_attention.export.generation.token_choice import IMPOSSIBLE, TokenChoice
from keras_attention.files import manifest
from keras_attention.files.fields import MOST_ID, MOST_TOKENS, Fields


class KerasLanguageModel:
    """A Keras model in memory.

    Attributes:
        max_length: None, there is room for texts of any length.
        tokens: int, how many it knows.
    """

    max_length = None

    def __init__(self, model):
        self.model, self.tokens = model, model.output_shape[-1]

    def logits(self, ids):
        """Ids (B, T) -> logits (B, T, V), an array."""
        return np.asarray(self.model.predict_on_batch(ids))

    def stream(self, ids, number, choice, *, end_token_id=None, seed=None):
        """Yields the ids, ints, that follow `ids` (T,): `number` of them, or up to END."""
        options = {"end_token_id": end_token_id, "seed": seed}
        sampler = choice.make_sampler()
        for (token,) in generation.stream(self.model, [ids], number, sampler, **options):
            yield int(token)

    def draw(self, prompts, number, choice, levels, seed):
        """`number` ids (B, N) below `levels` behind prompts (B, 1)."""
        options = {"allowed_ids": list(range(levels)), "seed": seed}
        return generation.generate(self.model, prompts, number, choice.make_sampler(), **options)


class ExportedLanguageModel:
    """A SavedModel or LiteRT file that takes new tokens, and keeps keys and values in a cache.

    With the same seed it draws what `KerasLanguageModel` draws.

    Attributes:
        max_length: int, how many tokens there is room for.
        padding_id: int, which is never chosen; None where every id is a token.
        tokens: int, how many it knows.
    """

    def __init__(self, path):
        self.reader = StepReader(path)
        step = next(s for s in export.inspect(path).signatures if s.name == "step")
        self.tokens = next(tensor.shape[-1] for tensor in step.outputs if tensor.name == "logits")
        fields = Fields(path.parent / manifest.MANIFEST, manifest.read_manifest(path.parent))
        about = fields.object("files").object(path.name).object("generation")
        self.max_length = about.whole("max_length", most=MOST_TOKENS)
        self.padding_id = 0
        if "padding_id" in about:  # not in the oldest manifests
            self.padding_id = about.whole("padding_id", least=0, most=MOST_ID, default=None)

    def logits(self, ids):
        parts = [ids[rows] for rows in self.reader.split_rows(len(ids))]
        read = (self.reader.read(part, 0, self.reader.start(len(part))) for part in parts)
        return np.concatenate([logits for logits, _ in read])

    def stream(self, ids, number, choice, *, end_token_id=None, seed=None):
        uniform = choice.draw_uniform(seed, (number, 1))
        tokens, index, cache = ids.reshape(1, -1), 0, self.reader.start(1)
        for numbers in uniform:
            logits, cache = self.reader.read(tokens, index, cache)
            index += tokens.shape[1]
            last = logits[:, -1]
            if self.padding_id is not None:
                last[:, self.padding_id] = IMPOSSIBLE
            tokens = choice.choose(last, numbers).reshape(1, 1)
            yield int(tokens[0, 0])
            if np.isin(tokens[0, 0], () if end_token_id is None else end_token_id):
                return

    def draw(self, prompts, number, choice, levels, seed):
        uniform, parts = choice.draw_uniform(seed, (number, len(prompts))), []
        for rows in self.reader.split_rows(len(prompts)):
            tokens, drawn = prompts[rows], []
            cache = self.reader.start(len(tokens))
            for index, numbers in enumerate(uniform[:, rows]):
                logits, cache = self.reader.read(tokens, index, cache)
                last = np.array(logits[:, -1])
                last[:, levels:] = IMPOSSIBLE
                tokens = choice.choose(last, numbers).reshape(-1, 1)
                drawn.append(tokens)
            parts.append(np.concatenate(drawn, axis=1))
        return np.concatenate(parts)


def check_temperature(task, temperature):
    """Return a temperature above 0 for a task; another one is refused."""
    if not temperature > 0:
        name = type(task).__name__
        raise ValueError(f"{name}(temperature={temperature!r}): expected a number above 0.")
    return temperature


def read_choice(known, temperature, what="tokens", **limits):
    """Return the `TokenChoice` of these options. The default temperature is `known`.

    Args:
        what: str, what is drawn, for errors.
        limits: `top_k` and `top_p`.
    """
    if temperature == 0:
        if given := [name for name, value in limits.items() if value is not None]:
            raise ValueError(
                f"{given[0]}={limits[given[0]]} is for drawing {what}, and temperature=0 takes the "
                "best one: give a temperature above 0, or leave one of them out."
            )
    return TokenChoice(known if temperature is None else temperature, **limits)


def compute_mean_loss(run, batches):
    """Return the mean of -log p of every label that counts, in nats.

    Args:
        run: `KerasLanguageModel` or `ExportedLanguageModel`.
        batches: `tf.data.Dataset` of ids (B, T) and labels (B, T); those that are -1 do not count.
    """
    nats, count = 0.0, 0
    for ids, labels in batches.as_numpy_iterator():
        counts = labels >= 0
        logits, labels = run.logits(ids)[counts].astype("float64"), labels[counts]
        highest = logits.max(axis=-1, keepdims=True)
        total = np.log(np.exp(logits - highest).sum(axis=-1)) + highest[:, 0]
        right = np.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]
        nats, count = nats + (total - right).sum(), count + len(labels)
    return nats / count
