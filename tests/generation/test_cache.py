"""Decoding with a cache equals one pass over the whole text, for every part, to 1e-5."""

import inspect

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.core.scope import Decoding
from tests.grids import quick
from tests.tables import assert_lists

A, M, P = ka.attention, ka.masks, ka.positions
D, LENGTH, VOCABULARY = 12, 11, 30
PIECES = (0, 4, 5, 7, 8, 9, 10, 11)


def attention(**kwargs):
    def make(x):
        return A.MultiHeadAttention(3, 4, **{"mask": "causal", **kwargs})(x, x)

    return make


def structures(x):
    layer = A.MultiHeadAttention(
        4,
        4,
        value_dim=5,
        num_key_value_heads=2,
        mask="causal",
        position=["rotary", "alibi"],
        qk_norm="rms_norm",
        sink=True,
        num_memory_slots=2,
        talking_heads=True,
        use_gate=True,
    )
    return layer(x, x)


def residual(x):
    scores = None
    for _ in range(2):
        layer = A.ResidualAttention(3, 4, mask="causal")
        added, scores = layer(x, x, previous_scores=scores, return_raw_scores=True)
        x = x + added
    return x


def block(norm="pre", feed_forward=None):
    def make(x):
        return ka.blocks.EncoderBlock(
            A.MultiHeadAttention(3, 4, mask="causal"),
            feed_forward or ka.blocks.FeedForward(10),
            norm=norm,
        )(x)

    return make


def mixture(x):
    experts = [ka.blocks.FeedForward(10) for _ in range(3)]
    return block(feed_forward=ka.blocks.MixtureOfExperts(experts))(x)


LAYERS = {
    **{f"score {name}": attention(score=name) for name in ka.scores.NAMES},
    **{f"normalizer {name}": attention(normalizer=name) for name in ("sparsemax", "sigmoid")},
    "normalizer top_k": attention(normalizer=ka.normalizers.TopK(3)),
    "rotary": attention(position="rotary"),
    "rotary, YaRN": attention(
        position=P.Rotary(scaling=P.scalings.YaRN(factor=2, original_length=8))
    ),
    "rotary, DynamicNTK of a length": attention(
        position=P.Rotary(scaling=P.scalings.DynamicNTK(2, original_length=8, length=16))
    ),
    "xpos": attention(position="xpos"),
    "alibi": attention(position="alibi"),
    "learned alibi": attention(position=P.LearnedALiBi()),
    "relative bias": attention(position="relative_bias"),
    "shaw": attention(position=P.Shaw(3)),
    "transformer_xl": attention(position="transformer_xl"),
    "disentangled": attention(position="disentangled"),
    "window": attention(mask=M.Causal() & M.Window(3)),
    "window, rotary": attention(mask=M.Causal() & M.Window(3), position="rotary"),
    "window, shaw": attention(mask=M.Causal() & M.Window(3), position=P.Shaw(2)),
    "window of itself": attention(mask=M.Causal() & M.Window(1)),
    "sliding_window": attention(sliding_window=4),
    "dilated": attention(mask=M.Causal() & M.Dilated(3, 2)),
    "strided": attention(mask=M.Causal() & M.Strided(3)),
    "global": attention(mask=M.Causal() & (M.Window(2) | M.Global(2))),
    "chunks": attention(mask=M.Causal() & M.Chunked(3)),
    "prefix": attention(mask=M.Causal() | M.Prefix(3)),
    "random": attention(mask=M.Causal() & M.Random(4, length=16, seed=1)),
    "grouped, all structures": structures,
    "differential": lambda x: A.DifferentialAttention(
        4, 4, num_key_value_heads=2, mask="causal", position="rotary"
    )(x, x),
    "latent": lambda x: A.LatentAttention(3, 4, 5, 2, mask="causal")(x, x),
    "latent, window": lambda x: A.LatentAttention(3, 4, 5, 2, mask=M.Causal() & M.Window(3))(x, x),
    "linear": lambda x: A.LinearAttention(4, 4, num_key_value_heads=2, mask="causal")(x, x),
    "favor": lambda x: A.LinearAttention(3, 4, mask="causal", feature_map="favor")(x, x),
    "attention": lambda x: A.Attention(mask="causal", position="alibi")([x, x]),
    "memorizing": lambda x: A.MemorizingAttention(3, 4, 6, mask="causal", position="rotary")(x, x),
    "residual": residual,
    "block post": block("post"),
    "block sandwich": block("sandwich"),
    "mixture of experts": mixture,
    "causal convolution": lambda x: ka.blocks.ConvolutionModule(4, causal=True)(x),
    "shared block": lambda x: ka.blocks.Repeat(
        ka.blocks.EncoderBlock(
            A.MultiHeadAttention(3, 4, mask="causal"), ka.blocks.FeedForward(10)
        ),
        2,
        coordinates=True,
    )(x),
}
EMBEDDED = {
    "sinusoidal": "sinusoidal",
    "learned": P.Learned(LENGTH + 1),
    "scalar": P.Scalar(scaled=False),
    "scalar of a length": P.Scalar(length=20),
}


