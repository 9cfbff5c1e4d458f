"""The builders: sizes of papers, padding, training, structure, errors."""

import dataclasses
import pathlib
import re

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention import models
from keras_attention.models.head import make_transform
from tests import contract
from tests.grids import sampled
from tests.stacks import embed_characters, make_encoder, make_writer
from tests.tables import assert_lists, list_builders

STRUCTURE = pathlib.Path(__file__).parent / "structure"
random = np.random.default_rng(0)


def leave_out_sizes(size, parts):
    """Return the sizes that a builder takes together with these parts."""
    if "encoder" not in parts and "decoder" not in parts:
        return size
    return {name: size[name] for name in size if name in ("hidden_dim", "patch_size")}


def labeler(**kwargs):
    size = dict(num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=20)
    return ka.models.sequence_labeler(50, 7, **{**size, **kwargs})


def vision(**kwargs):
    size = dict(num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=20, patch_size=2)
    size = leave_out_sizes(size, kwargs)
    return ka.models.vision_transformer(8, 7, num_channels=1, **{**size, **kwargs})


def detector(**kwargs):
    size = dict(num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=20, patch_size=2)
    size = leave_out_sizes(size, kwargs)
    return ka.models.object_detector((4, 8), 7, **{**size, **kwargs})


def recognizer(sound=None, **kwargs):
    size = dict(num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=20)
    size = leave_out_sizes(size, kwargs)
    embedding = ka.models.SpeechEmbedding(**{"num_mel_bins": 12, **(sound or {})})
    return ka.models.speech_recognizer(7, embedding=embedding, **{**size, **kwargs})


def transcriber(sound=None, **kwargs):
    size = dict(num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=20)
    embedding = ka.models.SpeechEmbedding(**{"num_mel_bins": 12, **(sound or {})})
    size = leave_out_sizes(size, kwargs)
    return ka.models.speech_to_text(7, embedding=embedding, **{**size, **kwargs})


def classifier(**kwargs):
    size = dict(num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=20)
    return ka.models.text_classifier(50, 7, **{**size, **kwargs})


def language_model(builder, **kwargs):
    size = dict(num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=20)
    size = leave_out_sizes(size, kwargs)
    return getattr(ka.models, builder)(50, **size, **kwargs)


def words(batch=2, length=5):
    return {
        "token_ids": random.integers(1, 50, size=(batch, length)).astype("int32"),
        "character_ids": random.integers(1, 30, size=(batch, length, 16)).astype("int32"),
    }


