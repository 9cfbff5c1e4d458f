"""`Decoder`: wraps a model as a function of new tokens and a cache, to generate token by token."""

import contextlib

import keras
from keras import ops

from keras_attention.blocks.token_embedding import find_padding
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
    """Wraps a language model or an encoder-decoder, to call it on new tokens with a cache.

    Use it to write your own generation loop. `start` makes the cache, `step` reads new tokens, and
    `reorder` selects rows, as beam search needs. The three use `keras.ops`, so they run in eager
    code and in traced, compiled and exported loops.

    Args:
        model: a functional `keras.Model` from token ids (B, T) to logits (B, T, V). Or a model with
            two nested functional models called `"encoder"` and `"decoder"`. The inputs of the
            decoder are token ids and the outputs of the encoder, matched by name. An encoder that
            returns a single tensor can have any name for it.

    Attributes:
        encoder, decoder: functional models. `encoder` is None for a language model.
        cache_spec: the `CacheSpec` of the decoder, which lists what its layers store.
        vocabulary_size: int V, number of token ids of the decoder.
        padding: the `Padding` of the decoder's token embedding.
        source_padding: the `Padding` of the encoder's embedding. None for a language model.
    """

    def __init__(self, model):
        checks.check_gives_logits(model)
        self.model = model
        self.encoder, self.decoder = _split_model(model)
        self.tokens = find_token_input(self.decoder)
        self._other_inputs = {x.name: x for x in self.decoder.inputs if x.name != self.tokens}
        if self._other_inputs and not self.has_source:
            raise ValueError(
                f"{model.name} has the inputs {', '.join(self._other_inputs)} besides "
                f"{self.tokens}. Their values for new tokens are undefined. Generate with a model "
                "of token ids only, or with a model that contains an 'encoder' and a 'decoder'."
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
        """Return whether the model is an encoder-decoder."""
        return self.encoder is not None

    @property
    def source_names(self):
        """Return the names of cache entries that are computed from the source and never change."""
        entries = self.cache_spec
        return entries.named(scope.Source).keys() - entries.named(scope.SourceState).keys()

    @property
    def state_names(self):
        """Return the names of cache entries that every step replaces, so no step can be undone."""
        entries = self.cache_spec
        return entries.named(scope.State).keys() | entries.named(scope.SourceState).keys()

    @property
    def max_positions(self):
        """Return the maximum number of positions of the model, or None if there is no limit."""
        return min(self.cache_spec.max_lengths.values(), default=None)

    def min_prompt_length(self, max_length):
        """Return how many tokens the first step must read at least, if rows have `max_length`."""
        return min_prompt_length(self.cache_spec, max_length)

    def cache_shapes(self, max_length, memory_length=None, dtype=None):
        """Return a dict {key of the cache: (shape without the batch axis, dtype)}.

        Sizes that depend on the source are None. `start` explains the arguments.
        """
        shapes = cache_shapes(self.cache_spec, max_length, memory_length, dtype)
        for name, entry in self.cache_spec.named(scope.Source).items():
            shapes[name] = (*entry.shape[:-1], None, *entry.shape[-1:]), entry.dtype
        return shapes

    def check_lengths(self, prompt_length, max_length):
        """Raise an error if a prompt is too long or too short, or `max_length` is too large.

        `prompt_length` is the number of tokens in the prompt, and `max_length` the number of tokens
        that fit in the cache.
        """
        if prompt_length > max_length:
            raise ValueError(
                f"The prompt has {prompt_length} tokens, but the cache has room for {max_length}. "
                "Use a larger max_length, or a shorter prompt."
            )
        check_max_length(self.cache_spec, max_length)
        least = self.min_prompt_length(max_length)
        if prompt_length < least:
            raise ValueError(
                f"The first {least} tokens attend to one another (a prefix), so the model must "
                f"read them together, but the prompt has {prompt_length}. Use a longer prompt."
            )

    def start(
        self, batch_size, max_length, source=None, start=None, *, memory_length=None, dtype=None
    ):
        """Return the cache for the first step. In an encoder-decoder, run the encoder.

        Args:
            batch_size: int or int32 scalar B, number of rows.
            max_length: int, the maximum number of tokens in the cache.
            memory_length, dtype: arguments of `initial_cache`, which limit or compress the cache.
            source: the encoder's inputs, such as int ids (B, S). None for a language model.
            start: int32 (B,), the number of padding tokens that begin each row. None for 0.
        """
        cache = make_empty_cache(self.cache_spec, batch_size, max_length, memory_length, dtype)
        if self.has_source:
            cache |= self.encode(source, cache)
        if start is not None:
            cache["start"] = ops.cast(start, "int32")
        return cache

    def encode(self, source, cache):
        """Run the encoder, and return the cache entries that depend on the source.

        Args:
            source: the encoder's inputs, such as int ids (B, S).
            cache: dict of tensors, an empty cache. It is not changed.
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
        """Run the model on new tokens, and return the logits and the new cache.

        Args:
            tokens: int32 (B, T), the new tokens.
            cache: dict of tensors, from `start` or from the previous step.
            index: int or int32 scalar, the number of tokens in the cache.

        Returns:
            Logits (B, T, vocabulary_size), float32, and the new cache.
        """
        tokens = ops.cast(ops.convert_to_tensor(tokens), "int32")
        batch = ops.shape(tokens)[0]
        dummies = {  # zeros for inputs whose values are in the cache
            name: ops.zeros((batch, *(1 if n is None else n for n in x.shape[1:])), dtype=x.dtype)
            for name, x in self._other_inputs.items()
        }
        with scope.Decoding(cache, index) as decoding:
            logits = self.decoder(self._inputs(tokens, dummies), training=False)
        return ops.cast(logits, "float32"), decoding.cache

    @contextlib.contextmanager
    def recording(self):
        """Yield a dict that `step` fills with attention weights, {layer path: (B, N, T, S)}."""
        paths = paths_in(self.decoder)
        with scope.Recording(keras_internals.all_layers(self.decoder)) as recording:
            recording.path_of = lambda layer: paths[id(layer)]
            yield recording.maps

    def reorder(self, cache, rows, *, source=True):
        """Return a cache that has the given rows of `cache`, in the given order.

        Args:
            cache: dict of tensors.
            rows: int (B',), indices of rows, which may repeat.
            source: bool, whether to also reorder the entries computed from the source. False is
                faster, if each row is replaced by a row with the same source.
        """
        unchanged = set() if source else self.source_names
        return {
            name: x if name in unchanged else ops.take(x, rows, axis=0) for name, x in cache.items()
        }

    def _by_name(self, encoded):
        """Return the encoder's outputs as a dict keyed by the names of the decoder's inputs."""
        if isinstance(encoded, dict):
            if missing := sorted(set(self._other_inputs) - set(encoded)):
                raise ValueError(
                    f"The decoder takes {', '.join(missing)}. The encoder returns "
                    f"{', '.join(encoded)}. Give the outputs the names of the inputs."
                )
            return {name: encoded[name] for name in self._other_inputs}
        flat = keras.tree.flatten(encoded)
        if len(flat) != len(self._other_inputs):
            raise ValueError(
                f"The encoder returns {len(flat)} tensors. Besides its tokens the decoder takes "
                f"{', '.join(self._other_inputs)}. Let the encoder return a dict with these names."
            )
        return dict(zip(self._other_inputs, flat, strict=True))

    def _join(self, encoded, tokens):
        return self._inputs(tokens, self._by_name(encoded))

    def _inputs(self, tokens, encoded):
        """Return tokens and encoder outputs as the list, dict or tensor that the decoder takes."""
        if not encoded:
            return keras.tree.pack_sequence_as(self.decoder.input, [tokens])
        by_name = {self.tokens: tokens, **encoded}
        return keras.tree.map_structure(lambda x: by_name[x.name], self.decoder.input)


def _split_model(model):
    """Return the encoder (or None) and the decoder of a model, both functional models."""
    if not keras_internals.is_functional(model):
        raise ValueError(
            f"{model!r} cannot generate: expected a functional keras.Model from token ids to "
            "logits, or a model that contains an 'encoder' and a 'decoder'."
        )
    named = {layer.name: layer for layer in model.layers if isinstance(layer, keras.Model)}
    if "encoder" in named and "decoder" in named:
        return named["encoder"], named["decoder"]
    return None, model


def _vocabulary_size(model):
    shape = model.outputs[0].shape
    if len(shape) != 3:
        raise ValueError(
            f"{model.name} returns {tuple(shape)}: expected the logits of the next token at every "
            "position, (B, T, vocabulary_size). Build the model with such an output."
        )
    return shape[-1]
