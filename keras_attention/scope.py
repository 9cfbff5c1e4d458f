"""Scopes: how code outside a model reaches the attention layers inside it while they run.

A scope is a context manager. Layers ask `current(Kind)` for the innermost active scope of a kind,
so that any functional model can be looked into, exported or decoded without being rebuilt.
"""

import collections
import dataclasses
import re
import threading

from keras import ops

_local = threading.local()

MASK_CONSTANT = -1e9


class Scope:
    """A context manager that layers can see while it is active. Subclass it for each purpose."""

    def __enter__(self):
        _stack().append(self)
        return self

    def __exit__(self, *exception):
        _stack().remove(self)


class Recording(Scope):
    """Collects what attention layers looked at: `maps` is {layer path: weights (B, N, T, S)}.

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
        mask_constant: float, what is added to the scores of positions that may not be attended to.
            The scale of an int8 score tensor covers it, so full int8 wants -100 or milder.
    """

    def __init__(self, mask_constant=MASK_CONSTANT):
        self.mask_constant = mask_constant


class AsItIs(Scope):
    """Tells layers that the code being traced runs on the backend itself, as it is.

    Nobody converts it for another runtime, or compiles it with XLA where that is not usual. So
    what only the backend has may be taken.
    """


class Memory(Scope):
    """Carries what layers keep from one call of a model to the next: a flat dict in, one out.

    Args:
        before: dict, {key: tensor}, what was kept so far.
        keys: dict, {(id of a layer, name, how many times it ran before): key}; a layer that is not
            in it keeps nothing.
        length: int, how many tokens a layer keeps that has no length of its own.

    Attributes:
        after: dict, {key: tensor}, what the layers that ran have kept; the same keys.
    """

    def __init__(self, before, keys, length=0):
        self.before, self.keys, self.length = before, keys, length
        self.after = {}
        self._runs = collections.Counter()

    def open(self, layer, **specs):
        """What `layer` kept, as `Kept`, or None if this scope keeps nothing for it.

        Args:
            specs: name -> (shape without the batch, dtype) of what the layer keeps.
        """
        places = {name: (id(layer), name, self._runs[id(layer), name]) for name in specs}
        self._runs.update((id(layer), name) for name in specs)
        if any((id(layer), name, 0) not in self.keys for name in specs):
            return None
        if missing := [place for place in places.values() if place not in self.keys]:
            raise RuntimeError(
                f"{layer.name} ran {missing[0][2] + 1} times in one memory scope, which keeps its "
                f"memory for {missing[0][2]}. Open a scope for each call of the model."
            )
        return Kept(self, {name: self.keys[place] for name, place in places.items()})


@dataclasses.dataclass(frozen=True)
class Kept:
    """What one call of a layer finds in a `Memory` scope, and leaves there, by its own names."""

    scope: Memory
    keys: dict

    def __getitem__(self, name):
        return self.scope.before[self.keys[name]]

    def keep(self, **tensors):
        """Leaves `tensors` for the next call, in place of those found."""
        self.scope.after.update({self.keys[name]: tensors[name] for name in self.keys})


@dataclasses.dataclass(frozen=True)
class Entry:
    """What a layer keeps while a model decodes: a tensor for each row of the batch.

    Args:
        shape: ints, without the batch and the length that the kind adds.
        dtype: str.
    """

    shape: tuple
    dtype: str


class State(Entry):
    """(B, *shape), replaced by every call: what a recurrent layer carries on."""


class Source(Entry):
    """Made once of a source of S places: (B, *shape[:-1], S, shape[-1]), or (B, S) for shape ()."""


class SourceState(Source):
    """As long as a source, and replaced by every call: what was seen of it so far."""


@dataclasses.dataclass(frozen=True)
class Sequence(Entry):
    """One place for each token: (B, *shape[:-1], length, shape[-1]), or (B, length) for shape ().

    Heads (K, H) are kept as (B, K, length, H): the products of attention want them so, and to turn
    a cache for every token costs more than to attend to it.

    Args:
        window: int, how many tokens before a new one it ever looks at, or None for all.
    """

    window: int | None = None


