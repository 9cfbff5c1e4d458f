"""Models of every file format as functions, and checks that they match files in their folder."""

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

ROWS = 64  # examples per batch


def load_runner(path, name=None):
    """Load a signature (a named function in a model file) as a `PaddedRunner`.

    If the file has fixed shapes, the function pads smaller inputs.

    Args:
        path: path of a Keras, LiteRT or SavedModel file.
        name: str, the name of the signature. None selects the first signature.
    """
    run = export.load(path, name)
    inspection = export.inspect(path)
    signature = next(one for one in inspection.signatures if name in (None, one.name))
    shapes = {tensor.name: tensor.shape for tensor in signature.inputs}
    return PaddedRunner(run, shapes, inspection)


def wrap_model(model, path=None):
    """Return a `PaddedRunner` that runs a Keras model in memory.

    `path` is the file that the model was loaded from, which is inspected, or None.
    """
    run = Keras(path or model.name, model=model)
    return PaddedRunner(run, run.shapes, path and inspect_model(model, path))


class PaddedRunner:
    """A function that runs a model, pads inputs to fixed shapes, and crops the outputs.

    `run` is the function that runs the model. A batch that is larger than the model accepts is
    split.

    Attributes:
        shapes: dict from the name of an input to its shape, with None for a dynamic axis.
        inspection: `Inspection`, the inputs and outputs of the file, or None for a model in memory.
        padding_id: int, the padding value for `"token_ids"` and `"source_ids"`. Other inputs are
            padded with zeros.
    """

    padding_id = 0

    def __init__(self, run, shapes, inspection=None):
        self.run, self.shapes, self.inputs, self.inspection = run, shapes, run.inputs, inspection

    def __call__(self, inputs):
        inputs = {name: np.asarray(array) for name, array in inputs.items()}
        first = next(iter(inputs.values()))
        rows, length = first.shape[:2]
        step = next(iter(self.shapes.values()))[0] or rows
        parts = []
        for start in range(0, rows, step):
            part = {
                name: self._fit(name, array[start : start + step]) for name, array in inputs.items()
            }
            count = min(step, rows - start)
            parts.append({name: out[:count] for name, out in self.run(part).items()})
        joined = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
        if first.dtype.kind != "i":
            return joined
        return {name: out[:, :length] if out.ndim > 2 else out for name, out in joined.items()}

    def _fit(self, name, array):
        """Pad `array` to the shape of the input `name`. Raise a ValueError if it is larger."""
        missing = []
        for axis, limit in enumerate(self.shapes[name]):
            size = array.shape[axis]
            if limit is not None and size > limit:
                raise ValueError(
                    f"{self.run.path} takes {name} of at most {limit} along axis {axis}, and this "
                    f"one has {size}. Split it, or export again with a larger sequence_length=."
                )
            missing.append((0, 0 if limit is None else limit - size))
        padding = self.padding_id if name in ("token_ids", "source_ids") else 0
        return np.pad(array, missing, constant_values=padding)


def softmax(logits):
    """Convert logits to probabilities of the same shape, with a softmax over the last axis."""
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def compute_logits(run, inputs):
    """Run a model on a batch, and return the model's first output, an array.

    `run` is a `PaddedRunner`. `inputs` is a dict of arrays, or an array for a model with one input.
    """
    inputs = inputs if isinstance(inputs, dict) else {next(iter(run.inputs)): inputs}
    return next(iter(run(inputs).values()))


def compute_each(run, preprocessor, examples, lengths):
    """Run a model on a list of examples, and return a list with the logits of each.

    Examples of similar length share a batch.

    Args:
        run: `PaddedRunner`.
        preprocessor: function that converts a list of examples to inputs.
        examples: list of examples.
        lengths: list of int, the number of tokens of each example.
    """
    return map_batches(
        lambda batch: compute_logits(run, preprocessor(batch)), examples, lengths, ROWS
    )


