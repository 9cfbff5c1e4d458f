"""`trace_cache`: run a model symbolically to find the cache entries that its layers need."""

import contextlib
import dataclasses
import warnings

import keras

from keras_attention.core.scope import CacheEntry


@dataclasses.dataclass
class CacheSpec:
    """The names, shapes and dtypes of the cache that a model needs to decode with few new tokens.

    The layers of the model add their entries while `trace_cache` calls the model symbolically.

    Attributes:
        length: int, the number of tokens in the traced call. A sequence of another length is the
            source, such as the encoder's output.
        entries: dict {(prefix of a layer's names in the cache, short name): `CacheEntry`}.
        masks: dict {name of a self-attention layer: its mask, such as `Causal()`}.
        max_lengths: dict {description of a layer: the maximum number of its positions}.
        refusals: list of str, the reasons why the model cannot decode token by token.
    """

    length: int | None = None
    entries: dict = dataclasses.field(default_factory=dict)
    masks: dict = dataclasses.field(default_factory=dict)
    max_lengths: dict = dataclasses.field(default_factory=dict)
    refusals: list = dataclasses.field(default_factory=list)

    def clear(self):
        for declarations in (self.entries, self.masks, self.max_lengths, self.refusals):
            declarations.clear()

    def named(self, kind=CacheEntry):
        """Return a dict {name in the cache: entry} of all entries of the class `kind`."""
        entries = self.entries.items()
        return {f"{prefix}_{name}": x for (prefix, name), x in entries if isinstance(x, kind)}


def trace_cache(model, scope, inputs, tokens=None, *, encoder=None, join=None):
    """Run a model symbolically, and return a `CacheSpec` of the cache entries that its layers need.

    Args:
        model: the `keras.Model` that needs a cache.
        scope: a `CacheScope` with an empty `CacheSpec`, which is filled and returned.
        inputs: symbolic inputs of `model`, or of `encoder` if there is one.
        tokens: the `keras.Input` of the target, only with an `encoder`.
        encoder: a `keras.Model` that runs first, or None.
        join: function `(outputs of the encoder, tokens) -> inputs of the model`. Only needed with
            an `encoder`.
    """
    _Trace(model, scope, encoder, join)(inputs, tokens)
    return scope.spec


class _Trace(keras.layers.Layer):
    """A layer that calls a model inside a scope, so that Keras traces the call symbolically."""

    def __init__(self, model, scope, encoder, join):
        super().__init__(autocast=False)
        self.model, self.scope = model, scope
        self.encoder, self.join = encoder, join

    def call(self, inputs, tokens=None):
        if self.encoder is not None:  # the masks travel with its outputs
            inputs = self.join(self.encoder(inputs), tokens)
        with self.scope, without_mask_warnings():
            return self.model(inputs)


@contextlib.contextmanager
def without_mask_warnings():
    """Silence Keras's warning that a model does not support masking, although its layers do."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s).*does not support masking")
        yield
