"""Call arguments of attention: masks, positions and segments that do not fit are refused."""

import keras
import numpy as np
import pytest

import keras_attention as ka

B, T, S, D = 2, 5, 7, 8
random = np.random.default_rng(0)
QUERY = random.normal(size=(B, T, D)).astype("float32")
VALUE = random.normal(size=(B, S, D)).astype("float32")


def multi_head(**arguments):
    return ka.attention.MultiHeadAttention(2, 4, **arguments)


LAYERS = {
    "multi_head": multi_head,
    "differential": lambda: ka.attention.DifferentialAttention(2, 4),
    "latent": lambda: ka.attention.LatentAttention(2, 4, 4, 4),
    "residual": lambda: ka.attention.ResidualAttention(2, 4),
    "memorizing": lambda: ka.attention.MemorizingAttention(2, 4, memory_length=3),
}

WRONG = {
    "query_mask": [np.ones((B, T + 1), bool), np.ones((B + 1, T), bool), np.ones(T, bool)],
    "value_mask": [np.ones((B, S - 1), bool), np.ones((B, 1), bool), np.ones((B, S, 1), bool)],
    "attention_mask": [
        np.ones((B, T, S + 1), bool),
        np.ones((B, S, T), bool),
        np.ones((B + 1, T, S), bool),
        np.ones((B, 3, T, S), bool),
        np.ones(S, bool),
        np.ones((1, B, 2, T, S), bool),
    ],
    "query_positions": [np.arange(1), np.arange(T + 1), np.zeros((B + 1, T)), np.zeros((1, B, T))],
    "value_positions": [np.arange(1), np.arange(T), np.zeros((B, S + 1))],
}
CASES = [(name, x) for name, several in WRONG.items() for x in several]


@pytest.mark.parametrize("name, x", CASES, ids=lambda x: str(getattr(x, "shape", x)))
@pytest.mark.parametrize("layer", LAYERS)
def test_attention_refuses_masks_and_positions_of_wrong_shape(layer, name, x):
    shape = r"\(" + r",\s*".join(map(str, x.shape))
    with pytest.raises(ValueError, match=rf"{layer}.* given {name} of shape {shape}"):
        LAYERS[layer]()(QUERY, VALUE, **{name: x})


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize(
    "segments",
    [
        {"segment_ids": np.ones((B, T + 1), int), "value_segment_ids": np.ones((B, S), int)},
        {"segment_ids": np.ones((B, T), int), "value_segment_ids": np.ones((B, T), int)},
        {"segment_ids": np.ones((B, T), int)},  # also those of the values
        {"segment_ids": np.ones(T, int), "value_segment_ids": np.ones((B, S), int)},
    ],
    ids=["query", "value", "default", "rank"],
)
def test_segments_that_do_not_fit_are_refused(layer, segments):
    with pytest.raises(ValueError, match=r"given (value_)?segment_ids of shape .*does not fit"):
        LAYERS[layer]()(QUERY, VALUE, **segments)


@pytest.mark.parametrize("layer", LAYERS)
def test_segments_only_of_the_values_are_refused(layer):
    segments = np.array([[1, 1, 0, 0, 0, 0, 0]] * B)
    with pytest.raises(ValueError, match=r"value_segment_ids came without segment_ids.*value_mask"):
        LAYERS[layer]()(QUERY, VALUE, value_segment_ids=segments)


def test_attention_accepts_masks_and_positions_of_matching_shape():
    layer = multi_head()
    plain = np.asarray(layer(QUERY, VALUE))
    for name, x in {
        "query_mask": np.ones((1, T), bool),
        "value_mask": np.ones((B, S), "float32"),
        "key_mask": np.ones((B, S), "int32"),
        "query_positions": np.arange(T),
        "value_positions": np.zeros((1, S), int),
        **{f"attention_mask{rank}": np.ones((B, 2, T, S)[-rank:]) for rank in (2, 4)},
        "attention_mask3": np.ones((B, 1, S), "float32"),
    }.items():
        name = name.rstrip("0123456789")
        np.testing.assert_allclose(layer(QUERY, VALUE, **{name: x}), plain, atol=1e-6)


