"""Model files that generate, as functions of ids, whatever their format."""

import numpy as np

from keras_attention import export, generation
from keras_attention.cli import model_files
from keras_attention.cli.model_files import check_vocabularies
from keras_attention.data import manifest
from keras_attention.data.fields import MOST_TOKENS, Fields
from keras_attention.data.manifest import check_unchanged
from keras_attention.export import runner
from keras_attention.export.generation.step_reader import StepReader
from keras_attention.export.inspection import find_id_limits
from keras_attention.generation.inputs import draw_uniform
from keras_attention.generation.samplers.base import IMPOSSIBLE

ROWS = 32  # sources at a time


def get_generation_options(manifest):
    """Keywords for the export of a model, from its manifest; none if it does not generate."""
    known = manifest.get("writing")
    if known is None:
        return {}
    lengths_and_ids = ("max_length", "max_new_tokens", "start_token_id", "end_token_id")
    return {"generate": _sampler(known)} | {k: known[k] for k in lengths_and_ids if k in known}


def load_generator(path, manifest):
    """A function that runs the file: source ids (B, S), padded, to ids (B, N), the best found."""
    known = manifest["writing"]
    if runner.find_format(path) != "keras":
        run = model_files.load_runner(path, "generate" if known["beam"] == 1 else "beam")
        check_vocabularies(path, _classes(run.inspection), run.inspection.id_limits)
        return lambda ids: run({"source_ids": ids})["generated_ids"].reshape(len(ids), -1)
    check_unchanged(path)
    model = runner.load_keras_model(path)
    check_vocabularies(path, model.output_shape[-1], find_id_limits(model))
    given = get_generation_options(manifest)
    sampler = given.pop("generate")
    return lambda ids: generation.generate(model, ids, sampler=sampler, **given)


def _classes(inspection):
    """How many tokens an exported file knows, or None."""
    steps = [found for found in inspection.signatures if found.name == "step"]
    outputs = [tensor for step in steps for tensor in step.outputs if tensor.name == "logits"]
    return next((tensor.shape[-1] for tensor in outputs), None)


def _sampler(known):
    if "temperature" in known:
        return generation.Sample(known["temperature"])
    return "greedy" if known["beam"] == 1 else generation.Beam(known["beam"])


def generate_texts(run, preprocessor, texts):
    """The texts that `run`, of `load_generator`, generates for `texts`, in their order."""
    ids = preprocessor.source_ids(texts)
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    written = {}
    for k in range(0, len(order), ROWS):
        chosen = order[k : k + ROWS]
        results = preprocessor.texts(run(preprocessor([texts[i] for i in chosen])))
        written |= dict(zip(chosen, results, strict=True))
    return [written[i] for i in range(len(texts))]


def load_language_model(path):
    """The model in a `.keras` file, or the signature `step` of one that was exported."""
    return (
        KerasLanguageModel(path)
        if runner.find_format(path) == "keras"
        else ExportedLanguageModel(path)
    )


class KerasLanguageModel:
    """A Keras model.

    Attributes:
        max_length: None, there is room for texts of any length.
        classes: int, the tokens that it knows.
    """

    max_length = None

    def __init__(self, path):
        manifest.check_unchanged(path)
        self.model = runner.load_keras_model(path)
        self.classes = self.model.output_shape[-1]

    def logits(self, ids):
        """Ids (B, T) -> logits (B, T, V), an array."""
        return np.asarray(self.model.predict_on_batch(ids))

    def stream(self, ids, number, sampler, *, end_token_id=None, seed=None):
        """Yields the ids, ints, that follow `ids` (T,): `number` of them, or up to END."""
        options = {"end_token_id": end_token_id, "seed": seed}
        for (token,) in generation.stream(self.model, [ids], number, sampler, **options):
            yield int(token)


class ExportedLanguageModel:
    """A SavedModel or LiteRT file that takes new tokens, and keeps keys and values in a cache.

    With the same seed it draws what `KerasLanguageModel` draws.

    Attributes:
        max_length: int, how many tokens there is room for.
        classes: int, the tokens that it knows.
    """

    def __init__(self, path):
        self.reader = StepReader(path)
        step = next(s for s in export.inspect(path).signatures if s.name == "step")
        self.classes = next(tensor.shape[-1] for tensor in step.outputs if tensor.name == "logits")
        said = Fields(path.parent / manifest.MANIFEST, manifest.read_manifest(path.parent))
        known = said.object("files").object(path.name).object("generation")
        self.max_length = known.whole("max_length", most=MOST_TOKENS)

    def logits(self, ids):
        parts = [ids[rows] for rows in self.reader.split_rows(len(ids))]
        read = (self.reader.read(part, 0, self.reader.start(len(part))) for part in parts)
        return np.concatenate([logits for logits, _ in read])

    def stream(self, ids, number, sampler, *, end_token_id=None, seed=None):
        uniform = draw_uniform(seed, sampler, (number, 1))[0]
        tokens, index, cache = ids.reshape(1, -1), 0, self.reader.start(1)
        for numbers in uniform:
            logits, cache = self.reader.read(tokens, index, cache)
            index += tokens.shape[1]
            last = logits[:, -1]
            last[:, 0] = IMPOSSIBLE  # padding is never chosen
            tokens = np.asarray(sampler.choose(last, numbers)).reshape(1, 1)
            yield int(tokens[0, 0])
            if tokens[0, 0] == end_token_id:
                return
