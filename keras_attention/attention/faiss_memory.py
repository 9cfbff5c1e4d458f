"""`FaissMemory`: stores the memory of `MemorizingAttention` outside the model, in faiss indexes."""

import importlib

import numpy as np
from keras import ops

from keras_attention.attention.attend import attend
from keras_attention.attention.visibility import Visibility
from keras_attention.core import checks, scope


class FaissMemory(scope.Scope):
    """Stores the memory of `MemorizingAttention` in faiss indexes (Wu et al., 2022, section 3.3).

    The class is a context manager. Inside the `with` block, each `MemorizingAttention` layer
    searches and extends one index for each row of the batch and each key head. With the exact index
    `"Flat"`, outputs equal the outputs with a memory inside the model, unless keys tie. With other
    indexes, outputs are approximate. Gradients flow to the queries, but not to the memory.

    Keys tie, for example, if a first layer without positions reads the same token several times.
    A query then attends to exactly `num_neighbors` keys here. With a memory inside the model, it
    also attends to all other keys with the same score as the last of them.

    The model must run eagerly: call `model(x)`, with or without a gradient tape, or compile it with
    `run_eagerly=True`. An exported model cannot use this memory. The score must define `fold`,
    which writes it as a dot product, because the indexes search for the largest dot products. An
    index contains keys as the score's weights transformed them when they were added.

    Args:
        memory_length: int, the number of tokens in the memory of each row. It replaces the
            `memory_length` of the layers. None keeps all tokens. Only `"Flat"` can drop tokens.
        factory: str, the argument of faiss's `index_factory`: `"Flat"`, `"HNSW32"`, or another
            index that needs no training.

    Use it as follows:

        memory = ka.attention.FaissMemory()
        with memory:
            for segment in segments:
                logits = model(segment)
        memory.reset()  # before the next document
    """

    def __init__(self, memory_length=None, factory="Flat"):
        self.memory_length, self.factory = memory_length, factory
        if memory_length is not None:
            checks.check_whole_numbers(self, "memory_length")
            if factory != "Flat":
                raise ValueError(
                    f"FaissMemory(memory_length={memory_length}, factory={factory!r}): only the "
                    '"Flat" index drops tokens. Leave memory_length out, or use "Flat".'
                )
        self._faiss = _import_faiss()
        self._indexes = {}

    def reset(self):
        """Clear the memory of all layers. Call this method before new documents."""
        self._indexes.clear()

    def search(self, layer, query, key, value, mask=None):
        """Attend with `query` to the memory of `layer`, then add `key` and `value` to the memory.

        Args:
            layer: a `MemorizingAttention`.
            query: (B, T, N, H), the queries of this segment.
            key: (B, T, K, H), the keys of this segment.
            value: (B, T, K, Hv), the values of this segment.
            mask: bool (B, T), False for padding, which is not added. None adds all tokens.

        Returns:
            The output (B, T, N, Hv), and a float32 tensor (B, 1, 1, 1) that is 1.0 for rows whose
            memory had tokens, and 0.0 for others.

        Raises:
            ValueError: the score of the layer is not a dot product.
        """
        if layer.score.fold is None:
            raise ValueError(
                f"FaissMemory finds the keys with the largest dot product, but {layer.score!r} is "
                "not a dot product. Use cosine, scaled_dot, dot or bilinear."
            )
        changed = layer.score.fold(query, key)[:2]
        queries, to_index, keys, values = (_to_numpy(x) for x in (*changed, key, value))
        indexes = self._get_indexes(layer, *key.shape[::2])
        has_memory = [[[[float(len(row[0]) > 0)]]] for row in indexes]
        neighbors = [
            _find_neighbors(row, queries[b], layer.num_neighbors, keys.shape[-1], values.shape[-1])
            for b, row in enumerate(indexes)
        ]
        output = _attend(layer.score, query, *map(np.stack, zip(*neighbors, strict=True)))
        tokens = np.ones(keys.shape[:2], bool) if mask is None else _to_numpy(mask).astype(bool)
        for b, row in enumerate(indexes):
            for head, index in enumerate(row):
                rows = (x[b, tokens[b], head] for x in (to_index, keys, values))
                index.add(*rows, self.memory_length)
        return output, ops.convert_to_tensor(np.array(has_memory, "float32"))

    def _get_indexes(self, layer, rows, heads):
        """Return a layer's indexes: for each row of the batch, a list of one index per key head.

        `rows` is the batch size and `heads` the number of key heads. The first call creates the
        indexes.
        """
        if id(layer) not in self._indexes:
            indexes = [[_HeadIndex(self._make_index) for _ in range(heads)] for _ in range(rows)]
            self._indexes[id(layer)] = layer, indexes
        indexes = self._indexes[id(layer)][1]
        if len(indexes) != rows:
            raise ValueError(
                f"This FaissMemory has a memory of {len(indexes)} rows, but the batch has {rows} "
                "rows. Call reset() before a batch of another size."
            )
        return indexes

    def _make_index(self, size):
        index = self._faiss.index_factory(size, self.factory, self._faiss.METRIC_INNER_PRODUCT)
        if not index.is_trained:
            raise ValueError(
                f"FaissMemory(factory={self.factory!r}): this index needs training. Use one "
                'without training, such as "Flat" or "HNSW32".'
            )
        return index


