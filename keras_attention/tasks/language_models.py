"""Language models (Keras, LiteRT or SavedModel) with one interface, and datasets for them."""

import numpy as np

from keras_attention import export
from keras_attention.core.lazy import generation
from keras_attention.data.readers.corpus import split_text
from keras_attention.export.generation.step_reader import StepReader
from keras_attention.export.generation.token_choice import IMPOSSIBLE, TokenChoice
from keras_attention.files import manifest
from keras_attention.files.fields import MOST_ID, MOST_TOKENS, Fields
from keras_attention.tasks.interface import DEV_FRACTION


def collect_text(examples):
    """Make a `DataSet` of running text (one long str) from `examples`, a str or a list of str.

    The strings of a list are joined by line breaks.
    """
    text = examples if isinstance(examples, str) else "\n".join(examples)
    return split_text(text, dev_fraction=0)


def hold_out_text(train, dev):
    """Return (train, dev), two str. If `dev` is empty, the last tenth of `train` becomes `dev`."""
    data_set = split_text(train, dev, dev_fraction=DEV_FRACTION)
    return data_set.train, data_set.dev


class KerasLanguageModel:
    """A Keras language model with the methods `logits`, `stream` and `draw`.

    `ExportedLanguageModel` has the same methods, so that a task can run either of them.

    Attributes:
        max_length: None, because inputs may have any length.
        tokens: int, the vocabulary size.
    """

    max_length = None

    def __init__(self, model):
        self.model, self.tokens = model, model.output_shape[-1]

    def logits(self, ids):
        """Compute the logits for ids (B, T), and return an array (B, T, vocabulary_size)."""
        return np.asarray(self.model.predict_on_batch(ids))

    def stream(self, ids, number, choice, *, end_token_id=None, seed=None):
        """Generate the ids that follow `ids` (T,), and yield them one by one as int.

        Args:
            ids: int array (T,), the prompt.
            number: int, the maximum number of ids to generate.
            choice: `TokenChoice`, which selects an id from logits.
            end_token_id: int or list of int. The iterator ends after one of these ids. None does
                not end it early.
            seed: int, makes the result reproducible. None samples differently in each call.
        """
        options = {"end_token_id": end_token_id, "seed": seed}
        sampler = choice.make_sampler()
        for (token,) in generation.stream(self.model, [ids], number, sampler, **options):
            yield int(token)

    def draw(self, prompts, number, choice, levels, seed):
        """Generate the pixels of a batch of images, and return their ids, an array (B, `number`).

        `prompts` (B, 1) are the ids of the classes. Only ids below `levels` are generated. `choice`
        is a `TokenChoice`, which selects an id from logits with random numbers from `seed`.
        """
        options = {"allowed_ids": list(range(levels)), "seed": seed}
        return generation.generate(self.model, prompts, number, choice.make_sampler(), **options)


class ExportedLanguageModel:
    """An exported language model (SavedModel or LiteRT), which generates with a key-value cache.

    The class has the methods of `KerasLanguageModel`, and samples the same ids with the same seed.

    Args:
        path: path of the exported file.

    Attributes:
        max_length: int, the number of tokens that fit into the cache.
        padding_id: int, an id that is never generated. None if every id is a token.
        tokens: int, the vocabulary size.
    """

    def __init__(self, path):
        self.reader = StepReader(path)
        step = next(s for s in export.inspect(path).signatures if s.name == "step")
        self.tokens = next(tensor.shape[-1] for tensor in step.outputs if tensor.name == "logits")
        fields = Fields(path.parent / manifest.MANIFEST, manifest.read_manifest(path.parent))
        entry = fields.object("files").object(path.name).object("generation")
        self.max_length = entry.whole("max_length", most=MOST_TOKENS)
        self.padding_id = 0
        if "padding_id" in entry:  # it is missing in the oldest manifests
            self.padding_id = entry.whole("padding_id", least=0, most=MOST_ID, default=None)

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
    """Return `temperature` if it is positive, else raise a ValueError that names `task`'s class."""
    if not temperature > 0:
        name = type(task).__name__
        raise ValueError(f"{name}(temperature={temperature!r}): expected a number above 0.")
    return temperature


def read_choice(default_temperature, temperature, noun="tokens", *, top_k=None, top_p=None):
    """Convert the sampling arguments of `predict` to a `TokenChoice`, which selects the next token.

    `temperature`, `top_k` and `top_p` are numbers or None. If `temperature` is None,
    `default_temperature` is used. `noun` names the tokens in error messages.
    """
    for name, value in {"top_k": top_k, "top_p": top_p}.items():
        if temperature == 0 and value is not None:
            raise ValueError(
                f"{name}={value} is for sampling {noun}, and temperature=0 takes the best one: "
                f"pass a temperature above 0, or leave {name} out."
            )
    temperature = default_temperature if temperature is None else temperature
    return TokenChoice(temperature, top_k=top_k, top_p=top_p)


def compute_mean_loss(run, batches):
    """Compute the mean negative log-likelihood of the labels, in nats.

    Args:
        run: `KerasLanguageModel` or `ExportedLanguageModel`.
        batches: `tf.data.Dataset` of (ids, labels), both int arrays (B, T). Labels of -1 are
            ignored.
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
