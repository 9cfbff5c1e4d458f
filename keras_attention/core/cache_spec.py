"""The cache that a model needs: `trace_cache` asks its layers in a symbolic call."""

import contextlib
import dataclasses
import warnings

import keras

from keras_attention.core.scope import CacheEntry


@dataclasses.dataclass
class CacheSpec:
    """The cache that the layers of a model need, as they declare it in a traced call.

    Attributes:
        length: int, the number of tokens in the traced call, by which layers tell them from a
            source, or None.
        entries: dict, (prefix of a slot, name there) -> `CacheEntry`.
        masks: dict, layer name -> mask part of its self-attention.
        max_lengths: dict, description of a layer with limited positions -> their number.
        refusals: list of sentences that say why the model cannot decode token by token.
    """

    length: int | None = None
    entries: dict = dataclasses.field(default_factory=dict)
    masks: dict = dataclasses.field(default_factory=dict)
    max_lengths: dict = dataclasses.field(default_factory=dict)
    refusals: list = dataclasses.field(default_factory=list)

    def clear(self):
        """Forget all declarations."""
        for declarations in (self.entries, self.masks, self.max_lengths, self.refusals):
            declarations.clear()

    def named(self, kind=CacheEntry):
        """Return the entries of a kind by their names in the cache."""
        entries = self.entries.items()
        return {f"{prefix}_{name}": x for (prefix, name), x in entries if isinstance(x, kind)}


def trace_cache(model, scope, inputs, tokens=None, *, encoder=None, join=None):
    """Run a model symbolically in `scope`, a `CacheScope` with a spec, and return that spec.

    Args:
        inputs: `keras.Input`s as `model` takes them, or as `encoder` does.
        tokens: the `keras.Input` of an encoder-decoder's target.
        encoder: a model whose outputs `join(outputs, tokens)` makes inputs of `model`, or None.
    """
    _Trace(model, scope, encoder, join)(inputs, tokens)
    return scope.spec


class _Trace(keras.layers.Layer):
    """Runs a model inside a scope."""

    def __init__(self, model, scope, encoder, join):
        super().__init__(autocast=False)
        self.model, self.scope = model, scope
        self.encoder, self.join = encoder, join

    def call(self, inputs, tokens=None):
        if self.encoder is not None:  # Keras hands the masks on with its outputs
            inputs = self.join(self.encoder(inputs), tokens)
        with self.scope, without_mask_warnings():
            return self.model(inputs)


@contextlib.contextmanager
def without_mask_warnings():
    """Silence Keras's warning that a functional model drops a mask that its layers have used."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s).*does not support masking")
        yield