def model_of(make, position=None, random=3):
    tokens = keras.Input((None,), dtype="int32", name="token_ids")
    x = ka.blocks.TokenEmbedding(VOCABULARY, D, position=position)(tokens)
    model = keras.Model(tokens, make(x))
    draw = np.random.default_rng(random)
    for weight in model.weights:
        if "float" in weight.dtype and "variance" not in weight.path:
            weight.assign(draw.normal(size=weight.shape, scale=0.7))
    return model


def ids(batch=2, length=LENGTH):
    return np.random.default_rng(0).integers(1, VOCABULARY, (batch, length)).astype("int32")


def in_pieces(model, tokens, cache, pieces=PIECES):
    """Return the outputs of `tokens` read piece by piece, concatenated."""
    outputs = []
    for start, end in zip(pieces, pieces[1:], strict=False):
        with ka.generation.decoding_scope(cache, start) as scope:
            outputs.append(np.asarray(model(tokens[:, start:end])))
        assert set(scope.cache) == set(cache)
        assert all(scope.cache[name].shape == x.shape for name, x in cache.items())
        cache = scope.cache
    return np.concatenate(outputs, axis=1)


def assert_close(ours, theirs, tolerance=1e-5):
    size = max(np.abs(theirs).max(), 1.0)
    np.testing.assert_allclose(ours / size, theirs / size, atol=tolerance)


@pytest.mark.slow
def test_every_attention_layer_is_listed():
    layers = {layer for make in LAYERS.values() for layer in model_of(make)._flatten_layers()}
    classes = {value for value in vars(A).values() if inspect.isclass(value)}
    expected = {cls for cls in classes if issubclass(cls, A.AttentionLayer)} - {A.AttentionLayer}
    table = "LAYERS of tests/generation/test_cache.py"
    assert_lists(table, expected & {type(layer) for layer in layers}, expected)


# Every kind of cache entry, and every kind of position.
ONE_OF_A_KIND = (
    *("rotary", "learned alibi", "transformer_xl", "disentangled", "window", "linear", "attention"),
    *("differential", "latent, window", "memorizing", "block post", "causal convolution"),
    *("score squared_distance", "normalizer sparsemax"),
)


@pytest.mark.parametrize("name", quick(LAYERS, *ONE_OF_A_KIND))
def test_pieces_equal_the_whole_text(name):
    model, tokens = model_of(LAYERS[name]), ids()
    whole = np.asarray(model(tokens))
    cache = ka.generation.initial_cache(model, 2, LENGTH + 2)
    assert_close(in_pieces(model, tokens, cache), whole)
    assert np.ptp(whole, axis=1).min() > 1e-3  # tokens do tell


@pytest.mark.slow
@pytest.mark.parametrize("name", EMBEDDED)
def test_positions_that_are_added(name):
    model, tokens = model_of(attention(), EMBEDDED[name]), ids()
    cache = ka.generation.initial_cache(model, 2, LENGTH + 1)
    assert_close(in_pieces(model, tokens, cache), np.asarray(model(tokens)))


