"""`FaissMemory`: the memory of kNN attention outside the model, in faiss indexes."""

import importlib

import numpy as np
from keras import ops

from keras_attention.attention.attend import attend
from keras_attention.attention.visibility import Visibility
from keras_attention.core import checks, scope


class FaissMemory(scope.Scope):
    """A memory of each `MemorizingAttention`, in faiss indexes (Wu et al., 2022, section 3.3).

    While it is active, `MemorizingAttention` finds its neighbors here, in one index for each
    layer, row of the batch and head of keys, and adds the segment to it. With the exact
    `"Flat"` index the outputs are those of a memory inside the model; with an approximate one they
    are near. Gradients flow to the queries as they do there.

    An index is not a tensor: models run eagerly (`model(x)`, also under a gradient tape or with
    `compile(run_eagerly=True)`), and exported models have their memory inside. The layer's own
    `memory_length` is not used here. The score must be a kind of dot product (one with
    `fold`); keys are indexed as the score folds them when they are added.

    Args:
        memory_length: int, how many tokens each row remembers; None for all. Only `"Flat"` forgets.
        factory: str, the index as faiss's `index_factory` names it: `"Flat"`, `"HNSW32"`, ...; one
            that needs no training.

        memory = ka.attention.FaissMemory()
        with memory:
            for segment in segments:
                logits = model(segment)
        memory.reset()  # before the next text
    """

    def __init__(self, memory_length=None, factory="Flat"):
        self.memory_length, self.factory = memory_length, factory
        if memory_length is not None:
            checks.check_whole_numbers(self, "memory_length")
            if factory != "Flat":
                raise ValueError(
                    f"FaissMemory(memory_length={memory_length}, factory={factory!r}): only the "
                    '"Flat" index forgets. Leave memory_length out, and reset() between texts.'
                )
        self._faiss = _import_faiss()
        self._indexes = {}

    def reset(self):
        """Forgets everything: the next segments begin new texts."""
        self._indexes.clear()

    def search(self, layer, query, key, value, mask=None):
        """Answers `query` from what `layer` remembers, then remembers `key` and `value`.

        Args:
            layer: a `MemorizingAttention`.
            query: (B, T, N, H). key: (B, T, K, H). value: (B, T, K, Hv). mask: bool (B, T) or None.

        Returns:
            The answers (B, T, N, Hv), and float32 (B, 1, 1, 1): 1.0 where a row remembers anything.
        """
        if layer.score.fold is None:
            raise ValueError(
                f"FaissMemory finds the keys of the largest dot product, which {layer.score!r} is "
                "not. Use cosine, scaled_dot, dot or bilinear."
            )
        changed = layer.score.fold(query, key)[:2]
        queries, to_index, keys, values = (_to_numpy(x) for x in (*changed, key, value))
        indexes = self._get_indexes(layer, *key.shape[::2])
        any_found = [[[[float(len(row[0]) > 0)]]] for row in indexes]
        found = [
            _find_neighbors(row, queries[b], layer.num_neighbors, keys.shape[-1], values.shape[-1])
            for b, row in enumerate(indexes)
        ]
        answers = _attend(layer.score, query, *map(np.stack, zip(*found, strict=True)))
        tokens = np.ones(keys.shape[:2], bool) if mask is None else _to_numpy(mask).astype(bool)
        for b, row in enumerate(indexes):
            for head, index in enumerate(row):
                rows = (x[b, tokens[b], head] for x in (to_index, keys, values))
                index.add(*rows, self.memory_length)
        return answers, ops.convert_to_tensor(np.array(any_found, "float32"))

    def _get_indexes(self, layer, rows, heads):
        """Return the indexes of a layer, which is kept with its id, one for each row and head."""
        if id(layer) not in self._indexes:
            indexes = [[_HeadIndex(self._make_index) for _ in range(heads)] for _ in range(rows)]
            self._indexes[id(layer)] = layer, indexes
        indexes = self._indexes[id(layer)][1]
        if len(indexes) != rows:
            raise ValueError(
                f"This FaissMemory remembers {len(indexes)} texts, and the batch has {rows} rows. "
                "reset() it before other texts come."
            )
        return indexes

    def _make_index(self, size):
        index = self._faiss.index_factory(size, self.factory, self._faiss.METRIC_INNER_PRODUCT)
        if not index.is_trained:
            raise ValueError(
                f"FaissMemory(factory={self.factory!r}) needs training before it can take keys in. "
                'Use one that does not, such as "Flat" or "HNSW32".'
            )
        return index


