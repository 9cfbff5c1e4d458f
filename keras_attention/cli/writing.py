"""Models that write, as functions of ids, whatever the format of their file."""

from keras_attention import generation
from keras_attention.cli import runners
from keras_attention.export import files, keras_file

ROWS = 32  # sources at a time


def options(manifest):
    """Keywords for the export of a model, by what its manifest says: none if it does not write."""
    known = manifest.get("writing")
    if known is None:
        return {}
    lengths_and_ids = ("max_length", "max_new_tokens", "begin_id", "end_id")
    return {"generate": _sampler(known)} | {k: known[k] for k in lengths_and_ids if k in known}


def load(path, manifest):
    """A function that runs the file: source ids (B, S), padded, to ids (B, N), the best found."""
    known = manifest["writing"]
    if files.kind(path) != "keras":
        run = runners.load(path, "generate" if known["beam"] == 1 else "beam")
        return lambda ids: run({"source_ids": ids})["generated_ids"].reshape(len(ids), -1)
    model = keras_file.load(path)
    given = options(manifest)
    sampler = given.pop("generate")
    return lambda ids: generation.generate(model, ids, sampler=sampler, **given)


def _sampler(known):
    if "temperature" in known:
        return generation.Sample(known["temperature"])
    return "greedy" if known["beam"] == 1 else generation.Beam(known["beam"])


def write(run, preprocessor, texts):
    """What `run`, of `load`, writes for each of `texts`. Those of like length go together."""
    ids = preprocessor.source_ids(texts)
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    written = {}
    for k in range(0, len(order), ROWS):
        chosen = order[k : k + ROWS]
        results = preprocessor.texts(run(preprocessor([texts[i] for i in chosen])))
        written |= dict(zip(chosen, results, strict=True))
    return [written[i] for i in range(len(texts))]