@pytest.mark.parametrize(
    "name",
    quick(["rotary", "window", "latent", "linear", "causal convolution"], "rotary", "linear"),
)
def test_prompts_padded_on_the_left_are_single_prompts(name):
    model, tokens = model_of(LAYERS[name], "sinusoidal"), ids()
    padding = np.array([0, 2])
    padded = np.stack([tokens[0], np.concatenate([[0, 0], tokens[1, :-2]])])
    cache = ka.generation.initial_cache(model, 2, LENGTH + 2, start=padding)
    outputs = in_pieces(model, padded, cache)
    assert_close(outputs[0], np.asarray(model(tokens[:1]))[0])
    assert_close(outputs[1, 2:], np.asarray(model(tokens[1:, :-2]))[0])


def test_padding_in_the_middle_equals_the_whole_text():
    model, tokens = model_of(attention(position="alibi")), ids()
    tokens[0, 2:5] = 0
    cache = ka.generation.initial_cache(model, 2, LENGTH)
    whole = np.asarray(model(tokens))
    seen = tokens != 0
    assert_close(in_pieces(model, tokens, cache)[seen], whole[seen])


@pytest.mark.parametrize(
    "name", ["rotary", "window", "latent", "linear", "favor", "attention", "causal convolution"]
)
def test_without_masks_the_start_hides_padding(name):
    x = keras.Input((None, D))
    model = keras.Model(x, LAYERS[name](x))
    values = np.random.default_rng(1).normal(size=(1, LENGTH, D)).astype("float32")
    padded = np.concatenate([np.full((1, 2, D), 9, "float32"), values], axis=1)
    cache = ka.generation.initial_cache(model, 1, LENGTH + 2, start=[2])
    outputs = in_pieces(model, padded, cache, (0, 5, 6, LENGTH + 2))
    assert_close(outputs[:, 2:], np.asarray(model(values)))


@pytest.mark.slow
def test_initial_cache_shapes_follow_the_attention_settings():
    def sizes(make, **kwargs):
        cache = ka.generation.initial_cache(model_of(make), 2, 20, **kwargs)
        return sorted(tuple(x.shape) for x in cache.values() if "bool" not in str(x.dtype))

    assert sizes(attention()) == [(2, 3, 20, 4)] * 2
    assert sizes(attention(num_key_value_heads=1)) == [(2, 1, 20, 4)] * 2
    assert sizes(attention(mask=M.Causal() & M.Window(6))) == [(2, 3, 5, 4)] * 2
    assert sizes(attention(mask=M.Causal() & M.Window(60))) == [(2, 3, 20, 4)] * 2
    assert sizes(attention(), memory_length=7) == [(2, 3, 7, 4)] * 2
    assert sizes(LAYERS["latent"]) == [(2, 20, 7)]
    assert sizes(LAYERS["linear"]) == [(2, 2, 4, 5)]
    assert sizes(attention(), dtype="int8") == [(2, 3, 20, 1)] * 2 + [(2, 3, 20, 4)] * 2


def test_a_window_of_vectors_token_by_token():
    """Without masks of tokens, nothing but its number says that a place is empty still."""
    x = keras.Input((None, D))
    model = keras.Model(x, LAYERS["window, rotary"](x))
    values = np.random.default_rng(1).normal(size=(2, 9, D)).astype("float32")
    cache = ka.generation.initial_cache(model, 2, 20)
    assert_close(in_pieces(model, values, cache, range(10)), np.asarray(model(values)))


def test_windows_of_two_lengths_over_one_mask():
    model, tokens = model_of(lambda x: LAYERS["window"](x) + attention(sliding_window=6)(x)), ids()
    tokens[0, 3] = 0
    cache = ka.generation.initial_cache(model, 2, 20)
    whole, seen = np.asarray(model(tokens)), tokens != 0
    assert_close(in_pieces(model, tokens, cache, range(LENGTH + 1))[seen], whole[seen])


def test_a_piece_shorter_than_the_prefix_sees_no_empty_places():
    x = keras.Input((None, D))
    model = keras.Model(x, LAYERS["prefix"](x))
    values = np.random.default_rng(1).normal(size=(1, 2, D)).astype("float32")
    cache = ka.generation.initial_cache(model, 1, 9)
    with Decoding(cache, keras.ops.convert_to_tensor(0)):  # as in code that is traced
        piece = np.asarray(model(values))
    assert_close(piece, np.asarray(model(values)))