def map_batches(function, examples, lengths, rows):
    """Apply a function to batches of examples of similar length.

    Args:
        function: function that accepts a list of examples, and returns a sequence with a result for
            each.
        examples: list of examples.
        lengths: list of int, the length of each example.
        rows: int, the maximum number of examples in a batch.

    Returns:
        A list of results, in the order of `examples`.
    """
    order, results = np.argsort(lengths, kind="stable"), [None] * len(examples)
    for k in range(0, len(order), rows):
        chosen = order[k : k + rows]
        for i, result in zip(chosen, function([examples[i] for i in chosen]), strict=True):
            results[i] = result
    return results


def score_batches(run, batches, metrics):
    """Evaluate metrics on batches, and return {metric name: score}.

    Args:
        run: `PaddedRunner`.
        batches: `tf.data.Dataset` of (inputs, labels). If it is None, the result is {}.
        metrics: list of functions that make Keras metrics of labels and logits.
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
    """Check that the sizes of a model match other files in its folder, such as vocabularies.

    Args:
        path: pathlib.Path of the model file.
        sizes: list of tuples (name of the other file, unit, size in this file, size in the model).
            If the size in the model is None, it is not checked.

    Raises:
        ValueError: two sizes differ.
    """
    for name, unit, size, model_size in sizes:
        if model_size is not None and size != model_size:
            raise ValueError(
                f"{path.parent / name} has {size} {unit}, and {path.name} beside it was made with "
                f"{model_size}: they belong to different models, or are damaged. Put the right "
                "files together."
            )


def check_spelling(path, inspection, preprocessor, labels=None):
    """Raise a ValueError if a model has other numbers of words or characters than its preprocessor.

    `inspection` describes the model file `path`. `labels` is the expected number of classes, or
    None to skip this check.
    """
    characters = preprocessor.characters
    spelling = {} if characters is None else {"character_ids": len(characters)}
    check_input_sizes(
        inspection,
        labels=labels,
        vocabularies={"token_ids": preprocessor.vocabulary_size, **spelling},
        lengths={name: preprocessor.word_length for name in spelling},
    )
    inputs = {tensor.name for signature in inspection.signatures for tensor in signature.inputs}
    if (characters is not None) != ("character_ids" in inputs):
        has = "character inputs" if "character_ids" in inputs else "no character inputs"
        raise ValueError(
            f"{path.parent / MANIFEST}: preprocessing.characters does not belong to {path.name} "
            f"beside it, which has {has}. Put the right files together."
        )


def check_labels(folder, manifest, labels):
    """Raise a ValueError if `labels`, from `labels.txt`, differ from those in `manifest.json`.

    `labels` is a `Labels`, `folder` the path of both files, and `manifest` the content of
    `manifest.json`, a dict.
    """
    if list(labels.names) != manifest["labels"]:
        raise ValueError(
            f"{folder / 'labels.txt'} and {folder / MANIFEST} name different labels: they belong "
            "to different models, or are damaged. Put the right files together."
        )


def check_vocabularies(path, classes, limits):
    """Raise a ValueError if a model file has other numbers of tokens than the files next to it.

    A model from a checkpoint is not checked, because it may have more ids than its tokenizer.

    Args:
        path: pathlib.Path of the model file.
        classes: int, the number of tokens that the model can generate. None skips this check.
        limits: dict from the name of an input to its number of ids.
    """
    entry = read_manifest(path.parent).get(PREPROCESSING)
    if isinstance(entry, dict) and "tokenizer" in entry:
        return
    config = read_preprocessing(path.parent, "generator")
    preprocessor = SequencePreprocessor.load(path.parent)
    sizes = [(config.object("target").text("file"), "tokens", len(preprocessor.target), classes)]
    if preprocessor.source is not None:
        name = config.object("source").text("file")
        sizes += [(name, "tokens", len(preprocessor.source), limits.get("source_ids"))]
    check_sizes(path, sizes)
