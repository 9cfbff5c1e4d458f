import pytest

import keras_attention.export as export


def test_all_formats_tell_the_same_signature(exported):
    folder, *_ = exported
    found = {name: export.inspect(folder / name) for name in
             ("model.keras", "saved_model", "model.tflite")}  # fmt: skip
    assert [f.format for f in found.values()] == ["keras", "saved_model", "litert"]
    assert len({f.signatures for f in found.values()}) == 1
    assert found["model.keras"].ops["MultiHeadAttention"] == 1
    assert found["saved_model"].ops["Softmax"] == found["model.tflite"].ops["SOFTMAX"] == 1
    for inspection in found.values():
        assert "input   token_ids  int32    (?, ?)" in str(inspection)
        assert inspection.size > 1000 and str(inspection).startswith(str(folder))


def test_a_file_that_is_no_model_is_one_clear_sentence(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(ValueError, match="notes.txt is no model: expected a .keras file"):
        export.inspect(tmp_path / "notes.txt")


def test_damaged_models_are_told_so(exported, tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"\xff\xff\xff")
    with pytest.raises(ValueError, match="saved_model.pb is damaged"):
        export.inspect(tmp_path)
    import zipfile

    path = tmp_path / "m.keras"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", "{}")
    with pytest.raises(ValueError, match="m.keras could not be loaded as a Keras model: "):
        export.inspect(path)


def test_files_that_generate_show_all_they_offer(translated):
    found = export.inspect(translated[0])
    assert [signature.name for signature in found.signatures] == ["encode", "generate", "step"]
    lines = str(found).splitlines()
    assert "signature step" in lines and "  input   source_ids     int32  (2, 6)" in lines
    assert sum("decoder_block_0_cross_attention_source_key" in line for line in lines) == 2