@pytest.mark.parametrize(("prefix", "length"), [(3, 3), (1100, 1200)])
def test_a_prefix_of_any_length_is_not_full_attention(prefix, length):
    model = model_of(attention(mask=M.Causal() | M.Prefix(prefix)))
    assert ka.generation.initial_cache(model, 1, length)
    with pytest.raises(ValueError, match=f"first {prefix} tokens attend to one another"):
        ka.generation.Decoder(model).check_lengths(prefix - 1, length)


def test_layers_with_one_mask_cache_it_once():
    cache = ka.generation.initial_cache(model_of(residual), 2, 20)
    assert [name for name, x in cache.items() if "bool" in str(x.dtype)] == ["tokens_mask"]


@pytest.mark.slow
def test_a_window_goes_on_without_end():
    model = model_of(attention(mask=M.Causal() & M.Window(4), position="rotary"))
    tokens = ids(length=40)
    cache = ka.generation.initial_cache(model, 2, 10)  # less than there are tokens
    pieces = (0, 9, *range(10, 41))
    assert_close(in_pieces(model, tokens, cache, pieces), np.asarray(model(tokens)))


@pytest.mark.parametrize("position", quick(["rotary", "alibi", "transformer_xl"], "transformer_xl"))
def test_memory_of_fixed_length_is_that_of_transformer_xl(position):
    model, tokens = model_of(attention(position=position)), ids(length=12)
    recurrent = ka.attention.SegmentRecurrence(model, memory_length=3)
    memory, expected = recurrent.initial_memory(2), []
    for segment in np.split(tokens, 4, axis=1):
        output, memory = recurrent(segment, memory)
        expected.append(np.asarray(output))
    cache = ka.generation.initial_cache(model, 2, 12, memory_length=3)
    outputs = in_pieces(model, tokens, cache, (0, 3, 6, 9, 12))
    assert_close(outputs, np.concatenate(expected, axis=1))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rotary", "window", "latent", "differential"])
def test_int8_caches_are_nearly_exact(name):
    model, tokens = model_of(LAYERS[name]), ids()
    cache = ka.generation.initial_cache(model, 2, LENGTH, dtype="int8")
    outputs, whole = in_pieces(model, tokens, cache), np.asarray(model(tokens))
    assert_close(outputs, whole, 0.1)
    assert np.abs(outputs - whole).max() > 1e-6  # it is rounded


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (attention(mask=None, name="both_ways"), "both_ways attends to later tokens .mask=None"),
        (
            attention(mask=M.Window(3), name="near"),
            r"near attends to later tokens",
        ),
        (lambda x: ka.blocks.ConvolutionModule(3, name="stem")(x), "stem looks ahead"),
        (lambda x: A.LinearAttention(3, 4, name="sums")(x, x), "sums looks ahead"),
        (
            lambda x: ka.blocks.MixtureOfExperts(
                [ka.blocks.FeedForward(4), ka.blocks.FeedForward(4)],
                capacity_factor=1.0,
                name="experts",
            )(x),
            "experts has a capacity",
        ),
        (
            attention(position=P.Rotary(scaling=P.scalings.DynamicNTK(2, 8))),
            "depends on the length of the text",
        ),
        (lambda x: keras.layers.GRU(4, return_sequences=True)(x), "is Keras's GRU"),
        (lambda x: ka.blocks.PrefixTokens(2)(x), "prefix_tokens.* adds tokens before"),
        (lambda x: keras.layers.Dense(4)(x), "depend only on the previous one"),
    ],
)
def test_initial_cache_refuses_layers_that_cannot_decode_stepwise(make, message):
    with pytest.raises(ValueError, match=message):
        ka.generation.initial_cache(model_of(make), 1, 8)


def test_a_scaled_scalar_needs_its_length():
    with pytest.raises(ValueError, match="divides by the length of the whole text"):
        ka.generation.initial_cache(model_of(attention(), P.Scalar()), 1, 8)


def test_learned_positions_end():
    with pytest.raises(ValueError, match=r"9 tokens .* more than the positions of Learned"):
        ka.generation.initial_cache(model_of(attention(), P.Learned(8)), 1, 9)


