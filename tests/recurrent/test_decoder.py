"""The decoder: padding, initial states, parts of a target, and the loop of devices."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.core import scope
from keras_attention.recurrent import AttentionCell, RecurrentDecoder
from tests.recurrent import definition
from tests.recurrent.definition import B, D, E, T, U

TOKENS = np.arange(T) < np.array([[T], [3]])


def made(**kwargs):
    layer = RecurrentDecoder(AttentionCell(keras.layers.LSTMCell(U), **kwargs))
    layer.build((None, None, D), (None, None, E))
    return definition.drawn(layer)


@pytest.mark.parametrize("exporting", [False, True])
@pytest.mark.parametrize("attention", ["bahdanau", "luong"])
def test_padding_changes_nothing(attention, exporting):
    targets, encoded, mask = definition.tensors()
    layer = made(attention=attention, coverage=True)
    with scope.Export() if exporting else scope.Scope():
        whole = np.asarray(layer(targets, encoded, inputs_mask=TOKENS, encoded_mask=mask))
        alone = layer(targets[1:, :3], encoded[1:, :4])
    np.testing.assert_allclose(whole[1:, :3], alone, atol=1e-6)
    assert np.all(whole[1, 3:] == 0)


def test_both_loops_agree():
    targets, encoded, mask = definition.tensors()
    layer = made(attention="luong", local=ka.recurrent.LocalWindow(2))
    states = [np.full((B, U), 0.3, "float32"), np.full((B, U), -0.2, "float32")]
    trained = layer(targets, encoded, states, inputs_mask=TOKENS, encoded_mask=mask)
    with scope.Export():
        exported = layer(targets, encoded, states, inputs_mask=TOKENS, encoded_mask=mask)
    np.testing.assert_allclose(trained, exported, atol=1e-6)
    assert not np.allclose(trained, layer(targets, encoded, inputs_mask=TOKENS, encoded_mask=mask))


def test_a_source_of_only_padding_gives_a_zero_context():
    targets, encoded, _ = definition.tensors()
    layer = made()
    nothing = layer(targets, encoded, encoded_mask=np.zeros(encoded.shape[:2], bool))
    np.testing.assert_allclose(nothing, layer(targets, 0 * encoded), atol=1e-6)


def test_implicit_masks_are_used():
    ids, source = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    targets = ka.blocks.TokenEmbedding(20, D)(ids)
    encoded = ka.blocks.TokenEmbedding(20, E)(source)
    layer = RecurrentDecoder(AttentionCell(keras.layers.GRUCell(U)))
    model = keras.Model([ids, source], layer(targets, encoded))
    short = [np.array([[3, 4]]), np.array([[5, 6, 7]])]
    long = [np.array([[3, 4, 0]]), np.array([[5, 6, 7, 0, 0]])]
    np.testing.assert_allclose(model(long)[:, :2], model(short), atol=1e-6)


def translator(**kwargs):
    model = ka.models.seq2seq_recurrent(23, 19, hidden_dim=8, bidirectional=False, **kwargs)
    return definition.drawn(model)


@pytest.mark.parametrize(
    "settings", [dict(cell="lstm", coverage=True), dict(attention="luong", num_layers=2)], ids=str
)
def test_prompts_of_unequal_length(settings):
    """Compare prompts padded on the left, in two parts, with single ones."""
    model = translator(**settings)
    random = np.random.default_rng(0)
    source, target = random.integers(1, 23, (2, 4)), random.integers(1, 19, (2, 5))
    source[1, 3:] = 0
    target[1, :2] = 0
    decoder = ka.generation.Decoder(model)
    cache = decoder.start(2, 5, source, start=np.array([0, 2]))
    first, cache = decoder.step(target[:, :4], cache, 0)
    last, cache = decoder.step(target[:, 4:], cache, 4)
    logits = np.concatenate([first, last], axis=1)
    whole = model({"source_ids": source[:1], "target_ids": target[:1]})
    np.testing.assert_allclose(logits[:1], whole, atol=1e-5)
    alone = model({"source_ids": source[1:, :3], "target_ids": target[1:, 2:]})
    np.testing.assert_allclose(logits[1:, 2:], alone, atol=1e-5)


def test_decoder_refuses_plain_cells_and_loss_without_coverage():
    with pytest.raises(ValueError, match="AttentionCell.keras.layers.GRUCell.64"):
        RecurrentDecoder(keras.layers.GRUCell(3))
    with pytest.raises(ValueError, match="coverage_loss=0.5.*coverage=True"):
        RecurrentDecoder(AttentionCell(keras.layers.GRUCell(3)), coverage_loss=0.5)
