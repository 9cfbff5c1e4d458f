"""Stacks of blocks: templates, norms, shared weights, and keywords of builders."""

import inspect

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.blocks import residuals
from keras_attention.core import keras_internals
from keras_attention.models.seq2seq_transformer import SIZES
from tests.export.helpers import assert_exports
from tests.stacks import make_encoder
from tests.tables import assert_lists

random = np.random.default_rng(0)
B, T, D = 2, 5, 8
X = random.normal(size=(B, T, D)).astype("float32")


def stack(**settings):
    tokens = keras.Input((None, D), name="tokens")
    size = dict(num_layers=4, num_heads=2, hidden_dim=D, intermediate_dim=12)
    return keras.Model(tokens, make_encoder(**size | settings)(tokens))


def attend(**settings):
    return ka.attention.MultiHeadAttention(2, 4, **settings)


def stack_of(attention, num_layers=2, **settings):
    """Build a model of a stack with these templates."""
    tokens = keras.Input((None, D), name="tokens")
    feed_forward = ka.blocks.FeedForward(12)
    encoder = ka.models.TransformerEncoder(
        num_layers, attention=attention, feed_forward=feed_forward, **settings
    )
    return keras.Model(tokens, encoder(tokens))


@pytest.mark.parametrize("decoder", [False, True])
def test_each_block_is_a_copy_of_its_templates(decoder):
    attention = attend(qk_norm="rms_norm", qkv_bias=True, use_bias=False, position="relative_bias")
    templates = dict(attention=attention, feed_forward=ka.blocks.FeedForward(12, "swiglu"))
    tokens, source = keras.Input((None, D)), [keras.Input((None, 6))] * decoder
    if decoder:
        templates["cross_attention"] = attend(score="dot")
    kind = ka.models.TransformerDecoder if decoder else ka.models.TransformerEncoder
    model = keras.Model([tokens, *source], kind(3, **templates, name="part")(tokens, *source))
    blocks = [model.get_layer(f"part_{i}") for i in range(3)]
    for name, template in templates.items():
        copies = [getattr(block, name) for block in blocks]
        assert len({id(layer) for layer in [template, *copies]}) == 4 and not template.built
        for layer in copies:
            config = {**template.get_config(), "name": name}
            if decoder and name == "attention":
                assert layer.mask == ka.masks.Causal()
                config["mask"] = layer.get_config()["mask"]
            assert layer.get_config() == config
    positions = {id(block.attention.position) for block in blocks}
    assert len(positions) == 3


def test_a_list_has_an_attention_and_a_feed_forward_network_for_each_layer():
    masks = ["causal", ka.masks.Window(2)]
    encoder = ka.models.TransformerEncoder(
        2,
        attention=[attend(mask=mask) for mask in masks],
        feed_forward=[
            ka.blocks.FeedForward(12),
            ka.blocks.MixtureOfExperts([ka.blocks.FeedForward(9)], 1),
        ],
    )
    tokens = keras.Input((None, D))
    model = keras.Model(tokens, encoder(tokens))
    blocks = [model.get_layer(f"block_{i}") for i in range(2)]
    assert [block.attention.mask for block in blocks] == [ka.masks.get(mask) for mask in masks]
    assert isinstance(blocks[1].feed_forward, ka.blocks.MixtureOfExperts)


def test_any_attention_layer_may_be_a_template():
    model = stack_of(keras.layers.MultiHeadAttention(2, 4))
    assert type(model.get_layer("block_1").attention) is keras.layers.MultiHeadAttention


@pytest.mark.parametrize("norm", residuals.NAMES)
def test_the_end_of_a_stack_depends_on_its_norm(norm):
    model = stack(norm=norm, num_layers=2)
    blocks = [model.get_layer(f"block_{i}") for i in range(2)]
    x = X
    for block in blocks:
        x = block(x)
    if norm in ("pre", "sandwich"):
        x = model.get_layer("final_norm")(x)
    if norm == "resi_dual":
        x = x[0] + model.get_layer("final_norm")(x[1])
    assert ("final_norm" in [layer.name for layer in model.layers]) == (
        norm in ("pre", "sandwich", "resi_dual")
    )
    np.testing.assert_allclose(model(X), x, atol=1e-6)


def test_a_stack_may_leave_out_its_first_norm():
    model = stack(norm=ka.blocks.PreNorm(first_norm=False), num_layers=3)
    norms = [model.get_layer(f"block_{i}").norm for i in range(3)]
    assert norms == [ka.blocks.PreNorm(first_norm=False), ka.blocks.PreNorm(), ka.blocks.PreNorm()]
    with pytest.raises(ValueError, match="num_blocks=1: the first block also runs in later layers"):
        stack(norm=ka.blocks.PreNorm(first_norm=False), num_blocks=1)


