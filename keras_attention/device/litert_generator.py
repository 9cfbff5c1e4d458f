"""Text generation with a LiteRT file on a device: token ids in, token ids out.

You can copy this file into an app. It needs only numpy and ai_edge_litert. It loads a file written
by `ka.export.to_litert(model, path, generate=...)`, and the `manifest.json` next to that file.
"""

import hashlib
import json
import pathlib

import numpy as np

CONTRACT = 1  # the version of the calling rules in docs/on-device/generating.md
SETTINGS = """
    constraints contract end_token_ids least_prompt max_length max_new_tokens padding_id
    source_padding_id start_token_id vocabulary_size
""".split()
CONSTRAINTS = ("Allowed", "Forbidden", "MinimumLength", "NoRepeatNGrams", "AtFirst")
IMPOSSIBLE = np.float32(-1e9)  # the log-probability of a sequence that does not exist


class LiteRTGenerator:
    """Generates text with a `.tflite` file in the standard LiteRT runtime.

    Args:
        path: str or path of the `.tflite` file.
        num_threads: int, the number of threads of the interpreter. None is LiteRT's default.
        settings: keywords that replace settings from `manifest.json`, or provide them if there is
            no manifest: `start_token_id`, `end_token_ids`, `max_length`, `max_new_tokens`,
            `padding_id` and `source_padding_id` (0 by default), `constraints` (empty by default).

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

    def __init__(self, path, *, num_threads=None, **settings):
        from ai_edge_litert.interpreter import Interpreter

        if unknown := settings.keys() - SETTINGS:
            raise TypeError(
                f"LiteRTGenerator has no argument {min(unknown)}. Use one of {', '.join(SETTINGS)}."
            )
        path = pathlib.Path(path)
        manifest = path.with_name("manifest.json")
        if manifest.exists():
            settings = _read_manifest(manifest, path) | settings
        if settings.get("contract", CONTRACT) > CONTRACT:
            raise ValueError(
                f"{path} has contract {settings['contract']}. This program supports contracts up "
                f"to {CONTRACT}. Install a newer keras_attention."
            )
        self.settings = settings
        self.padding = settings.get("padding_id", 0)
        self.interpreter = Interpreter(str(path), num_threads=num_threads)
        names = self.interpreter.get_signature_list()
        if "step" not in names:
            raise ValueError(
                f"{path} has no signature 'step', so it cannot generate text. Export the model "
                "with generate=..., or generate=[] for steps only."
            )
        self.run = {name: self.interpreter.get_signature_runner(name) for name in names}
        inputs = {name: run.get_input_details() for name, run in self.run.items()}
        self.inputs = {name: {k: inputs[name][k] for k in names[name]["inputs"]} for name in names}
        self.outputs = {name: set(names[name]["outputs"]) for name in names}

    def stream(self, prompt, max_new_tokens=None, *, temperature=0.0, top_k=None, seed=None):
        """Yield the next token id of every row, int32 (B,), one step at a time.

        A row that has ended yields the padding id, or 0 if there is none.

        Args:
            prompt: lists of ids, or an array (B, T) with padding on either side: the tokens that a
                language model continues, or the source of an encoder-decoder. Can also be a dict of
                the encoder's inputs.
            max_new_tokens: int, the maximum number of steps. None uses the setting. A row ends
                earlier after an id of `end_token_ids`, and all rows end when the cache is full.
            temperature: float. 0 chooses the most probable token, larger values sample.
            top_k: int, samples from the k most probable tokens. None samples from all of them.
            seed: int, the seed for sampling. None is a new seed in every call.

        Raises:
            ValueError: a number is out of its range.
        """
        random = np.random.default_rng(seed)
        limit = self._limit(max_new_tokens)
        if limit < 1 or temperature < 0 or (top_k is not None and not (top_k > 0 < temperature)):
            raise ValueError(
                f"{max_new_tokens=}, {temperature=}, {top_k=}: expected max_new_tokens of at least "
                "1 and a temperature of at least 0. A top_k of at least 1 needs a temperature."
            )
        tokens, start, cache = self._begin(prompt)
        index, done = 0, np.zeros(len(tokens), bool)
        begun = [row[first:] for row, first in zip(tokens, start, strict=True)]
        new = np.zeros((len(tokens), 0), "int32")
        while limit > 0 and index + tokens.shape[1] <= self.settings["max_length"]:
            logits, cache = self._read(tokens, index, start, cache)
            logits = self._forbid(logits, begun, new)
            index, limit = index + tokens.shape[1], limit - 1
            chosen = choose_tokens(logits, temperature, top_k, random)
            chosen = np.where(done, self.padding or 0, chosen)
            yield chosen.astype("int32")
            done |= np.isin(chosen, self.settings["end_token_ids"])
            if done.all():
                return
            tokens = chosen[:, None].astype("int32")
            new = np.concatenate([new, tokens], axis=1)

    def generate(self, prompt, max_new_tokens=None, **sampling):
        """Generate new ids, and return them as int32 (B, N), with padding after the end of a row.

        N is the number of steps. `stream` explains the arguments.
        """
        return np.stack(list(self.stream(prompt, max_new_tokens, **sampling)), axis=1)

    def beam(
        self, prompt, max_new_tokens=None, *, width=4, length_penalty=0.0, num_return_sequences=1
    ):
        """Return the most probable sequences that a beam search finds with the signature `step`.

        The result equals the result of `loop(prompt, "beam")` if the file was exported with the
        same settings. If the file has a fixed batch size, the beams are processed in several calls.

        Args:
            prompt: lists of ids, or an array (B, T), explained in `stream`.
            max_new_tokens: int, the maximum number of new tokens. None uses the setting.
            width: int, the number of sequences that are kept for each row at every step.
            length_penalty: float, at least 0. The log-probability of n new tokens is divided by
                `((5 + n) / 6) ** length_penalty`.
            num_return_sequences: int R, the number of results for each row, at most `width`.

        Returns:
            A dict: `generated_ids` int32 (B, R, N), the best result first, with padding after the
            end, and `scores` float32 (B, R), which are -inf for results that do not exist.

        Raises:
            ValueError: a number is out of its range.
        """
        limit = self._limit(max_new_tokens)
        if limit < 1 or not 1 <= num_return_sequences <= width or length_penalty < 0:
            raise ValueError(
                f"{max_new_tokens=}, {width=}, {num_return_sequences=}, {length_penalty=}: "
                "expected at least 1, at least 1, from 1 to the width, and at least 0."
            )
        tokens, start, cache = self._begin(prompt)
        index, ends = tokens.shape[1], self.settings["end_token_ids"]
        room = min(limit, self.settings["max_length"] - index + 1)
        searches = [_RowSearch(width, num_return_sequences, length_penalty, room) for _ in tokens]
        logits, cache = self._read(tokens, 0, start, cache)
        rows = np.repeat(np.arange(len(tokens)), width)
        begun, start, logits = [tokens[k][start[k] :] for k in rows], start[rows], logits[rows]
        cache = {name: array[rows] for name, array in cache.items()}
        while True:
            new = np.array([ids for search in searches for _, ids in search.beams], "int32")
            logits = self._forbid(compute_log_softmax(logits), begun, new)
            by_row = np.split(np.maximum(logits, IMPOSSIBLE), len(searches))
            parents = [
                k * width + parent
                for k, (search, log_p) in enumerate(zip(searches, by_row, strict=True))
                for parent in search.extend(log_p, ends)
            ]
            if not any(search.can_improve() for search in searches):
                break
            cache |= {k: cache[k][parents] for k in cache.keys() & self.outputs["step"]}
            last = [[ids[-1]] for search in searches for _, ids in search.beams]
            logits, cache = self._read(np.array(last, "int32"), index, start, cache)
            index += 1
        results = [search.list_results(self.padding or 0) for search in searches]
        scores = np.array([[score for score, _ in row] for row in results], "float32")
        ids = np.array([[ids for _, ids in row] for row in results], "int32")
        return {"generated_ids": ids, "scores": scores}

    def loop(self, prompt, signature="generate", seed=None):
        """Generate in one call, with the loop and the sampler that are stored in the file.

        Args:
            prompt: lists of ids, or an array (B, T), explained in `stream`.
            signature: `"generate"` or `"beam"`.
            seed: int, the seed for sampling. None is a new seed in every call.

        Returns:
            A dict: `generated_ids` int32 (B, N), for N new tokens. For `"beam"`, `generated_ids`
                (B, R, N), the best of R results first, and `scores` float32 (B, R).

        Raises:
            ValueError: the file does not have the signature.
        """
        if signature not in self.run:
            raise ValueError(f"The file has no {signature!r}. It has {', '.join(self.run)}.")
        details, has_source = self.inputs[signature], "encode" in self.run
        if has_source:
            inputs = self._source(prompt)
        else:
            inputs = dict(zip(("token_ids", "start"), self._ids(prompt), strict=True))
            inputs = {name: array for name, array in inputs.items() if name in details}
            self._check_room(inputs["token_ids"], self.settings.get("max_new_tokens", 1))
        for name in inputs.keys() - {"start"}:
            _check_length(inputs[name].shape[1], details[name])
        if "uniform" in details:
            shape = len(next(iter(inputs.values()))), details["uniform"]["shape"][1]
            inputs["uniform"] = np.random.default_rng(seed).random(shape, "float32")
        return self.run[signature](**inputs)

    def _limit(self, max_new_tokens):
        """Check that no setting is missing, and return the maximum number of new tokens."""
        needed = {"end_token_ids", "max_length", "max_new_tokens"}
        needed |= {"start_token_id"} if "encode" in self.run else set()
        if missing := sorted(needed - self.settings.keys()):
            raise ValueError(
                f"The settings {missing} are missing. A manifest.json beside the file contains "
                "them. Copy it there, or pass them to LiteRTGenerator."
            )
        if (unsupported := find_unsupported(self.settings.get("constraints", ()))) is not None:
            raise ValueError(
                f"The file has the constraint {unsupported}. Outside of the file only "
                f"{', '.join(CONSTRAINTS)} are implemented. Use loop()."
            )
        return self.settings["max_new_tokens"] if max_new_tokens is None else max_new_tokens

    def _forbid(self, logits, begun, new):
        """Return the logits (B, V) with -inf for padding and for tokens that constraints forbid.

        Args:
            logits: float array (B, V).
            begun: list of B arrays, the ids of the prompt or the start tokens of a decoder.
            new: int array (B, N), the ids generated so far.
        """
        constraints, size = self.settings.get("constraints", ()), logits.shape[1]
        if self.padding is not None:
            logits = np.where(np.arange(size) == self.padding, -np.inf, logits)
        if not constraints:
            return logits
        rows = [np.concatenate(row) for row in zip(begun, new, strict=True)]
        return np.where(find_allowed(constraints, rows, new.shape[1], size), logits, -np.inf)

    def _begin(self, prompt):
        """Return the inputs of the first step: token ids (B, T), `start` (B,) and a cache (a dict).

        `start` is the number of padding tokens at the start of each row. For an encoder-decoder,
        the encoder runs, the ids are the start tokens, and the cache has the encoder's outputs.
        """
        if "encode" in self.run:
            encoded = self.run["encode"](**self._source(prompt))
            rows = len(next(iter(encoded.values())))
            tokens = np.tile(np.atleast_1d(self.settings["start_token_id"]), (rows, 1))
            start = np.zeros(rows, "int32")
        else:
            encoded, (tokens, start) = {}, self._ids(prompt)
            self._check_room(tokens)
        names = self.inputs["step"].keys() - {"token_ids", "index", "start", *encoded}
        details = {name: self.inputs["step"][name] for name in names}
        zeros = {
            k: np.zeros((len(tokens), *v["shape"][1:]), v["dtype"]) for k, v in details.items()
        }
        return tokens, start, encoded | zeros

    def _read(self, tokens, index, start, cache):
        """Run the model on new tokens (B, T), and return the last logits (B, V) and the new cache.

        `index` is the number of filled cache positions.
        """
        batch = self.inputs["step"]["token_ids"]["shape_signature"][0]
        if batch < 0 or batch == len(tokens):
            return self._read_rows(tokens, index, start, cache)
        parts = []
        for k in range(0, len(tokens), batch):  # there are more beams than the fixed batch size
            rows = slice(k, k + batch)
            part = {name: array[rows] for name, array in cache.items()}
            parts.append(self._read_rows(tokens[rows], index, start[rows], part))
        logits, caches = zip(*parts, strict=True)
        joined = {name: np.concatenate([part[name] for part in caches]) for name in cache}
        return np.concatenate(logits), joined

    def _read_rows(self, tokens, index, start, cache):
        name = "prefill" if "prefill" in self.run and tokens.shape[1] > 1 else "step"
        length = self.inputs[name]["token_ids"]["shape_signature"][1]
        length = length if length > 0 else tokens.shape[1]
        for k in range(0, tokens.shape[1], length):
            piece = tokens[:, k : k + length].astype("int32")
            call = {"token_ids": piece, "index": np.int32(index + k), "start": start, **cache}
            outputs = self.run[name](**{k: call[k] for k in self.inputs[name]})
            cache = cache | {k: outputs[k] for k in cache.keys() & outputs.keys()}
        return outputs["logits"][:, -1], cache

    def _ids(self, prompt):
        """Return prompts as ids (B, T) padded on the left, and the padding lengths (B,)."""
        rows = self._rows(prompt, self.padding)
        length, least = max(map(len, rows)), self.settings.get("least_prompt", 1)
        if min(map(len, rows)) < least:
            raise ValueError(
                f"A prompt has {min(map(len, rows))} tokens. The first {least} tokens attend to "
                "one another and must be given together. Use a longer prompt."
            )
        if "prefill" in self.run:
            length += -length % self.inputs["prefill"]["token_ids"]["shape"][1]
        start = np.array([length - len(row) for row in rows], "int32")
        padded = [np.pad(row, (length - len(row), 0), constant_values=self.padding or 0)
                  for row in rows]  # fmt: skip
        return np.stack(padded), start

    def _source(self, source):
        """Return the encoder's inputs, a dict. Shorter rows of ids are padded on the right."""
        if isinstance(source, dict):
            return source
        ((name, details),) = self.inputs["encode"].items()
        if len(source) and np.ndim(source[0]) > 1:
            return {name: np.asarray(source, details["dtype"])}
        padding = self.settings.get("source_padding_id", 0)
        rows = self._rows(source, padding)
        _check_length(max(map(len, rows)), details)
        length = max(*map(len, rows), details["shape_signature"][1])
        if padding is None and any(len(row) < length for row in rows):
            raise ValueError(
                f"This file reads {length} ids and has no padding id. A shorter row was given. "
                "Pass rows of this length."
            )
        padded = [np.pad(row, (0, length - len(row)), constant_values=padding or 0)
                  for row in rows]  # fmt: skip
        return {name: np.stack(padded)}

    def _check_room(self, tokens, new=1):
        """Raise an error if the prompt and `new` tokens do not fit into the cache.

        The last new token is never stored in the cache.
        """
        room = self.settings.get("max_length", np.inf) - new + 1
        if tokens.shape[1] > room:
            raise ValueError(
                f"The prompt has {tokens.shape[1]} tokens, and the cache of this file has room for "
                f"{room}. Shorten the prompt, or export with a larger max_length."
            )

    def _rows(self, ids, padding):
        """Return the rows of `ids` as a list of int32 arrays, without padding on either side."""
        rows = [ids] if len(ids) and np.ndim(ids[0]) == 0 else ids
        rows = [row for row in map(np.asarray, rows) if row.ndim]
        if padding is not None:
            spans = [np.flatnonzero(row != padding) for row in rows]
            rows = [row[span[0] : span[-1] + 1] if len(span) else row[:0]
                    for row, span in zip(rows, spans, strict=True)]  # fmt: skip
        if not rows or not all(map(len, rows)):
            raise ValueError(f"{ids!r} has a row without ids. Pass at least one id for each row.")
        size = 2**31 if "encode" in self.run else self.settings.get("vocabulary_size", 2**31)
        if any(x.dtype.kind not in "iu" or x.min() < 0 or x.max() >= size for x in rows):
            raise ValueError(f"{ids!r}: expected ids, whole numbers from 0 to below {size}.")
        batch = self.inputs["step"]["token_ids"]["shape_signature"][0]
        if batch not in (-1, len(rows)):
            raise ValueError(
                f"This file takes {batch} rows at a time. It was given {len(rows)}. Pass {batch} "
                "rows, or export with another batch_size."
            )
        return [row.astype("int32") for row in rows]


