"""The model itself on whole sequences, without a cache: what every way of decoding must equal.

Where two tokens are nearly equally probable, two runtimes may choose differently and go on from
there; both are right. So each generated token is scored after those before it.
"""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_attention.export.endpoint import list_input_names, pack_inputs
from keras_attention.export.errors import ExportError
from keras_attention.export.generation.endpoints import UNIFORM, draws_tokens
from keras_attention.export.generation.step_reader import START, TOKENS
from keras_attention.generation.token_history import TokenHistory


def compute_logits(decoder, tokens, source=None):
    """Return the logits (B, T, V), an array, of ids (B, T) that are padded on the right, if at all.

    Args:
        source: dict of arrays, the encoder's inputs; None for a language model.
    """
    # Inputs of the encoder by name, and the ids as the one that is left.
    by_name = {name: (source or {}).get(name, tokens) for name in list_input_names(decoder.model)}
    with keras.device("cpu:0"):
        given = decoder.model(pack_inputs(decoder.model, by_name), training=False)
    if isinstance(given, dict):  # beside logits for training
        given = given["logits"]
    return np.array(keras.tree.flatten(given)[0], "float32")


def split_batch(decoder, batch):
    """A batch for the model as its target ids and the encoder's inputs (None without one)."""
    if not decoder.has_source:
        return next(iter(batch.values())), None
    names = list_input_names(decoder.encoder)
    (target,) = (array for name, array in batch.items() if name not in names)
    return target, {name: batch[name] for name in names}


