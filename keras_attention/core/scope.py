"""Scopes: context managers through which code outside a model reaches the layers inside it.

Layers ask `current(Kind)` for the innermost active scope of a kind. In this way any functional
model shows its weights (`Recording`), is exported (`Export`), and keeps a cache between calls
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
    """A context manager that layers see while it is active. Subclass it for each purpose."""

    def __enter__(self):
        _local.scopes.append(self)
        return self

    def __exit__(self, *exception):
        _local.scopes.remove(self)


class Recording(Scope):
    """Collects attention weights: `maps` is {layer path: weights (B, N, T, S)}.

    Args:
        layers: the layers whose weights to collect. None for every layer that runs.
    """

    def __init__(self, layers=None):
        self.layers = None if layers is None else {id(layer): layer for layer in layers}
        self.maps = {}

    def record(self, layer, weights):
        """Store `weights` under the layer's path. A layer that runs again adds `path:1`, ..."""
        if self.layers is not None and id(layer) not in self.layers:
            return
        path = key = self.path_of(layer)
        calls = 0
        while key in self.maps:
            calls += 1
            key = f"{path}:{calls}"
        self.maps[key] = weights

    def path_of(self, layer):
        """Return the name under which a layer's weights are stored."""
        return layer.path


class Export(Scope):
    """Tells layers that the traced graph will be exported.

    Args:
        mask_constant: float, added to the scores of positions that may not be attended to. The
            scale of an int8 score tensor covers it, so full int8 needs -100 or milder.
    """

    def __init__(self, mask_constant=MASK_CONSTANT):
        self.mask_constant = mask_constant


class NativeGraph(Scope):
    """Tells layers that the traced graph runs on its own backend, and may use its ops."""


@dataclasses.dataclass(frozen=True)
class CacheEntry:
    """A tensor that a layer keeps between two calls of a model.

    Args:
        shape: ints, without the batch and the length that the kind adds.
        dtype: str.
    """

    shape: tuple
    dtype: str


class State(CacheEntry):
    """(B, *shape), replaced in every call: a recurrent state, or a memory of earlier segments."""


class Source(CacheEntry):
    """Computed once from a source of length S: (B, *shape[:-1], S, shape[-1]), or (B, S)."""


class SourceState(Source):
    """As long as a source, and replaced in every call, such as its coverage so far."""


@dataclasses.dataclass(frozen=True)
class Sequence(CacheEntry):
    """One slice for each token: (B, *shape[:-1], length, shape[-1]), or (B, length) for shape ().

    Heads (K, H) are stored as (B, K, length, H), as the products of attention take them:
    transposing a cache for every token costs more than attending to it.

    Args:
        window: int, how many tokens before a new one are ever attended to, or None for all.
    """

    window: int | None = None


class CacheScope(Scope):
    """Carries what layers keep between two calls of a model: a flat dict in, one out.

    Args:
        cache: dict of tensors by name, empty or from the last call.
        paths: dict, {id of a layer: path}, of the layers that may store something. None for all
            layers, by their own `path`.
        spec: a `cache_spec.CacheSpec` to fill, or None. With one, the model is traced without
            values and layers declare what they keep. Without, they find their tensors in `cache`.

    Attributes:
        cache: dict with the same names, and what the layers that ran have stored.
    """

    def __init__(self, cache=None, *, paths=None, spec=None):
        self.cache, self.paths, self.spec = dict(cache or {}), paths, spec
        self.shared = {}  # what layers of one call compute once for all of them
        self._runs = collections.Counter()

    def __enter__(self):
        if self.tracing:  # some backends trace twice
            self.spec.clear(), self.shared.clear(), self._runs.clear()
        return super().__enter__()

    @property
    def tracing(self):
        """Whether layers declare what they keep, instead of reading and writing it."""
        return self.spec is not None

    def slot(self, layer, part=""):
        """Return the `CacheSlot` of this run of `layer`, or None if it stores nothing here.

        Args:
            part: str that tells several slots of one layer apart.
        """
        if self.paths is not None and id(layer) not in self.paths:
            return None
        path = re.sub(r"\W", "_", layer.path if self.paths is None else self.paths[id(layer)])
        run = self._runs[path, part]
        self._runs[path, part] += 1
        return CacheSlot(self, f"{path}_{run}" if run else path, layer, run)