BUILT = {
    "sequence_labeler": labeler,
    "sequence_labeler_characters": lambda: labeler(
        embedding=embed_characters(30, token_dropout=0.1), position=["alibi", "relative_bias"]
    ),
    "sequence_labeler_crf": lambda: labeler(head="crf"),
    "dependency_parser": lambda: ka.models.dependency_parser(
        50, 7, num_layers=1, num_heads=2, hidden_dim=16, embedding=embed_characters(30)
    ),
    "constituency_parser": lambda: ka.models.constituency_parser(
        50, 4, 3, num_layers=1, num_heads=2, hidden_dim=16, embedding=embed_characters(30)
    ),
    "text_classifier": classifier,
    "text_classifier_cls": lambda: ka.models.text_classifier(
        50,
        7,
        hidden_dim=16,
        pooling="cls",
        position="sinusoidal",
        embedding=ka.models.TextEmbedding(token_dropout=0.1),
        encoder=make_encoder(2, 2, 16, 20, dropout=0.1, position="alibi", norm="post"),
    ),
    "text_encoder": lambda: language_model(
        "text_encoder",
        embedding=ka.models.TextEmbedding(
            num_segments=2, embedding_dim=6, normalization="layer_norm"
        ),
        pooling="first",
        head=[keras.layers.Dense(16, "tanh", name="pooler")],
    ),
    "text_encoder_end": lambda: language_model(
        "text_encoder",
        pooling=ka.blocks.FirstOf(3, name="pooling"),
        head=[
            keras.layers.Dense(6, use_bias=False, name="projection"),
            keras.layers.UnitNormalization(name="unit_length"),
        ],
    ),
    "text_classifier_bag_of_words": lambda: classifier(
        bag_of_words=6, embedding=ka.models.TextEmbedding(token_dropout=0.2)
    ),
    "text_classifier_transform": lambda: ka.models.text_classifier(
        50,
        7,
        hidden_dim=16,
        embedding=ka.models.TextEmbedding(normalization="layer_norm_no_bias"),
        encoder=make_encoder(
            *(2, 2, 16, 20),
            activation="geglu",
            dropout=0.1,
            use_bias=False,
            position="rotary",
            norm=ka.blocks.PreNorm(first_norm=False),
            normalization="layer_norm_no_bias",
        ),
        head=make_transform(16, normalization="layer_norm_no_bias", use_bias=False),
    ),
    "text_encoder_last": lambda: language_model(
        "text_encoder",
        pooling="last",
        embedding=ka.models.TextEmbedding(padding_id=None),
        head=[keras.layers.Dense(6, name="projection")],
    ),
    "image_encoder_map": lambda: ka.models.image_encoder(
        8,
        patch_size=4,
        num_layers=1,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=20,
        pooling=ka.blocks.AttentionPooling(
            ka.attention.MultiHeadAttention(2, 8, name="attention"),
            ka.blocks.FeedForward(20, name="feed_forward"),
        ),
    ),
    "image_encoder": lambda: ka.models.image_encoder(
        8,
        patch_size=4,
        num_layers=1,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=20,
        embedding=ka.models.ImageEmbedding(normalization="layer_norm", use_bias=False),
        pooling="cls_mean",
        head=[
            keras.layers.Dense(6, use_bias=False, name="projection"),
            keras.layers.UnitNormalization(),
        ],
    ),
    "image_to_sequence": lambda: ka.models.image_to_sequence(
        (4, 8),
        7,
        patch_size=2,
        num_layers=2,
        num_decoder_layers=1,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=20,
    ),
    "causal_language_model": lambda: make_writer(
        50, 2, 2, 16, 20, position=ka.positions.Learned(9), num_key_value_heads=1
    ),
    "masked_language_model": lambda: language_model(
        "masked_language_model", embedding=ka.models.TextEmbedding.of_bert()
    ),
    "question_answerer": lambda: language_model("question_answerer", no_answer=True),
    "question_answerer_words": lambda: language_model(
        "question_answerer",
        embedding=embed_characters(30, num_segments=2, exact_match=True),
        position=["alibi", "relative_bias"],
    ),
    "seq2seq_transformer": lambda: language_model(
        "seq2seq_transformer", target_vocabulary_size=40, tie_embeddings=False
    ),
    "encoder_decoder_t5": lambda: language_model("encoder_decoder", structure="t5_1.1"),
    "encoder_decoder_bart": lambda: language_model("encoder_decoder", structure="bart"),
    "object_detector": lambda: detector(
        embedding=ka.models.ImageEmbedding(stem_filters=(4,)), patch_size=1
    ),
    "object_detector_queries": lambda: detector(
        queries=5,
        encoder=ka.models.TransformerEncoder.of_size(2, 2, 16, 20, norm="post"),
        decoder=ka.models.TransformerDecoder.of_size(1, 2, 16, 20, norm="post", causal=False),
    ),
    "speech_recognizer": lambda: recognizer(),
    "speech_recognizer_waveform": lambda: recognizer(
        dict(input="waveform", subsampling=2, sampling_rate=8000),
        encoder=ka.models.TransformerEncoder.of_size(2, 2, 16, 20, norm="post"),
    ),
    "speech_to_text": lambda: transcriber(ctc_head=True, num_decoder_layers=1),
    "speech_to_text_whisper": lambda: transcriber(
        dict(num_frames=20, normalize=False, stem="1d", subsampling=2),
        encoder=ka.models.TransformerEncoder(
            2,
            attention=ka.attention.MultiHeadAttention(2, 8, key_bias=False),
            feed_forward=ka.blocks.FeedForward(20),
        ),
        position=ka.positions.Learned(10),
        decoder=ka.models.TransformerDecoder(
            2,
            attention=ka.attention.MultiHeadAttention(2, 8, key_bias=False),
            cross_attention=ka.attention.MultiHeadAttention(2, 8, key_bias=False),
            feed_forward=ka.blocks.FeedForward(20),
        ),
        decoder_position=ka.positions.Learned(9),
    ),
    "vision_transformer": vision,
    "vision_transformer_stem": lambda: vision(
        embedding=ka.models.ImageEmbedding(stem_filters=(4, 8)),
        patch_size=1,
        pooling="mean",
        encoder=ka.models.TransformerEncoder.of_size(
            2, 2, 16, 20, norm="post", activation="swiglu"
        ),
    ),
}