def _read_manifest(manifest, path):
    """Return a dict, the settings in `manifest.json` for generating with the file `path`."""
    try:
        entry = {**json.loads(manifest.read_text("utf-8")).get("files", {}).get(path.name, {})}
    except (ValueError, RecursionError, AttributeError, TypeError) as error:
        raise ValueError(f"{manifest} is damaged. Copy it again from the export.") from error
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if entry.get("sha256", digest) != digest:
        raise ValueError(
            f"{path} is not the file that {manifest} describes. It is damaged, or from another "
            "export. Copy both files from the same export."
        )
    return entry.get("generation") or {}


def _check_length(length, details):
    fixed = details["shape_signature"][1]
    if 0 < fixed < length:
        raise ValueError(
            f"This file reads {fixed} ids at a time. It was given {length}. Shorten the input, or "
            "export with a larger sequence_length."
        )


def find_allowed(constraints, rows, count, size):
    """Return which ids may come next in each row, bool (B, V).

    Args:
        constraints: list of dicts, the entry `constraints` of a manifest.
        rows: list of B arrays, all ids so far, with the prompt.
        count: int, the number of generated ids at the end of each row.
        size: int V, the vocabulary size.
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
    """Return the ids that would repeat an n-gram of `size` tokens from `row` (T,), a list."""
    ending = row[len(row) - size + 1 :].tolist()
    starts = range(len(row) - size + 1)
    return [row[k + size - 1] for k in starts if row[k : k + size - 1].tolist() == ending]


def find_unsupported(constraints):
    """Return the name of the first of `constraints` that `find_allowed` lacks, or None."""
    for one in constraints:
        if one.get("name") not in CONSTRAINTS:
            return str(one.get("name"))
        if "constraint" in one and (name := find_unsupported([one["constraint"]])):
            return name
    return None


def choose_tokens(logits, temperature=0.0, top_k=None, random=None):
    """Choose the next ids (B,) from logits (B, vocabulary_size).

    `LiteRTGenerator.stream` explains `temperature` and `top_k`. `random` is a
    `numpy.random.Generator`. It is only needed with a temperature above 0.
    """
    if not temperature:
        return logits.argmax(axis=1)
    if top_k and top_k < logits.shape[1]:
        least = np.partition(logits, -top_k, axis=1)[:, -top_k, None]
        logits = np.where(logits >= least, logits, -np.inf)
    # The argmax of logits plus Gumbel noise is a sample from their softmax.
    return (logits / temperature + random.gumbel(size=logits.shape)).argmax(axis=1)


def compute_log_softmax(logits):
    """Return the log-probabilities of logits (B, vocabulary_size), in the same shape."""
    logits = logits - logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


class _RowSearch:
    """The state of a beam search for one prompt.

    `beams` is a list of (log-probability, ids), the unfinished sequences, best first.
    """

    def __init__(self, width, num_results, length_penalty, limit):
        self.num_results, self.length_penalty, self.limit = num_results, length_penalty, limit
        # All beams are equal before the first token, so only one of them is continued.
        self.beams = [(np.float32(0), ())] + (width - 1) * [(IMPOSSIBLE, ())]
        self.results = []  # (score, ids) of the best sequences that ended

    def extend(self, log_p, end_token_ids):
        """Extend the beams by one token each, and return the index of each new beam's parent.

        `log_p` (W, V) are the log-probabilities of the next token for each of the W beams. A beam
        that ends with an id of `end_token_ids` becomes a result.
        """
        width = len(self.beams)
        sums = (np.array([total for total, _ in self.beams])[:, None] + log_p).ravel()
        # Enough to have W unfinished sequences even if every end token is among the best.
        best = np.argsort(-sums, kind="stable")[: width * (1 + len(end_token_ids))]
        beams, parents = [], []
        for place, k in enumerate(best.tolist()):
            parent, token = divmod(k, log_p.shape[1])
            ids = (*self.beams[parent][1], token)
            if token not in end_token_ids:
                beams.append((sums[k], ids))
                parents.append(parent)
            elif place < width:
                self._keep(sums[k], ids)
        missing = max(0, width - len(beams))
        self.beams = beams[:width] + missing * [(IMPOSSIBLE, (*self.beams[0][1], 0))]
        return parents[:width] + missing * [0]

    def can_improve(self):
        """Return whether a longer sequence can still be better than the worst result."""
        # More tokens only lower the log-probability. The maximum length has the largest divisor.
        (total, ids), results = self.beams[0], self.results
        worst = results[-1][0] if len(results) == self.num_results else IMPOSSIBLE
        possible = total > IMPOSSIBLE / 2 and len(ids) < self.limit
        return possible and self._rank(total, self.limit) > worst

    def list_results(self, filler):
        """Return a list of the best sequences, finished or not: (score, ids).

        The ids are padded with `filler` at the end. The length of the list is `num_results`.
        """
        for total, ids in self.beams:
            self._keep(total, ids)
        results = [(x, (*ids, *(self.limit - len(ids)) * [filler])) for x, ids in self.results]
        missing = self.num_results - len(results)
        return results + missing * [(-np.inf, self.limit * [filler])]

    def _rank(self, total, length):
        return total / np.float32(((5.0 + length) / 6.0) ** self.length_penalty)

    def _keep(self, total, ids):
        """Add the sequence `ids` to the results if its score `total` is among the R best."""
        if total > IMPOSSIBLE / 2:
            self.results.append((self._rank(total, len(ids)), ids))
            self.results = sorted(self.results, key=lambda pair: -pair[0])[: self.num_results]