def test_linear_attention_and_attention_refuse_masks_that_do_not_fit():
    with pytest.raises(ValueError, match=r"linear.* given value_mask of shape \(2, 6\)"):
        ka.attention.LinearAttention(2, 4)(QUERY, VALUE, value_mask=np.ones((B, 6), bool))
    masks = [np.ones((B, T), bool), np.ones((B, T), bool)]
    with pytest.raises(ValueError, match=r"attention.* given value_mask of shape \(2, 5\)"):
        ka.attention.Attention()([QUERY, VALUE], mask=masks)


def test_wrong_sizes_are_refused_when_a_model_is_built():
    x, mask = keras.Input((T, D)), keras.Input((T, T + 1), dtype="bool")
    with pytest.raises(ValueError, match=r"attention_mask of shape \(None, 5, 6\)"):
        multi_head()(x, x, attention_mask=mask)
    with pytest.raises(ValueError, match=r"query_positions of shape \(None, 4\)"):
        multi_head()(x, x, query_positions=keras.Input((4,), dtype="int32"))
    y, short = keras.Input((None, D)), keras.Input((None, None), dtype="bool")
    assert multi_head()(y, y, attention_mask=short).shape == (None, None, D)  # accepted


def test_arguments_over_several_axes():
    x = random.normal(size=(B, 3, 4, D)).astype("float32")
    rows, grid = multi_head(attention_axes=2), multi_head(attention_axes=(1, 2))
    assert rows(x, x, query_mask=np.ones((B, 3, 4), bool)).shape == x.shape
    assert grid(x, x, attention_mask=np.ones((B, 3, 4, 3, 4), bool)).shape == x.shape
    assert grid(x, x, query_positions=np.arange(12)).shape == x.shape
    for layer, wrong in [
        (rows, {"query_mask": np.ones((B, 12), bool)}),
        (rows, {"query_mask": np.ones((1, 3, 4), bool)}),
        (rows, {"attention_mask": np.ones((B, 4, 3), bool)}),
        (grid, {"attention_mask": np.ones((B, 12, 12), bool)}),
        (grid, {"attention_mask": np.ones((B, 3, 4, 4, 3), bool)}),
        (grid, {"value_positions": np.arange(4)}),
    ]:
        with pytest.raises(ValueError, match=f"given {next(iter(wrong))} of shape"):
            layer(x, x, **wrong)


ATTEND = {
    "attention_mask": np.ones((B, 1, S, T), bool),
    "bias": np.ones((3, T, S), "float32"),
    "query_mask": np.ones((B, S), bool),
    "key_mask": np.ones((B, T), bool),
    "query_positions": np.arange(1),
    "key_positions": np.arange(S + 1),
}


@pytest.mark.parametrize("name", ATTEND)
def test_attend_refuses_arguments_of_wrong_shape(name):
    query, key = QUERY.reshape(B, T, 2, 4), VALUE.reshape(B, S, 2, 4)
    with pytest.raises(ValueError, match=rf"attend was given {name} of shape"):
        if name == "bias":
            ka.attention.attend(query, key, key, bias=ATTEND[name])
        else:
            visibility = ka.attention.Visibility(**{name: ATTEND[name]})
            ka.attention.attend(query, key, key, mask=visibility)


def test_attend_refuses_tensors_without_heads():
    with pytest.raises(ValueError, match=r"query \(2, 5, 8\).*Split the heads"):
        ka.attention.attend(QUERY, VALUE, VALUE)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_mask_for_addition_is_refused(layer):
    """Refuse a mask for addition, which would be inverted as a bool: -1e9 is True, 0 is False."""
    added = np.where(np.arange(S) < 4, 0.0, -1e9)[None, None] + np.zeros((B, T, S))
    with pytest.raises(ValueError, match=r"values from -1e\+09 to 0.*mask != 0.*mask == 0.*bias="):
        LAYERS[layer]()(QUERY, VALUE, attention_mask=added)
    with pytest.raises(ValueError, match=r"value_mask as float32 with values from -1e\+09 to 0"):
        LAYERS[layer]()(QUERY, VALUE, value_mask=added[:, 0].astype("float32"))
    as_bool, as_float = (LAYERS[layer]() for _ in range(2))
    expected = as_bool(QUERY, VALUE, attention_mask=added == 0)
    as_float(QUERY, VALUE)
    as_float.set_weights(as_bool.get_weights())
    output = as_float(QUERY, VALUE, attention_mask=(added == 0).astype("float32"))
    np.testing.assert_allclose(output, expected, atol=1e-6)