# Published: Touvron et al. (2021), table 1, say 5M, 22M, 86M. Dosovitskiy et al. (2021), table 1,
# say 86M and 307M. These are the exact counts of the authors' released checkpoints.
@pytest.mark.slow
@pytest.mark.parametrize(
    "name, count",
    [
        ("DeiT-Ti", 5_717_416),
        ("DeiT-S", 22_050_664),
        ("DeiT-B", 86_567_656),
        ("ViT-Ti/16", 5_717_416),
        ("ViT-S/16", 22_050_664),
        ("ViT-S/32", 22_878_952),
        ("ViT-B/16", 86_567_656),
        ("ViT-B/32", 88_224_232),
        ("ViT-L/16", 304_326_632),
    ],
)
def test_parameter_counts_equal_those_of_the_papers(name, count):
    size = ka.models.sizes("vision_transformer")[name]
    one, two = (
        ka.models.vision_transformer(224, 1000, **{**size, "num_layers": n}).count_params()
        for n in (1, 2)
    )
    assert one + (size["num_layers"] - 1) * (two - one) == count  # 24 layers take long to draw


# Turc et al. (2019), table 1. Devlin et al. (2019), section 3, says 110M and 340M. These are the
# exact counts of the authors' released checkpoints. A classifier lacks
# the tables of 512 places and 2 segments, the norm of the embeddings, and BERT's pooler.
@pytest.mark.slow
@pytest.mark.parametrize(
    "name, count",
    [
        ("BERT-Tiny", 4_385_920),
        pytest.param("BERT-Mini", 11_170_560, marks=pytest.mark.slow),
        pytest.param("BERT-Small", 28_763_648, marks=pytest.mark.slow),
        pytest.param("BERT-Medium", 41_373_184, marks=pytest.mark.slow),
        ("BERT-Base", 109_482_240),
        ("BERT-Large", 335_141_888),
    ],
)
def test_encoders_have_the_parameters_of_bert(name, count):
    size = ka.models.sizes("text_classifier")[name]
    encoder = size["encoder"]
    width, layers = size["hidden_dim"], encoder.num_layers
    one, two = (
        ka.models.text_classifier(
            2, 2, **size | {"encoder": dataclasses.replace(encoder, num_layers=n)}
        ).count_params()
        for n in (1, 2)
    )
    ours = one + (layers - 1) * (two - one) - width - 2 * (width + 1)  # class token and logits
    assert ours + (30522 - 2) * width == count - (512 + 2 + 2) * width - width * (width + 1)


@pytest.mark.parametrize("builder", ["sequence_labeler", "text_classifier", "seq2seq_transformer"])
@pytest.mark.parametrize("name, sizes", [("base", (6, 8, 512, 2048)), ("big", (6, 16, 1024, 4096))])
def test_sizes_are_those_of_the_first_transformer(builder, name, sizes):
    """Vaswani et al. (2017), table 3: N, h, d_model and d_ff."""
    size = ka.models.sizes(builder)[name]
    words = ("num_layers", "num_heads", "hidden_dim", "intermediate_dim")
    assert tuple(size[word] for word in words) == sizes


def test_all_builders_are_listed():
    """Except `seq2seq_recurrent`, which has its own file."""
    builders = list_builders()
    assert_lists("SIZES of keras_attention/models/__init__.py", models.SIZES, builders)
    built = {name for name in builders if any(case.startswith(name) for case in BUILT)}
    table = "BUILT of tests/models/test_builders.py"
    assert_lists(table, built, builders - {"seq2seq_recurrent"})


def list_operations(model):
    """Return the names of operations in the graph of a model that are not layers."""
    names = set()
    for operation in model.operations:
        if isinstance(operation, keras.Model):
            names |= list_operations(operation)
        elif not isinstance(operation, keras.layers.Layer):
            names.add(type(operation).__name__)
    return names


