"""The task `causal_language_model`: running text, and its continuation."""

import math

import numpy as np

from keras_attention import data, generation, models, training, visualization
from keras_attention.cli.console import say
from keras_attention.cli.fit import Job
from keras_attention.cli.generating_files import load_language_model
from keras_attention.cli.model_files import check_vocabularies
from keras_attention.data.fields import MOST_ID, MOST_TOKENS
from keras_attention.data.files import prefix_errors
from keras_attention.data.tokenizers import END_ID

TASK, KIND, HOLDS = "causal_language_model", data.Corpus, "running text"
EXAMPLE = '"ROMEO:"'
OPTIONS = ("tokens", "temperature", "top_k", "top_p", "seed")
ROWS = 32  # windows at a time
PICTURED = 24  # tokens
WRITTEN = 300  # tokens that are written unless another number is asked for


def make_job(corpus, recipe, source, about):
    """The job for `corpus`, a `ka.data.Corpus`."""
    if not corpus.train:
        raise ValueError("There is nothing to train on: give a file with --train.")
    options = recipe.data
    preprocessor = _preprocessor(corpus.train, options["tokens"], options["vocabulary_size"])
    ids, length = preprocessor([corpus.train])[0], options["maximum_length"]
    if len(ids) <= length:
        raise ValueError(
            f"The text to train on has {len(ids)} tokens, which does not fill one window of "
            f"{length}: train on more, or with a smaller --maximum-length."
        )
    metadata = {"task": TASK, **source, "maximum_length": length, "writing": _writing(options)}
    return Job(
        task=TASK,
        model=models.causal_language_model(len(preprocessor.target), **recipe.model),
        train=data.language_model_batches(
            ids, length, recipe.batch_size, steps=options["steps"], seed=recipe.seed
        ),
        dev=batch_for_scoring(corpus.dev, preprocessor, length),
        test=corpus.test,
        metrics=[perplexity],
        lower_is_better=True,
        metadata=metadata,
        sidecars=preprocessor.save,
        picture=lambda model, folder: draw_attention(model, folder, corpus, preprocessor),
        about=about,
    )


def _preprocessor(text, tokens, vocabulary_size):
    """Characters or subwords of the text to train on."""
    if tokens == "characters":
        return data.SequencePreprocessor(data.Characters.build([text]))
    return data.SequencePreprocessor(data.Subwords.build([text], vocabulary_size))


def _writing(options):
    """The manifest's entry about generation; see `get_generation_options`."""
    return {
        "temperature": options["temperature"],
        "max_length": 4 * options["maximum_length"],
        "max_new_tokens": 2 * options["maximum_length"],
        "end_token_id": END_ID,
    }


def count_examples(corpus):
    parts = {part: getattr(corpus, part) for part in ("train", "dev", "test")}
    return {f"{part} characters": len(text) for part, text in parts.items() if text}


def batch_for_scoring(text, preprocessor, length):
    """Windows one after another, or None when there is no text."""
    if not text:
        return None
    return data.language_model_batches(preprocessor([text])[0], length, ROWS)


def perplexity():
    return training.MaskedPerplexity(name="perplexity")


def check_manifest(fields):
    """Refuses a manifest that lacks a field which this module reads."""
    fields.whole("maximum_length", most=MOST_TOKENS)
    known = fields.object("writing")
    known.number("temperature", above=0)
    known.whole("max_length", most=MOST_TOKENS)
    known.whole("max_new_tokens", most=MOST_TOKENS)
    known.whole("end_token_id", least=0, most=MOST_ID)


def make_batches(folder, manifest, part, where):
    """Batches of `part` as the model in `folder` takes them, and its metrics."""
    preprocessor = data.SequencePreprocessor.load(folder)
    with prefix_errors(where):
        return batch_for_scoring(part, preprocessor, manifest["maximum_length"]), [perplexity]


def load_runner(path, manifest):
    """The file as `load_language_model` gives it."""
    run = load_language_model(path)
    check_vocabularies(path, run.classes, {})
    return run