def test_a_float_mask_of_unknown_values_is_refused():
    x, mask = keras.Input((None, D)), keras.Input((None, None))
    with pytest.raises(ValueError, match=r"as float32 with unknown values.*mask != 0"):
        multi_head()(x, x, attention_mask=mask)
    model = keras.Model([x, mask], multi_head()(x, x, attention_mask=mask != 0))
    assert model([QUERY, np.ones((B, T, T), "float32")]).shape == (B, T, D)


@pytest.mark.tensorflow
def test_a_constant_float_mask_in_a_graph_is_accepted():
    import tensorflow as tf

    layer, causal = multi_head(dtype="mixed_bfloat16"), np.tril(np.ones((T, T), "float32"))
    expected = layer(QUERY, QUERY, attention_mask=causal == 1)
    run = tf.function(lambda x: layer(x, x, attention_mask=causal), autograph=False)
    np.testing.assert_allclose(
        tf.cast(run(QUERY), "float32"), tf.cast(expected, "float32"), atol=1e-2
    )
    added = tf.function(lambda x: layer(x, x, attention_mask=causal - 1), autograph=False)
    with pytest.raises(ValueError, match="values from -1 to 0"):
        added(QUERY)


class Turned(ka.scores.Score):
    """A score of a user, with its axes in another order."""

    def __call__(self, query, key):
        return keras.ops.einsum("btnh,bsnh->btns", query, key)


class Folded(ka.scores.Score):
    """A score of a user, with a folded query in the order of scores."""

    def __call__(self, query, key):
        return ka.scores.Dot()(query, key)

    def fold(self, query, key):
        return keras.ops.transpose(query, (0, 2, 1, 3)), key, 1.0


@pytest.mark.parametrize(
    "parts", [{}, {"num_memory_slots": 2}, {"num_key_value_heads": 1}], ids=str
)
def test_wrong_axes_of_a_score_are_refused(parts):
    with pytest.raises(ValueError, match=r"Turned returned scores of shape \(\d+, \d+, 2, \d\)"):
        multi_head(score=Turned(), **parts)(QUERY, VALUE)
    message = r"Turned returned scores .*\(batch, heads, queries, keys\) = \(2, 2, 5, 7\)"
    with pytest.raises(ValueError, match=message):
        ka.attention.ResidualAttention(2, 4, score=Turned())(QUERY, VALUE)
    with pytest.raises(
        ValueError, match=r"Folded returned query of shape \(2, 2, 5, 4\).*\(2, 5, 2, None"
    ):
        multi_head(score=Folded())(QUERY, VALUE)


GRID = (2, 3)
IMAGE = (
    np.random.default_rng(0).normal(size=(1, 7, 8)).astype("float32")
)  # a class token, 2 · 3 patches

GRIDS = {
    "window": {"mask": ka.masks.Window2D(2, GRID, prefix=1)},
    "combined": {"mask": ~(ka.masks.Full() & ~ka.masks.Window2D(2, GRID, prefix=1))},
    "rotary": {"position": ka.positions.Rotary(grid=GRID, prefix=1)},
    "several": {"position": ["alibi", ka.positions.Rotary(grid=GRID, prefix=1)]},
    "swin": {"position": ka.positions.SwinBias(GRID, prefix=1)},
}


def differential(**parts):
    return ka.attention.DifferentialAttention(2, 4, **parts)


def latent(**parts):
    return ka.attention.LatentAttention(2, 4, 4, 4, **parts)


