"""Small models to export, and files of one of them made once."""

import keras
import pytest

import keras_attention.export as export


def make_labeler(length=None, *, vocabulary_size=20, extra=None):
    """Ids to logits through stock Keras layers; `extra` is a layer in the middle."""
    ids = keras.Input((length,), dtype="int32", name="token_ids")
    x = keras.layers.Embedding(vocabulary_size, 8, mask_zero=True, name="embedding")(ids)
    x = x + keras.layers.MultiHeadAttention(2, 4, name="attention")(x, x)
    if extra is not None:
        x = extra(x)
    return keras.Model(ids, keras.layers.Dense(3, name="logits")(x), name="labeler")


@pytest.fixture(scope="session")
def labeler():
    keras.utils.set_random_seed(0)
    return make_labeler()


@pytest.fixture(scope="session")
def exported(labeler, tmp_path_factory):
    """A folder with `labeler` in all three formats, its reports, and what was done to make it."""
    folder = tmp_path_factory.mktemp("exported")
    labeler.save(folder / "model.keras")
    saved_model = export.to_saved_model(
        labeler, folder / "saved_model", metadata={"labels": ["A", "B", "C"], "padding_id": 0}
    )
    litert = export.to_litert(
        labeler, folder / "model.tflite", metadata={"vocabulary": "words.txt"}
    )
    return folder, saved_model, litert