class _HeadIndex:
    """The memory of one batch row and key head: a faiss index, keys and values, oldest first.

    `make_index(size)` returns an empty faiss index for vectors of this size.
    """

    def __init__(self, make_index):
        self.make_index, self.index = make_index, None
        self.keys, self.values = _Rows(), _Rows()

    def __len__(self):
        return 0 if self.index is None else self.index.ntotal

    def add(self, to_index, keys, values, memory_length):
        if self.index is None:
            self.index = self.make_index(to_index.shape[-1])
        self.index.add(np.ascontiguousarray(to_index))
        self.keys.add(keys), self.values.add(values)
        if memory_length is not None and len(self) > memory_length:
            excess = len(self) - memory_length
            self.index.remove_ids(np.arange(excess))
            self.keys.drop(excess), self.values.drop(excess)


class _Rows:
    """An array of rows that grows at its end and shrinks at its start, usually without copying."""

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
    """Find the k nearest keys of each query in one batch row.

    Args:
        indexes: list of the row's K indexes.
        queries: NumPy (T, N, H), transformed by the score.
        k: int, the number of neighbors.
        key_size, value_size: int, the sizes H and Hv of keys and values.

    Returns:
        Keys (T, N, k, H), values (T, N, k, Hv), and a bool array (T, N, k), False where the index
        has fewer than k keys.
    """
    length, heads, _ = queries.shape
    keys = np.zeros((length, heads, k, key_size), "float32")
    values = np.zeros((length, heads, k, value_size), "float32")
    exists = np.zeros((length, heads, k), bool)
    group = heads // len(indexes)
    for head in range(heads):
        index = indexes[head // group]
        if len(index):
            _, rows = index.index.search(np.ascontiguousarray(queries[:, head]), k)
            exists[:, head] = rows >= 0
            rows = np.maximum(rows, 0)
            keys[:, head], values[:, head] = index.keys[rows], index.values[rows]
    return keys, values, exists


def _attend(score, query, keys, values, exists):
    """Compute the attention of each query to its own k neighbors: the output (B, T, N, Hv).

    `query` is (B, T, N, H), `keys` (B, T, N, k, H) and `values` (B, T, N, k, Hv). `exists`
    (B, T, N, k) is False for missing neighbors.
    """
    batch, length, heads, k = exists.shape
    by_key = (np.swapaxes(x, 2, 3).reshape(batch * length, k, heads, -1) for x in (keys, values))
    keys, values = (ops.cast(ops.convert_to_tensor(x), query.dtype) for x in by_key)
    output, _ = attend(
        ops.reshape(query, (batch * length, 1, heads, query.shape[-1])),
        keys,
        values,
        score=score,
        mask=Visibility(attention_mask=exists.reshape(batch * length, heads, 1, k)),
    )
    return ops.reshape(output, (batch, length, heads, values.shape[-1]))


def _to_numpy(x):
    """Convert a tensor to a float32 NumPy array. Raise a RuntimeError in a traced graph."""
    x = ops.stop_gradient(ops.cast(x, "float32"))
    try:
        float(ops.sum(x))
    except TypeError as error:  # raised by every backend for a symbolic tensor
        raise RuntimeError(
            "FaissMemory cannot be used in a traced graph. Call the model eagerly, model(x), or "
            "compile it with run_eagerly=True. SegmentRecurrence has a memory that can be traced "
            "and exported."
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