@dataclasses.dataclass(frozen=True)
class CacheSlot:
    """What one run of a layer reads and writes in a `CacheScope`, by the layer's own names.

    Args:
        prefix: str, in front of these names in the cache.
        run: int, how many times the layer ran before in this scope.
    """

    scope: CacheScope
    prefix: str
    layer: object
    run: int = 0

    @property
    def tracing(self):
        """Whether the layer declares its entries, as `CacheScope.tracing`."""
        return self.scope.tracing

    def key(self, name):
        """Return the name that an entry of the layer has in the cache."""
        return f"{self.prefix}_{name}"

    def __contains__(self, name):
        return self.key(name) in self.scope.cache

    def __getitem__(self, name):
        if name in self:
            return self.scope.cache[self.key(name)]
        if self.run:
            raise RuntimeError(
                f"{self.layer.name} ran {self.run + 1} times in one scope, whose cache is for "
                f"{self.run}. Open a scope for each call of the model."
            )
        raise RuntimeError(
            f"The cache has no {self.key(name)}, which {self.layer.name} needs: it is of "
            "another model. Begin with ka.generation.initial_cache(model, ...)."
        )

    def update(self, **tensors):
        """Store `tensors` for the next call."""
        self.scope.cache.update({self.key(name): x for name, x in tensors.items()})

    def declare(self, **entries):
        """Add entries, each a `CacheEntry`, to the traced spec."""
        named = {(self.prefix, name): entry for name, entry in entries.items()}
        self.scope.spec.entries.update(named)

    def declare_mask(self, mask):
        """Add the mask part of the layer's attention to earlier tokens to the spec."""
        self.scope.spec.masks[self.layer.name] = mask


class Decoding(CacheScope):
    """Lets a model made for whole sequences take them piece by piece, only the new tokens.

    Args:
        cache, spec: as in `CacheScope`.
        index: int or int32 scalar, how many tokens of each row are already in the cache.
        encoding: bool, whether the call only computes the `Source` and the first `State` entries
            from its inputs, and its output is not used.
    """

    def __init__(self, cache=None, index=0, *, encoding=False, spec=None):
        super().__init__(cache, spec=spec)
        self.index, self.encoding = index, encoding

    def positions(self, length):
        """Return positions of `length` new tokens: int32 (T,), or (B, T) with padding in front."""
        positions = ops.arange(length, dtype="int32") + self.index
        start = self.cache.get("start")
        if start is None:
            return positions
        since = ops.expand_dims(positions, axis=0) - ops.expand_dims(start, axis=1)
        return ops.maximum(since, 0)


class SegmentMemory(CacheScope):
    """Lets a model take a text segment by segment, with a memory of earlier segments.

    Args:
        cache, paths, spec: as in `CacheScope`.
        length: int, how many tokens a layer without a length of its own stores.
    """

    def __init__(self, cache=None, *, length, paths=None, spec=None):
        super().__init__(cache, paths=paths, spec=spec)
        self.length = length


def current(kind):
    """Return the innermost active scope of class `kind`, or None."""
    return next((scope for scope in reversed(_local.scopes) if isinstance(scope, kind)), None)


def wants_weights(layer):
    """Return whether the innermost recording scope collects the weights of `layer`."""
    recording = current(Recording)
    return recording is not None and (recording.layers is None or id(layer) in recording.layers)


def record_weights(layer, weights):
    """Pass `weights` (B, N, T, S) to the innermost recording scope, if there is one."""
    recording = current(Recording)
    if recording is not None and weights is not None:
        recording.record(layer, weights)


def mask_constant():
    """Return the finite number that masks add to scores: the export scope's, or -1e9."""
    scope = current(Export)
    return MASK_CONSTANT if scope is None else scope.mask_constant


def limit_length(length, what):
    """Declare, while a cache is traced, that `what` only has `length` positions."""
    decoding = current(Decoding)
    if decoding is not None and decoding.tracing:
        decoding.spec.max_lengths[what] = length


def refuse_decoding(reason):
    """Declare, while a cache is traced, why a model cannot decode token by token."""
    decoding = current(Decoding)
    if decoding is not None and decoding.tracing:
        decoding.spec.refusals.append(reason)


def is_token(length):
    """Return which of `length` new tokens are not padding in front: bool (B, T), None for all."""
    decoding = current(Decoding)
    start = None if decoding is None else decoding.cache.get("start")
    if start is None:
        return None
    positions = ops.arange(length, dtype="int32") + decoding.index
    return ops.expand_dims(positions, axis=0) >= ops.expand_dims(start, axis=1)
