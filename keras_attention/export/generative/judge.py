"""Whether generated sequences are right, by the model itself on the whole of them.

Where two tokens are nearly equally probable, two runtimes may choose differently and go on from
there; both are right. So what is asked of each token is how good it is after those before it.
"""

import dataclasses

import numpy as np
from keras import ops

from keras_attention.export.errors import ExportError
from keras_attention.export.generative import endpoints, whole


@dataclasses.dataclass(frozen=True)
class Judge:
    """Tells of outputs of `generate` or `beam` how far they are from the model's own choices.

    Args:
        decoder, settings: whose they are.
        name: `"generate"` or `"beam"`.
        inputs: dict of arrays that they were made from.
    """

    decoder: object
    settings: object
    name: str
    inputs: dict

    def __call__(self, outputs):
        """dict, output -> (error, agreement).

        The error of a greedy token is how far its logit is below the best one, in units of the
        largest logit (at least 1); of one that was drawn, how far chance is from its share of the
        probabilities; of a sequence of a beam, how far its total is from the model's, in units of
        that (at least 1).
        """
        ids = self._checked(np.asarray(outputs["generated_ids"]))
        if self.name == "beam":
            return {"scores": (self._beam_error(ids, np.asarray(outputs["scores"])), None)}
        logits = self._logits(ids)
        if 0 not in self.settings.end_ids:
            logits[:, :, 0] = -np.inf  # padding is never chosen
        counted = np.arange(ids.shape[1]) < _lengths(ids)[:, None]
        if endpoints.draws(self.rules):
            errors, same = self._drawn(ids, logits)
        else:
            errors, same = _regret(ids, logits), logits.argmax(-1) == ids
        return {"generated_ids": (float(errors[counted].max()), float(same[counted].mean()))}

    @property
    def rules(self):
        return self.settings.rules[self.name]

    def _checked(self, ids):
        """`ids`, if they are tokens up to an END or the limit, and padding behind it."""
        rows = len(next(iter(self.inputs.values())))
        wide = (self.rules.sampler.num_return_sequences,) if self.name == "beam" else ()
        expected = (rows, *wide, self.settings.max_new_tokens)
        if ids.shape != expected:
            raise ExportError(f"{self.name} gives ids of shape {ids.shape}, not {expected}.")
        for row in ids.reshape(-1, ids.shape[-1]):
            length = _lengths(row)
            ended = np.isin(row[:length], self.settings.end_ids)
            if (
                row[length:].any()
                or ended[:-1].any()
                or not (length == len(row) or ended[-1:].any())
            ):
                raise ExportError(f"{self.name} gives a row that neither ends nor is full: {row}.")
        return ids

    def _logits(self, ids):
        """The model's logits for ids (B, N): (B, N, V)."""
        if not self.decoder.has_source:
            return self._continued(ids)
        begin = np.full((len(ids), 1), self.settings.begin_id)
        tokens = np.concatenate([begin, ids[:, :-1]], axis=1)
        return whole.logits(self.decoder, tokens.astype("int32"), self.inputs)

    def _continued(self, ids):
        """As `_logits`, after prompts, which are moved to where whole sequences begin."""
        prompts = [row[np.flatnonzero(row)[0] :] for row in self.inputs[endpoints.TOKENS]]
        longest = max(map(len, prompts)) + ids.shape[1]
        tokens = np.zeros((len(ids), longest), "int32")
        for row, prompt, new in zip(tokens, prompts, ids, strict=True):
            row[: len(prompt)], row[len(prompt) : len(prompt) + len(new)] = prompt, new
        logits = whole.logits(self.decoder, tokens[:, :-1])
        first = [len(prompt) - 1 for prompt in prompts]
        return np.stack([x[i : i + ids.shape[1]] for i, x in zip(first, logits, strict=True)])

    def _drawn(self, ids, logits):
        flat = np.where(np.isfinite(logits), logits, -1e9).reshape(-1, logits.shape[-1])
        weights = np.asarray(self.rules.sampler.probabilities(flat)).reshape(logits.shape)
        above = np.cumsum(weights, axis=-1)
        uniform = self.inputs[endpoints.UNIFORM] * above[:, :, -1]
        upper = np.take_along_axis(above, ids[:, :, None], axis=-1)[:, :, 0]
        lower = upper - np.take_along_axis(weights, ids[:, :, None], axis=-1)[:, :, 0]
        errors = np.maximum(np.maximum(lower - uniform, uniform - upper), 0.0)
        return errors, errors == 0.0

    def _beam_error(self, ids, scores):
        error = 0.0
        for k in range(ids.shape[1]):
            chosen = ids[:, k]
            log_p = np.asarray(ops.log_softmax(self._logits(chosen), axis=-1))
            each = np.take_along_axis(log_p, chosen[:, :, None], axis=-1)[:, :, 0]
            length = _lengths(chosen)
            total = np.where(np.arange(chosen.shape[1]) < length[:, None], each, 0.0).sum(axis=1)
            own = total / np.asarray(self.rules.sampler.divisor(length.astype("float32")))
            found = np.isfinite(scores[:, k])  # fewer sequences may exist than were asked for
            apart = np.abs(own - scores[:, k]) / np.maximum(1.0, np.abs(own))
            error = max(error, float(apart[found].max(initial=0.0)))
        if (np.diff(scores, axis=1) > 0).any():
            raise ExportError(f"beam gives sequences that are not the best first: {scores}.")
        return error


def _lengths(ids):
    """How many tokens rows (..., N) have before the padding behind them."""
    return (np.cumsum(ids[..., ::-1] != 0, axis=-1) > 0).sum(axis=-1)


def _regret(ids, logits):
    finite = np.where(np.isfinite(logits), logits, 0.0)
    chosen = np.take_along_axis(logits, ids[:, :, None], axis=-1)[:, :, 0]
    return (logits.max(-1) - chosen) / np.maximum(1.0, np.abs(finite).max())
