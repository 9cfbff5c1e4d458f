"""Encoder-decoders of any format as functions of ids: the texts that they write."""

import time

import numpy as np

from keras_attention.core.lazy import generation
from keras_attention.export.inspection import find_id_limits
from keras_attention.files.fields import MOST_ID
from keras_attention.tasks import runners
from keras_attention.tasks.runners import check_vocabularies

ROWS = 32  # sources at a time


def get_generation_options(manifest):
    """Return keywords for the export of a model that generates, from its manifest."""
    known = manifest.get("writing")
    if known is None:
        return {}
    lengths = ("max_length", "max_new_tokens")
    names = (*lengths, "start_token_id", "end_token_id", "padding_id")
    found = {"generate": _make_sampler(known)} | {k: known[k] for k in names if k in known}
    if np.isin(found.get("padding_id", -1), found.get("end_token_id", ())):
        del found["padding_id"]  # one that ends texts is written
    constraints = _make_constraints(known)
    return found | ({"constraints": constraints} if constraints else {})


def _make_constraints(known):
    """Return the constraints for what a manifest calls by the names of Hugging Face, a list."""
    found = []
    if known.get("forced_bos_token_id") is not None:
        found.append(
            generation.constraints.AtFirst(
                generation.constraints.Allowed([known["forced_bos_token_id"]])
            )
        )
    if known.get("suppress_tokens"):
        found.append(generation.constraints.Forbidden(known["suppress_tokens"]))
    if known.get("begin_suppress_tokens"):
        found.append(
            generation.constraints.AtFirst(
                generation.constraints.Forbidden(known["begin_suppress_tokens"])
            )
        )
    if known.get("min_new_tokens"):
        found.append(
            generation.constraints.MinimumLength(known["min_new_tokens"], known["end_token_id"])
        )
    if known.get("no_repeat_ngram_size") is not None:
        found.append(generation.constraints.NoRepeatNGrams(known["no_repeat_ngram_size"]))
    return found


def check_ids(known, name):
    """Refuses a field of a manifest's entry (`Fields`) that is no id, and no list of them."""
    ids = known.values.get(name)
    if isinstance(ids, list) and ids:
        known.wholes(name, len(ids), least=0, most=MOST_ID)
    else:
        known.whole(name, least=0, most=MOST_ID)


class ModelGenerator:
    """An encoder-decoder in memory, as a function: source ids (B, S), padded, to ids (B, N).

    A source may be a dict of other inputs of the encoder, such as sounds.

    Args:
        model: keras.Model.
        metadata: dict, its manifest's entries.
        path: the file that it was loaded from, or None.
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
    """An exported encoder-decoder as a function: source ids (B, S), padded, to ids (B, N).

    A source may be a dict of other inputs of the encoder, such as sounds.

    Args:
        path: the SavedModel or LiteRT file.
        metadata: dict, its manifest's entries.
    """

    def __init__(self, path, metadata):
        self.path, self.beam = path, metadata["writing"]["beam"]
        self.start_token_id = metadata["writing"]["start_token_id"]
        self.run = runners.load_runner(path, "generate" if self.beam == 1 else "beam")
        self.run.padding_id = metadata["writing"].get("padding_id", 0)
        found = self.run.inspection
        outputs = [t for s in found.signatures if s.name == "step" for t in s.outputs]
        tokens = next((tensor.shape[-1] for tensor in outputs if tensor.name == "logits"), None)
        check_vocabularies(path, tokens, found.id_limits)

    def __call__(self, ids, beam=None, start_token_id=None):
        if start_token_id is not None and list(start_token_id) != [*np.ravel(self.start_token_id)]:
            raise ValueError(
                f"{self.path} begins its texts with the tokens {list(self.start_token_id)}, which "
                f"say language and task and are fixed in an exported file; received "
                f"{list(start_token_id)}. Leave them out, use model.keras, which takes any, or "
                "export a file for them."
            )
        if beam not in (None, self.beam):
            raise ValueError(
                f"{self.path} searches with a beam of {self.beam}, which is fixed in an exported "
                f"file; received {beam}. Leave it out, or use model.keras, which takes any."
            )
        inputs = ids if isinstance(ids, dict) else {"source_ids": ids}
        rows = len(next(iter(inputs.values())))
        return self.run(inputs)["generated_ids"].reshape(rows, -1)


def _make_sampler(known):
    if "temperature" in known:
        return generation.Sample(known["temperature"])
    if known["beam"] == 1:
        return "greedy"
    return generation.Beam(known["beam"], length_penalty=known.get("length_penalty", 0.0))


class OutOfTime(Exception):
    """There was no time to write all texts; its words say how many there are."""


def generate_texts(run, preprocessor, texts, beam=None, deadline=None):
    """Return the texts that a generator `run` gives for `texts`, in their order.

    Args:
        deadline: float, by `time.perf_counter`, after which `OutOfTime` is raised; or None.
    """
    ids = preprocessor.source_ids(texts)
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    written = {}
    for k in range(0, len(order), ROWS):
        if deadline is not None and time.perf_counter() > deadline:
            raise OutOfTime(f"{k:,} of {len(order):,} texts were written")
        chosen = order[k : k + ROWS]
        results = preprocessor.texts(run(preprocessor([texts[i] for i in chosen]), beam))
        written |= dict(zip(chosen, results, strict=True))
    return [written[i] for i in range(len(texts))]