def test_a_stack_may_end_without_a_norm():
    plain, model = (
        stack(num_layers=2, norm=ka.blocks.PreNorm(final_norm=last)) for last in (True, False)
    )
    assert "final_norm" not in [layer.name for layer in model.layers]
    model.set_weights(plain.get_weights()[:-2])
    np.testing.assert_allclose(plain.get_layer("final_norm")(model(X)), plain(X), atol=1e-6)


@pytest.mark.slow
def test_two_streams_export():
    assert_exports(stack(norm="resi_dual", num_layers=2))


@pytest.mark.parametrize("norm", ["deep_norm", "rezero", "resi_dual"])
@pytest.mark.sweep
def test_norms_train(norm):
    """Train two layers to predict the first token everywhere."""
    model = stack(norm=norm, num_layers=2, position="rotary")
    y = np.repeat(X[:, :1], T, axis=1)
    model.compile(keras.optimizers.Adam(0.01), "mse")
    history = model.fit(X, y, epochs=40, verbose=0).history["loss"]
    assert history[-1] < 0.6 * history[0]


def test_the_depth_of_deep_norm_is_that_of_the_stack():
    model = stack(norm="deep_norm", num_layers=3, num_blocks=1)
    assert model.get_layer("block_0").norm == ka.blocks.DeepNorm(3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "num_blocks, order", [(None, [0, 1, 2, 3]), (1, [0] * 4), (2, [0, 0, 1, 1]), (3, [0, 0, 1, 2])]
)
def test_neighboring_layers_share_a_block(num_blocks, order):
    model = stack(num_blocks=num_blocks, norm="post", position="relative_bias")
    x = X
    for i in order:
        x = model.get_layer(f"block_{i}")(x)
    np.testing.assert_allclose(model(X), x, atol=1e-6)
    one = stack(num_layers=1, norm="post", position="relative_bias").count_params()
    assert model.count_params() == (max(order) + 1) * one
    with ka.visualization.record_attention(model) as maps:
        model(X)
    runs = [f"block_{i}/attention" for i in order]
    assert list(maps) == [
        path + (f":{runs[:n].count(path)}" if runs[:n].count(path) else "")
        for n, path in enumerate(runs)
    ]


