"""Scopes: context managers that pass information between the layers of a model and its caller.

Layers call `current(Kind)` to get the innermost active scope of a class. This way any functional
model can return its attention weights (`Recording`), be exported (`Export`) or decode with a cache
(`CacheScope`) without being rebuilt.
"""

import collections
import dataclasses
import re
import threading

from keras import ops


class _Local(threading.local):
    """The active scopes of a thread."""

    def __init__(self):
        self.scopes = []


_local = _Local()

MASK_CONSTANT = -1e9


class Scope:
    """Base class of scopes: context managers that layers can look up during the `with` block."""

    def __enter__(self):
        _local.scopes.append(self)
        return self

    def __exit__(self, *exception):
        _local.scopes.remove(self)


class Recording(Scope):
    """Collects the attention weights of layers that run inside the scope.

    Args:
        layers: list of the layers to record. None records every layer.

    Attributes:
        maps: dict, path of a layer -> attention weights (B, N, T, S).
    """

    def __init__(self, layers=None):
        self.layers = None if layers is None else {id(layer): layer for layer in layers}
        self.maps = {}

    def record(self, layer, weights):
        """Store attention weights (B, N, T, S) in `maps` under the layer's path.

        If the layer runs again, the keys are `path:1`, `path:2`, ...
        """
        if self.layers is None or id(layer) in self.layers:
            self.maps[self.next_key(layer)] = weights

    def next_key(self, layer):
        """Return the key in `maps` of the next weights of a layer."""
        path = key = self.path_of(layer)
        calls = 0
        while key in self.maps:
            calls += 1
            key = f"{path}:{calls}"
        return key

    def change_of(self, layer):
        """Return the function that changes a layer's attention weights, or None for no change.

        Subclasses override this method. The function is applied before the layer uses the weights.
        """

    def path_of(self, layer):
        """Return the key of a layer in `maps`. Subclasses may override it."""
        return layer.path


class Export(Scope):
    """A scope that tells layers that their graph is being traced for an exported file.

    Args:
        mask_constant: float, added to the scores of masked positions. With full int8 quantization
            use -100 or a value closer to 0, because the int8 scale of the scores must cover it.
    """

    def __init__(self, mask_constant=MASK_CONSTANT):
        self.mask_constant = mask_constant


class NativeGraph(Scope):
    """A scope that tells layers that they may use ops of the backend that cannot be exported."""


@dataclasses.dataclass(frozen=True)
class CacheEntry:
    """Shape and dtype of a tensor that a layer keeps in a cache between two calls of a model.

    The subclass says which axes are added to `shape`.

    Args:
        shape: tuple of int, without the batch axis and the length axis.
        dtype: str.
    """

    shape: tuple
    dtype: str


class State(CacheEntry):
    """A cache entry (B, *shape) that every call overwrites, such as a recurrent state."""


class Source(CacheEntry):
    """A cache entry computed once from the source sequence, such as the keys of cross-attention.

    The tensor is (B, *shape[:-1], S, shape[-1]), or (B, S) if `shape` is empty.
    """


class SourceState(Source):
    """A cache entry as long as the source sequence that every call overwrites, such as coverage."""


@dataclasses.dataclass(frozen=True)
class Sequence(CacheEntry):
    """A cache entry that grows with each token, such as the keys of self-attention.

    The tensor is (B, *shape[:-1], length, shape[-1]), or (B, length) if `shape` is empty. So keys
    of `shape` (K, H) are stored as (B, K, length, H), because transposing the cache for every token
    would take longer than the attention.

    Args:
        window: int, the number of earlier tokens that a new token may attend to. None means all.
    """

    window: int | None = None


class CacheScope(Scope):
    """A scope that holds the tensors which layers keep between two calls of a model.

    Args:
        cache: dict of tensors by name, empty or from the previous call.
        paths: dict {id of a layer: path} of the layers that may store tensors. None means all
            layers, under their own `path`.
        spec: `cache_spec.CacheSpec` or None. With a spec, the model is traced symbolically, and
            layers only add to it which tensors they need. With None, layers read and write tensors
            in `cache`.

    Attributes:
        cache: dict, a copy of the argument `cache`, updated by the layers that ran.
    """

    def __init__(self, cache=None, *, paths=None, spec=None):
        self.cache, self.paths, self.spec = dict(cache or {}), paths, spec
        self.shared = {}  # results that one layer computes and other layers of the call reuse
        self._runs = collections.Counter()

    def __enter__(self):
        if self.tracing:  # some backends trace a model twice
            self.spec.clear(), self.shared.clear(), self._runs.clear()
        return super().__enter__()

    @property
    def tracing(self):
        """Return whether layers only declare their entries and do not read or write tensors."""
        return self.spec is not None

    def slot(self, layer, part=""):
        """Return a `CacheSlot`, which reads and writes the cache entries of a layer.

        If a layer runs twice in one call of a model, each run has its own entries.

        Args:
            layer: a Keras layer.
            part: str, such as the name of a sublayer, if a layer needs more than one `CacheSlot`.

        Returns:
            The `CacheSlot`, or None if `layer` must not store tensors.
        """
        if self.paths is not None and id(layer) not in self.paths:
            return None
        path = re.sub(r"\W", "_", layer.path if self.paths is None else self.paths[id(layer)])
        run = self._runs[path, part]
        self._runs[path, part] += 1
        return CacheSlot(self, f"{path}_{run}" if run else path, layer, run)


