"""Batches without rows, queries or keys: shapes and gradients equal Keras's."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_attention as ka

pytestmark = pytest.mark.tensorflow
SHAPES = [(3, 0, 5), (3, 5, 0), (0, 5, 5), (3, 0, 0), (0, 0, 0)]
NORMALIZERS = [
    "softmax",
    "sparsemax",
    ka.normalizers.Entmax(1.5),
    ka.normalizers.Entmax(1.3),
    ka.normalizers.TopK(2),
    ka.normalizers.Softmax(plus_one=True),
    "sigmoid",
    "relu",
]
POSITIONS = [
    ka.positions.Rotary("interleaved"),
    "rotary",
    "alibi",
    "relative_bias",
    "xpos",
    "shaw",
    "transformer_xl",
    "disentangled",
]
STRUCTURES = [
    {"num_key_value_heads": 1},
    {"sink": True},
    {"num_memory_slots": 2},
    {"talking_heads": True},
    {"use_gate": True},
    {"mask": "causal"},
    {"implementation": "chunked"},
    {"implementation": "banded", "mask": ka.masks.Window(2) | ka.masks.Global(1)},
]


def multi_head(**arguments):
    return ka.attention.MultiHeadAttention(2, 4, **arguments)


def every_layer():
    yield from (multi_head(normalizer=normalizer) for normalizer in NORMALIZERS)
    yield from (multi_head(score=score) for score in ka.scores.NAMES)
    yield from (multi_head(position=position) for position in POSITIONS)
    yield from (multi_head(**arguments) for arguments in STRUCTURES)
    yield ka.attention.DifferentialAttention(2, 4)
    yield ka.attention.LatentAttention(2, 4, 4, 4)
    yield ka.attention.LinearAttention(4, 2, num_key_value_heads=2)
    yield ka.attention.ResidualAttention(2, 4)
    yield ka.attention.MemorizingAttention(2, 4, memory_length=3)


def output_and_gradients(layer, query, value, **call):
    with tf.GradientTape() as tape:
        tape.watch([query, value])
        output = layer(query, value, **call)
    return output, tape.gradient(output, [query, value, *layer.trainable_weights])


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_layer_accepts_empty_inputs(shape):
    rows, queries, keys = shape
    query, value = tf.random.normal((rows, queries, 8)), tf.random.normal((rows, keys, 8))
    masks = {
        "query_mask": tf.ones((rows, queries), "bool"),
        "value_mask": tf.ones((rows, keys), "bool"),
    }
    for layer in every_layer():
        layer.build((None, None, 8), (None, None, 8))
        for call in ({}, masks):
            output, gradients = output_and_gradients(layer, query, value, **call)
            assert output.shape == query.shape, (layer.get_config(), call)
            assert [x.shape for x in gradients[:2]] == [query.shape, value.shape]
            assert all(x is None or np.isfinite(tf.convert_to_tensor(x)).all() for x in gradients)


@pytest.mark.parametrize("shape", SHAPES[:-1], ids=str)  # for (0, 0, 0) Keras returns (1, 0, 8)
def test_empty_inputs_give_the_shapes_of_keras(shape):
    rows, queries, keys = shape
    query, value = tf.random.normal((rows, queries, 8)), tf.random.normal((rows, keys, 8))
    theirs, ours = keras.layers.MultiHeadAttention(2, 4), multi_head()
    for layer in (theirs, ours):
        layer.build((None, None, 8), (None, None, 8))
    theirs.output_dense.bias.assign(np.arange(8))
    ours.set_weights(theirs.get_weights())
    inputs = (query, value)
    for output, expected in zip(
        tf.nest.flatten(output_and_gradients(ours, *inputs)),
        tf.nest.flatten(output_and_gradients(theirs, *inputs)),
        strict=True,
    ):
        np.testing.assert_allclose(output, expected, atol=1e-6)
        assert output.shape == expected.shape


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [{}, {"normalizer": "sparsemax"}, {"score": "additive"}, {"position": "transformer_xl"}],
    ids=str,
)
def test_empty_inputs_in_a_graph_of_unknown_shape(arguments):
    layer = multi_head(num_key_value_heads=1, **arguments)
    layer.build((None, None, 8), (None, None, 8))
    any_shape = [tf.TensorSpec((None, None, 8))] * 2
    run = tf.function(lambda x, y: layer(x, y), any_shape, autograph=False)
    for rows, queries, keys in SHAPES:
        output = run(tf.ones((rows, queries, 8)), tf.ones((rows, keys, 8)))
        assert output.shape == (rows, queries, 8)


def test_empty_weights_axes_and_attention_without_projections():
    for rows, queries, keys in SHAPES:
        query, value = tf.ones((rows, queries, 8)), tf.ones((rows, keys, 8))
        _, weights = multi_head()(query, value, return_attention_scores=True)
        assert weights.shape == (rows, 2, queries, keys)
        output, weights = ka.attention.Attention()([query, value], return_attention_scores=True)
        assert output.shape == query.shape and weights.shape == (rows, queries, keys)
        query, value = (tf.ones((rows, 2, n, 8)) for n in (queries, keys))
        output = multi_head(attention_axes=2)(query, value)
        assert output.shape == query.shape


@pytest.mark.parametrize("shape", [(3, 0), (0, 5)], ids=str)
def test_models_accept_empty_batches(shape):
    size = dict(num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8)
    ids = np.ones(shape, "int32")
    assert ka.models.sequence_labeler(9, 4, **size)(ids).shape == (*shape, 4)
    assert ka.models.causal_language_model(9, **size)(ids).shape == (*shape, 9)
    assert ka.models.text_classifier(9, 4, **size)(ids).shape == (shape[0], 4)
