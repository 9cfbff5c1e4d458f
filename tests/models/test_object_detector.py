"""`object_detector`: its outputs, the dependencies of queries, and other layers."""

import dataclasses

import keras
import numpy as np
import pytest

import keras_attention as ka

SIZE = dict(num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=24)
random = np.random.default_rng(0)


def stem(filters, strides=None):
    return ka.models.ImageEmbedding(stem_filters=filters, stem_strides=strides)


def build(**kwargs):
    size = {"hidden_dim": 16} if "encoder" in kwargs else SIZE
    return ka.models.object_detector((8, 12), 3, **{**size, "patch_size": 4, **kwargs})


def call(model):
    images = random.random((2, *model.input_shape[1:])).astype("float32")
    return images, {name: np.array(value) for name, value in model(images).items()}


@pytest.mark.parametrize(
    ("settings", "queries"),
    [
        ({}, 6),
        ({"patch_size": (2, 4)}, 12),
        ({"patch_size": 1, "embedding": stem(filters=(4, 4))}, 6),
        ({"patch_size": 1, "embedding": stem(filters=(4, 4), strides=(2, 1))}, 24),
        ({"queries": 5, "num_decoder_layers": 1}, 5),
    ],
)
def test_boxes_and_logits_of_each_query(settings, queries):
    _, outputs = call(build(**settings))
    assert list(outputs) == ["logits", "boxes"]
    assert outputs["logits"].shape == (2, queries, 3) and outputs["boxes"].shape == (2, queries, 4)
    assert (outputs["boxes"] > 0).all() and (outputs["boxes"] < 1).all()


def test_initial_boxes_lie_at_their_cells_with_few_objects():
    _, outputs = call(build())
    expected = [((c + 0.5) / 3, (r + 0.5) / 2) for r in range(2) for c in range(3)]
    np.testing.assert_allclose(outputs["boxes"][0, :, :2], expected, atol=1e-6)
    shares = 1 / (1 + np.exp(-outputs["logits"]))
    assert 0.002 < np.median(shares) < 0.05


@pytest.mark.parametrize("settings", [{}, {"queries": 5}])
def test_no_object_adds_a_class(settings):
    _, outputs = call(build(no_object=True, **settings))
    assert outputs["logits"].shape[-1] == 4


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("queries", ["grid", 5])
def test_auxiliary_outputs_use_the_same_heads(queries, norm):
    """Compare the outputs of earlier layers with those of shorter stacks."""
    name = "num_layers" if queries == "grid" else "num_decoder_layers"
    model = build_with_norm(queries, norm, **{name: 3}, auxiliary=True)
    randomize(model)
    images, outputs = call(model)
    assert outputs["auxiliary_logits"].shape == (2, 2, outputs["logits"].shape[1], 3)
    weights = {weight.path: weight for weight in model.weights}
    for count in (1, 2):
        shorter = build_with_norm(queries, norm, **{name: count})
        for weight in shorter.weights:
            weight.assign(weights[weight.path])
        expected = shorter(images)
        for output in ("logits", "boxes"):
            np.testing.assert_allclose(
                outputs[f"auxiliary_{output}"][:, count - 1], expected[output], atol=1e-5
            )


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [{}, {"num_layers": 1}, {"queries": 5, "no_object": True, "auxiliary": True}],
    ids=str,
)
def test_one_to_many_adds_a_second_pair_of_heads(settings):
    """Check that it reads the layer before the last and changes no other output."""
    plain, model = build(**settings), build(one_to_many=True, **settings)
    randomize(model)
    weights = {weight.path: weight for weight in model.weights}
    for weight in plain.weights:
        weight.assign(weights[weight.path])
    images, outputs = call(model)
    for name, value in plain(images).items():
        np.testing.assert_allclose(outputs[name], value, atol=1e-5)
    for name in ("logits", "boxes"):
        assert outputs[f"one_to_many_{name}"].shape == outputs[name].shape
        head, own = (model.get_layer(f"{prefix}{name}") for prefix in ("", "one_to_many_"))
        for weight, other in zip(own.weights, head.weights, strict=True):
            weight.assign(other)
    outputs, every = model(images), build(**settings | {"auxiliary": True})
    for weight in every.weights:
        weight.assign(weights[weight.path])
    expected = every(images)
    for name in ("logits", "boxes"):
        before = expected.get(f"auxiliary_{name}", expected[name][:, None])[:, -1]
        np.testing.assert_allclose(outputs[f"one_to_many_{name}"], before, atol=1e-5)


def build_with_norm(queries, norm, num_layers=2, num_decoder_layers=1, **kwargs):
    encoder = ka.models.TransformerEncoder.of_size(num_layers, 2, 16, 24, norm=norm)
    decoder = ka.models.TransformerDecoder.of_size(
        num_decoder_layers, 2, 16, 24, norm=norm, causal=False
    )
    return build(encoder=encoder, queries=queries, decoder=decoder, **kwargs)


def randomize(model):
    for weight in model.trainable_weights:
        weight.assign(weight + random.normal(size=weight.shape, scale=0.1))


def test_queries_depend_on_one_another_and_on_every_cell():
    model = build(queries=5, num_decoder_layers=1)
    with ka.visualization.record_attention(model) as maps:
        call(model)
    seen = {name: weights for name, weights in maps.items() if "decoder" in name}
    assert [weights.shape for weights in seen.values()] == [(2, 2, 5, 5), (2, 2, 5, 6)]
    assert all((np.array(weights) > 0).all() for weights in seen.values())


@pytest.mark.slow
def test_saved_and_loaded(tmp_path):
    for settings in (
        {"auxiliary": True, "one_to_many": True},
        {"queries": 5, "no_object": True, "auxiliary": True},
    ):
        model = build(**settings)
        randomize(model)
        images, outputs = call(model)
        model.save(tmp_path / "model.keras")
        again = keras.saving.load_model(tmp_path / "model.keras")(images)
        for name, value in outputs.items():
            np.testing.assert_allclose(again[name], value, atol=1e-6)


def test_detr_has_the_parameters_of_the_paper():
    """Count the weights from the paper's widths, 256 and 2048, with all biases."""
    size = ka.models.sizes("object_detector")["DETR"]
    for name in ("encoder", "decoder"):
        size[name] = dataclasses.replace(size[name], num_layers=1)
    model = ka.models.object_detector(32, 91, **size)
    attention, norm = 4 * (256 * 256 + 256), 2 * 256
    encoder = attention + 2 * 256 * 2048 + 2048 + 256 + 2 * norm
    blocks = {"block_0": encoder, "decoder_0": encoder + attention + norm}
    for name, count in blocks.items():
        assert model.get_layer(name).count_params() == count
    assert model(np.zeros((1, 32, 32, 3)))["logits"].shape == (1, 100, 92)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"queries": "all"}, "queries='all'.*expected 'grid'"),
        ({"queries": 0}, "queries=0"),
        ({"patch_size": 5}, "does not divide the image size"),
    ],
)
def test_errors(settings, match):
    with pytest.raises(ValueError, match=match):
        build(**settings)
