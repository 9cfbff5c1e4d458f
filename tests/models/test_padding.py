"""The argument `padding`: it changes no number, and violating ids are refused."""

import dataclasses

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.core import keras_internals
from tests.stacks import embed_characters

SIZE = dict(num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=16, dropout=0.0)
BUILDERS = {
    "causal_language_model": ((12,), SIZE),
    "masked_language_model": ((12,), SIZE),
    "sequence_labeler": ((12, 5), SIZE),
    "text_classifier": ((12, 3), SIZE),
    "seq2seq_transformer": ((12,), SIZE),
}
EMBEDDINGS = {
    "causal_language_model": ka.models.TextEmbedding(),
    "masked_language_model": ka.models.TextEmbedding.of_bert(num_segments=None),
    "sequence_labeler": embed_characters(9),
    "text_classifier": ka.models.TextEmbedding(),
    "seq2seq_transformer": ka.models.TextEmbedding(),
}
FULL = np.array([[5, 7, 3, 9, 7, 2], [4, 7, 1, 2, 3, 8]], "int32")
RIGHT = np.array([[5, 7, 3, 9, 7, 2], [4, 7, 1, 0, 0, 0]], "int32")
LEFT = RIGHT[:, ::-1]


def build(name, padding=None):
    arguments, settings = BUILDERS[name]
    keras.utils.set_random_seed(1)
    embedding = dataclasses.replace(EMBEDDINGS[name], padding=padding)
    attention = ka.attention.MultiHeadAttention(
        2, 4, position="rotary", padding="right" if padding == "right" else None
    )
    layers = dict(attention=attention, feed_forward=ka.blocks.FeedForward(16))
    encoder = ka.models.TransformerEncoder(1, **layers)
    more = {"pooling": "cls"} if name == "text_classifier" else {}
    if name == "seq2seq_transformer":
        more = {
            "decoder": ka.models.TransformerDecoder(1, cross_attention=attention, **layers),
        }
    return getattr(ka.models, name)(
        *arguments,
        hidden_dim=8,
        dropout=0.0,
        embedding=embedding,
        encoder=encoder,
        **more,
    )


def inputs(name, ids):
    if name == "seq2seq_transformer":
        return {"source_ids": ids, "target_ids": ids}
    if name == "sequence_labeler":
        return {"token_ids": ids, "character_ids": 1 + ids[:, :, None] % np.full(16, 8)}
    return ids


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILDERS)
def test_padding_argument_changes_no_number(name):
    plain = build(name)
    for padding, ids in (("none", FULL), ("right", RIGHT), ("right", FULL)):
        model, batch = build(name, padding), inputs(name, ids)
        np.testing.assert_array_equal(model(batch), plain(batch))
        np.testing.assert_array_equal(
            model.predict(batch, verbose=0), plain.predict(batch, verbose=0)
        )


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("padding, ids", [("none", RIGHT), ("right", LEFT)])
def test_ids_that_violate_padding_are_refused(name, padding, ids):
    model = build(name, padding)
    with pytest.raises(ValueError, match=f"padding_id=0 in row 1.*padding='{padding}'"):
        model(inputs(name, ids))


def test_model_without_padding_has_no_mask():
    for padding, masked in ((None, True), ("right", True), ("none", False)):
        output = build("causal_language_model", padding)(FULL)
        assert (keras_internals.get_mask(output) is not None) == masked


@pytest.mark.parametrize("padding", ["none", "right"])
def test_padding_argument_is_saved(padding, tmp_path):
    model = build("causal_language_model", padding)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    with pytest.raises(ValueError, match=f"padding='{padding}'"):
        again(LEFT if padding == "right" else RIGHT)
    padding = again.get_layer("block_0").attention.padding
    assert padding == ("right" if padding == "right" else None)


@pytest.mark.slow
@pytest.mark.tensorflow
def test_model_without_padding_exports_without_comparisons(tmp_path):
    for padding, compared in ((None, True), ("none", False)):
        model = build("causal_language_model", padding)
        report = ka.export.to_litert(model, tmp_path / "model.tflite", sequence_length=6)
        assert ("NOT_EQUAL" in report.ops) == compared, report.ops


@pytest.mark.slow
@pytest.mark.parametrize("padding", ["none", "right"])
def test_a_batch_of_prompts_generates_like_each_prompt(padding):
    """Check that `generate` may pad prompts in spite of `padding="none"`."""
    model = build("causal_language_model", padding)
    together = ka.generation.generate(model, [[5, 7], [3, 4, 6, 8]], 4)
    for row, prompt in zip(together, ([5, 7], [3, 4, 6, 8]), strict=True):
        np.testing.assert_array_equal(row, ka.generation.generate(model, [prompt], 4)[0])


def test_invalid_padding_arguments_are_refused():
    with pytest.raises(ValueError, match="padding='left'"):
        build("causal_language_model", "left")
    with pytest.raises(ValueError, match="padding='right', padding_id=None"):
        embedding = ka.models.TextEmbedding(padding_id=None, padding="right")
        ka.models.causal_language_model(12, embedding=embedding, **SIZE)
    with pytest.raises(TypeError, match="'padding'"):
        ka.models.vision_transformer(8, 3, patch_size=4, padding="none")
    with pytest.raises(ValueError, match="padding='none'"):
        ka.attention.MultiHeadAttention(2, 4, padding="none")
