"""`ConditionalRandomField`: the best label sequence, where some labels cannot follow others."""

import functools
import typing

import keras
import numpy as np
from keras import ops

from keras_attention.blocks.outputs import IMPOSSIBLE
from keras_attention.core import checks, entity_tags, keras_internals
from keras_attention.core.part import OwnArguments
from keras_attention.core.recur import recur

FORBIDDEN = -1e4  # the score of a forbidden transition, which float16 can hold
LEAST = -1e-3  # what every label that is not chosen loses, so that the largest output is unique


class Potentials(typing.NamedTuple):
    """The terms of the score of a label sequence y, for T tokens and L labels.

        score(y) = starts(y_1) + Σ_t emissions_t(y_t) + Σ_t transitions(y_t-1, y_t) + ends(y_T)

    `emissions` is (B, T, L), `transitions` (L, L), `starts` and `ends` (L,), all float32. `mask`,
    bool (B, T) or None, is False for positions that the sequence leaves out, such as padding.
    """

    emissions: object
    transitions: object
    starts: object
    ends: object
    mask: object


def score_labels(potentials, labels=None):
    """Score each label as the next one of a sequence, given the label before.

    With y the sequence and m a message from the tokens after t, the logits of label j are:

        logits_t(j) = transitions(y_t-1, j) + emissions_t(j) + m_t(j)
        m_t(i) = reduce_j [transitions(i, j) + emissions_t+1(j) + m_t+1(j)],  m_T = ends

    If `labels` is given, it is y, and `reduce` is the log of the sum of exponentials (the forward
    algorithm, which begins at the last token). The softmax of the logits is then the probability
    p(y_t = j | y_1, ..., y_t-1, x). The product over t is the probability of the sequence.

    If `labels` is None, `reduce` is the maximum, and y_t is the label with the largest logit. Then
    y is the sequence with the largest score (the Viterbi algorithm).

    Args:
        potentials: `Potentials`.
        labels: int (B, T), or None to find the best sequence.

    Returns:
        Logits (B, T, L) and the sequence, int32 (B, T). Both are 0 where the mask is False.
    """
    emissions, transitions, starts, ends, mask = potentials
    reduce = ops.max if labels is None else ops.logsumexp

    def send(emission, states):
        (message,) = states
        scores = ops.expand_dims(emission + message, axis=1) + transitions  # (B, L, L)
        return message, [reduce(scores, axis=-1)]

    def choose(inputs, states):
        (scores, *label), (row,) = inputs, states
        logits = row + scores
        # `ops.argmax` of floats is exported to an operation that LiteRT lacks.
        label = label[0] if label else ops.cast(ops.top_k(logits, 1)[1], "int32")  # (B, 1)
        return (logits, label), [ops.take(transitions, label[:, 0], axis=0)]

    none = ops.zeros_like(emissions[:, 0])
    messages, _ = recur(send, emissions, [none + ends], mask, backwards=True)
    inputs = [emissions + messages]
    if labels is not None:
        inputs.append(ops.expand_dims(ops.cast(labels, "int32"), axis=2))
    (logits, path), _ = recur(choose, inputs, [none + starts], mask)
    return logits, path[:, :, 0]


