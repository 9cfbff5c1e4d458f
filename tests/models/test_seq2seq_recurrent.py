"""Recurrent encoder-decoders: structure, padding, export, and training."""

import re

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.export.helpers import assert_exports
from tests.grids import sampled
from tests.models.test_builders import STRUCTURE

random = np.random.default_rng(0)


def built(**kwargs):
    return ka.models.seq2seq_recurrent(23, 19, **{"hidden_dim": 8, **kwargs})


def ids(batch=2, source=7, target=5):
    return {
        "source_ids": random.integers(1, 23, (batch, source)).astype("int32"),
        "target_ids": random.integers(1, 19, (batch, target)).astype("int32"),
    }


def drawn(model):
    for weight in model.weights:
        if "float" in weight.dtype and "teacher" not in weight.path:
            weight.assign(random.normal(size=weight.shape, scale=0.5))
    return model


def test_structure():
    """Compare names and shapes of weights with a file, which shows changes in reviews."""
    model = built(embedding_dim=6, cell="lstm", num_layers=2, coverage=True, local_half_width=3)
    lines = [f"{w.path.split('/', 1)[-1]} {tuple(w.shape)}" for w in model.weights]
    lines = [line for line in lines if "seed_generator" not in line]
    lines = [re.sub(r"additive_\d+", "additive", line) for line in lines]  # only counted
    assert "\n".join(lines) + "\n" == (STRUCTURE / "seq2seq_recurrent.txt").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["bahdanau", "luong"])
def test_padding_changes_nothing(attention):
    model, short = drawn(built(attention=attention)), ids()
    long = {name: np.pad(x, [(0, 0), (0, 3)]) for name, x in short.items()}
    expected = model(short)
    np.testing.assert_allclose(model(long)[:, :5], expected, atol=1e-5)
    traced = model.predict(long, verbose=0)
    np.testing.assert_allclose(traced[:, :5], expected, atol=1e-5)


def test_later_tokens_change_no_earlier_output():
    model, batch = drawn(built(attention="luong", coverage=True)), ids()
    other = {**batch, "target_ids": batch["target_ids"].copy()}
    other["target_ids"][:, 3:] = 1
    np.testing.assert_allclose(model(batch)[:, :3], model(other)[:, :3], atol=1e-6)
    assert not np.allclose(model(batch)[:, 3:], model(other)[:, 3:], atol=1e-3)


def test_takes_a_custom_cell():
    cell = keras.layers.GRUCell(12, reset_after=False)
    model = built(cell=cell, score=ka.scores.Concat(5))
    assert model(ids()).shape == (2, 5, 19)
    kernels = [w for w in model.weights if w.path.endswith("recurrent_kernel")]
    assert [w.shape for w in kernels] == [(12, 36)] * 3 and len({id(w) for w in kernels}) == 3


def test_published_sizes_fit_the_builder():
    for size in ka.models.sizes("seq2seq_recurrent").values():
        small = {**size, "hidden_dim": 4, "embedding_dim": 3}
        assert built(**small)(ids()).shape == (2, 5, 19)


def test_saving(tmp_path):
    model = drawn(built(cell="lstm", attention="luong", coverage=True, feedback="sample"))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    batch = ids()
    np.testing.assert_allclose(loaded(batch), model(batch), atol=1e-6)
    assert loaded.get_layer("decoder").get_layer("recurrent_decoder").feedback == "sample"


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "settings",
    sampled(
        [
            {},
            dict(
                cell="lstm",
                attention="luong",
                num_layers=2,
                coverage=True,
                coverage_loss=1.0,
                local_half_width=2,
                feedback="argmax",
            ),
        ]
    ),
    ids=["gru, Bahdanau", "lstm, Luong"],
)
def test_export(settings):
    graph = assert_exports(built(**settings))
    assert "WHILE" in graph.ops and not [op for op in graph.ops if "Flex" in op or "List" in op]


@pytest.mark.slow
@pytest.mark.tensorflow
def test_encoder_exports():
    assert_exports(built(cell="lstm").get_layer("encoder"))


def reversals(number, length=5):
    """Draw sequences of ids 3 to 9, and their reversals between start 1 and end 2."""
    source = np.zeros((number, length), "int32")
    target = np.zeros((number, length + 2), "int32")
    for i, n in enumerate(random.integers(2, length + 1, number)):
        tokens = random.integers(3, 10, n)
        source[i, :n], target[i, : n + 2] = tokens, [1, *tokens[::-1], 2]
    return {"source_ids": source, "target_ids": target[:, :-1]}, target[:, 1:]


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    sampled(
        [
            {},
            dict(cell="lstm", attention="luong", bidirectional=False),
            dict(attention="luong", coverage=True, feedback="sample"),
        ]
    ),
    ids=str,
)
def test_learns_to_reverse(settings):
    """Check unseen sequences, and that the attention runs backwards."""
    model = ka.models.seq2seq_recurrent(10, 10, hidden_dim=32, dropout=0.0, **settings)
    loss = ka.training.MaskedSparseCategoricalCrossentropy(ignore_class=0)
    model.compile(keras.optimizers.Adam(1e-2), loss)
    sampling = [ka.training.ScheduledSampling(ka.training.LinearForcing(0.002, least=0.5))]
    model.fit(
        *reversals(4000),
        batch_size=64,
        epochs=8,
        verbose=0,
        callbacks=sampling if "feedback" in settings else None,
    )
    inputs, labels = reversals(200)
    with ka.visualization.record_attention(model) as maps:
        predicted = np.argmax(model(inputs), axis=-1)
    assert np.all((predicted == labels) | (labels == 0), axis=1).mean() > 0.97
    (weights,) = (np.asarray(x)[:, 0] for x in maps.values())
    assert weights.shape == (200, 6, 5)
