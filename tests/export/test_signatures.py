"""What every runtime takes: dtypes of signatures, and outputs that are tensors of their own."""

import pathlib

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.export import LiteRTGenerator, Tensor, convert, endpoint
from keras_attention.export.graphs import flatbuffer

SHIPPED = pathlib.Path(ka.__file__).parents[1] / "saved_models" / "multi30k-de-en"


class Zeros(keras.layers.Layer):
    """Zeros whatever comes in: a constant where shapes are fixed."""

    def call(self, x):
        return keras.ops.zeros_like(x)


def masked(**sizes):
    """Bool in and out, one tensor under two names, an input that comes out, and constants."""
    ids = keras.Input((5,), dtype="int32", name="token_ids", **sizes)
    mask = keras.Input((5,), dtype="bool", name="mask", **sizes)
    x = keras.layers.Embedding(9, 4)(ids)
    x = x * keras.ops.expand_dims(keras.ops.cast(mask, "float32"), -1)
    inputs = {"sum": x, "again": x, "ids": ids, "mask": mask, "seen": keras.ops.logical_not(mask)}
    zeros = {"zeros": Zeros()(x), "more": Zeros()(x)}
    return keras.Model({"token_ids": ids, "mask": mask}, {**inputs, **zeros})


@pytest.fixture(scope="module")
def fixed(tmp_path_factory):
    model, path = masked(), tmp_path_factory.mktemp("signatures") / "m.tflite"
    return model, path, ka.export.to_litert(model, path, batch_size=2)


def shared(path):
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    return dict(flatbuffer.list_shared_outputs(schema.Model.GetRootAs(path.read_bytes(), 0)))


def test_bool_is_int32_in_signatures(fixed):
    _, _, report = fixed
    (signature,) = report.signatures
    assert Tensor("mask", (2, 5), "int32") in signature.inputs
    assert {t.name: t.dtype for t in signature.outputs} == {
        **dict.fromkeys(("ids", "mask", "seen"), "int32"),
        **dict.fromkeys(("sum", "again", "zeros", "more"), "float32"),
    }


def test_files_equal_the_model(fixed):
    model, path, _ = fixed
    batch = {"token_ids": [[1, 2, 3, 4, 5], [8, 7, 6, 0, 0]], "mask": [[1, 0, 1, 1, 1], [1] * 5]}
    batch = {name: np.array(values, "int32") for name, values in batch.items()}
    result = ka.export.load(path)(batch)
    expected = model({**batch, "mask": batch["mask"].astype(bool)})
    for name, value in expected.items():
        np.testing.assert_allclose(result[name], value, atol=1e-6)
    worst = ka.export.verify(model, path, [batch])
    assert worst["seen"].max_abs_error == 0.0


def test_each_output_has_its_own_tensor(fixed, tmp_path):
    """Export outputs that the converter would merge into one computed tensor and a few others."""
    _, path, _ = fixed
    assert shared(path) == {"serving_default": []}
    assert len(flatbuffer.read_graph(path).signatures[0].outputs) == 7
    content = path.read_bytes()
    assert convert.separate_outputs(content) is content


@pytest.mark.slow
def test_shared_outputs_are_copied(fixed, monkeypatch, tmp_path):
    model, path, report = fixed
    monkeypatch.setattr(convert, "separate_outputs", lambda content: content)
    ka.export.to_litert(model, tmp_path / "m.tflite", batch_size=2)
    assert set(shared(tmp_path / "m.tflite")["serving_default"]) >= {"ids", "zeros", "more"}
    assert path.stat().st_size < (tmp_path / "m.tflite").stat().st_size + 4000


def test_saved_models_have_the_same_signatures(fixed, tmp_path):
    model, _, report = fixed
    served = ka.export.to_saved_model(model, tmp_path / "served", batch_size=2)
    assert served.signatures == report.signatures


def test_masks_that_are_made_up_have_both_values():
    point = endpoint.make_endpoint(masked())
    batch = ka.export.checks.cases.make_batches(masked(), point)[0]
    assert set(batch["mask"].ravel()) == {0, 1} and batch["mask"].dtype == "int32"
    assert batch["token_ids"].min() >= 1


def test_wide_integers_stay_wide():
    """int32 does not hold them, and to cut them off would be silently wrong."""
    x = keras.Input((3,), dtype="int32", name="x")
    wide, small = (
        keras.layers.Lambda(lambda x, k=k: keras.ops.cast(x, k), name=k)(x)
        for k in ("int64", "uint8")
    )
    result = endpoint.make_endpoint(keras.Model(x, [wide, small])).call(
        {"x": np.ones((1, 3), "int32")}
    )
    assert {name: str(value.dtype.name) for name, value in result.items()} == {
        "int64": "int64", "uint8": "int32"
    }  # fmt: skip


def dtypes(report):
    tensors = [t for s in report.signatures for t in (*s.inputs, *s.outputs)]
    return {tensor.dtype for tensor in tensors}


def test_signatures_of_decoders_have_no_bool(written, translated):
    for path, report in (written, translated):
        assert dtypes(report) == {"int32", "float32"}
        assert not any(shared(path).values())
        assert report.generation["contract"] == 1


def test_encode_returns_only_entries_that_vary(translated):
    """Check that the file has the masks of two layers, which the converter merges."""
    _, report = translated
    encode = next(s for s in report.signatures if s.name == "encode")
    cache = report.generation["cache"]
    assert [t.name for t in encode.outputs] == [e["name"] for e in cache if e["from_encode"]]
    assert {e["name"] for e in cache if not e["from_encode"]} == {
        "tokens_mask",
        "decoder_block_0_attention_key",
        "decoder_block_0_attention_value",
    }


@pytest.mark.slow
@pytest.mark.parametrize("sequence_length, inputs", [(6, False), (None, True)])
def test_zeros_as_long_as_a_source_need_its_length(sequence_length, inputs):
    """Check that the shape of the coverage is only fixed for a source of fixed length."""
    from tests.export.generation.test_endpoints import points

    model = ka.models.seq2seq_recurrent(19, 23, hidden_dim=8, attention="luong", coverage=True)
    made = points(
        ka.generation.Decoder(model),
        sequence_length=sequence_length,
        start_token_id=1,
        max_length=7,
    )
    names = [name for name in made["step"].cache if name.endswith("coverage")]
    assert [name in made["encode"].outputs for name in names] == [inputs]
    first = [name for name in made["step"].cache if name.endswith("state_0")]
    assert set(first) <= set(made["encode"].outputs)  # it comes of the encoder's last state


def test_the_shipped_translator_still_works():
    generator = LiteRTGenerator(SHIPPED / "model.int8.tflite")
    preprocessor = ka.data.SequencePreprocessor.load(SHIPPED)
    sources = preprocessor.source_ids(["Zwei Hunde spielen im Schnee.", "Ein Mann fährt Fahrrad."])
    expected = ["Two dogs play in the snow.", "A man is riding a bicycle."]
    assert preprocessor.texts(generator.generate(sources, 12)) == expected
    loop = generator.loop(sources, "beam")
    steps = generator.beam(sources, width=5, length_penalty=1.0)
    assert preprocessor.texts(loop["generated_ids"][:, 0]) == expected
    np.testing.assert_array_equal(steps["generated_ids"], loop["generated_ids"])
    np.testing.assert_allclose(steps["scores"], loop["scores"], rtol=1e-3)
