import shutil
import zipfile

import numpy as np
import pytest

import keras_attention.export as export
from keras_attention.export.checks import runner

FORMATS = ("model.keras", "saved_model", "model.tflite")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_a_function_of_named_arrays(exported, labeler, name):
    folder, *_ = exported
    run = export.load(folder / name)
    assert list(run.inputs) == ["token_ids"] and run.outputs == ["logits"]
    for batch in ([[3, 4, 5, 0]], np.ones((2, 9), "int64"), np.ones((1, 1), "int32")):
        outputs = run({"token_ids": batch})
        assert type(outputs["logits"]) is np.ndarray
        np.testing.assert_allclose(outputs["logits"], labeler(np.array(batch)), atol=1e-5)


@pytest.mark.parametrize("name", FORMATS)
def test_wrong_names_are_refused(exported, name):
    folder, *_ = exported
    run = export.load(folder / name)
    with pytest.raises(ValueError, match="takes the inputs token_ids. It received words"):
        run({"words": [[1]]})
    with pytest.raises(
        ValueError, match="takes a dict of the inputs token_ids. It received ndarray"
    ):
        run(np.ones((1, 3), "int32"))
    assert "a dict of token_ids (?, ?) -> a dict of logits>" in repr(run)
    with pytest.raises(ValueError, match="no signature 'encode'. It has: serving_default"):
        export.load(folder / name, "encode")


def test_outputs_stay_what_they_were_when_the_function_runs_again(exported):
    folder, *_ = exported
    run = export.load(folder / "model.tflite")
    first = run({"token_ids": [[3, 4]]})["logits"]
    stored = first.copy()
    run({"token_ids": [[7, 8]]})
    np.testing.assert_array_equal(first, stored)


def test_signatures_of_files_that_generate(written):
    path, _ = written
    run = export.load(path, "generate")
    assert run({"token_ids": [[5, 7, 11]]})["generated_ids"].shape == (1, 5)
    assert {"token_ids", "index", "start"} < set(export.load(path, "step").inputs)
    with pytest.raises(ValueError, match="no signature 'serving_default'. It has: generate, step"):
        export.load(path)


@pytest.mark.parametrize("name", ["model.tflite", "saved_model"])
def test_flipped_bits_are_detected(exported, tmp_path, name):
    folder, *_ = exported
    copied = tmp_path / "copy"
    shutil.copytree(folder, copied)
    export.load(copied / name)
    path = copied / name
    if path.is_dir():
        path = path / "variables" / "variables.data-00000-of-00001"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"{name} differs from the file that .*manifest.json desc"):
        export.load(copied / name)
    (copied / "manifest.json").unlink()
    if name == "model.tflite":
        export.load(copied / name)


@pytest.mark.parametrize("name", ["model.keras", "model.tflite", "saved_model"])
def test_inputs_that_do_not_fit_are_refused(exported, name):
    run = export.load(exported[0] / name)
    for ids, message in (
        ([[1.5]], "takes int32 for token_ids. It received numbers with a fraction"),
        ([[np.nan]], "takes int32 for token_ids. It received NaN or infinite numbers"),
        (
            [[2**40]],
            "takes int32 for token_ids. It received numbers from 1099511627776 to 109951162",
        ),
        ([["a"]], "takes int32 for token_ids. It received an array of <U1"),
        ([1, 2], r"takes token_ids of shape \(\?, \?\). It received \(2,\)"),
        (np.ones((1, 0)), r"takes token_ids of shape \(\?, \?\). It received \(1, 0\)"),
        ([[1], [2, 3]], "takes an array for token_ids: "),
        ([[20]], r"cannot be run on token_ids \(1, 1\): "),
    ):
        with pytest.raises(ValueError, match=f"{name} {message}"):
            run({"token_ids": ids})
    assert run({"token_ids": [[3.0, 4.0]]})["logits"].shape == (1, 2, 3)


def test_inputs_of_wrong_fixed_sizes_are_refused(translated):
    run = export.load(translated[0], "encode")
    with pytest.raises(
        ValueError, match=r"takes source_ids of shape \(2, 6\). It received \(2, 7\)"
    ):
        run({"source_ids": np.ones((2, 7), "int32")})


@pytest.mark.parametrize(
    "name, part",
    [
        ("saved_model", "variables/variables.data-00000-of-00001"),
        ("saved_model", "variables/variables.index"),
        ("saved_model", "saved_model.pb"),
        ("model.tflite", ""),
    ],
)
def test_damage_without_a_manifest_is_refused(exported, tmp_path, name, part):
    folder, *_ = exported
    copied = tmp_path / name
    (shutil.copytree if part else shutil.copy)(folder / name, copied)
    path = copied / part if part else copied
    content = path.read_bytes()
    path.write_bytes(content[:16] + bytes(len(content) // 2 - 16) + content[len(content) // 2 :])
    with pytest.raises(ValueError, match=f"{name} could not be loaded as a (SavedModel|LiteRT f)"):
        export.load(copied)


def test_a_graph_that_leads_nowhere_is_refused_before_the_runtime_reads_it(exported, tmp_path):
    content = (exported[0] / "model.tflite").read_bytes()
    path, refused = tmp_path / "model.tflite", 0
    for place in range(8, len(content) - 64, len(content) // 20):
        path.write_bytes(content[:place] + b"\xff" * 64 + content[place + 64 :])
        try:
            export.load(path)
        except ValueError as error:
            assert str(path) in str(error)
            refused += 1
    assert refused >= 3  # the others are in weights, which only a digest would tell


def test_formats_follow_from_the_content(tmp_path, exported):
    folder, *_ = exported
    renamed = tmp_path / "model.bin"
    renamed.write_bytes((folder / "model.tflite").read_bytes())
    assert runner.find_format(renamed) == "litert"
    assert runner.find_format(folder / "model.keras") == "keras"
    assert runner.find_format(folder / "saved_model") == "saved_model"


@pytest.mark.parametrize("name", ["text.tflite", "empty.keras", "other.zip", "folder"])
def test_a_file_that_is_not_a_model_is_refused(tmp_path, name):
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
    elif name == "other.zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("readme", "hello")
    else:
        path.write_text("hello" if "text" in name else "")
    with pytest.raises(ValueError, match=f"{name} is not a model. Expected a .keras file, a .tfl"):
        runner.find_format(path)


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="file or folder .*nowhere does not exist"):
        runner.find_format(tmp_path / "nowhere")