def test_arguments_about_all_tokens_are_refused():
    def segments(x):
        layer = A.MultiHeadAttention(3, 4, mask="causal", name="packed")
        return layer(x, x, segment_ids=np.ones((1, 2), "int32"))

    with pytest.raises(ValueError, match="packed .* was given segment_ids"):
        ka.generation.initial_cache(model_of(segments), 1, 8)


def test_the_cache_of_another_model():
    cache = ka.generation.initial_cache(model_of(attention(name="one")), 1, 8)
    other = model_of(attention(name="other"))
    with pytest.raises(RuntimeError, match="belongs to another model"):
        with ka.generation.decoding_scope(cache, 0):
            other(ids(1, 2))


@pytest.mark.parametrize("arguments", [(0, 8), (1, 0)])
def test_sizes_are_whole_numbers(arguments):
    with pytest.raises(ValueError, match="must be a whole number of at least 1"):
        ka.generation.initial_cache(model_of(attention()), *arguments)


def test_a_cache_is_kept_as_it_is_or_as_int8():
    with pytest.raises(ValueError, match="dtype='int4'"):
        ka.generation.initial_cache(model_of(attention()), 1, 8, dtype="int4")


@pytest.mark.slow
def test_tokens_after_the_end_are_refused():
    """Raise an error instead of overwriting the last tokens, if the index is known."""
    model = model_of(attention(name="full"))
    cache = ka.generation.initial_cache(model, 1, 8)
    with ka.generation.decoding_scope(cache, 5):
        model(ids(1, 3))
    with pytest.raises(ValueError, match="4 tokens after 5 do not fit the cache of full, .* for 8"):
        with ka.generation.decoding_scope(cache, 5):
            model(ids(1, 4))


@pytest.mark.parametrize("index", [np.int64(5), np.int8(5), "int64", "uint8"])
def test_where_a_piece_begins_may_be_any_whole_number(index):
    model = model_of(attention(name="any"))
    text, cache = ids(1, 8), ka.generation.initial_cache(model, 1, 8)
    with ka.generation.decoding_scope(cache, 0) as first:
        model(text[:, :5])
    index = keras.ops.convert_to_tensor(5, index) if isinstance(index, str) else index
    with ka.generation.decoding_scope(first.cache, index):
        last = keras.ops.convert_to_numpy(model(text[:, 5:]))
    assert np.allclose(last, keras.ops.convert_to_numpy(model(text))[:, 5:], atol=1e-6)
    with pytest.raises(ValueError, match="4 tokens after 5 do not fit"):
        with ka.generation.decoding_scope(first.cache, index):
            model(text[:, 4:])


@pytest.mark.tensorflow
@pytest.mark.parametrize("dtype", quick(["int32", "int64", "uint8"], "int64"))
def test_a_traced_index_may_be_of_any_whole_dtype(dtype):
    import tensorflow as tf

    model = model_of(attention(name="traced"))
    text, cache = ids(1, 8), ka.generation.initial_cache(model, 1, 8)

    @tf.function
    def step(tokens, cache, index):
        with ka.generation.decoding_scope(cache, index) as decoding:
            return model(tokens), decoding.cache

    _, cache = step(text[:, :5], cache, tf.constant(0, dtype))
    last, _ = step(text[:, 5:], cache, tf.constant(5, dtype))
    assert np.allclose(last, model(text)[:, 5:], atol=1e-6)


@pytest.mark.tensorflow
def test_a_traced_index_after_the_end_is_an_error_of_the_graph():
    import tensorflow as tf

    model = model_of(attention(name="first"))
    text, cache = ids(1, 8), ka.generation.initial_cache(model, 1, 8)

    @tf.function(input_signature=[tf.TensorSpec((1, None), "int32"), tf.TensorSpec((), "int32")])
    def step(tokens, index):
        with ka.generation.decoding_scope(cache, index):
            return model(tokens)

    assert step(text[:, :3], 5).shape[1] == 3
    for length, index in ((3, 6), (1, 8), (8, 2)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="do not fit the cache of first"):
            step(text[:, :length], index)


@pytest.mark.parametrize("index", [-1, 1.0, None, [3], np.array([3, 4])])
def test_where_a_piece_begins_is_a_whole_number(index):
    with pytest.raises(ValueError, match="index="):
        ka.generation.decoding_scope({}, index)
