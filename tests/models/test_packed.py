"""Documents packed in one row give the same as separate rows."""

import dataclasses

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.export.helpers import assert_exports
from tests.grids import quick
from tests.stacks import embed_characters, make_encoder, make_writer

SIZE = dict(num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=20)
LENGTHS = [3, 4, 2]  # in a row of 11, with two of padding
DOCUMENTS = np.array([[1] * 3 + [2] * 4 + [3] * 2 + [0] * 2])
random = np.random.default_rng(0)

BUILDERS = {
    "sequence_labeler": lambda packed=False: ka.models.sequence_labeler(
        50, 7, **SIZE, embedding=ka.models.TextEmbedding(packed=packed)
    ),
    "characters": lambda packed=False: ka.models.sequence_labeler(
        50,
        7,
        embedding=embed_characters(30, packed=packed),
        position=["sinusoidal", "relative_bias"],
        mask=ka.masks.Global(1) | ka.masks.Window(2),
        **SIZE,
    ),
    "causal_language_model": lambda packed=False: ka.models.causal_language_model(
        50, **SIZE, embedding=ka.models.TextEmbedding(packed=packed)
    ),
    "learned": lambda packed=False: make_writer(
        50,
        **SIZE,
        position=ka.positions.Learned(4),
        embedding=ka.models.TextEmbedding(packed=packed),
        num_key_value_heads=1,
        num_blocks=1,
    ),
    "masked_language_model": lambda packed=False: ka.models.masked_language_model(
        50,
        hidden_dim=16,
        position="sinusoidal",
        embedding=dataclasses.replace(ka.models.TextEmbedding.of_bert(), packed=packed),
        encoder=make_encoder(**SIZE, norm="resi_dual", position="rotary"),
    ),
}


def draw(model):
    """Draw inputs of one row, with padding after the last document."""
    shapes = {"character_ids": (1, 11, 16)}
    kinds = {"segment_ids": (0, 2), "character_ids": (1, 30)}
    names = model.input if isinstance(model.input, dict) else ["token_ids"]
    drawn = {
        name: random.integers(*kinds.get(name, (1, 50)), size=shapes.get(name, (1, 11)))
        for name in names
    }
    drawn["document_ids"], drawn["token_ids"][:, 9:] = DOCUMENTS, 0
    return drawn


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILDERS)
def test_packed_documents_equal_separate_ones(name):
    packed, alone = BUILDERS[name](packed=True), BUILDERS[name]()
    alone.set_weights(packed.get_weights())
    batch = draw(packed)
    together = np.asarray(packed(batch))
    del batch["document_ids"]
    for start, length in zip(np.cumsum([0, *LENGTHS[:-1]]), LENGTHS, strict=True):
        piece = {key: x[:, start : start + length] for key, x in batch.items()}
        expected = alone(piece if len(piece) > 1 else piece["token_ids"])
        np.testing.assert_allclose(together[:, start : start + length], expected, atol=2e-5)


@pytest.mark.parametrize("cross_position", quick([None, "rotary"], "rotary"))
def test_packed_pairs_equal_separate_ones(cross_position):
    decoder = ka.models.TransformerDecoder.of_size(2, 2, 16, 20, cross_position=cross_position)
    packed, alone = (
        ka.models.seq2seq_transformer(
            50, 40, embedding=ka.models.TextEmbedding(packed=p), decoder=decoder, **SIZE
        )
        for p in (True, False)
    )
    alone.set_weights(packed.get_weights())
    source = random.integers(1, 50, size=(1, 11)) * (DOCUMENTS > 0)
    target_documents = np.array([[1] * 2 + [2] * 3 + [3] * 4 + [0]])
    target = random.integers(1, 40, size=(1, 10)) * (target_documents > 0)
    together = packed(
        {
            "source_ids": source,
            "target_ids": target,
            "source_document_ids": DOCUMENTS,
            "target_document_ids": target_documents,
        }
    )
    for pair in (1, 2, 3):
        mine = target_documents[0] == pair
        batch = {"source_ids": source[:, DOCUMENTS[0] == pair], "target_ids": target[:, mine]}
        np.testing.assert_allclose(np.asarray(together)[:, mine], alone(batch), atol=2e-5)


@pytest.mark.slow
def test_a_packed_model_learns_and_is_saved(tmp_path):
    model = BUILDERS["causal_language_model"](packed=True)
    model.compile("adam", ka.training.MaskedSparseCategoricalCrossentropy())
    batch = draw(model)
    history = model.fit(batch, batch["token_ids"], epochs=3, verbose=0)
    assert history.history["loss"][-1] < history.history["loss"][0]
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(batch), model(batch), atol=1e-6)


@pytest.mark.slow
@pytest.mark.tensorflow
def test_a_packed_model_exports():
    model = BUILDERS["sequence_labeler"](packed=True)
    assert_exports(model, sequence_length=11, examples=[draw(model)])


def test_a_packed_model_does_not_generate():
    model = BUILDERS["causal_language_model"](packed=True)
    with pytest.raises(ValueError, match="document_ids|one input|inputs"):
        ka.generation.generate(model, np.array([[3, 4]]), max_new_tokens=2)