def compute_scores(run, folder, manifest, part, where):
    """Loss of a token in nats, perplexity, and bits for each character; {} without text.

    The text is read in windows as long as those of training, each without the text before it.
    """
    if not part:
        return {}
    preprocessor = data.SequencePreprocessor.load(folder)
    windows, _ = make_batches(folder, manifest, part, where)
    nats, count = 0.0, 0
    for inputs, labels in windows.as_numpy_iterator():
        losses = _losses(run.logits(inputs), labels)
        nats, count = nats + losses.sum(), count + len(losses)
    characters = len(preprocessor.texts([preprocessor([part])[0][1:]])[0])
    found = {
        "loss": nats / count,
        "perplexity": math.exp(nats / count),
        "bits_per_character": nats / math.log(2) / characters,
    }
    return {name: round(float(value), 6) for name, value in found.items()}


def _losses(logits, labels):
    """-log p of every label that counts, in nats, as float64."""
    kept = labels >= 0
    logits, labels = logits[kept].astype("float64"), labels[kept]
    highest = logits.max(axis=-1, keepdims=True)
    total = np.log(np.exp(logits - highest).sum(axis=-1)) + highest[:, 0]
    return total - np.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]


def print_predictions(run, folder, manifest, texts, options):
    """Prints each of `texts` and its continuation, token by token."""
    preprocessor = data.SequencePreprocessor.load(folder)
    sampler = _sampler(manifest["writing"], options)
    prompts = [_prompt(text, preprocessor) for text in texts]
    numbers = [_number(run, ids, options["tokens"]) for ids in prompts]
    end_token_id = manifest["writing"]["end_token_id"]
    for k, (text, ids, number) in enumerate(zip(texts, prompts, numbers, strict=True)):
        if k:
            say("")
        print(text, end="", flush=True)
        tokens = run.stream(ids, number, sampler, end_token_id=end_token_id, seed=options["seed"])
        for piece in _pieces(ids, tokens, preprocessor):
            print(piece, end="", flush=True)
        say("")


def _pieces(ids, tokens, preprocessor):
    """Yields the text that each of `tokens`, an iterator of ids, adds to that of `ids` (T,)."""
    ids = list(ids)
    (before,) = preprocessor.texts([ids])
    for token in tokens:
        ids.append(token)
        (text,) = preprocessor.texts([ids])
        yield text[len(before) :]
        before = text


def _sampler(known, options):
    """The sampler that the options ask for, or one of the temperature in the manifest."""
    temperature, limits = options["temperature"], {k: options[k] for k in ("top_k", "top_p")}
    if temperature == 0:
        if given := [k for k, value in limits.items() if value is not None]:
            raise ValueError(
                f"--{given[0].replace('_', '-')} is for drawing tokens, and --temperature 0 takes "
                "the best one: give a temperature above 0, or leave one of them out."
            )
        return generation.Greedy()
    return generation.Sample(known["temperature"] if temperature is None else temperature, **limits)


def _prompt(text, preprocessor):
    ids = preprocessor([text])[0]
    if not len(ids):
        raise ValueError(f"{text!r} holds nothing to go on from: give at least one character.")
    return ids


def _number(run, ids, wanted):
    """How many tokens to write after `ids`; an error if there is no room for as many."""
    if run.max_length is None:
        return wanted or WRITTEN
    room = run.max_length - len(ids) + 1  # the last one takes no place
    if room < (wanted or 1):
        raise ValueError(
            f"The file has room for {run.max_length} tokens, and the prompt has {len(ids)}, which "
            f"leaves {max(room, 0)} to write: ask for fewer with --tokens, give a shorter prompt, "
            "or take --with keras, which has no limit."
        )
    return wanted or min(WRITTEN, room)


def draw_attention(model, folder, corpus, preprocessor):
    """Draws the attention of every head of the last block on the first tokens of a text."""
    ids = preprocessor([corpus.test or corpus.dev or corpus.train])[0][:PICTURED]
    with visualization.record_attention(model) as maps:
        model(ids.reshape(1, -1))
    path, weights = list(maps.items())[-1]
    tokens = [_visible(piece) for piece in preprocessor.target.pieces(ids)]
    visualization.attention_map(
        weights,
        tokens,
        tokens,
        title=f"{path}: what each token looked at to say what follows it",
        path=folder / "attention.png",
    )
    return ["attention.png"]


def _visible(piece):
    """Spaces and ends of lines as signs that one can see."""
    return {" ": "␣", "\n": "⏎"}.get(piece, piece)