@keras.saving.register_keras_serializable(package="keras_attention")
class ConditionalRandomField(OwnArguments, keras.layers.Layer):
    """Conditional random field (CRF): predicts the best sequence of labels, not each label alone.

    The layer learns a score for each pair of neighboring labels (Lafferty et al., 2001). It follows
    the layer that computes the logits of a tagger (Lample et al., 2016, section 2.2), and must be
    the last layer. The argmax of the output in each position gives the label sequence with the
    largest score. Train the model with the loss `ka.training.CRFLoss`, which needs the logits and
    the learned scores. It finds them as attributes of the output tensor.

    Args:
        labels: list of str, the tag of every class, in the order of the logits. Then the result
            never has a transition that the tag scheme forbids, such as `I-PER` after `O`. None
            allows all transitions.
        scheme: `"bio"`, `"iobes"` (or `"bioes"`), `"bilou"` or `"bmes"`. None finds it from the
            prefixes of `labels`.

    Call arguments:
        inputs: logits (B, T, L) of L labels.
        mask: bool (B, T), True = a token. Keras fills it from the implicit mask. Positions outside
            the mask are left out of the sequence.

    Returns (B, T, L). In each position the label of the best sequence has 0. Any other label has
    how much lower the total score would be if the labels before stayed, this label came next, and
    the rest was chosen again as well as possible. This difference is from -100 to -0.001. Outside
    the mask the first label is chosen. The computation is in float32.

    ```python
    import numpy as np
    import keras_attention as ka

    crf = ka.blocks.ConditionalRandomField(["O", "B-PER", "I-PER"])
    logits = np.array([[[2.0, 1.5, 0.0], [0.0, 0.0, 4.0], [1.0, 0.0, 0.0]]])
    assert np.argmax(logits, axis=-1).tolist() == [[0, 2, 0]]  # I-PER after O
    assert np.argmax(crf(logits), axis=-1).tolist() == [[1, 2, 0]]
    ```
    """

    own_arguments = ("labels", "scheme")
    weight_axes = {"transitions": ("rows", "features")}

    def __init__(self, labels=None, scheme=None, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.labels, self.scheme = None if labels is None else list(labels), scheme
        if labels is not None:
            self.scheme = self._check_labels()
        elif scheme is not None:
            raise ValueError(
                f"ConditionalRandomField(scheme={scheme!r}) has no labels: expected labels=, the "
                "tag of every class, in the order of the logits. Or leave out scheme=."
            )

    def _check_labels(self):
        """Return the scheme of the labels, or raise a ValueError that names a wrong label."""
        schemes = entity_tags.SCHEMES
        if self.scheme is not None:
            checks.check_choice(self, "scheme", schemes)
        scheme = self.scheme or entity_tags.find_scheme(self.labels) or "bio"
        marks = schemes[scheme]
        for tag in self.labels:
            if tag != "O" and not (tag[:1] in tuple(marks) and tag[1:2] in ("-", "")):
                raise ValueError(
                    f"ConditionalRandomField: the label {tag!r} is not in the scheme {scheme!r}: "
                    f"expected 'O', or {', '.join(marks)} and a type, such as '{marks[0]}-PER'. "
                    "Rename it, choose another scheme=, or leave out labels= to allow all "
                    "transitions."
                )
        for tag in self.labels:
            before = [each for each in ("O", *self.labels) if each != tag]
            if not any(entity_tags.may_follow(each, tag, scheme) for each in before):
                raise ValueError(
                    f"ConditionalRandomField: no label may come before {tag!r} in the scheme "
                    f"{scheme!r}: expected also 'B-{tag[2:]}' among the labels. Add it, or leave "
                    "out labels= to allow all transitions."
                )
        return scheme

    def build(self, input_shape):
        count = input_shape[-1]
        if self.labels is not None and len(self.labels) != count:
            raise ValueError(
                f"{self.name}: {len(self.labels)} labels for logits of {count} classes: expected "
                "one label for each class. Change labels=, or the layer that makes the logits."
            )
        self.transitions = self.add_weight(
            shape=(count, count), initializer="zeros", name="transitions"
        )
        self.starts = self.add_weight(shape=(count,), initializer="zeros", name="starts")
        self.ends = self.add_weight(shape=(count,), initializer="zeros", name="ends")

    def call(self, inputs, mask=None):
        potentials = self._read_potentials(inputs, mask)
        logits, path = score_labels(potentials)
        lost = ops.clip(logits - ops.max(logits, axis=-1, keepdims=True), IMPOSSIBLE, LEAST)
        chosen = ops.expand_dims(path, axis=2) == ops.arange(inputs.shape[-1], dtype="int32")
        outputs = ops.cast(ops.where(chosen, 0.0, lost), self.compute_dtype)
        keras_internals.attach(outputs, "potentials", potentials)
        return outputs

    def _read_potentials(self, inputs, mask):
        weights = (ops.cast(w, "float32") for w in (self.transitions, self.starts, self.ends))
        if self.labels is not None:
            weights = (
                ops.where(allowed, weight, FORBIDDEN)
                for allowed, weight in zip(self._find_allowed(), weights, strict=True)
            )
        return Potentials(ops.cast(inputs, "float32"), *weights, mask)

    def _find_allowed(self):
        """Return which transitions, first and last labels are allowed: bool (L, L), (L,), (L,)."""
        may_follow = functools.partial(entity_tags.may_follow, scheme=self.scheme)
        pairs = [[may_follow(tag, following) for following in self.labels] for tag in self.labels]
        starts = [may_follow("O", tag) for tag in self.labels]
        ends = [may_follow(tag, "O") for tag in self.labels]
        return tuple(np.array(each) for each in (pairs, starts, ends))

    def log_likelihood(self, inputs, labels, mask=None):
        """Return the log of the probability of a label sequence for each row, float32 (B,).

        Args:
            inputs: logits (B, T, L) of L labels, as in the call of the layer.
            labels: int (B, T).
            mask: bool (B, T), True = a token. None if all are tokens.
        """
        logits, _ = score_labels(self._read_potentials(inputs, mask), labels)
        index = ops.expand_dims(ops.cast(labels, "int32"), axis=2)
        logs = ops.take_along_axis(ops.log_softmax(logits, axis=-1), index, axis=2)[:, :, 0]
        return ops.sum(logs if mask is None else ops.where(mask, logs, 0.0), axis=1)

    def compute_output_shape(self, input_shape):
        return input_shape