@pytest.mark.slow
def test_shared_weights_train_save_and_export_once(tmp_path):
    model = stack(num_blocks=1)
    model.compile(keras.optimizers.Adam(0.01), "mse")
    history = model.fit(X, X[:, ::-1], epochs=20, verbose=0).history["loss"]
    assert history[-1] < 0.7 * history[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.count_params() == model.count_params()
    np.testing.assert_allclose(loaded(X), model(X), atol=1e-6)
    shared, own = (
        sum(each.constant for each in assert_exports(made).constants)
        for made in (stack(num_blocks=1), stack())
    )
    assert shared < 0.4 * own


@pytest.mark.slow
def test_a_functional_model_may_call_a_block_twice():
    """Call the blocks in turn, as CYCLE of Takase and Kiyono (2021)."""
    size = dict(attention=ka.attention.MultiHeadAttention, feed_forward=ka.blocks.FeedForward)
    blocks = [
        ka.blocks.EncoderBlock(
            size["attention"](2, 4, name="look"), size["feed_forward"](9), name=name
        )
        for name in ("even", "odd")
    ]
    tokens = x = keras.Input((None, D), name="tokens")
    for i in range(4):
        x = blocks[i % 2](x)
    model = keras.Model(tokens, x)
    with ka.visualization.record_attention(model) as maps:
        model(X)
    assert list(maps) == ["even/look", "odd/look", "even/look:1", "odd/look:1"]
    assert_exports(model)


@pytest.mark.parametrize("num_blocks", [0, 5, 1.5])
def test_refuses_block_counts(num_blocks):
    with pytest.raises(ValueError, match=f"num_blocks={num_blocks}"):
        stack(num_blocks=num_blocks)


SIZE = dict(num_layers=1, num_heads=2, hidden_dim=D, intermediate_dim=12)


def test_a_decoder_hides_later_tokens_but_not_its_source():
    decoder = ka.models.TransformerDecoder.of_size(
        **SIZE, position="rotary", cross_position="alibi"
    )
    tokens, encoded = keras.Input((None, D)), keras.Input((None, 6))
    model = keras.Model([tokens, encoded], decoder(tokens, encoded))
    source = random.normal(size=(B, 3, 6)).astype("float32")
    later, other = X.copy(), source.copy()
    later[:, -1] += 1
    other[:, -1] += 1
    expected = model([X, source])
    np.testing.assert_allclose(model([later, source])[:, :-1], expected[:, :-1], atol=1e-6)
    assert np.abs(model([X, other]) - expected)[:, 0].max() > 1e-3
    assert model.get_layer("block_0").cross_attention.position == ka.positions.ALiBi()


def test_each_call_of_a_stack_makes_its_own_weights():
    encoder = make_encoder(2, 2, D, 12, position="relative_bias", shared_position=True)
    tokens = keras.Input((None, D))
    models = [keras.Model(tokens, encoder(tokens)) for _ in range(2)]
    shared = [
        {id(model.get_layer(f"block_{i}").attention.position) for i in range(2)} for model in models
    ]
    assert len(shared[0]) == len(shared[1]) == 1 and shared[0] != shared[1]


def test_deep_norm_of_a_decoder_counts_three_branches():
    decoder = ka.models.TransformerDecoder.of_size(**SIZE, norm="deep_norm")
    tokens = keras.Input((None, D))
    model = keras.Model(tokens, decoder(tokens, tokens))
    assert model.get_layer("block_0").norm == ka.blocks.DeepNorm(1, num_branches=3)


@pytest.mark.parametrize(
    "wrong, message",
    [
        (dict(num_heads=3), "num_heads=3 does not divide hidden_dim=8. Choose one of 1, 2, 4, 8"),
        (dict(position="learned"), "Learned needs max_length"),
        (dict(hidden_dim=16), r"TransformerEncoder\(hidden_dim=16\) was called on .* size 8"),
        (dict(norm="pose"), "pose"),
        (dict(position="rotery"), "rotery"),
        (dict(position="sinusoidal"), "added to tokens, which is the work of an embedding"),
        (dict(position=["alibi", "scalar"]), r"position=Scalar\(.* is added to embeddings"),
    ],
)
def test_refuses(wrong, message):
    with pytest.raises(ValueError, match=message):
        stack(**wrong)


@pytest.mark.parametrize(
    "attention, settings, message",
    [
        ([attend()], {}, "attention has 1 layers for num_layers=2"),
        ([attend()] * 2, {"num_blocks": 1}, "leave num_blocks out"),
        ("multi_head", {}, "attention='multi_head': expected a layer"),
        ([attend(), attend()], {"shared_position": True}, "one layer of ka.attention for all"),
    ],
)
def test_refuses_templates(attention, settings, message):
    with pytest.raises(ValueError, match=message):
        stack_of(attention, **settings)


def test_a_decoder_refuses_an_attention_that_cannot_hide_the_future():
    attention = keras.layers.MultiHeadAttention(2, 4)
    layers = dict(
        attention=attention, cross_attention=attention, feed_forward=ka.blocks.FeedForward(9)
    )
    with pytest.raises(
        ValueError, match="causal=True with attention=.* takes no mask of this package"
    ):
        ka.models.TransformerDecoder(1, **layers)
    x = keras.Input((None, D))
    assert ka.models.TransformerDecoder(1, **layers, causal=False)(x, x).shape == (None, None, D)


def test_every_layer_may_have_its_own_mask_and_position():
    """Compare each block with that of a stack of equal layers."""
    masks, positions = (
        ["causal", ka.masks.Window(2)],
        [None, ka.positions.Rotary(max_wavelength=50.0)],
    )
    model = stack_of(
        [attend(mask=mask, position=place) for mask, place in zip(masks, positions, strict=True)]
    )
    x = X
    for i in range(2):
        alike = stack(num_layers=2, mask=masks[i], position=positions[i])
        alike.set_weights(model.get_weights())
        x = alike.get_layer(f"block_{i}")(x)
    np.testing.assert_allclose(model(X), model.get_layer("final_norm")(x), atol=1e-6)
    encoder = ka.models.TransformerEncoder(
        2,
        attention=[attend(mask="full"), attend(mask=ka.masks.Window(2))],
        feed_forward=ka.blocks.FeedForward(12),
    )
    language = ka.models.causal_language_model(9, hidden_dim=D, encoder=encoder)
    ids = np.array([[3, 4, 5, 6]])
    changed = np.array([[3, 4, 5, 7]])
    np.testing.assert_allclose(language(ids)[:, :3], language(changed)[:, :3], atol=1e-6)


def test_only_queries_keys_and_values_have_a_bias():
    model = stack_of(attend(use_bias=False, qkv_bias=True))
    attention = model.get_layer("block_0").attention
    biased = [dense.bias is not None for dense in (attention.query_dense, attention.key_dense)]
    assert biased == [True, True] and attention.value_dense.bias is not None
    assert attention.output_dense.bias is None
    again = type(attention).from_config(attention.get_config())
    assert again.qkv_bias is True and again.use_bias is False


STACKED = {
    "causal_language_model": (9,),
    "constituency_parser": (9, 4, 3),
    "dependency_parser": (9, 4),
    "image_encoder": (16,),
    "image_to_sequence": (16, 9),
    "masked_language_model": (9,),
    "object_detector": (16, 4),
    "question_answerer": (9,),
    "seq2seq_transformer": (9,),
    "sequence_labeler": (9, 4),
    "speech_recognizer": (9,),
    "speech_to_text": (9,),
    "text_classifier": (9, 4),
    "text_encoder": (9,),
    "vision_transformer": (16, 4),
}


TEXTS = {
    name: arguments
    for name, arguments in STACKED.items()
    if name.startswith(("constituency", "dependency", "masked", "question", "sequence", "text"))
}


def test_all_builders_of_stacks_are_listed():
    signatures = {name: inspect.signature(getattr(ka.models, name)) for name in ka.models.__all__}
    takes = {
        name for name, signature in signatures.items() if "intermediate_dim" in signature.parameters
    }
    stacks = {"encoder_decoder"}
    assert_lists("STACKED of tests/models/test_transformer.py", STACKED, takes - stacks)


@pytest.mark.parametrize("builder", [*STACKED, "encoder_decoder"])
def test_builders_refuse_unknown_keywords(builder):
    args = STACKED.get(builder, (9,))
    with pytest.raises(TypeError, match=rf"{builder}\(\) got an unexpected keyword argument 'zzz'"):
        getattr(ka.models, builder)(*args, zzz=1)


UNUSED = {"num_layers": 9, "score": "cosine", "mask": "causal", "position": "alibi"}
PAIRS = [(builder, name) for builder in TEXTS for name in UNUSED]
PAIRS.remove(("constituency_parser", "score"))  # its decoder has it as well


@pytest.mark.parametrize("builder, name", PAIRS)
def test_builders_refuse_arguments_without_effect_on_an_encoder(builder, name):
    encoder, unused = make_encoder(1, 2, D, 12), {name: UNUSED[name]}
    with pytest.raises(ValueError, match=rf"{builder}\({name}=.*encoder=.*has no effect on"):
        getattr(ka.models, builder)(*TEXTS[builder], hidden_dim=D, encoder=encoder, **unused)


@pytest.mark.parametrize(
    "builder, args",
    {
        "image_to_sequence": (16, 9),
        "seq2seq_transformer": (9,),
        "speech_to_text": (9,),
    }.items(),
)
def test_builders_refuse_a_rotating_position_without_effect_on_a_decoder(builder, args):
    decoder = ka.models.TransformerDecoder.of_size(1, 2, D, 12)
    with pytest.raises(
        ValueError, match=rf"{builder}\(decoder_position=Rotary.*decoder=.*no effect"
    ):
        getattr(ka.models, builder)(*args, hidden_dim=D, decoder=decoder, decoder_position="rotary")


@pytest.mark.parametrize("builder", TEXTS)
def test_any_function_of_vectors_may_be_an_encoder(builder):
    build, args = getattr(ka.models, builder), TEXTS[builder]
    more = {"num_heads": 2} if builder == "constituency_parser" else {}  # of its decoder
    encoder = keras.layers.Dense(D, "tanh", name="any")
    model = build(*args, hidden_dim=D, encoder=encoder, position="sinusoidal", **more)
    layers = [layer for layer in keras_internals.all_layers(model) if layer.name == "any"]
    assert layers == [encoder]


def test_an_image_has_as_many_positions_as_patches():
    with pytest.raises(TypeError, match="max_length"):
        ka.models.vision_transformer(16, 4, max_length=9)


def test_builders_take_any_stack():
    encoder = ka.models.TransformerEncoder(
        1, attention=attend(use_bias=False), feed_forward=ka.blocks.FeedForward(9), epsilon=1e-3
    )
    model = ka.models.sequence_labeler(9, 4, hidden_dim=D, encoder=encoder)
    block = model.get_layer("block_0")
    assert not block.attention.use_bias and block.epsilon == 1e-3


def test_sizes_are_those_of_the_paper():
    """Vaswani et al. (2017), table 3."""
    names = ("num_layers", "num_heads", "hidden_dim", "intermediate_dim", "dropout")
    rows = {"base": (6, 8, 512, 2048, 0.1), "big": (6, 16, 1024, 4096, 0.3)}
    assert SIZES == {name: dict(zip(names, row, strict=True)) for name, row in rows.items()}
