"""Score generated sequences with the original model, without a cache.

If two tokens are almost equally probable, two runtimes may choose different tokens and then
continue differently, although both are correct. So sequences are not compared. Instead, the model
scores each generated token, given the tokens before it.
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
    """Run a whole model, and return the logits (B, T, vocabulary_size) for target ids (B, T).

    Args:
        decoder: `Decoder` of the model.
        tokens: int array (B, T), which may have padding on the right.
        source: dict of arrays, the inputs of the encoder. None for a language model.
    """
    # `source` contains the inputs of the encoder. The remaining input is the target ids.
    by_name = {name: (source or {}).get(name, tokens) for name in list_input_names(decoder.model)}
    with keras.device("cpu:0"):
        logits = decoder.model(pack_inputs(decoder.model, by_name), training=False)
    if isinstance(logits, dict):  # the model has additional outputs for training
        logits = logits["logits"]
    return np.array(keras.tree.flatten(logits)[0], "float32")


def split_batch(decoder, batch):
    """Split a batch of model inputs into target ids (an array) and encoder inputs (a dict).

    `decoder` is the `Decoder` of the model, and `batch` a dict of arrays. The encoder inputs are
    None for a language model.
    """
    if not decoder.has_source:
        return next(iter(batch.values())), None
    names = list_input_names(decoder.encoder)
    (target,) = (array for name, array in batch.items() if name not in names)
    return target, {name: batch[name] for name in names}


@dataclasses.dataclass(frozen=True)
class SequenceScore:
    """A function that compares the outputs of `generate` or `beam` with the outputs of the model.

    Args:
        plan: `GenerationPlan`, which contains the model and its settings.
        name: `"generate"` or `"beam"`.
        inputs: dict of arrays, the inputs that the outputs were generated from.
    """

    plan: object
    name: str
    inputs: dict

    def __call__(self, outputs):
        """Return a dict from the name of the output to (error, agreement).

        The error of a greedy token is the distance of its logit from the highest logit, relative to
        the largest absolute logit (or 1 if that is smaller). The error of a sampled token is the
        distance of the random number from the interval of this token in the cumulative
        distribution. The error of a beam is the difference between its score and the score that the
        model computes, relative to the latter (or 1 if that is smaller). The agreement is the share
        of tokens that are the choice of the model, or None for beams.
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
        """Set the logits of tokens that must not be generated to -inf, in place.

        These are the padding token, and tokens that `config.constraints` forbid after the prompt
        and the ids before.

        Args:
            ids: int array (B, N), the generated tokens.
            logits: float array (B, N, V). The logits at n predict the token at n.
        """
        if not self.config.constraints:
            if self.plan.padding.id is not None:
                logits[:, :, self.plan.padding.id] = -np.inf
            return
        prompts = self._list_prompts(len(ids))
        longest = max(map(len, prompts))
        tokens = np.full((len(ids), longest + ids.shape[1]), -1, "int32")
        for row, prompt in zip(tokens, prompts, strict=True):
            row[longest - len(prompt) : longest] = prompt
        end, states = tokens.shape[1], self.config.begin_states(len(ids))
        for n in range(ids.shape[1]):
            history = TokenHistory(tokens, longest + n, longest, logits.shape[-1], end)
            allowed = ops.convert_to_numpy(self.config.allowed(history, states))
            over = ~allowed.any(axis=-1, keepdims=True)  # after the end nothing may be allowed
            logits[:, n] = np.where(allowed | over, logits[:, n], -np.inf)
            tokens[:, longest + n] = ids[:, n]
            states = self.config.advance_states(states, ids[:, n])

    def _check_ids(self, ids):
        """Return generated ids, after checking their shape and padding.

        Raises:
            ExportError: the shape is wrong, or a row has padding that is not after an end token.
        """
        rows = len(next(iter(self.inputs.values())))
        wide = (self.config.sampler.num_return_sequences,) if self.name == "beam" else ()
        expected = (rows, *wide, self.plan.max_new_tokens)
        if ids.shape != expected:
            raise ExportError(f"{self.name} returns ids of shape {ids.shape}. Expected {expected}.")
        for row in ids.reshape(-1, ids.shape[-1]):
            length = int(self._count_tokens(row))
            after, padding = row[length:], self.plan.padding
            if (after != padding.filler).any() or (row[:length] == padding.id).any():
                raise ExportError(f"{self.name} returns a row without END that is not full: {row}.")
        return ids

    def _count_tokens(self, ids):
        """Count the tokens in rows (..., N), up to and including the first end token."""
        ended = np.isin(ids, self.plan.end_token_ids)
        return np.where(ended.any(axis=-1), 1 + ended.argmax(axis=-1), ids.shape[-1])

    def _compute_logits(self, ids):
        """Return the logits of the model, (B, N, V), that the ids (B, N) were chosen from."""
        if not self.plan.decoder.has_source:
            return self._continue_prompts(ids)
        begin = np.stack(self._list_prompts(len(ids)))
        tokens = np.concatenate([begin, ids[:, :-1]], axis=1)
        logits = compute_logits(self.plan.decoder, tokens.astype("int32"), self.inputs)
        return logits[:, begin.shape[1] - 1 :]

    def _list_prompts(self, number):
        """Return the prompts of `number` rows as a list of arrays of ids, without padding."""
        if self.plan.decoder.has_source:
            return [np.array(self.plan.start_token_ids)] * number
        rows, start = self.inputs[TOKENS], self.inputs.get(START)
        if start is None:
            start = [np.flatnonzero(row != self.plan.padding.id)[0] for row in rows]
        return [row[first:] for row, first in zip(rows, start, strict=True)]

    def _continue_prompts(self, ids):
        """Return the logits of `_compute_logits` for a language model with prompts.

        The padding on the left of the prompts is moved to the end of the rows.
        """
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
            exists = np.isfinite(scores[:, k])  # there may be fewer sequences than requested
            errors = np.abs(own - scores[:, k]) / np.maximum(1.0, np.abs(own))
            error = max(error, float(errors[exists].max(initial=0.0)))
        if (np.diff(scores, axis=1) > 0).any():
            raise ExportError(f"beam returns sequences that are not the best first: {scores}.")
        return error
