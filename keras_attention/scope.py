"""Scopes: how code outside a model reaches the attention layers inside it while they run.

A scope is a context manager. Layers ask `current(Kind)` for the innermost active scope of a kind,
so that any functional model can be looked into, exported or decoded without being rebuilt.
"""

import collections
import dataclasses
import re
import threading

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
        shape: ints, without the batch and what the kind says of the length.
        dtype: str.
    """

    shape: tuple
    dtype: str


class State(Entry):
    """(B, *shape), replaced by every call: what a recurrent layer carries on."""


class Source(Entry):
    """(B, S, *shape), made once from a source of S places: the keys of cross-attention."""


@dataclasses.dataclass(frozen=True)
class Sequence(Entry):
    """(B, length, *shape), one place for each token.

    Args:
        window: int, how many of the newest tokens are ever looked at, or None for all.
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
        self.before, self.cache = dict(cache), dict(cache)
        self.index, self.encoding = index, encoding
        self._runs = collections.Counter()

    def place(self, layer):
        """The `Place` of this run of `layer`: runs of one path are numbered in order."""
        path = re.sub(r"\W", "_", layer.path)
        run = self._runs[path]
        self._runs[path] += 1
        return Place(self, f"{path}_{run}" if run else path, layer)


@dataclasses.dataclass(frozen=True)
class Place:
    """What one run of a layer finds in a `Decoding` scope, and leaves there, by its own names."""

    scope: Decoding
    prefix: str
    layer: object

    def __contains__(self, name):
        return f"{self.prefix}_{name}" in self.scope.before

    def __getitem__(self, name):
        if name not in self:
            raise RuntimeError(
                f"The cache has no {self.prefix}_{name}, which {self.layer.name} needs. It is of "
                "another model, or of another order of layers: begin with "
                "ka.generation.initial_cache(model, ...)."
            )
        return self.scope.before[f"{self.prefix}_{name}"]

    def keep(self, **tensors):
        """Leaves `tensors` for the next call, in place of those found."""
        self.scope.cache.update({f"{self.prefix}_{k}": v for k, v in tensors.items()})


class Planning(Decoding):
    """Asks the layers that run what they would keep, on a call with tokens of a known length.

    Args:
        length: int, how many tokens the call is on.

    Attributes:
        entries: dict, name in the cache -> `Entry`.
        least: dict, name of layer -> int, how many tokens the first call must have at least.
    """

    planning = True

    def __init__(self, length):
        super().__init__({})
        self.length = length
        self.entries, self.least = {}, {}

    def __enter__(self):  # some backends trace twice
        self._runs.clear(), self.entries.clear(), self.least.clear()
        return super().__enter__()

    def declare(self, place, **entries):
        """Says that a layer keeps `entries`, each an `Entry`, under the names of its `place`."""
        self.entries.update({f"{place.prefix}_{name}": entry for name, entry in entries.items()})


def current(kind):
    """The innermost active scope of class `kind`, or None."""
    return next((scope for scope in reversed(_stack()) if isinstance(scope, kind)), None)


def mask_constant():
    """The finite number that masks add to scores: the export scope's, or -1e9."""
    scope = current(Export)
    return MASK_CONSTANT if scope is None else scope.mask_constant


def _stack():
    if not hasattr(_local, "stack"):
        _local.stack = []
    return _local.stack
