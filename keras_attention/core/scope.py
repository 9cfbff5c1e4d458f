"""Scopes: context managers through which code outside a model reaches the layers inside it.

Layers ask `current(Kind)` for the innermost active scope of a kind. So any functional model shows
its weights (`Recording`), is exported (`Export`), and keeps a cache from one call to the next
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
    """A context manager that layers can see while it is active. Subclass it for each purpose."""

    def __enter__(self):
        _local.scopes.append(self)
        return self

    def __exit__(self, *exception):
        _local.scopes.remove(self)


class Recording(Scope):
    """Collects attention weights: `maps` is {layer path: weights (B, N, T, S)}.

    Args:
        layers: the layers whose weights to keep; None keeps those of every layer that runs.
    """

    def __init__(self, layers=None):
        self.layers = None if layers is None else {id(layer): layer for layer in layers}
        self.maps = {}

    def record(self, layer, weights):
        """Keeps `weights` under the layer's path; a layer that runs again adds `path:1`, ..."""
        if self.layers is not None and id(layer) not in self.layers:
            return
        path = key = self.path_of(layer)
        calls = 0
        while key in self.maps:
            calls += 1
            key = f"{path}:{calls}"
        self.maps[key] = weights

    def path_of(self, layer):
        """The name under which a layer's weights are kept."""
        return layer.path


class Export(Scope):
    """Tells layers that the graph being traced will be exported.

    Args:
        mask_constant: float, added to the scores of positions that may not be attended to.
            The scale of an int8 score tensor covers it, so full int8 wants -100 or milder.
    """

    def __init__(self, mask_constant=MASK_CONSTANT):
        self.mask_constant = mask_constant


class NativeGraph(Scope):
    """Tells layers that the graph being traced runs on its own backend, and is not exported.

    Ops that only the backend itself has may be used.
    """


@dataclasses.dataclass(frozen=True)
class CacheEntry:
    """A tensor that a layer keeps from one call of a model to the next.

    Args:
        shape: ints, without the batch and the length that the kind adds.
        dtype: str.
    """

    shape: tuple
    dtype: str


class State(CacheEntry):
    """(B, *shape), replaced by every call: a recurrent state, or a memory of earlier segments."""


class Source(CacheEntry):
    """Computed once from a source of length S: (B, *shape[:-1], S, shape[-1]), or (B, S)."""


class SourceState(Source):
    """As long as a source, and replaced by every call, such as its coverage so far."""


@dataclasses.dataclass(frozen=True)
class Sequence(CacheEntry):
    """One slice for each token: (B, *shape[:-1], length, shape[-1]), or (B, length) for shape ().

    Heads (K, H) are kept as (B, K, length, H), as the products of attention take them: to transpose
    a cache for every token costs more than to attend to it.

    Args:
        window: int, how many tokens before a new one are ever attended to, or None for all.
    """

    window: int | None = None


class CacheScope(Scope):
    """Carries what layers keep from one call of a model to the next: a flat dict in, one out.

    Args:
        cache: dict of tensors by name, empty or from the call before.
        paths: dict, {id of a layer: path}, of the layers that may keep something; None stands for
            all layers, by their own `path`.
        spec: a `cache_spec.CacheSpec` to fill, or None. With one, the model is traced without
            values and layers declare what they keep; without, they find their tensors in `cache`.

    Attributes:
        cache: dict, the same names, with what the layers that ran have left.
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
        """The `CacheSlot` of this run of `layer`; None for a layer that keeps nothing here.

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
        """The name that an entry of the layer has in the cache."""
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
        """Keeps `tensors` for the next call, in place of those that this one found."""
        self.scope.cache.update({self.key(name): x for name, x in tensors.items()})

    def declare(self, **entries):
        """Adds entries, each a `CacheEntry`, to the spec that is being traced."""
        named = {(self.prefix, name): entry for name, entry in entries.items()}
        self.scope.spec.entries.update(named)

    def declare_mask(self, mask):
        """Adds the mask part with which the layer attends to earlier tokens to the spec."""
        self.scope.spec.masks[self.layer.name] = mask


class Decoding(CacheScope):
    """Lets a model made for whole sequences take them piece by piece, new tokens alone.

    Args:
        cache, spec: as in `CacheScope`.
        index: int or int32 scalar, how many tokens of each row are in the cache already.
        encoding: bool, whether the call only computes the `Source` and the first `State` entries
            from its inputs, and its output is thrown away.
    """

    def __init__(self, cache=None, index=0, *, encoding=False, spec=None):
        super().__init__(cache, spec=spec)
        self.index, self.encoding = index, encoding

    def positions(self, length):
        """Positions of `length` new tokens: int32 (T,), or (B, T) where rows begin with padding."""
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
        length: int, how many tokens a layer remembers that has no length of its own.
    """

    def __init__(self, cache=None, *, length, paths=None, spec=None):
        super().__init__(cache, paths=paths, spec=spec)
        self.length = length


def current(kind):
    """The innermost active scope of class `kind`, or None."""
    return next((scope for scope in reversed(_local.scopes) if isinstance(scope, kind)), None)


def wants_weights(layer):
    """Whether the innermost recording scope collects the weights of `layer`."""
    recording = current(Recording)
    return recording is not None and (recording.layers is None or id(layer) in recording.layers)


def record_weights(layer, weights):
    """Hands `weights` (B, N, T, S) to the innermost recording scope, if there is one."""
    recording = current(Recording)
    if recording is not None and weights is not None:
        recording.record(layer, weights)


def mask_constant():
    """The finite number that masks add to scores: the export scope's, or -1e9."""
    scope = current(Export)
    return MASK_CONSTANT if scope is None else scope.mask_constant


def limit_length(length, what):
    """Declares, where a cache is traced, that `what` has `length` positions only."""
    decoding = current(Decoding)
    if decoding is not None and decoding.tracing:
        decoding.spec.max_lengths[what] = length


def refuse_decoding(reason):
    """Declares, where a cache is traced, why a model cannot decode token by token."""
    decoding = current(Decoding)
    if decoding is not None and decoding.tracing:
        decoding.spec.refusals.append(reason)


def is_token(length):
    """Which of `length` new tokens are not padding in front of a row: bool (B, T); None for all."""
    decoding = current(Decoding)
    start = None if decoding is None else decoding.cache.get("start")
    if start is None:
        return None
    positions = ops.arange(length, dtype="int32") + decoding.index
    return ops.expand_dims(positions, axis=0) >= ops.expand_dims(start, axis=1)
