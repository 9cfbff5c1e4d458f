"""Model files of every format as functions: loaded, scored, and checked against their sidecars."""

import numpy as np

from keras_attention import export
from keras_attention.data import SequencePreprocessor
from keras_attention.export.checks.runner import Keras
from keras_attention.export.inspection import check_sizes as check_input_sizes
from keras_attention.export.inspection import inspect_model
from keras_attention.files.manifest import (
    MANIFEST,
    PREPROCESSING,
    read_manifest,
    read_preprocessing,
)

ROWS = 64  # texts that are computed at a time


def load_runner(path, name=None):
    """Like `ka.export.load`, and files with a fixed batch or length take any that fits, too.

    Args:
        name: str, of the signature; None for the first.
    """
    run = export.load(path, name)
    inspection = export.inspect(path)
    signature = next(found for found in inspection.signatures if name in (None, found.name))
    shapes = {tensor.name: tensor.shape for tensor in signature.inputs}
    return PaddedRunner(run, shapes, inspection)


def wrap_model(model, path=None):
    """Return a Keras model in memory as `load_runner` gives a file.

    Args:
        path: the file that it was loaded from, or None.
    """
    run = Keras(path or model.name, model=model)
    return PaddedRunner(run, run.shapes, path and inspect_model(model, path))


class PaddedRunner:
    """A runner that pads inputs to the file's fixed shapes, and cuts the outputs back.

    Attributes:
        shapes: dict, input -> its shape; None for an axis that is free.
        inspection: of the file, or None.
        padding_id: int, what is put behind `"token_ids"` and `"source_ids"`; other inputs get
            zeros.
    """

    padding_id = 0

    def __init__(self, run, shapes, inspection=None):
        self.run, self.shapes, self.inputs, self.inspection = run, shapes, run.inputs, inspection

    def __call__(self, inputs):
        inputs = {name: np.asarray(array) for name, array in inputs.items()}
        first = next(iter(inputs.values()))
        rows, length = first.shape[:2]
        step = self._batch or rows
        parts = []
        for start in range(0, rows, step):
            part = {
                name: self._fit(name, array[start : start + step]) for name, array in inputs.items()
            }
            kept = min(step, rows - start)
            parts.append({name: out[:kept] for name, out in self.run(part).items()})
        joined = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
        if first.dtype.kind != "i":
            return joined
        return {name: out[:, :length] if out.ndim > 2 else out for name, out in joined.items()}

    @property
    def _batch(self):
        return next(iter(self.shapes.values()))[0]

    def _fit(self, name, array):
        """`array` with padding behind it where the file wants more."""
        missing = []
        for axis, wanted in enumerate(self.shapes[name]):
            size = array.shape[axis]
            if wanted is not None and size > wanted:
                raise ValueError(
                    f"{self.run.path} takes {name} of at most {wanted} along axis {axis}; this "
                    f"one has {size}. Split it, or export again with a larger sequence_length=."
                )
            missing.append((0, 0 if wanted is None else wanted - size))
        padding = self.padding_id if name in ("token_ids", "source_ids") else 0
        return np.pad(array, missing, constant_values=padding)


def softmax(logits):
    """Probabilities (..., L) of logits (..., L)."""
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def compute_logits(run, inputs):
    """Return the first output of `run` for a dict of arrays, or the only array it takes."""
    inputs = inputs if isinstance(inputs, dict) else {next(iter(run.inputs)): inputs}
    return next(iter(run(inputs).values()))


def compute_each(run, preprocessor, examples, lengths):
    """Compute the logits of each example, as a list. Examples of similar length share a batch.

    Args:
        run: function of `load_runner`: dict of arrays -> dict of arrays.
        preprocessor: function of a list of examples, which gives the inputs of the model.
        examples: list.
        lengths: list of int, how many tokens each has.
    """
    return map_batches(
        lambda batch: compute_logits(run, preprocessor(batch)), examples, lengths, ROWS
    )