@pytest.mark.parametrize("make", [multi_head, differential, latent])
@pytest.mark.parametrize("name", GRIDS)
def test_lengths_that_do_not_fit_the_grid_are_refused(make, name):
    if make is latent and name in ("several", "swin"):
        pytest.skip("latent attention takes no bias")
    layer = make(**GRIDS[name])
    assert layer(IMAGE, IMAGE).shape == IMAGE.shape
    for length, word in ((6, "shorter"), (8, "longer")):
        wrong = np.resize(IMAGE, (1, length, 8))
        with pytest.raises(
            ValueError, match=rf"length {length} is {word} than .*1 \+ 2 · 3 positions"
        ):
            layer(wrong, wrong)
        with pytest.raises(ValueError, match=rf"length {length} is {word}"):
            layer(IMAGE, wrong)  # wrong keys


@pytest.mark.parametrize("name", GRIDS)
def test_explicit_positions_allow_any_length(name):
    layer = multi_head(**GRIDS[name])
    whole = np.asarray(layer(IMAGE, IMAGE))
    order = np.array([4, 6, 0, 1])
    query = layer(IMAGE[:, order], IMAGE, query_positions=order, value_positions=np.arange(7))
    np.testing.assert_allclose(query, whole[:, order], atol=1e-5)


@pytest.mark.parametrize("name", GRIDS)
def test_causal_attention_accepts_the_beginning_of_an_image(name):
    layer = multi_head(**GRIDS[name])
    whole = np.asarray(layer(IMAGE, IMAGE, use_causal_mask=True))
    begun = layer(IMAGE[:, :5], IMAGE[:, :5], use_causal_mask=True)
    np.testing.assert_allclose(begun, whole[:, :5], atol=1e-5)
    more = np.resize(IMAGE, (1, 8, 8))
    with pytest.raises(ValueError, match="length 8 is longer"):
        layer(more, more, use_causal_mask=True)


def test_a_model_accepts_an_unknown_length_and_refuses_a_wrong_one():
    x = keras.Input((None, 8))
    model = keras.Model(x, multi_head(**GRIDS["rotary"], **GRIDS["window"])(x, x))
    assert model(IMAGE).shape == IMAGE.shape
    with pytest.raises(ValueError, match="length 5 is shorter"):
        model(IMAGE[:, :5])


@pytest.mark.slow
def test_an_image_model_decodes():
    position = ka.positions.Rotary(grid=(3, 3), prefix=1)
    size = dict(num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8)
    model = ka.models.causal_language_model(9, position=position, **size)
    prompt = np.array([[1, 5, 7]])
    new = ka.generation.generate(model, prompt, max_new_tokens=4)
    tokens = np.concatenate([prompt, new], axis=1)
    for end in range(3, 7):
        logits = np.asarray(model(tokens[:, :end]))[0, -1]
        assert tokens[0, end] == np.argmax(logits[1:]) + 1  # 0 is padding
    with pytest.raises(ValueError, match=r"Rotary.*10"):
        ka.generation.generate(model, prompt, max_new_tokens=12)


@pytest.mark.parametrize("grid", [(2, 2), (2, 4)], ids=str)
@pytest.mark.parametrize("kind", [ka.positions.Sinusoidal2D, ka.positions.Learned2D])
def test_patches_of_another_grid_are_refused(kind, grid):
    position = kind(grid)
    with pytest.raises(ValueError, match=r"length 7 is (shorter|longer) than (Sinus|Learned).*2D"):
        ka.blocks.PatchEmbedding(8, 4, position=position)(np.ones((1, 8, 12, 3), "float32"))


@pytest.mark.parametrize("shape", [(D,), (T, D)], ids=str)
@pytest.mark.parametrize("name", [*LAYERS, "linear", "attention", "block"])
def test_a_sequence_without_a_batch_is_refused(name, shape):
    more = {
        "linear": lambda: ka.attention.LinearAttention(2, 4),
        "attention": ka.attention.Attention,
        "block": lambda: ka.blocks.EncoderBlock(multi_head(), ka.blocks.FeedForward(9)),
    }
    layer, x = {**LAYERS, **more}[name](), np.ones(shape, "float32")
    arguments = ([x, x],) if name == "attention" else (x,) if name == "block" else (x, x)
    with pytest.raises(ValueError, match="length, features"):
        layer(*arguments)
    symbols = [keras.Input(batch_shape=shape) for _ in arguments]
    symbols = ([symbols[0], symbols[0]],) if name == "attention" else symbols
    with pytest.raises(ValueError, match="length, features"):
        layer(*symbols)
