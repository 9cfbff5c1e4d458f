import numpy as np
import pytest

import keras_attention.export as export

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
    with pytest.raises(ValueError, match="takes the inputs token_ids; received words"):
        run({"words": [[1]]})
    with pytest.raises(ValueError, match="no signature 'encode'. It has: serving_default"):
        export.load(folder / name, "encode")


def test_outputs_stay_what_they_were_when_the_function_runs_again(exported):
    folder, *_ = exported
    run = export.load(folder / "model.tflite")
    first = run({"token_ids": [[3, 4]]})["logits"]
    kept = first.copy()
    run({"token_ids": [[7, 8]]})
    np.testing.assert_array_equal(first, kept)


def test_signatures_of_files_that_generate(written):
    path, _ = written
    run = export.load(path, "generate")
    assert run({"token_ids": [[5, 7, 11]]})["generated_ids"].shape == (1, 5)
    assert {"token_ids", "index", "start"} < set(export.load(path, "step").inputs)
    with pytest.raises(ValueError, match="no signature 'serving_default'. It has: generate, step"):
        export.load(path)