def map_batches(function, examples, lengths, rows):
    """Return the results of a function of lists of examples, in the order of the examples.

    Args:
        function: gives one result for each example of a list.
        examples: list.
        lengths: list of int, of each example: those of similar length share a call.
        rows: int, how many examples share a call at most.
    """
    order, results = np.argsort(lengths, kind="stable"), [None] * len(examples)
    for k in range(0, len(order), rows):
        chosen = order[k : k + rows]
        for i, result in zip(chosen, function([examples[i] for i in chosen]), strict=True):
            results[i] = result
    return results


def score_batches(run, batches, metrics):
    """Runs every batch and returns {metric name: score}, which is empty without batches.

    Args:
        run: function of `load_runner`: dict of arrays -> dict of arrays.
        batches: tf.data.Dataset of (inputs, labels), or None; inputs are a dict, or one array.
        metrics: functions that make Keras metrics of labels and logits.
    """
    if batches is None:
        return {}
    made = [make() for make in metrics]
    for inputs, labels in batches.as_numpy_iterator():
        logits = compute_logits(run, inputs)
        for metric in made:
            metric.update_state(labels, logits)
    return {metric.name: round(float(metric.result()), 6) for metric in made}


def check_sizes(path, sizes):
    """Refuses files beside a model that are of another one: predictions would be of other things.

    Args:
        path: the model file.
        sizes: (name of the file beside it, what it has, how many, how many the model has); a
            number of the model that is None is not known.
    """
    for name, what, there, wanted in sizes:
        if wanted is not None and there != wanted:
            raise ValueError(
                f"{path.parent / name} has {there} {what}, and {path.name} beside it was made with "
                f"{wanted}: they are of different models, or damaged. Put the right files together."
            )


def check_spelling(path, found, preprocessor, labels=None):
    """Refuses a file of other words or characters than those of the preprocessor beside it.

    Args:
        path: the model file.
        found: what `ka.export.inspect` finds in it.
        preprocessor: one with `characters`, which may be None.
        labels: int, how many classes there should be, or None.
    """
    characters = preprocessor.characters
    spelling = {} if characters is None else {"character_ids": len(characters)}
    check_input_sizes(
        found,
        labels=labels,
        vocabularies={"token_ids": preprocessor.vocabulary_size, **spelling},
        lengths={name: preprocessor.word_length for name in spelling},
    )
    inputs = {tensor.name for signature in found.signatures for tensor in signature.inputs}
    if (characters is not None) != ("character_ids" in inputs):
        sees = "spelling" if "character_ids" in inputs else "no spelling"
        raise ValueError(
            f"{path.parent / MANIFEST}: preprocessing.characters is not of {path.name} beside it, "
            f"which sees {sees}. Put the right files together."
        )


def check_labels(folder, manifest, labels):
    """Refuses labels in a file that are not those in the manifest beside it."""
    if list(labels.names) != manifest["labels"]:
        raise ValueError(
            f"{folder / 'labels.txt'} and {folder / MANIFEST} name different "
            "labels: they are of different models, or damaged. Put the right files together."
        )


def check_vocabularies(path, classes, limits):
    """Refuses a vocabulary that has not as many tokens as the model in `path`.

    Args:
        path: the model file. One that began as a checkpoint may have room for more ids than its
            tokenizer gives.
        classes: int, how many tokens the model writes, or None.
        limits: dict, name of an input -> how many ids it knows, where that is known.
    """
    said = read_manifest(path.parent).get(PREPROCESSING)
    if isinstance(said, dict) and "tokenizer" in said:
        return
    config = read_preprocessing(path.parent, "generator")
    preprocessor = SequencePreprocessor.load(path.parent)
    sizes = [(config.object("target").text("file"), "tokens", len(preprocessor.target), classes)]
    if preprocessor.source is not None:
        name = config.object("source").text("file")
        sizes += [(name, "tokens", len(preprocessor.source), limits.get("source_ids"))]
    check_sizes(path, sizes)