def describe_structure(model):
    """Return the text of a file in `structure/`: the names and shapes of a model's weights."""
    lines = [f"{w.path.split('/', 1)[-1]} {tuple(w.shape)}" for w in model.weights]
    numbered = re.compile(r"(combined_positions|relative_bias|learned)_\d+")
    lines = [numbered.sub(r"\1", line) for line in lines]
    lines = [line for line in lines if "seed_generator" not in line]
    return "\n".join(lines) + "\n"


def write_structure(name):
    """Write the file in `structure/` for the model `name` of `BUILT`."""
    (STRUCTURE / f"{name}.txt").write_text(describe_structure(BUILT[name]()))


@pytest.mark.parametrize("name", BUILT)
def test_structure(name):
    """Compare names, shapes and roles of weights with a file, which shows changes in reviews."""
    model = BUILT[name]()
    contract.check_axes(model)
    registered = set(keras.saving.get_custom_objects())
    assert list_operations(model) <= registered, "HDF5 files do not load"
    file, text = STRUCTURE / f"{name}.txt", describe_structure(model)
    module = "import tests.models.test_builders as t"
    command = f"python -c '{module}; t.write_structure(\"{name}\")'"
    assert file.exists(), f"new? Then write tests/models/structure/{file.name}: {command}"
    assert text == file.read_text(), f"meant? Then say so in CHANGELOG.md, and run: {command}"


@pytest.mark.parametrize("characters", [False, True])
def test_padding_changes_nothing(characters):
    model = labeler(embedding=embed_characters(30) if characters else None)
    short = words(batch=1, length=3)
    long = {name: np.pad(x, [(0, 0), (0, 4), (0, 0)][: x.ndim]) for name, x in short.items()}
    if not characters:
        short, long = short["token_ids"], long["token_ids"]
    np.testing.assert_allclose(model(long)[:, :3], model(short), atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "max", "cls", "attention"])
def test_padding_does_not_change_classes(pooling):
    """Check rows of only padding as well: they give finite numbers and change no other row."""
    model = classifier(pooling=pooling)
    short = words(batch=2, length=3)["token_ids"]
    long = np.pad(short, [(0, 1), (0, 4)])
    logits = np.asarray(model(long))
    np.testing.assert_allclose(logits[:2], model(short), atol=1e-5)
    assert np.isfinite(logits).all()


@pytest.mark.slow
@pytest.mark.parametrize("build", [classifier, labeler], ids=["classifier", "labeler"])
def test_embeddings_are_scaled_before_their_positions_are_added(build):
    ids = words()["token_ids"]
    plain, scaled, blind = (
        build(**k).get_layer("embedding")
        for k in (
            {"position": "sinusoidal"},
            {"position": "sinusoidal", "embedding": ka.models.TextEmbedding(scale=True)},
            {"position": None},
        )
    )
    scaled.set_weights(plain.get_weights()), blind.set_weights(plain.get_weights())
    difference = np.asarray(scaled(ids)) - np.asarray(plain(ids))
    np.testing.assert_allclose(difference, (16**0.5 - 1) * np.asarray(blind(ids)), atol=1e-5)