@dataclasses.dataclass(frozen=True)
class CacheSlot:
    """The entries of one layer in a `CacheScope`, for reading, writing and declaring them.

    The layer chooses a short name for each entry, such as `"keys"`. In the cache these names get a
    prefix. If a layer runs twice in one call of a model, it has two of these objects.

    Args:
        scope: the `CacheScope`.
        prefix: str, what precedes each name in the cache.
        layer: the layer that owns the entries.
        run: int, how often the layer ran before in this scope.
    """

    scope: CacheScope
    prefix: str
    layer: object
    run: int = 0

    @property
    def tracing(self):
        """Return whether the layer must only declare its entries, not read or write them."""
        return self.scope.tracing

    def key(self, name):
        """Return the full name of the layer's entry `name` in the cache."""
        return f"{self.prefix}_{name}"

    def __contains__(self, name):
        return self.key(name) in self.scope.cache

    def __getitem__(self, name):
        if name in self:
            return self.scope.cache[self.key(name)]
        if self.run:
            raise RuntimeError(
                f"{self.layer.name} ran {self.run + 1} times in one scope, but its cache is for "
                f"{self.run}. Open a scope for each call of the model."
            )
        raise RuntimeError(
            f"The cache has no {self.key(name)}, which {self.layer.name} needs: it belongs "
            "to another model. Begin with ka.generation.initial_cache(model, ...)."
        )

    def update(self, **tensors):
        """Store `tensors`, keyword arguments name = tensor, for the next call of the model."""
        self.scope.cache.update({self.key(name): x for name, x in tensors.items()})

    def declare(self, **entries):
        """Declare the cache entries that the layer needs, while a model is traced.

        `entries` are keyword arguments, short name = `CacheEntry`. They are added to the scope's
        spec.
        """
        named = {(self.prefix, name): entry for name, entry in entries.items()}
        self.scope.spec.entries.update(named)

    def declare_mask(self, mask):
        """Add the mask of the layer's self-attention to the scope's spec, while a model is traced.

        `mask` is a mask of `keras_attention.masks`, such as `Causal()`.
        """
        self.scope.spec.masks[self.layer.name] = mask


class Decoding(CacheScope):
    """A scope in which a model for whole sequences decodes with a cache.

    The input of each call is only the new tokens. Layers take what they need of earlier tokens,
    such as keys and values, from the cache.

    Args:
        cache: dict of tensors by name, empty or from the previous call.
        spec: a `cache_spec.CacheSpec`, which layers fill while the model is traced. None if they
            use the cache.
        index: int or int32 scalar, the number of tokens of each row that are already in the cache.
        encoding: bool, whether this call only fills the cache with tensors that are computed once
            from the source, and with initial states. Its output is not used.
    """

    def __init__(self, cache=None, index=0, *, encoding=False, spec=None):
        super().__init__(cache, spec=spec)
        self.index, self.encoding = index, encoding

    def positions(self, length):
        """Return the positions of `length` new tokens: int32 (T,), or (B, T) with left padding.

        The first token after left padding has position 0.
        """
        positions = ops.arange(length, dtype="int32") + self.index
        start = self.cache.get("start")
        if start is None:
            return positions
        since = ops.expand_dims(positions, axis=0) - ops.expand_dims(start, axis=1)
        return ops.maximum(since, 0)


class SegmentMemory(CacheScope):
    """A scope in which a model reads text segment by segment, with a memory of earlier segments.

    Args:
        cache: dict of tensors by name, empty or from the previous segment.
        paths: dict {id of a layer: path} of the layers that may store tensors. None means all.
        spec: a `cache_spec.CacheSpec`, which layers fill while the model is traced. None if they
            use the cache.
        length: int, the number of tokens that layers keep, unless they define their own length.
    """

    def __init__(self, cache=None, *, length, paths=None, spec=None):
        super().__init__(cache, paths=paths, spec=spec)
        self.length = length


def current(kind):
    """Return the innermost active scope (`with` block) of class `kind`, or None."""
    return next((scope for scope in reversed(_local.scopes) if isinstance(scope, kind)), None)


def wants_weights(layer):
    """Return whether the innermost `Recording` records the attention weights of `layer`."""
    recording = current(Recording)
    return recording is not None and (recording.layers is None or id(layer) in recording.layers)


def record_weights(layer, weights):
    """Pass attention weights (B, N, T, S) to the innermost `Recording`, if there is one.

    `layer` is the attention layer that computed the weights.
    """
    recording = current(Recording)
    if recording is not None and weights is not None:
        recording.record(layer, weights)


def change_of_weights(layer):
    """Return the function that changes a layer's attention weights, or None for no change.

    The innermost `Recording` chooses the function by its method `change_of`.
    """
    recording = current(Recording)
    return None if recording is None else recording.change_of(layer)


def mask_constant():
    """Return the finite number that is added to masked scores.

    The number is -1e9, or the `mask_constant` of an active `Export`.
    """
    scope = current(Export)
    return MASK_CONSTANT if scope is None else scope.mask_constant


def limit_length(length, layer):
    """Declare that no input of a layer may be longer than `length` tokens.

    This has an effect only while a model is traced to plan its decoding cache. `layer` is a str
    that describes the layer.
    """
    decoding = current(Decoding)
    if decoding is not None and decoding.tracing:
        decoding.spec.max_lengths[layer] = length


def refuse_decoding(reason):
    """Declare that a model cannot decode token by token.

    This has an effect only while a model is traced to plan its decoding cache. `reason` is a
    sentence for the error message.
    """
    decoding = current(Decoding)
    if decoding is not None and decoding.tracing:
        decoding.spec.refusals.append(reason)


def is_token(length):
    """Return which of the `length` new tokens in a decoding call are not left padding: bool (B, T).

    Return None if no row has left padding, or no model is decoding.
    """
    decoding = current(Decoding)
    start = None if decoding is None else decoding.cache.get("start")
    if start is None:
        return None
    positions = ops.arange(length, dtype="int32") + decoding.index
    return ops.expand_dims(positions, axis=0) >= ops.expand_dims(start, axis=1)
