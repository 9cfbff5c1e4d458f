"""Embedding tables of int8 files: kept once, never turned into floats as a whole."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.export import convert
from keras_attention.export.graphs import flatbuffer
from keras_attention.export.graphs.embedding_tables import compact_tables
from tests.export.conftest import vary

WORDS, WIDTH = 211, 12  # enough numbers for the converter to round
IDS = np.random.default_rng(0).integers(1, WORDS, (3, 7)).astype("int32")


def writer(tie, **settings):
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": WIDTH, "tie_embeddings": tie}
    return vary(ka.models.causal_language_model(WORDS, **sizes, **settings))


def files(model, folder, monkeypatch, finer=False, **settings):
    """Paths of the model's file as the converter makes it, and as we do, `finer` or not."""
    paths = folder / "before.tflite", folder / "after.tflite"
    settings = {"quantization": "int8_weights", "examples": [IDS], **settings}
    with monkeypatch.context() as patch:
        patch.setattr(convert, "compact_tables", lambda content, weights: content)
        ka.export.to_litert(model, paths[0], **settings)
        if not finer:
            patch.setattr(convert, "compact_tables", lambda content, _: compact_tables(content))
            ka.export.to_litert(model, paths[1], **settings)
    if finer:
        ka.export.to_litert(model, paths[1], **settings)
    return paths


def tables(path):
    """Constants that hold as many numbers as the table of tokens."""
    return [x for x in flatbuffer.read_graph(path).constants if x.elements == WORDS * WIDTH]


def whole_tables_made_floats(path):
    made = [op for op in flatbuffer.read_graph(path).operators if op.kind == "DEQUANTIZE"]
    return [op for op in made if op.outputs[0].elements >= WORDS * WIDTH]


@pytest.mark.slow
def test_loops_look_up_int8(tmp_path, monkeypatch):
    """Check that an untied table gives the same results, bit for bit."""
    model = writer(tie=False, position=ka.positions.Learned(128))
    loops = {"generate": ka.export.Generation(["greedy", ka.generation.Beam(2)], 16, 5)}
    before, after = files(model, tmp_path, monkeypatch, **loops)
    assert whole_tables_made_floats(before) and not whole_tables_made_floats(after)
    assert len(tables(after)) == 2  # of the tokens, and the product with the logits
    for signature in ("generate", "beam"):
        first, second = (ka.export.load(x, signature)({"token_ids": IDS}) for x in (before, after))
        for name, array in first.items():
            np.testing.assert_array_equal(second[name], array)


@pytest.mark.slow
def test_a_tied_table_is_stored_once(tmp_path, monkeypatch):
    model = writer(tie=True)
    loops = {"generate": ka.export.Generation("greedy", 16, 5)}
    before, after = files(model, tmp_path, monkeypatch, **loops)
    assert (len(tables(before)), len(tables(after))) == (2, 1)
    assert not whole_tables_made_floats(after)
    spared = sum(x.constant for x in flatbuffer.read_graph(before).constants)
    spared -= sum(x.constant for x in flatbuffer.read_graph(after).constants)
    assert spared > WORDS * (WIDTH - 5)  # less a scale for each row
    assert step_error(model, after) < 1.1 * step_error(model, before)


def step_error(model, path):
    """Measure the error of the logits of `step`. Rows of a tied table are more exact."""
    step, decoder = ka.export.load(path, "step"), ka.generation.Decoder(model)
    cache = decoder.start(3, 16)
    inputs = {name: np.asarray(x) for name, x in cache.items()} | {"start": np.zeros(3, "int32")}
    inputs = {name: inputs[name] for name in step.inputs if name in inputs}
    logits = step({"token_ids": IDS, "index": np.int32(0), **inputs})["logits"]
    return np.abs(logits - np.asarray(decoder.step(IDS, cache, 0)[0])).mean()


def test_a_hand_written_loop_equals_generate(tmp_path, monkeypatch):
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    model = keras.Model(ids, InALoop(name="logits")(ids))
    before, after = files(model, tmp_path, monkeypatch)
    assert whole_tables_made_floats(before) and not whole_tables_made_floats(after)
    first, second = (ka.export.load(path)({"token_ids": IDS})["logits"] for path in (before, after))
    np.testing.assert_array_equal(second, first)