class _HeadIndex:
    """An index with its keys and values, of one row and head, the oldest first."""

    def __init__(self, make_index):
        self.make_index, self.index = make_index, None
        self.keys, self.values = _Rows(), _Rows()

    def __len__(self):
        return 0 if self.index is None else self.index.ntotal

    def add(self, to_index, keys, values, most):
        if self.index is None:
            self.index = self.make_index(to_index.shape[-1])
        self.index.add(np.ascontiguousarray(to_index))
        self.keys.add(keys), self.values.add(values)
        if most is not None and len(self) > most:
            excess = len(self) - most
            self.index.remove_ids(np.arange(excess))
            self.keys.drop(excess), self.values.drop(excess)


class _Rows:
    """An array that grows at its end and is dropped from its start, without a copy each time."""

    def __init__(self):
        self.data, self.start, self.stop = None, 0, 0

    def add(self, rows):
        if self.data is None or self.stop + len(rows) > len(self.data):
            live = rows[:0] if self.data is None else self.data[self.start : self.stop]
            self.data = np.empty((2 * (len(live) + len(rows)), rows.shape[1]), rows.dtype)
            self.data[: len(live)] = live
            self.start, self.stop = 0, len(live)
        self.data[self.stop : self.stop + len(rows)] = rows
        self.stop += len(rows)

    def drop(self, count):
        self.start += count

    def __getitem__(self, rows):
        return self.data[self.start + rows]


def _find_neighbors(indexes, queries, k, key_size, value_size):
    """Find the k nearest keys (T, N, k, H) of queries (T, N, H), their values, and which exist."""
    length, heads, _ = queries.shape
    keys = np.zeros((length, heads, k, key_size), "float32")
    values = np.zeros((length, heads, k, value_size), "float32")
    there = np.zeros((length, heads, k), bool)
    group = heads // len(indexes)
    for head in range(heads):
        index = indexes[head // group]
        if len(index):
            _, found = index.index.search(np.ascontiguousarray(queries[:, head]), k)
            there[:, head] = found >= 0
            found = np.maximum(found, 0)
            keys[:, head], values[:, head] = index.keys[found], index.values[found]
    return keys, values, there


def _attend(score, query, keys, values, there):
    """Each query (B, T, N, H) attends to its own keys (B, T, N, k, H), those that exist."""
    batch, length, heads, k = there.shape
    own = (np.swapaxes(x, 2, 3).reshape(batch * length, k, heads, -1) for x in (keys, values))
    keys, values = (ops.cast(ops.convert_to_tensor(x), query.dtype) for x in own)
    answers, _ = attend(
        ops.reshape(query, (batch * length, 1, heads, query.shape[-1])),
        keys,
        values,
        score=score,
        mask=Visibility(attention_mask=there.reshape(batch * length, heads, 1, k)),
    )
    return ops.reshape(answers, (batch, length, heads, values.shape[-1]))


def _to_numpy(x):
    """Return a tensor as a float32 NumPy array. A tensor without values yet is an error."""
    x = ops.stop_gradient(ops.cast(x, "float32"))
    try:
        float(ops.sum(x))
    except TypeError as error:  # what every backend raises for a symbolic tensor
        raise RuntimeError(
            "FaissMemory works on values, and the model is being traced. Call it eagerly, "
            "model(x), or compile it with run_eagerly=True; a memory inside the model "
            "(SegmentRecurrence) can be traced and exported."
        ) from error
    return np.asarray(ops.convert_to_numpy(x))


def _import_faiss():
    try:
        return importlib.import_module("faiss")
    except ImportError as error:
        raise ImportError(
            f"ka.attention.FaissMemory needs faiss ({error}). "
            "Install it with: pip install 'keras-attention-zoo[memory]'"
        ) from error