class Decoding(Scope):
    """Lets a model made for whole sequences take them piece by piece.

    While it is active a call of the model is on new tokens alone. Layers find in the cache what
    they kept of those before, and leave there what the next call needs. A layer asks for its
    `place`, once in each call.

    Args:
        cache: dict of tensors by name, from a plan or from the call before.
        index: int or int32 scalar, how many places of each row were filled by calls before.
        encoding: bool, whether the call is made for what is `Source` or `State` at its start, and
            is thrown away: layers then `keep` these, computed from their inputs.

    Attributes:
        cache: dict, what was kept so far, after the layers that ran; the same names.
        planning: False.
    """

    planning = False

    def __init__(self, cache, index=0, *, encoding=False):
        self.cache, self.index, self.encoding = dict(cache), index, encoding
        self.shared = {}  # what layers of one call may make once for all of them
        self._runs = collections.Counter()

    def positions(self, length):
        """Where `length` new tokens are: int32 (T,), or (B, T) where rows begin with padding."""
        places = ops.arange(length, dtype="int32") + self.index
        start = self.cache.get("start")
        if start is None:
            return places
        since = ops.expand_dims(places, axis=0) - ops.expand_dims(start, axis=1)
        return ops.maximum(since, 0)

    def place(self, layer):
        """The `Place` of this run of `layer`: runs of one path are numbered in order."""
        path = re.sub(r"\W", "_", layer.path)
        run = self._runs[path]
        self._runs[path] += 1
        return Place(self, f"{path}_{run}" if run else path, layer)


@dataclasses.dataclass(frozen=True)
class Place:
    """What one run of a layer finds in a `Decoding` scope, and leaves there, by its own names.

    Args:
        prefix: str, what the names begin with in the cache.
    """

    scope: Decoding
    prefix: str
    layer: object

    def key(self, name):
        """What the cache calls it."""
        return f"{self.prefix}_{name}"

    def __contains__(self, name):
        return self.key(name) in self.scope.cache

    def __getitem__(self, name):
        if name not in self:
            raise RuntimeError(
                f"The cache has no {self.key(name)}, which {self.layer.name} needs: it is of "
                "another model. Begin with ka.generation.initial_cache(model, ...)."
            )
        return self.scope.cache[self.key(name)]

    def keep(self, **tensors):
        """Leaves `tensors` for the next call, in place of those found."""
        self.scope.cache.update({self.key(name): x for name, x in tensors.items()})


class Planning(Decoding):
    """Asks the layers that run what they would keep, on a call with tokens of a known length.

    Args:
        length: int, how many tokens the call is on.

    Attributes:
        entries: dict, (prefix of a place, name there) -> `Entry`.
        masks: dict, layer name -> the mask with which it attends to the tokens themselves.
        longest: dict, what has room for so many tokens only -> int.
        refused: list of sentences, what in the model cannot take a text piece by piece.
    """

    planning = True

    def __init__(self, length):
        super().__init__({})
        self.length = length
        self.entries, self.masks, self.longest, self.refused = {}, {}, {}, []

    def __enter__(self):  # some backends trace twice
        for found in (self._runs, self.shared, self.entries, self.masks, self.longest):
            found.clear()
        self.refused.clear()
        return super().__enter__()

    def declare(self, place, **entries):
        """Says that a layer keeps `entries`, each an `Entry`, under the names of its `place`."""
        self.entries.update({(place.prefix, name): entry for name, entry in entries.items()})

    def attends(self, place, mask):
        """Says with which mask part the layer of `place` attends to earlier tokens."""
        self.masks[place.layer.name] = mask


def current(kind):
    """The innermost active scope of class `kind`, or None."""
    return next((scope for scope in reversed(_stack()) if isinstance(scope, kind)), None)


def at_most(length, what):
    """Tells a plan, if one is being made, that `what` has room for `length` tokens only."""
    planning = current(Planning)
    if planning is not None:
        planning.longest[what] = length


def is_token(length):
    """Which of `length` new tokens are not in front of a row's start, bool (B, T); None for all."""
    decoding = current(Decoding)
    start = None if decoding is None else decoding.cache.get("start")
    if start is None:
        return None
    places = ops.arange(length, dtype="int32") + decoding.index
    return ops.expand_dims(places, axis=0) >= ops.expand_dims(start, axis=1)


def refuse_decoding(reason):
    """Tells a plan, if one is being made, what cannot take a text piece by piece, and why."""
    planning = current(Planning)
    if planning is not None:
        planning.refused.append(reason)


def mask_constant():
    """The finite number that masks add to scores: the export scope's, or -1e9."""
    scope = current(Export)
    return MASK_CONSTANT if scope is None else scope.mask_constant


def _stack():
    if not hasattr(_local, "stack"):
        _local.stack = []
    return _local.stack