@dataclasses.dataclass(frozen=True)
class SequenceScore:
    """Scores outputs of `generate` or `beam`: how far they are from the model's own choices.

    Args:
        plan: `GenerationPlan`, whose they are.
        name: `"generate"` or `"beam"`.
        inputs: dict of arrays that they were made from.
    """

    plan: object
    name: str
    inputs: dict

    def __call__(self, outputs):
        """dict, output -> (error, agreement).

        The error of a greedy token is how far its logit is below the best one, in units of the
        largest logit (at least 1); of one that was drawn, how far chance is from its share of the
        probabilities; of a sequence of a beam, how far its total is from the model's, in units of
        that (at least 1).
        """
        ids = self._check_ids(np.asarray(outputs["generated_ids"]))
        if self.name == "beam":
            return {"scores": (self._score_beams(ids, np.asarray(outputs["scores"])), None)}
        logits = self._compute_logits(ids)
        self._forbid_tokens(ids, logits)
        counted = np.arange(ids.shape[1]) < self._count_tokens(ids)[:, None]
        if draws_tokens(self.config):
            errors, same = self._score_draws(ids, logits)
        else:
            chosen = np.take_along_axis(logits, ids[:, :, None], axis=-1)[:, :, 0]
            scale = max(1.0, np.abs(np.where(np.isfinite(logits), logits, 0.0)).max())
            errors, same = (logits.max(-1) - chosen) / scale, logits.argmax(-1) == ids
        return {"generated_ids": (float(errors[counted].max()), float(same[counted].mean()))}

    @property
    def config(self):
        return self.plan.configs[self.name]

    def _forbid_tokens(self, ids, logits):
        """Puts -inf into logits (B, N, V) where padding or a constraint lets no token come."""
        if not self.config.constraints:
            if self.plan.padding.id is not None:
                logits[:, :, self.plan.padding.id] = -np.inf
            return
        prompts = self._list_prompts(len(ids))
        longest = max(map(len, prompts))
        tokens = np.full((len(ids), longest + ids.shape[1]), -1, "int32")
        for row, prompt in zip(tokens, prompts, strict=True):
            row[longest - len(prompt) : longest] = prompt
        for n in range(ids.shape[1]):
            history = TokenHistory(tokens, longest + n, longest, logits.shape[-1])
            allowed = np.asarray(ops.convert_to_numpy(self.config.allowed(history)))
            logits[:, n] = np.where(allowed, logits[:, n], -np.inf)
            tokens[:, longest + n] = ids[:, n]

    def _check_ids(self, ids):
        """`ids`, if they are tokens up to an END or the limit, and padding behind it."""
        rows = len(next(iter(self.inputs.values())))
        wide = (self.config.sampler.num_return_sequences,) if self.name == "beam" else ()
        expected = (rows, *wide, self.plan.max_new_tokens)
        if ids.shape != expected:
            raise ExportError(f"{self.name} gives ids of shape {ids.shape}, not {expected}.")
        for row in ids.reshape(-1, ids.shape[-1]):
            length = int(self._count_tokens(row))
            after, padding = row[length:], self.plan.padding
            if (after != padding.filler).any() or (row[:length] == padding.id).any():
                raise ExportError(f"{self.name} gives a row that neither ends nor is full: {row}.")
        return ids

    def _count_tokens(self, ids):
        """How many tokens rows (..., N) have, up to their END, or to where they are full."""
        ended = np.isin(ids, self.plan.end_token_ids)
        return np.where(ended.any(axis=-1), 1 + ended.argmax(axis=-1), ids.shape[-1])

    def _compute_logits(self, ids):
        """Return the model's logits for ids (B, N): (B, N, V)."""
        if not self.plan.decoder.has_source:
            return self._continue_prompts(ids)
        begin = np.stack(self._list_prompts(len(ids)))
        tokens = np.concatenate([begin, ids[:, :-1]], axis=1)
        logits = compute_logits(self.plan.decoder, tokens.astype("int32"), self.inputs)
        return logits[:, begin.shape[1] - 1 :]

    def _list_prompts(self, number):
        """What each of `number` rows goes on from, a list of arrays of ids."""
        if self.plan.decoder.has_source:
            return [np.array(self.plan.start_token_ids)] * number
        rows, start = self.inputs[TOKENS], self.inputs.get(START)
        if start is None:
            start = [np.flatnonzero(row != self.plan.padding.id)[0] for row in rows]
        return [row[first:] for row, first in zip(rows, start, strict=True)]

    def _continue_prompts(self, ids):
        """`_compute_logits` after prompts, whose padding moves to the end."""
        prompts = self._list_prompts(len(ids))
        longest = max(map(len, prompts)) + ids.shape[1]
        tokens = np.full((len(ids), longest), self.plan.padding.filler, "int32")
        for row, prompt, new in zip(tokens, prompts, ids, strict=True):
            row[: len(prompt)], row[len(prompt) : len(prompt) + len(new)] = prompt, new
        logits = compute_logits(self.plan.decoder, tokens[:, :-1])
        first = [len(prompt) - 1 for prompt in prompts]
        return np.stack([x[i : i + ids.shape[1]] for i, x in zip(first, logits, strict=True)])

    def _score_draws(self, ids, logits):
        flat = np.where(np.isfinite(logits), logits, -1e9).reshape(-1, logits.shape[-1])
        weights = np.asarray(self.config.sampler.probabilities(flat)).reshape(logits.shape)
        above = np.cumsum(weights, axis=-1)
        uniform = self.inputs[UNIFORM] * above[:, :, -1]
        upper = np.take_along_axis(above, ids[:, :, None], axis=-1)[:, :, 0]
        lower = upper - np.take_along_axis(weights, ids[:, :, None], axis=-1)[:, :, 0]
        errors = np.maximum(np.maximum(lower - uniform, uniform - upper), 0.0)
        return errors, errors == 0.0

    def _score_beams(self, ids, scores):
        error = 0.0
        for k in range(ids.shape[1]):
            chosen = ids[:, k]
            log_p = np.asarray(ops.log_softmax(self._compute_logits(chosen), axis=-1))
            each = np.take_along_axis(log_p, chosen[:, :, None], axis=-1)[:, :, 0]
            length = self._count_tokens(chosen)
            total = np.where(np.arange(chosen.shape[1]) < length[:, None], each, 0.0).sum(axis=1)
            own = total / np.asarray(self.config.sampler.divisor(length.astype("float32")))
            found = np.isfinite(scores[:, k])  # fewer sequences may exist than were asked for
            apart = np.abs(own - scores[:, k]) / np.maximum(1.0, np.abs(own))
            error = max(error, float(apart[found].max(initial=0.0)))
        if (np.diff(scores, axis=1) > 0).any():
            raise ExportError(f"beam gives sequences that are not the best first: {scores}.")
        return error