class Table(keras.layers.Layer):
    def build(self, _):
        self.table = self.add_weight(shape=(WORDS, WIDTH), initializer="random_normal")


class InALoop(Table):
    def call(self, ids):
        def body(i, table, sums):
            return i + 1, table, sums + keras.ops.take(table, ids + i, axis=0)

        rows = keras.ops.take(self.table, ids, axis=0)
        _, table, sums = keras.ops.while_loop(
            lambda i, *_: i < 3, body, (0, self.table * 1.0, rows)
        )
        return keras.ops.take(table, ids, axis=0) + sums


@pytest.mark.slow
@pytest.mark.parametrize("length", [None, 7])
def test_every_row_has_its_own_scale(length, tmp_path, monkeypatch):
    """Rows of very different sizes: one scale for all would leave nothing of the small ones."""
    ids = keras.Input((length,), dtype="int32", name="token_ids")
    embedding = keras.layers.Embedding(WORDS, WIDTH, name="table")
    model = keras.Model(ids, keras.layers.Activation("linear", name="rows")(embedding(ids)))
    rows = np.random.default_rng(1).normal(size=(WORDS, WIDTH)).astype("float32")
    rows *= np.logspace(-4, 1, WORDS, dtype="float32")[:, None]
    rows[3] = 0.0
    embedding.embeddings.assign(rows)
    paths = files(model, tmp_path, monkeypatch, finer=True, examples=None)
    before, after = (ka.export.load(path)({"token_ids": IDS})["rows"] for path in paths)
    error, largest = np.abs(after - rows[IDS]), np.abs(rows[IDS]).max(-1, keepdims=True)
    assert (error <= 0.501 / 127 * largest).all() and not after[IDS == 3].any()
    assert (np.abs(before - rows[IDS]) / np.maximum(largest, 1e-9)).max() > 0.9
    assert len(tables(paths[1])) == 1


@pytest.mark.slow
def test_a_head_of_the_same_shape_is_not_a_tied_table(tmp_path, monkeypatch):
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    x = keras.layers.Embedding(WORDS, WIDTH)(ids)
    model = keras.Model(ids, keras.layers.Dense(WORDS, use_bias=False, name="logits")(x))
    before, after = files(model, tmp_path, monkeypatch)
    assert len(tables(after)) == 2
    first, second = (ka.export.load(path)({"token_ids": IDS})["logits"] for path in (before, after))
    np.testing.assert_array_equal(second, first)


@pytest.mark.slow
def test_one_different_row_is_another_table(tmp_path, monkeypatch):
    """Change one row, so that the table is not tied."""
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    embedding = keras.layers.Embedding(WORDS, WIDTH)
    x = embedding(ids)
    model = keras.Model(ids, keras.layers.Dense(WORDS, use_bias=False, name="logits")(x))
    table = embedding.embeddings.numpy()
    table[-1] *= -1
    model.layers[-1].kernel.assign(table.T)
    _, after = files(model, tmp_path, monkeypatch)
    assert len(tables(after)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("quantization", [None, "float16"])
def test_files_of_floats_stay_as_they_are(quantization, tmp_path, monkeypatch):
    monkeypatch.setattr(convert, "compact_tables", None)
    ka.export.to_litert(writer(tie=True), tmp_path / "m.tflite", quantization=quantization)


@pytest.mark.slow
def test_table_used_outside_lookups_gives_unchanged_outputs(tmp_path, monkeypatch):
    """Use a table that is looked up and also added as a whole, in floats."""
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    model = keras.Model(ids, Both(name="logits")(ids))
    before, after = files(model, tmp_path, monkeypatch)
    first, second = (ka.export.load(path)({"token_ids": IDS})["logits"] for path in (before, after))
    np.testing.assert_array_equal(second, first)


class Both(Table):
    def call(self, ids):
        sums = keras.ops.sum(keras.ops.sin(self.table), axis=0)
        return keras.ops.take(self.table, ids, axis=0) + sums
