"""Text from a LiteRT file on a device: token ids in, token ids out.

This one file is all that an app needs beside numpy and ai_edge_litert: copy it. It reads what
`ka.export.to_litert(model, path, generate=...)` wrote, the file and the `manifest.json` beside it.
"""

import functools
import hashlib
import json
import pathlib

import numpy as np

# What a file asks of its caller, see docs/on-device.md. Files of contract 3 have padding 0. Those
# of contract 4 name their `padding_id`, which is null where every id is a token: the loop in such a
# file takes `start`, where its rows begin. Those of contract 5 have `constraints`, or a list of
# several ids as `start_token_id`.
CONTRACT = 5
SETTINGS = """
    constraints contract end_token_ids least_prompt max_length max_new_tokens padding_id
    source_padding_id start_token_id vocabulary_size
""".split()


class LiteRTGenerator:
    """Writes text with a `.tflite` that generates, in the stock LiteRT runtime.

    Args:
        path: the file.
        num_threads: int, of the interpreter.
        known: `start_token_id`, `end_token_ids`, `max_length`, `max_new_tokens`, `padding_id`,
            `source_padding_id` (both 0 by default), `constraints` (none by default), where there is
            no manifest.

    ```python
    import tempfile
    import keras_attention as ka

    model = ka.models.causal_language_model(20, num_layers=1, num_heads=2, hidden_dim=8)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.tflite"
        steps = ka.export.Generation([], max_length=16, end_token_id=2)
        ka.export.to_litert(model, path, generate=steps)
        generator = ka.export.LiteRTGenerator(path)
        for token in generator.stream([[5, 7, 11]], max_new_tokens=4):
            assert token.shape == (1,)
        several = generator.generate([[5, 7, 11], [13]], max_new_tokens=4)
        assert (several[0] == generator.generate([[5, 7, 11]], max_new_tokens=4)).all()
    ```
    """

    def __init__(self, path, *, num_threads=None, **known):
        from ai_edge_litert.interpreter import Interpreter

        if strange := known.keys() - SETTINGS:
            raise TypeError(
                f"LiteRTGenerator has no argument {min(strange)}: expected some of "
                f"{', '.join(SETTINGS)}."
            )
        path = pathlib.Path(path)
        manifest = path.with_name("manifest.json")
        if manifest.exists():
            entry = _entry(manifest, path.name)
            with open(path, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if entry.get("sha256", digest) != digest:
                raise ValueError(
                    f"{path} is not the file that {manifest} speaks of: damaged, or new."
                )
            known = (entry.get("generation") or {}) | known
        if known.get("contract", CONTRACT) > CONTRACT:
            raise ValueError(
                f"{path} keeps to contract {known['contract']}, and this program knows those up to "
                f"{CONTRACT}: take a newer keras_attention."
            )
        self.known = known
        self.padding = known.get("padding_id", 0)
        self.interpreter = Interpreter(str(path), num_threads=num_threads)
        names = self.interpreter.get_signature_list()
        if "step" not in names:
            raise ValueError(f"{path} cannot write: export it with generate=..., or generate=[].")
        self.run = {name: self.interpreter.get_signature_runner(name) for name in names}
        inputs = {name: run.get_input_details() for name, run in self.run.items()}
        self.inputs = {name: {k: inputs[name][k] for k in names[name]["inputs"]} for name in names}
        self.outputs = {name: set(names[name]["outputs"]) for name in names}

    def stream(self, prompt, max_new_tokens=None, *, temperature=0.0, top_k=None, seed=None):
        """Yields the next id of every row, int32 (B,), as they come; padding (or 0) for rows that
        have ended.

        Args:
            prompt: lists of ids, or ids (B, T), with padding on either side: what a language
                model goes on from, or what an encoder-decoder reads (or a dict of its inputs).
            max_new_tokens: int. Rows also end with an id of `end_token_ids`, and when the cache is
                full.
            temperature: float; 0 takes the best token, more than that draws.
            top_k: int, draws from the k best only. seed: int, of the draws.
        """
        random = np.random.default_rng(seed)
        limit = self._limit(max_new_tokens)
        if limit < 1 or temperature < 0 or (top_k is not None and not (top_k > 0 < temperature)):
            raise ValueError(
                f"{max_new_tokens=}, {temperature=}, {top_k=}: expected at least 1, at least 0, "
                "and None or at least 1 with a temperature."
            )
        tokens, start, cache = self._begin(prompt)
        index, done = 0, np.zeros(len(tokens), bool)
        begun, new = find_begun(tokens, start), np.zeros((len(tokens), 0), "int32")
        while limit > 0 and index + tokens.shape[1] <= self.known["max_length"]:
            logits, cache = self._read(tokens, index, start, cache)
            logits = self._forbid(logits, begun, new)
            index, limit = index + tokens.shape[1], limit - 1
            chosen = choose_tokens(logits, temperature, top_k, random)
            chosen = np.where(done, self.padding or 0, chosen)
            yield chosen.astype("int32")
            done |= np.isin(chosen, self.known["end_token_ids"])
            if done.all():
                return
            tokens = chosen[:, None].astype("int32")
            new = np.concatenate([new, tokens], axis=1)

    def generate(self, prompt, max_new_tokens=None, **sampling):
        """All new ids, int32 (B, N), padding after the end; arguments as for `stream`."""
        return np.stack(list(self.stream(prompt, max_new_tokens, **sampling)), axis=1)

    def beam(
        self, prompt, max_new_tokens=None, *, width=4, length_penalty=0.0, num_return_sequences=1
    ):
        """Return the most probable sequences, by a beam search over `step`.

        It finds what `loop(prompt, "beam")` finds in a file that was exported with such a `Beam`,
        with a width and a length of your choice. A file of a fixed batch takes its beams in turns.

        Args:
            width: int, how many beginnings are continued.
            length_penalty: float, at least 0; the log-probability of n new tokens is divided by
                `((5 + n) / 6) ** length_penalty`.
            num_return_sequences: int, R, at most `width`.

        Returns:
            dict: `generated_ids` int32 (B, R, N), best first, padding after the end, and `scores`
            float32 (B, R); -inf where fewer sequences exist.
        """
        limit = self._limit(max_new_tokens)
        if limit < 1 or not 1 <= num_return_sequences <= width or length_penalty < 0:
            raise ValueError(
                f"{max_new_tokens=}, {width=}, {num_return_sequences=}, {length_penalty=}: "
                "expected at least 1, at least 1, from 1 to the width, and at least 0."
            )
        tokens, start, cache = self._begin(prompt)
        index = tokens.shape[1]
        room = min(limit, self.known["max_length"] - index + 1)
        search = _Search(
            len(tokens), width, num_return_sequences, length_penalty, room, self.padding or 0
        )
        logits, cache = self._read(tokens, 0, start, cache)
        rows = np.repeat(np.arange(len(tokens)), width)
        begun = [row for row in find_begun(tokens, start) for _ in range(width)]
        start, logits = start[rows], logits[rows]
        cache = {name: array[rows] for name, array in cache.items()}
        changing = cache.keys() & self.outputs["step"]
        while True:
            forbid = functools.partial(self._forbid, begun=begun)
            parents = search.extend(logits, self.known["end_token_ids"], forbid)
            if not search.goes_on():
                return search.results()
            cache |= {name: cache[name][parents] for name in changing}
            logits, cache = self._read(search.last(), index, start, cache)
            index += 1

    def loop(self, prompt, signature="generate", seed=None):
        """`generate` or `beam` in one call, by the loop in the file with its own sampler.

        Args:
            signature: `"generate"`, or `"beam"`, whose ids are (B, R, N), the best first.

        Returns:
            dict: `generated_ids`, and of `"beam"` `scores`.
        """
        if signature not in self.run:
            raise ValueError(f"The file has no {signature!r}: it has {', '.join(self.run)}.")
        wanted, has_source = self.inputs[signature], "encode" in self.run
        if has_source:
            inputs = self._source(prompt)
        else:
            inputs = dict(zip(("token_ids", "start"), self._ids(prompt), strict=True))
            inputs = {name: array for name, array in inputs.items() if name in wanted}
        for name in inputs.keys() - {"start"}:
            self._check_length(inputs[name].shape[1], wanted[name])
        if not has_source:
            self._check_room(inputs["token_ids"], self.known.get("max_new_tokens", 1))
        if "uniform" in wanted:
            shape = len(next(iter(inputs.values()))), wanted["uniform"]["shape"][1]
            inputs["uniform"] = np.random.default_rng(seed).random(shape, "float32")
        return self.run[signature](**inputs)

    def _limit(self, max_new_tokens):
        """How many tokens to write; a ValueError where settings are unknown that this needs."""
        needed = {"end_token_ids", "max_length", "max_new_tokens"}
        needed |= {"start_token_id"} if "encode" in self.run else set()
        if missing := sorted(needed - self.known.keys()):
            raise ValueError(f"No manifest.json beside the file says its {missing}: give them.")
        if unknown := find_unknown(self.known.get("constraints", ())):
            raise ValueError(
                f"The file keeps to a constraint, {unknown}, that is not repeated outside of it: "
                f"use loop(). What is repeated is {', '.join(REPEATED)}."
            )
        return self.known["max_new_tokens"] if max_new_tokens is None else max_new_tokens

    def _forbid(self, logits, begun, new):
        """Logits (B, V), -inf for padding and where the file's constraints forbid a token.

        Args:
            begun: list of B arrays, the ids before the first new one.
            new: the new ids, (B, N).
        """
        constraints, size = self.known.get("constraints", ()), logits.shape[1]
        if self.padding is not None:
            logits = np.where(np.arange(size) == self.padding, -np.inf, logits)
        if not constraints:
            return logits
        rows = [np.concatenate(row) for row in zip(begun, new, strict=True)]
        return np.where(find_allowed(constraints, rows, new.shape[1], size), logits, -np.inf)

    def _begin(self, prompt):
        """Return the first tokens, where each row begins, and the cache before them."""
        if "encode" in self.run:
            encoded = self.run["encode"](**self._source(prompt))
            rows = len(next(iter(encoded.values())))
            begin = np.atleast_1d(self.known["start_token_id"])  # one, or several
            tokens, start = np.tile(begin, (rows, 1)), np.zeros(rows, "int32")
        else:
            encoded, (tokens, start) = {}, self._ids(prompt)
            self._check_room(tokens)
        entries = {k: v for k, v in self.inputs["step"].items() if k not in {*_CALL, *encoded}}
        shapes = {k: (len(tokens), *v["shape"][1:]) for k, v in entries.items()}
        zeros = {k: np.zeros(shapes[k], v["dtype"]) for k, v in entries.items()}
        return tokens, start, encoded | zeros

    def _read(self, tokens, index, start, cache):
        """Return the logits (B, V) after new tokens, and the cache with them."""
        fixed = self.inputs["step"]["token_ids"]["shape_signature"][0]
        if fixed < 0 or fixed == len(tokens):
            return self._read_rows(tokens, index, start, cache)
        parts = []
        for k in range(0, len(tokens), fixed):  # more beams than rows
            rows = slice(k, k + fixed)
            part = {name: array[rows] for name, array in cache.items()}
            parts.append(self._read_rows(tokens[rows], index, start[rows], part))
        logits, caches = zip(*parts, strict=True)
        joined = {name: np.concatenate([part[name] for part in caches]) for name in cache}
        return np.concatenate(logits), joined

    def _read_rows(self, tokens, index, start, cache):
        """`_read` for as many rows as the file takes."""
        name = "prefill" if "prefill" in self.run and tokens.shape[1] > 1 else "step"
        length = self.inputs[name]["token_ids"]["shape_signature"][1]
        for k in range(0, tokens.shape[1], length if length > 0 else tokens.shape[1]):
            piece = tokens[:, k:][:, : length if length > 0 else None].astype("int32")
            call = {"token_ids": piece, "index": np.int32(index + k), "start": start, **cache}
            outputs = self.run[name](**{k: call[k] for k in self.inputs[name]})
            cache = cache | {k: outputs[k] for k in cache.keys() & outputs.keys()}
        return outputs["logits"][:, -1], cache

    def _ids(self, prompt):
        """Prompts as ids (B, T) with padding on the left, and where they begin."""
        rows = self._rows(prompt, self.padding)
        length, least = max(map(len, rows)), self.known.get("least_prompt", 1)
        if min(map(len, rows)) < least:
            raise ValueError(f"The first {least} tokens see one another: give a prompt as long.")
        if "prefill" in self.run:
            length += -length % self.inputs["prefill"]["token_ids"]["shape"][1]
        start = np.array([length - len(row) for row in rows], "int32")
        rows = [_pad(row, n, 0, self.padding) for row, n in zip(rows, start, strict=True)]
        return np.stack(rows), start

    def _source(self, source):
        """Return the encoder's inputs; ids with padding on the right."""
        if isinstance(source, dict):
            return source
        ((name, details),) = self.inputs["encode"].items()
        if getattr(source, "ndim", 0) > 2:
            return {name: np.asarray(source, details["dtype"])}
        padding = self.known.get("source_padding_id", 0)
        rows = self._rows(source, padding)
        self._check_length(max(map(len, rows)), details)
        length = max(*map(len, rows), details["shape_signature"][1])
        if padding is None and any(len(row) < length for row in rows):
            raise ValueError(
                f"This file reads {length} ids, every one a token: it takes no shorter row."
            )
        return {name: np.stack([_pad(row, 0, length - len(row), padding) for row in rows])}

    def _check_room(self, tokens, new=1):
        """Refuses a prompt that does not fit into the cache with `new` tokens, the last of which
        is not cached."""
        room = self.known.get("max_length", np.inf) - new + 1
        if tokens.shape[1] > room:
            raise ValueError(
                f"The prompt has {tokens.shape[1]} tokens, and the cache of this file has room for "
                f"{room}: shorten it, or export with a larger max_length."
            )

    def _check_length(self, length, details):
        fixed = details["shape_signature"][1]
        if 0 < fixed < length:
            raise ValueError(f"This file reads {fixed} ids at a time, and was given {length}.")

    def _rows(self, ids, padding):
        """Rows of ids without the padding around them."""
        rows = [ids] if len(ids) and np.ndim(ids[0]) == 0 else ids
        rows = [_trim(row, padding) for row in map(np.asarray, rows) if row.ndim]
        if not rows or not all(map(len, rows)):
            raise ValueError(f"{ids!r} has a row without ids: there is nothing to go on from.")
        size = 2**31 if "encode" in self.run else self.known.get("vocabulary_size", 2**31)  # int32
        if any(x.dtype.kind not in "iu" or x.min() < 0 or x.max() >= size for x in rows):
            raise ValueError(f"{ids!r}: expected ids, whole numbers from 0 to below {size}.")
        rows = [row.astype("int32") for row in rows]
        fixed = self.inputs["step"]["token_ids"]["shape_signature"][0]
        if fixed not in (-1, len(rows)):
            raise ValueError(f"This file takes {fixed} rows at a time, and was given {len(rows)}.")
        return rows


def _trim(row, padding):
    """Return a row of ids without the padding around it."""
    tokens = np.flatnonzero(row != padding) if padding is not None else np.arange(len(row))
    return row[tokens[0] : tokens[-1] + 1] if len(tokens) else row[:0]


def _pad(row, before, after, padding):
    return np.pad(row, (before, after), constant_values=padding or 0)


def _entry(manifest, name):
    """Return the entry of a file in a manifest, a dict."""
    try:
        content = json.loads(manifest.read_text("utf-8"))
        return {**content.get("files", {}).get(name, {})}
    except (ValueError, RecursionError, AttributeError, TypeError) as error:
        raise ValueError(f"{manifest} is damaged: it is not what an export writes.") from error


_CALL = ("token_ids", "index", "start")
REPEATED = ("Allowed", "Forbidden", "MinimumLength", "NoRepeatNGrams", "AtFirst")


def find_begun(tokens, start):
    """The ids of each row of `tokens` (B, T), a list of arrays: they begin at `start` (B,)."""
    return [row[first:] for row, first in zip(tokens, start, strict=True)]


def find_allowed(constraints, rows, count, size):
    """Return which ids may be the next token, bool (B, V), by a manifest's `constraints`.

    Args:
        rows: list of B arrays, the ids so far.
        count: int, how many of them are new.
        size: int V.
    """
    allowed = np.ones((len(rows), size), bool)
    for one in constraints:
        if one["name"] == "NoRepeatNGrams":
            for row, may_come in zip(rows, allowed, strict=True):
                may_come[find_repeats(row, one["size"])] = False
            continue
        listed = np.isin(np.arange(size), one.get("ids", one.get("end_token_ids", ())))
        if one["name"] == "AtFirst":
            allowed &= find_allowed([one["constraint"]], rows, count, size) | (count > 0)
        elif one["name"] == "MinimumLength":
            allowed &= ~listed | (count >= one["length"])
        else:
            allowed &= listed if one["name"] == "Allowed" else ~listed
    return allowed


def find_repeats(row, size):
    """Return the ids that would end `size` tokens in a row that `row` (T,) has already."""
    ending = row[len(row) - size + 1 :].tolist()
    return [
        row[k + size - 1]
        for k in range(len(row) - size + 1)
        if row[k : k + size - 1].tolist() == ending
    ]


def find_unknown(constraints):
    """Return the name of the first constraint that `find_allowed` does not know, or None."""
    for one in constraints:
        if one.get("name") not in REPEATED:
            return str(one.get("name"))
        if unknown := find_unknown([one["constraint"]] if "constraint" in one else ()):
            return unknown
    return None


def choose_tokens(logits, temperature=0.0, top_k=None, random=None):
    """Return the next ids (B,) by logits (B, V)."""
    if not temperature:
        return logits.argmax(axis=1)
    if top_k and top_k < logits.shape[1]:
        least = np.partition(logits, -top_k, axis=1)[:, -top_k, None]
        logits = np.where(logits >= least, logits, -np.inf)
    # The largest of logits with Gumbel noise is a draw from their softmax.
    return (logits / temperature + random.gumbel(size=logits.shape)).argmax(axis=1)


IMPOSSIBLE = np.float32(-1e9)  # the total of a sequence that does not exist


class _Search:
    """The beams of a search, and the best sequences that have ended; `filler` is behind these."""

    def __init__(self, batch, width, results, length_penalty, limit, filler):
        self.limit, self.length_penalty, self.filler, self.count = limit, length_penalty, filler, 0
        self.tokens = np.full((batch, width, limit), filler, "int32")
        # One beam of each row counts at first: the others are the same.
        self.totals = np.where(np.arange(width) > 0, IMPOSSIBLE, np.float32(0)) + np.zeros(
            (batch, 1), "float32"
        )
        self.ended = np.full((batch, results, limit), filler, "int32")
        self.ended_totals = np.full((batch, results), IMPOSSIBLE)

    def extend(self, logits, end_token_ids, forbid):
        """Takes the best continuations by logits (B·W, V); returns their parents (B·W,).

        Args:
            forbid: function of log-probabilities and the new ids (B·W, N): `_forbid`.
        """
        batch, width, _ = self.tokens.shape
        new = self.tokens[:, :, : self.count].reshape(batch * width, -1)
        log_p = np.maximum(forbid(compute_log_softmax(logits), new=new), IMPOSSIBLE)
        sums = (self.totals.reshape(-1, 1) + log_p).reshape(batch, -1)
        # As many as leave the beam full when all that can have ended.
        number = min(width * (1 + len(end_token_ids)), sums.shape[1])
        index = find_best(sums, number)
        totals = np.take_along_axis(sums, index, axis=1)
        parents, new = np.divmod(index, log_p.shape[1])
        tokens = np.take_along_axis(self.tokens, parents[:, :, None], axis=1)
        tokens[:, :, self.count] = new
        self.count += 1
        is_end = np.isin(new, end_token_ids)
        self._keep(
            tokens[:, :width], np.where(is_end, totals, IMPOSSIBLE)[:, :width].astype("float32")
        )
        totals = np.where(is_end, IMPOSSIBLE, totals)
        index = find_best(totals, width)
        self.totals = np.take_along_axis(totals, index, axis=1)
        self.tokens = np.take_along_axis(tokens, index[:, :, None], axis=1)
        parents = np.take_along_axis(parents, index, axis=1)
        return (parents + np.arange(batch)[:, None] * width).ravel()

    def last(self):
        """Return the newest tokens of all beams (B·W, 1)."""
        return self.tokens[:, :, self.count - 1].reshape(-1, 1)

    def goes_on(self):
        """Return whether a row can still find a better sequence than its worst result."""
        # Further tokens only take from a total; the longest sequence is divided by most.
        best_of_all = self._ranked(self.totals.max(axis=1), self.limit)
        return self.count < self.limit and (best_of_all > self.ended_totals.min(axis=1)).any()

    def results(self):
        """Return the best sequences, ended or cut off at the limit."""
        self._keep(self.tokens, self.totals)
        found = self.ended_totals > IMPOSSIBLE / 2
        return {
            "generated_ids": np.where(found[:, :, None], self.ended, self.filler),
            "scores": np.where(found, self.ended_totals, -np.inf).astype("float32"),
        }

    def _ranked(self, totals, length):
        divisor = np.power((5.0 + length) / 6.0, self.length_penalty).astype("float32")
        return np.where(totals > IMPOSSIBLE / 2, totals / divisor, IMPOSSIBLE)

    def _keep(self, tokens, totals):
        """Keeps the best of the results and of `tokens` (B, C, N), by totals (B, C)."""
        totals = np.concatenate([self.ended_totals, self._ranked(totals, self.count)], axis=1)
        tokens = np.concatenate([self.ended, tokens], axis=1)
        index = find_best(totals, self.ended.shape[1])
        self.ended_totals = np.take_along_axis(totals, index, axis=1)
        self.ended = np.take_along_axis(tokens, index[:, :, None], axis=1)


def find_best(values, count):
    """Indices of the `count` largest of each row, largest first, and the first of equal ones."""
    return np.argsort(-values, axis=1, kind="stable")[:, :count]


def compute_log_softmax(logits):
    """Log-probabilities (B, V) of logits (B, V)."""
    logits = logits - logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
