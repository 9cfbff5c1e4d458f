"""`Decoder`: a model as a function of new tokens and a cache, which every way to generate uses."""

import contextlib

import keras
from keras import ops

from keras_attention.blocks.padding import find_padding
from keras_attention.core import checks, keras_internals, scope
from keras_attention.core.cache_spec import without_mask_warnings
from keras_attention.core.paths import paths_in
from keras_attention.generation.cache import (
    LONGEST_PREFIX,
    cache_shapes,
    check_max_length,
    find_token_input,
    make_empty_cache,
    min_prompt_length,
    trace_decoding,
)


class Decoder:
    """The stepwise view of a language model or an encoder-decoder.

    Args:
        model: a functional `keras.Model`, token ids (B, T) -> logits (B, T, V); or one in which two
            nested functional models are called `"encoder"` and `"decoder"`. The second takes what
            the first gives, by name (a single tensor in its one other input), beside its tokens.

    Attributes:
        encoder, decoder: functional models; the first is None for a language model.
        cache_spec: the `CacheSpec` of the decoder.
        vocabulary_size: int, V.
        padding, source_padding: `Padding` of the embeddings of tokens and of the source; the second
            is None for a language model.

    `start`, `step` and `reorder` are made of `keras.ops`, so that they run in eager code and in
    loops that are traced, compiled and exported.
    """

    def __init__(self, model):
        checks.check_gives_logits(model)
        self.model = model
        self.encoder, self.decoder = _split_model(model)
        self.tokens = find_token_input(self.decoder)
        self._others = {x.name: x for x in self.decoder.inputs if x.name != self.tokens}
        if self._others and not self.has_source:
            raise ValueError(
                f"{model.name} takes {', '.join(self._others)} beside {self.tokens}, and nothing "
                "says what they are for new tokens. Generate with a model of token ids alone, or "
                "with one that holds an 'encoder' and a 'decoder'."
            )
        self.cache_spec = trace_decoding(self.decoder, self.tokens, self.encoder, self._join)
        self.min_prompt_length(LONGEST_PREFIX)  # refuses layers that look ahead everywhere
        self.vocabulary_size = _vocabulary_size(self.decoder)
        self.padding = find_padding(keras_internals.all_layers(self.decoder))
        self.source_padding = None
        if self.has_source:
            self.source_padding = find_padding(keras_internals.all_layers(self.encoder))

    @property
    def has_source(self):
        """Whether it is an encoder-decoder."""
        return self.encoder is not None

    @property
    def source_names(self):
        """Names of the cache entries that are computed from the source once and never change."""
        entries = self.cache_spec
        return entries.named(scope.Source).keys() - entries.named(scope.SourceState).keys()

    @property
    def state_names(self):
        """Names of the cache entries that every call replaces: no token can be taken out again."""
        entries = self.cache_spec
        return entries.named(scope.State).keys() | entries.named(scope.SourceState).keys()

    @property
    def max_positions(self):
        """How many positions the model has, or None where nothing limits them."""
        return min(self.cache_spec.max_lengths.values(), default=None)

    def min_prompt_length(self, max_length):
        """Return the fewest tokens that a first call may have: those of a prefix come together."""
        return min_prompt_length(self.cache_spec, max_length)

    def cache_shapes(self, max_length, memory_length=None, dtype=None):
        """{name: (shape without the batch, dtype)} of the cache; None is the source's length."""
        found = cache_shapes(self.cache_spec, max_length, memory_length, dtype)
        for name, entry in self.cache_spec.named(scope.Source).items():
            found[name] = (*entry.shape[:-1], None, *entry.shape[-1:]), entry.dtype
        return found

    def check_lengths(self, prompt_length, max_length):
        """Refuses a prompt that is too long or too short, and more tokens than positions."""
        if prompt_length > max_length:
            raise ValueError(
                f"The prompt has {prompt_length} tokens, and the cache room for {max_length}: give "
                "a larger max_length, or a shorter prompt."
            )
        check_max_length(self.cache_spec, max_length)
        least = self.min_prompt_length(max_length)
        if prompt_length < least:
            raise ValueError(
                f"The first {least} tokens see one another (a prefix), so that they must come "
                f"together; the prompt has {prompt_length}."
            )

    def start(
        self, batch_size, max_length, source=None, start=None, *, memory_length=None, dtype=None
    ):
        """Return a cache before the first token.

        Args:
            batch_size, max_length, memory_length, dtype: as in `initial_cache`; the batch may be a
                tensor.
            source: int ids (B, S), or other inputs of the encoder; None for a language model.
            start: int32 (B,), how many padding tokens each row begins with, or None.
        """
        cache = make_empty_cache(self.cache_spec, batch_size, max_length, memory_length, dtype)
        if self.has_source:
            cache |= self.encode(source, cache)
        if start is not None:
            cache["start"] = ops.cast(start, "int32")
        return cache

    def encode(self, source, cache):
        """Return the cache entries of a source.

        Args:
            source: as for `start`.
            cache: dict of tensors, an empty one; it is not changed.
        """
        encoded = self.encoder(source, training=False)
        first = keras.tree.flatten(encoded)[0]
        tokens = ops.ones((ops.shape(first)[0], 1), dtype="int32")
        with scope.Decoding(cache, 0, encoding=True) as encoding, without_mask_warnings():
            self.decoder(self._join(encoded, tokens), training=False)
        entries = self.cache_spec
        names = entries.named(scope.Source).keys() | entries.named(scope.State).keys()
        return {name: x for name, x in encoding.cache.items() if name in names}

    def step(self, tokens, cache, index):
        """Logits of new tokens, and the cache with them.

        Args:
            tokens: int32 (B, T).
            cache: dict of tensors.
            index: int or int32 scalar, how many tokens of each row it holds.

        Returns:
            Logits (B, T, V), float32, and the new cache.
        """
        tokens = ops.cast(ops.convert_to_tensor(tokens), "int32")
        batch = ops.shape(tokens)[0]
        dummies = {  # zeros in place of inputs that are in the cache already
            name: ops.zeros((batch, *(1 if n is None else n for n in x.shape[1:])), dtype=x.dtype)
            for name, x in self._others.items()
        }
        with scope.Decoding(cache, index) as decoding:
            logits = self.decoder(self._inputs(tokens, dummies), training=False)
        return ops.cast(logits, "float32"), decoding.cache

    @contextlib.contextmanager
    def recording(self):
        """Yields a dict that `step` fills with weights, {layer path: (B, N, T, S)}; traced too."""
        paths = paths_in(self.decoder)
        with scope.Recording(keras_internals.all_layers(self.decoder)) as looking:
            looking.path_of = lambda layer: paths[id(layer)]
            yield looking.maps

    def reorder(self, cache, rows, *, source=True):
        """Return the rows `rows` (B',) of a cache, in that order.

        Args:
            source: bool, whether to reorder the entries of the source, too; not needed where rows
                are reordered among those of one source.
        """
        unchanged = set() if source else self.source_names
        return {
            name: x if name in unchanged else ops.take(x, rows, axis=0) for name, x in cache.items()
        }

    def _by_name(self, encoded):
        """Return the encoder's outputs by the names of the decoder's inputs."""
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
        """Return the inputs of the decoder, in the structure that it was built with."""
        if not others:
            return keras.tree.pack_sequence_as(self.decoder.input, [tokens])
        by_name = {self.tokens: tokens, **others}
        return keras.tree.map_structure(lambda x: by_name[x.name], self.decoder.input)


def _split_model(model):
    """(encoder or None, decoder), functional models."""
    if not keras_internals.is_functional(model):
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
