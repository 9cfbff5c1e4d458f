"""Text from a LiteRT file on a device: token ids in, token ids out.

This one file is all that an app needs beside numpy and ai_edge_litert: copy it. It reads what
`ka.export.to_litert(model, path, generate=...)` wrote, the file and the `manifest.json` beside it.
"""

import json
import pathlib

import numpy as np


class LiteRTGenerator:
    """Writes text with a `.tflite` that generates, in the stock LiteRT runtime.

    Args:
        path: the file.
        num_threads: int, of the interpreter.
        known: `begin_id`, `end_ids`, `max_length`, `max_new_tokens`, where there is no manifest.

    Example:

    ```python
    import tempfile
    import keras_attention as ka

    model = ka.models.causal_language_model(20, num_layers=1, num_heads=2, hidden_dim=8)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.tflite"
        ka.export.to_litert(model, path, generate=[], max_length=16, end_id=2)
        generator = ka.export.LiteRTGenerator(path)
        for token in generator.stream([[5, 7, 11]], max_new_tokens=4):
            assert token.shape == (1,)
        several = generator.generate([[5, 7, 11], [13]], max_new_tokens=4)
        assert (several[0] == generator.generate([[5, 7, 11]], max_new_tokens=4)).all()
    ```
    """

    def __init__(self, path, *, num_threads=None, **known):
        from ai_edge_litert.interpreter import Interpreter

        path = pathlib.Path(path)
        manifest = path.with_name("manifest.json")
        if manifest.exists():
            files = json.loads(manifest.read_text("utf-8")).get("files", {})
            known = (files.get(path.name, {}).get("generation") or {}) | known
        self.known = known
        self.interpreter = Interpreter(str(path), num_threads=num_threads)
        names = self.interpreter.get_signature_list()
        if "step" not in names:
            raise ValueError(f"{path} cannot write: export it with generate=..., or generate=[].")
        self.run = {name: self.interpreter.get_signature_runner(name) for name in names}
        inputs = {name: run.get_input_details() for name, run in self.run.items()}
        self.inputs = {name: {k: inputs[name][k] for k in names[name]["inputs"]} for name in names}

    def stream(self, prompt, max_new_tokens=None, *, temperature=0.0, top_k=None, seed=None):
        """Yields the next id of every row, int32 (B,), as they come; 0 for rows that have ended.

        Args:
            prompt: lists of ids, or ids (B, T), with 0 as padding on either side: what a language
                model goes on from, or what an encoder-decoder reads (or a dict of its inputs).
            max_new_tokens: int. Rows also end with an id of `end_ids`, and when the cache is full.
            temperature: float; 0 takes the best token, more than that draws.
            top_k: int, draws from the k best only. seed: int, of the draws.
        """
        needed = {"end_ids", "max_length", "max_new_tokens"}
        needed |= {"begin_id"} if "encode" in self.run else set()
        if missing := sorted(needed - self.known.keys()):
            raise ValueError(f"No manifest.json beside the file says its {missing}: give them.")
        random = np.random.default_rng(seed)
        limit = self.known["max_new_tokens"] if max_new_tokens is None else max_new_tokens
        if limit < 1 or temperature < 0 or (top_k is not None and not (top_k > 0 < temperature)):
            raise ValueError(
                f"{max_new_tokens=}, {temperature=}, {top_k=}: expected at least 1, at least 0, "
                "and None or at least 1 with a temperature."
            )
        tokens, start, cache = self._begin(prompt)
        index, done = 0, np.zeros(len(tokens), bool)
        while limit > 0 and index + tokens.shape[1] <= self.known["max_length"]:
            logits, cache = self._read(tokens, index, start, cache)
            index, limit = index + tokens.shape[1], limit - 1
            chosen = np.where(done, 0, choose(logits, temperature, top_k, random))
            yield chosen.astype("int32")
            done |= np.isin(chosen, self.known["end_ids"])
            if done.all():
                return
            tokens = chosen[:, None]

    def generate(self, prompt, max_new_tokens=None, **sampling):
        """All new ids, int32 (B, N), 0 after the end; arguments as for `stream`."""
        return np.stack(list(self.stream(prompt, max_new_tokens, **sampling)), axis=1)

    def loop(self, prompt, signature="generate", seed=None):
        """The same in one call, by a loop inside the file, which has its own sampler and length.

        Args:
            signature: `"generate"`, or `"beam"`, whose ids are (B, R, N), the best first.

        Returns:
            dict: `generated_ids`, and of `"beam"` `scores`.
        """
        if signature not in self.run:
            raise ValueError(f"The file has no {signature!r}: it has {', '.join(self.run)}.")
        wanted, has_source = self.inputs[signature], "encode" in self.run
        inputs = self._source(prompt) if has_source else {"token_ids": self._ids(prompt)[0]}
        for name, array in inputs.items():
            self._check_length(array.shape[1], wanted[name])
        if not has_source:
            self._check_room(inputs["token_ids"], self.known.get("max_new_tokens", 1))
        if "uniform" in wanted:
            shape = len(next(iter(inputs.values()))), wanted["uniform"]["shape"][1]
            inputs["uniform"] = np.random.default_rng(seed).random(shape, "float32")
        return self.run[signature](**inputs)

    def _begin(self, prompt):
        """The first tokens, where each row begins, and the cache before them."""
        if "encode" in self.run:
            cache = self.run["encode"](**self._source(prompt))
            rows = len(next(iter(cache.values())))
            return np.full((rows, 1), self.known["begin_id"]), np.zeros(rows, "int32"), cache
        tokens, start = self._ids(prompt)
        self._check_room(tokens)
        entries = {k: v for k, v in self.inputs["step"].items() if k not in _CALL}
        shapes = {k: (len(tokens), *v["shape"][1:]) for k, v in entries.items()}
        return tokens, start, {k: np.zeros(shapes[k], v["dtype"]) for k, v in entries.items()}

    def _read(self, tokens, index, start, cache):
        """The logits (B, V) after new tokens, and the cache with them."""
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
        rows = self._rows(prompt)
        length, least = max(map(len, rows)), self.known.get("least_prompt", 1)
        if min(map(len, rows)) < least:
            raise ValueError(f"The first {least} tokens see one another: give a prompt as long.")
        if "prefill" in self.run:
            length += -length % self.inputs["prefill"]["token_ids"]["shape"][1]
        start = np.array([length - len(row) for row in rows], "int32")
        return np.stack([np.pad(row, (n, 0)) for row, n in zip(rows, start, strict=True)]), start

    def _source(self, source):
        """The encoder's inputs; ids with padding on the right."""
        if isinstance(source, dict):
            return source
        ((name, details),) = self.inputs["encode"].items()
        if getattr(source, "ndim", 0) > 2:
            return {name: np.asarray(source, details["dtype"])}
        rows = self._rows(source)
        self._check_length(max(map(len, rows)), details)
        length = max(*map(len, rows), details["shape_signature"][1])
        return {name: np.stack([np.pad(row, (0, length - len(row))) for row in rows])}

    def _check_room(self, tokens, new=1):
        """Refuses a prompt that the cache has no room for with `new` tokens, the last of which
        takes no place."""
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

    def _rows(self, ids):
        """Rows of ids without the padding around them."""
        rows = [ids] if len(ids) and np.ndim(ids[0]) == 0 else ids
        rows = [np.trim_zeros(row) for row in map(np.asarray, rows) if row.ndim]
        if not rows or not all(map(len, rows)):
            raise ValueError(f"{ids!r} has a row without ids: there is nothing to go on from.")
        size = np.inf if "encode" in self.run else self.known.get("vocabulary_size", np.inf)
        if any(x.dtype.kind not in "iu" or x.min() < 0 or x.max() >= size for x in rows):
            raise ValueError(f"{ids!r}: expected ids, whole numbers from 1 to below {size}.")
        rows = [row.astype("int32") for row in rows]
        fixed = self.inputs["step"]["token_ids"]["shape_signature"][0]
        if fixed not in (-1, len(rows)):
            raise ValueError(f"This file takes {fixed} rows at a time, and was given {len(rows)}.")
        return rows


_CALL = ("token_ids", "index", "start")


def choose(logits, temperature=0.0, top_k=None, random=None):
    """The next ids (B,) by logits (B, V); never padding, which is 0."""
    logits = np.where(np.arange(logits.shape[1]) == 0, -np.inf, logits)
    if not temperature:
        return logits.argmax(axis=1)
    if top_k and top_k < logits.shape[1]:
        least = np.partition(logits, -top_k, axis=1)[:, -top_k, None]
        logits = np.where(logits >= least, logits, -np.inf)
    # The largest of logits with Gumbel noise is a draw from their softmax.
    return (logits / temperature + random.gumbel(size=logits.shape)).argmax(axis=1)
