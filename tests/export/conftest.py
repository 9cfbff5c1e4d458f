"""Small models to export, and files of one of them made once."""

import keras
import numpy as np
import pytest

import keras_attention as ka
import keras_attention.export as export
from keras_attention.export import convert
from keras_attention.generation.decoder import Decoder


def make_labeler(length=None, *, vocabulary_size=20, extra=None):
    """Return a model of stock Keras layers from ids to logits, with `extra` in the middle."""
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
    """Return a folder with `labeler` in all formats, its reports, and the arguments."""
    folder = tmp_path_factory.mktemp("exported")
    labeler.save(folder / "model.keras")
    saved_model = export.to_saved_model(
        labeler, folder / "saved_model", metadata={"labels": ["A", "B", "C"], "padding_id": 0}
    )
    litert = export.to_litert(
        labeler, folder / "model.tflite", metadata={"vocabulary": "words.txt"}
    )
    return folder, saved_model, litert


@pytest.fixture
def in_this_process(monkeypatch):
    """Full int8 is converted here, and not in a new process, to save its seconds."""

    def run(folder, signatures, model, samples, per_channel):
        from keras_attention.export import backend, converter

        with backend.hide_stderr():
            return converter.convert_folder(folder, signatures, "int8", samples, per_channel)

    monkeypatch.setattr(convert, "_convert_in_process", run)


WRITER = {"max_length": 14, "max_new_tokens": 5, "end_token_id": 3}
TRANSLATOR = {"max_length": 7, "start_token_id": 1, "end_token_id": [2, 3]}
TEXTS = np.array([[5, 7, 11, 13, 2, 17], [18, 4, 8, 9, 0, 0]])


def vary(model):
    """`model` with weights that make it say different things after different texts."""
    random = np.random.default_rng(3)
    for weight in model.weights:
        if len(weight.shape) > 1:
            weight.assign(random.normal(size=weight.shape, scale=0.6))
    return model


@pytest.fixture(scope="session")
def writer():
    """Return a language model of 23 ids."""
    model = ka.models.causal_language_model(
        23, num_layers=1, num_heads=2, hidden_dim=16, tie_embeddings=False
    )
    return vary(model)


@pytest.fixture(scope="session")
def translator():
    """Return an encoder-decoder from 19 ids to 23."""
    model = ka.models.seq2seq_transformer(
        19,
        23,
        num_layers=1,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=24,
        norm="pre",
        tie_embeddings=False,
    )
    return vary(model)


@pytest.fixture(scope="session")
def decoders(writer, translator):
    return {"writer": Decoder(writer), "translator": Decoder(translator)}


@pytest.fixture(scope="session")
def written(writer, tmp_path_factory):
    """Return the LiteRT file of `writer` with free shapes, and its report."""
    path = tmp_path_factory.mktemp("written") / "writer.tflite"
    generate = export.Generation("greedy", **WRITER)
    return path, export.to_litert(writer, path, generate=generate, examples=TEXTS)


@pytest.fixture(scope="session")
def translated(translator, tmp_path_factory):
    """Return the LiteRT file of `translator` with fixed shapes, and its report."""
    path = tmp_path_factory.mktemp("translated") / "translator.tflite"
    sizes = {"batch_size": 2, "sequence_length": 6}
    examples = [({"source_ids": TEXTS, "target_ids": TEXTS[:, :4]}, None)]
    generate = export.Generation("greedy", **TRANSLATOR)
    return path, export.to_litert(translator, path, generate=generate, examples=examples, **sizes)
