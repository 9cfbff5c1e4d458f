"""`Explanation`: how much each part of an input raised the outputs of a task's model."""

import typing

import numpy as np

from keras_attention.core.lazy import blocks, keras, visualization

ROWS = 16  # number of outputs whose gradients are computed in one batch


class Explanation(typing.NamedTuple):
    """How much each token of an input raised the outputs of a model. `Task.explain` returns it.

    Attributes:
        tokens: list of S str, the tokens of the input, or None for the patches of an image.
        outputs: list of O str, the explained outputs.
        relevance: float array (O, S), the relevance of each token for each output, in shares that
            sum to 1. A row is 0 if no attention raised its output.
        weights: dict from the path of each attention layer to its weights (1, N, T, S).
    """

    tokens: list | None
    outputs: list
    relevance: np.ndarray
    weights: dict

    def __repr__(self):
        shape = self.relevance.shape
        return f"Explanation(outputs={self.outputs}, tokens={self.tokens}, relevance={shape})"


class Choice(typing.NamedTuple):
    """One number among the outputs of a model, such as the logit of a label, to be explained.

    Attributes:
        name: str, the name of the output, such as a label.
        index: tuple of int, the index of this number in the model's outputs for one example.
        rows: int or slice, the positions in the last layer that determine this number.
    """

    name: str
    index: tuple
    rows: int | slice


class RecordedExample(typing.NamedTuple):
    """An input of a model, with the outputs and the attention weights for this input.

    Attributes:
        model: the `keras.Model` that ran.
        inputs: the inputs of the model for one example, an array or a dict of arrays.
        logits: array (1, ...), the outputs of the model.
        maps: dict from the path of each attention layer to its weights (1, N, T, S).
        tokens: list of str, the tokens of the input, or None if it is an image.
        outputs: list of str, the tokens after the last layer with their predictions, or None.
        image: array (H, W, C), the input if it is an image, or None.
        choices: list of `Choice`, the outputs that can be explained.
        predicted: int, the index in `choices` of the prediction, or None if all choices are
            predictions.
    """

    model: object
    inputs: object
    logits: np.ndarray
    maps: dict
    tokens: list | None = None
    outputs: list | None = None
    image: np.ndarray | None = None
    choices: list | None = None
    predicted: int | None = None

    @classmethod
    def run(cls, model, inputs):
        """Run a model on one example, record its attention weights, and return a `RecordedExample`.

        `inputs` are the inputs of the model for one example. Raise a ValueError if the model has no
        attention weights.
        """
        with visualization.record_attention(model) as maps:
            logits = np.asarray(model(inputs))
        if not maps:
            raise ValueError(
                f"The model {model.name} has no attention weights to show. Build a model with"
                " attention layers, such as a Transformer."
            )
        return cls(model, inputs, logits, dict(maps))

    def with_labels(self, names, **fields):
        """Return a copy for a classifier, with a `Choice` for each label.

        `names` are the labels, a list of str. `fields` are new values of other fields, such as
        `tokens`.
        """
        rows = _find_pooled_rows(self.model)
        choices = [Choice(name, (k,), rows) for k, name in enumerate(names)]
        best = int(np.argmax(self.logits[0]))
        return self._replace(choices=choices, predicted=best, **fields)


def explain(task, example, target, path):
    """Explain the prediction of a `Task` for one example, and return an `Explanation`.

    `example`, `target` and `path` are the arguments of `Task.explain`.
    """
    recorded = task.record_example(example)
    chosen = _choose(recorded, target)
    relevance = score_inputs(recorded, chosen)
    names = [choice.name for choice in chosen]
    visualization.attention_page(
        recorded.maps,
        recorded.tokens,
        recorded.outputs,
        image=recorded.image,
        relevance=list(zip(names, relevance, strict=True)),
        title=f"Why “{names[0]}”?" if len(names) == 1 else "Why these outputs?",
        path=path,
    )
    return Explanation(recorded.tokens, names, relevance, recorded.maps)


def _choose(recorded, target):
    """Return a list of the `Choice`s that `target`, the argument of `Task.explain`, names."""
    choices, names = recorded.choices, [choice.name for choice in recorded.choices]
    if target is None:
        return choices if recorded.predicted is None else [choices[recorded.predicted]]
    if target in names:
        return [choices[names.index(target)]]
    if str(target).isdecimal() and int(target) < len(choices):
        return [choices[int(target)]]
    raise ValueError(
        f"explain(target={target!r}): there is no such output. Expected a number from 0 to "
        f"{len(choices) - 1}, or one of {', '.join(names[:10])}{', ...' * (len(names) > 10)}."
    )


def score_inputs(recorded, chosen):
    """Compute how much each input raised each of O outputs: a float array (O, S).

    A row has the shares of the S inputs (tokens or patches) in one output, which sum to 1.
    `recorded` is a `RecordedExample`, an input with its attention weights. `chosen` is a list of
    the O outputs, each a `Choice` from `recorded.choices`.
    """
    rows = []
    for k in range(0, len(chosen), ROWS):
        part = chosen[k : k + ROWS]
        scores = visualization.relevance(*_repeat(recorded, part))
        if scores.shape[1] == scores.shape[2]:  # each position begins with 1 of itself
            scores = scores - np.eye(scores.shape[1])
        for matrix, choice in zip(scores, part, strict=True):
            rows.append(np.atleast_2d(matrix[choice.rows]).mean(axis=0))
    count = None if recorded.tokens is None else len(recorded.tokens)
    scores = np.stack(rows)[:, :count]
    total = scores.sum(axis=1, keepdims=True)
    return scores / np.where(total > 0, total, 1)


def _repeat(recorded, chosen):
    """Return arguments of `relevance` for one example for each of the outputs `chosen`."""
    count = len(chosen)
    inputs = keras.tree.map_structure(lambda x: np.repeat(x, count, axis=0), recorded.inputs)
    places = [[np.ravel_multi_index(each.index, recorded.logits.shape[1:])] for each in chosen]

    def score(outputs):
        flat = keras.ops.reshape(outputs, (count, -1))
        return keras.ops.take_along_axis(flat, np.array(places), axis=1)[:, 0]

    return recorded.model, inputs, score


def _find_pooled_rows(model):
    """Return the positions that the pooling of a classifier reads, an int or a slice."""
    for layer in model.layers:
        if isinstance(layer, blocks.Pooling) and layer.mode in ("cls", "last"):
            return 0 if layer.mode == "cls" else -1
        if isinstance(layer, blocks.Pooling) and layer.mode in ("mean", "max", "root_sum"):
            return slice(layer.num_prefix_tokens, None)
    return slice(None)
