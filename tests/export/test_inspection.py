"""How many ids a model knows, by the model and by its file."""

import keras
import pytest

import keras_attention as ka
import keras_attention.export as export
from keras_attention.export.checks.report import Signature, Tensor
from keras_attention.export.inspection import Inspection, check_sizes, find_id_limits
from tests.stacks import embed_characters


def test_all_formats_have_the_same_signature(exported):
    folder, *_ = exported
    result = {name: export.inspect(folder / name) for name in
             ("model.keras", "saved_model", "model.tflite")}  # fmt: skip
    assert [f.format for f in result.values()] == ["keras", "saved_model", "litert"]
    assert len({f.signatures for f in result.values()}) == 1
    assert result["model.keras"].ops["MultiHeadAttention"] == 1
    assert result["saved_model"].ops["Softmax"] == result["model.tflite"].ops["SOFTMAX"] == 1
    for inspection in result.values():
        assert "input   token_ids  int32    (?, ?)" in str(inspection)
        assert inspection.size > 1000 and str(inspection).startswith(str(folder))


def test_a_file_that_is_not_a_model_gives_one_sentence(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(ValueError, match="notes.txt is not a model. Expected a .keras file"):
        export.inspect(tmp_path / "notes.txt")


def test_damaged_models_are_refused(exported, tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"\xff\xff\xff")
    with pytest.raises(ValueError, match="saved_model.pb is damaged"):
        export.inspect(tmp_path)
    import zipfile

    path = tmp_path / "m.keras"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", "{}")
    with pytest.raises(ValueError, match="m.keras could not be loaded as a Keras model: "):
        export.inspect(path)


class Halved(keras.layers.Layer):
    """A class of a user's own."""

    def call(self, x):
        return x / 2


def test_a_class_that_is_not_imported_is_named(tmp_path):
    x = keras.Input((3,))
    keras.Model(x, Halved()(x)).save(tmp_path / "m.keras")
    with pytest.raises(ValueError, match="m.keras contains an object of the unknown class Halved"):
        export.load(tmp_path / "m.keras")
    with keras.saving.custom_object_scope({"Halved": Halved}):
        assert export.load(tmp_path / "m.keras").outputs


@pytest.mark.slow
def test_files_that_generate_show_all_signatures(translated):
    result = export.inspect(translated[0])
    assert [signature.name for signature in result.signatures] == ["encode", "generate", "step"]
    lines = str(result).splitlines()
    assert "signature step" in lines and "  input   source_ids     int32  (2, 6)" in lines
    assert sum("decoder_block_0_cross_attention_source_key" in line for line in lines) == 2


SIZES = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8}


def test_keras_and_litert_files_show_their_id_limits(exported):
    folder, *_ = exported
    for name in ("model.keras", "model.tflite"):
        assert ka.export.inspect(folder / name).id_limits == {"token_ids": 20}
    assert ka.export.inspect(folder / "saved_model").id_limits == {}


@pytest.mark.slow
def test_models_that_write(written, translated):
    """Only the first signature of a LiteRT file counts."""
    assert ka.export.inspect(written[0]).id_limits == {"token_ids": 23}
    assert ka.export.inspect(translated[0]).id_limits == {"source_ids": 19}


def test_embeddings_of_one_input_give_its_limit():
    translator = ka.models.seq2seq_transformer(19, 23, **SIZES)
    assert find_id_limits(translator) == {"source_ids": 19}  # the decoder reads both
    assert find_id_limits(ka.models.text_classifier(31, 5, **SIZES)) == {"token_ids": 31}
    images = ka.models.vision_transformer((8, 8), 3, patch_size=4, **SIZES)
    assert find_id_limits(images) == {}


@pytest.mark.slow
@pytest.mark.parametrize("quantization", [None, "int8_weights"])
def test_a_file_shows_the_embedding_of_every_input(quantization, tmp_path):
    """Use one layer for both inputs, so that only the file shows their embeddings."""
    model = ka.models.sequence_labeler(
        3000, 5, embedding=embed_characters(11, word_length=4), **SIZES
    )
    assert find_id_limits(model) == {}
    ka.export.to_litert(model, tmp_path / "m.tflite", quantization=quantization)
    result = ka.export.inspect(tmp_path / "m.tflite").id_limits
    assert result == {"token_ids": 3000, "character_ids": 11}


def test_numbers_without_a_table_have_no_limit(tmp_path):
    x = keras.Input((3,), name="x")
    ka.export.to_litert(keras.Model(x, keras.layers.Dense(2)(x)), tmp_path / "m.tflite")
    assert ka.export.inspect(tmp_path / "m.tflite").id_limits == {}


INPUTS = (
    Tensor("token_ids", (None, None), "int32"),
    Tensor("character_ids", (None, None, 16), "int32"),
)
OUTPUT = Tensor("logits", (None, None, 17), "float32")


def inspection(inputs=INPUTS, output=OUTPUT, **limits):
    signature = Signature("serving_default", inputs, (output,))
    return Inspection("m.tflite", "litert", (signature,), {}, 0, limits)


def test_check_sizes_accepts_matching_or_unlimited_sizes():
    sizes = {"labels": 17, "vocabularies": {"token_ids": 50}, "lengths": {"character_ids": 16}}
    check_sizes(inspection(token_ids=50), **sizes)
    check_sizes(inspection(), **sizes)  # an older export, whose manifest says no limits
    free = Tensor("y", (None, None), "float32")
    check_sizes(inspection(INPUTS[:1], free), **sizes)


def test_a_saved_model_has_its_signatures_in_any_order():
    step = Signature("step", (Tensor("state", (None, 4), "float32"),), (OUTPUT,))
    encode = Signature("encode", INPUTS, (OUTPUT,))
    for signatures in ((encode, step), (step, encode)):
        result = Inspection("folder", "saved_model", signatures, {}, 0, {})
        check_sizes(result, lengths={"character_ids": 16})
        with pytest.raises(ValueError, match="takes character_ids of size 16"):
            check_sizes(result, lengths={"character_ids": 8})


@pytest.mark.parametrize(
    "sizes, message",
    [
        ({"labels": 16}, "There are 16 labels, but m.tflite returns 17 scores in 'logits'"),
        ({"vocabularies": {"token_ids": 51}}, "51 entries, but m.tflite was made for 50 ids in to"),
        (
            {"lengths": {"character_ids": 8}},
            "takes character_ids of size 16 along .* manifest says 8",
        ),
    ],
)
def test_check_sizes_refuses_sizes_that_differ_from_the_file(sizes, message):
    with pytest.raises(ValueError, match=message):
        check_sizes(inspection(token_ids=50), **sizes)
