"""A model as a function of new tokens and a cache: what every way of generating is made of."""

import contextlib

import keras
from keras import ops

from keras_attention import scope
from keras_attention.generation import cache as caches
from keras_attention.generation import plan as plans
from keras_attention.paths import paths_in


class Decoder:
    """The stepwise view of a language model or an encoder-decoder.

    Args:
        model: a functional `keras.Model`, token ids (B, T) -> logits (B, T, V); or one in which two
            nested functional models are called `"encoder"` and `"decoder"`. The second takes what
            the first gives, by name (a single tensor in its one other input), beside its tokens.

    Attributes:
        encoder, decoder: functional models; the first is None for a language model.
        plan: `plan.Plan` of the decoder.
        vocabulary_size: int, V.

    `start`, `step` and `reorder` are made of `keras.ops`, so that they run in eager code and in
    loops that are traced, compiled and exported.
    """

    def __init__(self, model):
        self.model = model
        self.encoder, self.decoder = _parts(model)
        self.tokens = caches.tokens_of(self.decoder)
        self._others = {x.name: x for x in self.decoder.inputs if x.name != self.tokens}
        if self._others and not self.has_source:
            raise ValueError(
                f"{model.name} takes {', '.join(self._others)} beside {self.tokens}, and nothing "
                "says what they are for new tokens. Generate with a model of token ids alone, or "
                "with one that holds an 'encoder' and a 'decoder'."
            )
        self.plan = plans.of(self.decoder, self.tokens, self.encoder, self._join)
        self.plan.least_prompt(plans.LONGEST_PREFIX)  # refuses what looks ahead everywhere
        self.vocabulary_size = _vocabulary_size(self.decoder)

    @property
    def has_source(self):
        """Whether it is an encoder-decoder."""
        return self.encoder is not None

    @property
    def source_names(self):
        """Names in the cache of what is made of the source once and never changes."""
        return self._names(scope.Source) - self._names(scope.SourceState)

    @property
    def state_names(self):
        """Names in the cache of what every call replaces, so that none can be taken back."""
        return self._names(scope.State) | self._names(scope.SourceState)

    def layout(self, max_length, memory_length=None, dtype=None):
        """{name: (shape without the batch, dtype)} of the cache; None is the source's length."""
        found = caches.layout(self.plan, max_length, memory_length, dtype)
        for (prefix, name), entry in self.plan.entries.items():
            if isinstance(entry, scope.Source):
                shape = (*entry.shape[:-1], None, *entry.shape[-1:])
                found[f"{prefix}_{name}"] = shape, entry.dtype
        return found

    def check(self, prompt_length, max_length):
        """Refuses a cache that the prompt or the model's positions do not fit."""
        if prompt_length > max_length:
            raise ValueError(
                f"The prompt has {prompt_length} tokens, and the cache room for {max_length}: give "
                "a larger max_length, or a shorter prompt."
            )
        self.plan.check_length(max_length)
        least = self.plan.least_prompt(max_length)
        if prompt_length < least:
            raise ValueError(
                f"The first {least} tokens see one another (a prefix), so that they must come "
                f"together; the prompt has {prompt_length}."
            )

    def start(
        self, batch_size, max_length, source=None, start=None, *, memory_length=None, dtype=None
    ):
        """A cache before the first token.

        Args:
            batch_size, max_length, memory_length, dtype: as in `initial_cache`; the batch may be a
                tensor.
            source: int ids (B, S), or what else the encoder takes; None for a language model.
            start: int32 (B,), places of padding in front of each row, or None.
        """
        cache = caches.make(self.plan, batch_size, max_length, memory_length, dtype)
        if self.has_source:
            cache |= self.encode(source, cache)
        if start is not None:
            cache["start"] = ops.cast(start, "int32")
        return cache

    def encode(self, source, cache):
        """What the decoder keeps of a source, by the names in the cache.

        Args:
            source: as for `start`.
            cache: dict of tensors, an empty one; it is not changed.
        """
        encoded = self.encoder(source, training=False)
        first = keras.tree.flatten(encoded)[0]
        tokens = ops.ones((ops.shape(first)[0], 1), dtype="int32")
        with scope.Decoding(cache, 0, encoding=True) as encoding, plans.quiet():
            self.decoder(self._join(encoded, tokens), training=False)
        kept = self._names(scope.Source) | self._names(scope.State)
        return {name: x for name, x in encoding.cache.items() if name in kept}

    def step(self, tokens, cache, index):
        """Logits of new tokens, and the cache with them.

        Args:
            tokens: int32 (B, T).
            cache: dict of tensors. index: int or int32 scalar, how many places of it are filled.

        Returns:
            Logits (B, T, V), float32, and the new cache.
        """
        tokens = ops.cast(ops.convert_to_tensor(tokens), "int32")
        batch = ops.shape(tokens)[0]
        dummies = {name: _nothing(x, batch) for name, x in self._others.items()}
        with scope.Decoding(cache, index) as decoding:
            logits = self.decoder(self._inputs(tokens, dummies), training=False)
        return ops.cast(logits, "float32"), decoding.cache

    @contextlib.contextmanager
    def recording(self):
        """Yields a dict that steps fill with weights, {layer path: (B, N, T, S)}; traced too."""
        paths = paths_in(self.decoder)
        with scope.Recording(self.decoder._flatten_layers()) as looking:
            looking.path_of = lambda layer: paths[id(layer)]
            yield looking.maps

    def reorder(self, cache, rows, *, source=True):
        """The rows `rows` (B',) of a cache, in that order.

        Args:
            source: bool, whether to move what was made of the source, too: there is no need where
                rows change places among those of one source.
        """
        still = set() if source else self.source_names
        return {
            name: x if name in still else ops.take(x, rows, axis=0) for name, x in cache.items()
        }

    def _names(self, kind):
        entries = self.plan.entries.items()
        return {f"{p}_{name}" for (p, name), entry in entries if isinstance(entry, kind)}

    def _by_name(self, encoded):
        """The encoder's outputs by the names of the decoder's inputs."""
        if isinstance(encoded, dict):
            if missing := sorted(set(self._others) - set(encoded)):
                raise ValueError(
                    f"The decoder takes {', '.join(missing)}, which the encoder does not give: it "
                    f"gives {', '.join(encoded)}."
                )
            return {name: encoded[name] for name in self._others}
        flat = keras.tree.flatten(encoded)
        if len(flat) != len(self._others):
            raise ValueError(
                f"The encoder gives {len(flat)} tensors, and the decoder takes "
                f"{', '.join(self._others)} beside its tokens. Let the encoder return a dict with "
                "these names."
            )
        return dict(zip(self._others, flat, strict=True))

    def _join(self, encoded, tokens):
        return self._inputs(tokens, self._by_name(encoded))

    def _inputs(self, tokens, others):
        """What the decoder is called on, in the structure that it was built with."""
        if not others:
            return keras.tree.pack_sequence_as(self.decoder.input, [tokens])
        by_name = {self.tokens: tokens, **others}
        return keras.tree.map_structure(lambda x: by_name[x.name], self.decoder.input)


def _parts(model):
    """(encoder or None, decoder), functional models."""
    if not isinstance(model, keras.Model) or not getattr(model, "inputs", None):
        raise ValueError(
            f"{model!r} cannot generate: expected a functional keras.Model, token ids to logits, "
            "or one that holds an 'encoder' and a 'decoder'."
        )
    named = {layer.name: layer for layer in model.layers if isinstance(layer, keras.Model)}
    if "encoder" in named and "decoder" in named:
        return named["encoder"], named["decoder"]
    return None, model


def _vocabulary_size(model):
    shape = model.outputs[0].shape
    if len(shape) != 3:
        raise ValueError(
            f"{model.name} gives {tuple(shape)}; expected the logits of the next token at every "
            "place, (B, T, vocabulary_size)."
        )
    return shape[-1]


def _nothing(tensor, batch):
    """What stands in for an input that is in the cache already: one place of zeros."""
    shape = (1 if axis is None else axis for axis in tensor.shape[1:])
    return ops.zeros((batch, *shape), dtype=tensor.dtype)
