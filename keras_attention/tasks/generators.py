"""Encoder-decoders (Keras, LiteRT or SavedModel) as functions from source ids to generated ids."""

import time

import numpy as np

from keras_attention.core.lazy import generation
from keras_attention.export.inspection import find_id_limits
from keras_attention.files.fields import MOST_ID
from keras_attention.tasks import runners
from keras_attention.tasks.runners import check_vocabularies

ROWS = 32  # sources per batch


def get_generation_options(manifest):
    """Read from `manifest.json` how a model generates text: beam width, length and special ids.

    Args:
        manifest: dict, the content of `manifest.json`.

    Returns:
        dict of arguments for `ka.generation.generate`, except that the sampler has the key
        `"generate"`. The dict is empty if the model does not generate text.
    """
    entry = manifest.get("writing")
    if entry is None:
        return {}
    names = ("max_length", "max_new_tokens", "start_token_id", "end_token_id", "padding_id")
    options = {"generate": _make_sampler(entry)} | {k: entry[k] for k in names if k in entry}
    if np.isin(options.get("padding_id", -1), options.get("end_token_id", ())):
        del options["padding_id"]  # if it is also an end id, it must be possible to generate it
    constraints = _make_constraints(entry)
    return options | ({"constraints": constraints} if constraints else {})


def _make_constraints(entry):
    """Return the constraints on generated tokens, a list, that `manifest.json` states.

    `entry` is its dict `writing`, whose keys are Hugging Face's names, such as `suppress_tokens`.
    """
    constraints, results = generation.constraints, []
    if entry.get("forced_bos_token_id") is not None:
        allowed = constraints.Allowed([entry["forced_bos_token_id"]])
        results.append(constraints.AtFirst(allowed))
    if entry.get("suppress_tokens"):
        results.append(constraints.Forbidden(entry["suppress_tokens"]))
    if entry.get("begin_suppress_tokens"):
        results.append(constraints.AtFirst(constraints.Forbidden(entry["begin_suppress_tokens"])))
    if entry.get("min_new_tokens"):
        results.append(constraints.MinimumLength(entry["min_new_tokens"], entry["end_token_id"]))
    if entry.get("no_repeat_ngram_size") is not None:
        results.append(constraints.NoRepeatNGrams(entry["no_repeat_ngram_size"]))
    return results


def check_ids(fields, name):
    """Check that the entry `name` in `fields` (`Fields`) is a token id or a list of token ids."""
    ids = fields.values.get(name)
    if isinstance(ids, list) and ids:
        fields.wholes(name, len(ids), least=0, most=MOST_ID)
    else:
        fields.whole(name, least=0, most=MOST_ID)


class ModelGenerator:
    """A Keras encoder-decoder as a function from padded source ids (B, S) to target ids (B, T).

    Instead of source ids the function also accepts a dict of other encoder inputs, such as
    waveforms.

    Args:
        model: `keras.Model`.
        metadata: dict, the task's part of `manifest.json`.
        path: path of the file that the model was loaded from, for checking the vocabularies in
            its folder. None skips the check.
    """

    def __init__(self, model, metadata, path=None):
        self.model, self.metadata = model, metadata
        if path is not None:
            decoder = next((x for x in model.layers if x.name == "decoder"), model)
            check_vocabularies(path, decoder.output_shape[-1], find_id_limits(model))

    def __call__(self, ids, beam=None, start_token_id=None):
        options = get_generation_options(self.metadata)
        sampler = options.pop("generate")
        if start_token_id is not None:
            options["start_token_id"] = start_token_id
        if beam is not None:
            sampler = _make_sampler(self.metadata["writing"] | {"beam": beam})
        return generation.generate(self.model, ids, sampler=sampler, **options)


class FileGenerator:
    """An exported encoder-decoder as a function from padded source ids (B, S) to target ids (B, T).

    Instead of source ids the function also accepts a dict of other encoder inputs, such as
    waveforms.

    Args:
        path: path of the LiteRT file or SavedModel.
        metadata: dict, the task's part of `manifest.json`.
    """

    def __init__(self, path, metadata):
        self.path, self.beam = path, metadata["writing"]["beam"]
        self.start_token_id = metadata["writing"]["start_token_id"]
        self.run = runners.load_runner(path, "generate" if self.beam == 1 else "beam")
        self.run.padding_id = metadata["writing"].get("padding_id", 0)
        inspection = self.run.inspection
        outputs = [t for s in inspection.signatures if s.name == "step" for t in s.outputs]
        tokens = next((tensor.shape[-1] for tensor in outputs if tensor.name == "logits"), None)
        check_vocabularies(path, tokens, inspection.id_limits)

    def __call__(self, ids, beam=None, start_token_id=None):
        if start_token_id is not None and list(start_token_id) != [*np.ravel(self.start_token_id)]:
            raise ValueError(
                f"{self.path} starts every text with the tokens {list(self.start_token_id)}, which "
                "stand for language and task and are fixed in an exported file. Received "
                f"{list(start_token_id)}. Leave them out, use model.keras, which takes any, or "
                "export a file for them."
            )
        if beam not in (None, self.beam):
            raise ValueError(
                f"{self.path} searches with a beam of {self.beam}, which is fixed in an exported "
                f"file. Received {beam}. Leave it out, or use model.keras, which takes any."
            )
        inputs = ids if isinstance(ids, dict) else {"source_ids": ids}
        rows = len(next(iter(inputs.values())))
        return self.run(inputs)["generated_ids"].reshape(rows, -1)


def _make_sampler(entry):
    if "temperature" in entry:
        return generation.Sample(entry["temperature"])
    if entry["beam"] == 1:
        return "greedy"
    return generation.Beam(entry["beam"], length_penalty=entry.get("length_penalty", 0.0))


class OutOfTime(Exception):
    """Raised if the time limit ends `generate_texts`. The message says how much was generated."""


def generate_texts(run, preprocessor, texts, beam=None, deadline=None):
    """Generate the target text for each source text, and return a list of str in the same order.

    Args:
        run: `ModelGenerator` or `FileGenerator`.
        preprocessor: `ka.data.SequencePreprocessor`.
        texts: list of str, the source text of each example.
        beam: int, the beam width. None uses the beam width of `run`.
        deadline: value of time.perf_counter() when to stop, or None for no limit.

    Raises:
        OutOfTime: the deadline passed before the end.
    """
    ids = preprocessor.source_ids(texts)
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    written = {}
    for k in range(0, len(order), ROWS):
        if deadline is not None and time.perf_counter() > deadline:
            raise OutOfTime(f"{k:,} of {len(order):,} outputs were generated")
        chosen = order[k : k + ROWS]
        results = preprocessor.texts(run(preprocessor([texts[i] for i in chosen]), beam))
        written |= dict(zip(chosen, results, strict=True))
    return [written[i] for i in range(len(texts))]