def test_pooling_cls_reads_the_class_token():
    """Check that texts only differ in the logits through attention to their tokens."""
    ids = words()["token_ids"]
    alone = classifier(pooling="cls", mask=ka.masks.Window(1))(ids)
    np.testing.assert_allclose(alone[0], alone[1], atol=1e-6)
    seeing = classifier(pooling="cls", mask=ka.masks.Window(1) | ka.masks.Global(1))(ids)
    assert not np.allclose(seeing[0], seeing[1], atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("position", ["sinusoidal", "rotary", "alibi", ["scalar", "relative_bias"]])
def test_each_kind_of_position_makes_order_matter(position):
    """Compare with a model without positions, which gives permuted labels."""
    model = labeler(position=position)
    ids = words()["token_ids"]
    for weight in model.weights:
        weight.assign(random.normal(size=weight.shape, scale=0.5))
    order = np.array([2, 0, 3, 1, 4])
    assert not np.allclose(np.asarray(model(ids))[:, order], model(ids[:, order]), atol=1e-3)
    blind = labeler(position=None)
    np.testing.assert_allclose(np.asarray(blind(ids))[:, order], blind(ids[:, order]), atol=1e-5)


def test_blocks_share_no_weights():
    relative = ka.positions.RelativeBias()
    model = labeler(position=relative, score=ka.scores.Additive(units=3))
    tables = [w for w in model.weights if w.shape == (32, 2)]
    assert len(tables) == 2 and len({id(w) for w in model.weights}) == len(model.weights)


@pytest.mark.sweep
def test_a_classifier_learns_several_labels():
    """Let class k mean that token k + 1 occurs."""
    model = classifier(num_layers=1, pooling="max", hidden_dim=32)
    x = random.integers(0, 9, size=(64, 6)).astype("int32")
    y = np.stack([(x == k + 1).any(axis=1) for k in range(7)], axis=1).astype("float32")
    assert len(set(y.sum(axis=1))) > 2
    accuracy = keras.metrics.BinaryAccuracy(threshold=0.0)
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss, metrics=[accuracy])
    model.fit(x, y, epochs=40, verbose=0)
    assert model.evaluate(x, y, verbose=0)[1] > 0.95


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    sampled(["sequence_labeler_characters", "text_classifier_cls", "vision_transformer_stem"], 1),
)
def test_trains_saves_and_loads(name, tmp_path):
    model = BUILT[name]()
    if "vision" in name:
        x, y = random.random((6, 8, 8, 1)).astype("float32"), np.arange(6) % 7
    elif "classifier" in name:
        x, y = words(6)["token_ids"], np.arange(6) % 7
    else:
        x = words(6) if isinstance(model.input, dict) else words(6)["token_ids"]
        y = random.integers(0, 7, size=(6, 5))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.02), loss)
    history = model.fit(x, y, epochs=50, verbose=0).history["loss"]
    assert history[-1] < 0.7 * history[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(x), model(x), atol=1e-6)


def test_refuses_heads_that_do_not_divide_the_width():
    with pytest.raises(
        ValueError, match="num_heads=5 does not divide hidden_dim=16.*1, 2, 4, 8, 16"
    ):
        labeler(num_heads=5)
    with pytest.raises(ValueError, match="'speech'.*sequence_labeler"):
        ka.models.sizes("speech")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            dict(image_size=(8, 8, 1)),
            r"image_size=\(8, 8, 1\).*height, width.*channels",
        ),
        (dict(image_size="8"), "image_size='8'.*whole number"),
        (dict(image_size=8, num_channels=0), "num_channels=0.* at least 1"),
        (dict(image_size=10), r"patch_size=\(4, 4\) does not divide the image size \(10, 10\)"),
        (dict(image_size=32, patch_size=32), "hidden_dim=16 and patch_size=32 look swapped"),
    ],
)
def test_refuses_invalid_image_sizes(arguments, message):
    sizes = dict(num_classes=3, patch_size=4, num_layers=1, num_heads=2, hidden_dim=16)
    with pytest.raises(ValueError, match=message):
        ka.models.vision_transformer(**{**sizes, "intermediate_dim": 16, **arguments})


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_the_last_norm_may_follow_the_pooling(pooling):
    images = np.random.default_rng(0).random((3, 8, 8, 1)).astype("float32")
    norm = ka.blocks.PreNorm(final_norm=False)
    model = vision(
        embedding=ka.models.ImageEmbedding(num_registers=1),
        encoder=ka.models.TransformerEncoder.of_size(2, 2, 16, 20, norm=norm),
        pooling=pooling,
        head=[keras.layers.LayerNormalization(name="final_norm")],
    )
    assert sum(layer.name == "final_norm" for layer in model.layers) == 1
    tokens = keras.Model(model.input, model.get_layer("block_1").output)(images)
    patches = np.asarray(tokens)[:, 1:]
    pooled = patches.mean(axis=1) if pooling == "mean" else patches.max(axis=1)
    expected = model.get_layer("logits")(model.get_layer("final_norm")(pooled))
    np.testing.assert_allclose(model(images), expected, atol=1e-5)


def test_a_pair_as_patch_size_may_exceed_the_width():
    layer = ka.blocks.PatchEmbedding(4, (16, 16))
    assert layer(np.ones((1, 16, 32, 1))).shape == (1, 3, 4)
    assert type(layer).from_config(layer.get_config()).patch_size == (16, 16)


def test_refuses_an_unknown_head():
    with pytest.raises(ValueError, match="head='CRF' is not a head.*expected crf, None, or"):
        labeler(head="CRF")
