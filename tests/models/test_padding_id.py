"""`padding_id`: other ids than 0, or none, in builders, generation and files."""

import dataclasses
import json

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.grids import sampled
from tests.stacks import embed_characters

V, PADDING = 12, 7
SIZE = dict(num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=16, dropout=0.0)
BUILDERS = {
    "causal_language_model": ((V,), SIZE),
    "masked_language_model": ((V,), SIZE),
    "sequence_labeler": ((V, 5), SIZE),
    "sequence_labeler, characters": ((V, 5), SIZE),
    "text_classifier": ((V, 3), SIZE),
    "text_encoder": ((V,), SIZE | {"pooling": "last"}),
    "text_classifier, cls": ((V, 3), SIZE | {"pooling": "cls"}),
    "seq2seq_transformer": ((V,), SIZE),
    "encoder_decoder": ((V,), SIZE),
    "seq2seq_recurrent": ((V, V), {"hidden_dim": 8, "dropout": 0.0}),
}


def is_pair(name):
    return "seq2seq" in name or name == "encoder_decoder"


def build(name, padding_id):
    """Build the model called `name`, with the same weights for all padding ids."""
    keras.utils.set_random_seed(1)
    arguments, settings = BUILDERS[name]
    if name == "encoder_decoder":
        settings = settings | {"padding_id": padding_id}
    elif name == "seq2seq_recurrent":
        settings = settings | dict.fromkeys(("source_padding_id", "target_padding_id"), padding_id)
    else:
        embedding = ka.models.TextEmbedding()
        if name == "masked_language_model":
            embedding = ka.models.TextEmbedding.of_bert(num_segments=None)
        elif "characters" in name:
            embedding = embed_characters(9)
        settings = settings | {"embedding": dataclasses.replace(embedding, padding_id=padding_id)}
    model = getattr(ka.models, name.split(",")[0])(*arguments, **settings)
    keras.utils.set_random_seed(2)
    random = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(weight + 0.3 * random.normal(size=weight.shape))
    return model


def swap_tables(model):
    """Exchange the rows of id 0 and of `PADDING` in all tables."""
    for weight in model.weights:
        axes = [k for k, size in enumerate(weight.shape) if size == V]
        for axis in axes:
            order = list(range(V))
            order[0], order[PADDING] = PADDING, 0
            weight.assign(np.take(np.asarray(weight), order, axis))


def swap(ids):
    return np.where(ids == 0, PADDING, np.where(ids == PADDING, 0, ids))


def inputs(name, ids):
    if is_pair(name):
        return {"source_ids": ids, "target_ids": ids}
    if "characters" in name:
        return {"token_ids": ids, "character_ids": 1 + ids[:, :, None] % np.full(16, 8)}
    return ids


IDS = np.array([[5, 7, 3, 9, 7, 2], [4, 7, 1, 0, 0, 0], [7, 0, 0, 0, 0, 0]], "int32")


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILDERS)
def test_another_padding_id_changes_no_number(name):
    """Compare with padding id 0, after exchanging ids and rows."""
    model, other = build(name, 0), build(name, PADDING)
    swap_tables(other)
    batch = inputs(name, IDS)
    expected = np.asarray(model(batch))
    if "character_ids" in batch:
        batch = batch | {"token_ids": swap(batch["token_ids"])}
    else:
        batch = keras.tree.map_structure(swap, batch)
    logits = np.asarray(other(batch))
    if logits.shape[-1] == V:
        logits = logits[..., swap(np.arange(V))]
    real = slice(None) if logits.ndim == 2 else IDS != 0
    np.testing.assert_allclose(logits[real], expected[real], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILDERS)
def test_every_id_is_a_token(name):
    """Compare with a model whose padding id does not occur."""
    assert 11 not in IDS
    batch = inputs(name, IDS)
    everywhere, absent, zero = (np.asarray(build(name, p)(batch)) for p in (None, 11, 0))
    np.testing.assert_allclose(everywhere, absent, atol=1e-5)
    assert np.abs(everywhere - zero).max() > 1e-3


def test_refuses_padding_ids_outside_the_vocabulary():
    with pytest.raises(ValueError, match=r"TokenEmbedding\(padding_id=-1\): padding_id must be"):
        ka.blocks.TokenEmbedding(5, 4, padding_id=-1)
    with pytest.raises(ValueError, match="vocabulary_size=5: expected an id from 0 to 4"):
        ka.blocks.TokenEmbedding(5, 4, padding_id=5)


def test_token_dropout_keeps_another_padding_id():
    ids = np.array([[0, 7, 3]])
    for padding_id, expected in [(0, [0, 1, 1]), (PADDING, [1, 7, 1]), (None, [1, 1, 1])]:
        layer = ka.blocks.TokenDropout(1.0, padding_id=padding_id)
        assert np.asarray(layer(ids, training=True)).tolist() == [expected]
        assert type(layer).from_config(layer.get_config()).padding_id == padding_id


PROMPTS = [[5, 0, 3, 9], [0, 7], [1]]


@pytest.mark.slow
@pytest.mark.parametrize("padding_id", [None, PADDING])
def test_prompts_may_contain_id_0(padding_id):
    """Compare a batch of prompts with single ones, token by token."""
    model = build("causal_language_model", padding_id)
    prompts = PROMPTS if padding_id is None else [[5, 0, 3, 9], [0, 2], [1]]
    together = ka.generation.generate(model, prompts, 5)
    for prompt, row in zip(prompts, together, strict=True):
        text = list(prompt)
        for token in row:
            logits = np.array(model(np.array([text])))[0, -1]
            if padding_id is not None:
                logits[padding_id] = -np.inf
            assert token == logits.argmax()
            text.append(int(token))


@pytest.mark.slow
def test_sources_may_have_another_padding_id():
    model = build("encoder_decoder", PADDING)
    sources = [[5, 0, 3, 9], [0, 2], [1]]
    together = ka.generation.generate(model, sources, 4, start_token_id=0)
    alone = [ka.generation.generate(model, [row], 4, start_token_id=0)[0] for row in sources]
    np.testing.assert_array_equal(together, alone)
    whole = build("encoder_decoder", None)
    with pytest.raises(ValueError, match="rows of 1 to 4 ids, but the encoder has no padding id"):
        ka.generation.generate(whole, sources, 4, start_token_id=0)
    assert ka.generation.generate(whole, [[5, 0], [0, 0]], 4, start_token_id=0).shape == (2, 4)


@pytest.mark.parametrize("padding_id", [None, PADDING])
def test_two_passes_keep_the_start_and_padding(padding_id):
    """Check that only the first token and padding stay, and that padding is not predicted."""
    layer = ka.training.TwoPasses(build("encoder_decoder", padding_id))
    layer.teacher_forcing.assign(0.0)
    target = np.array([[1, 0, 3, 7, 7], [0, 7, 2, 0, 7]], "int32")
    is_target = np.asarray(layer._given(target))
    expected = np.zeros_like(is_target) if padding_id is None else target == padding_id
    expected[:, 0] = True
    np.testing.assert_array_equal(is_target, expected)
    logits = np.zeros((2, 5, V), "float32")
    logits[:, :, PADDING], logits[:, :, 4] = 2.0, 1.0
    after = np.asarray(layer._after(logits, target))
    assert (after[:, 1:] == (PADDING if padding_id is None else 4)).all()


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("padding_id", sampled([PADDING, None]))
def test_generating_files_with_another_padding_id(padding_id, tmp_path):
    model = build("causal_language_model", padding_id)
    path = tmp_path / "model.tflite"
    options = {"max_length": 16, "max_new_tokens": 5, "end_token_id": 2}
    generate = ka.export.Generation(["greedy", ka.generation.Beam(2)], **options)
    ka.export.to_litert(model, path, generate=generate)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    settings = manifest["files"][path.name]["generation"]
    assert settings["padding_id"] == padding_id
    generator = ka.export.LiteRTGenerator(path)
    prompts = PROMPTS if padding_id is None else [[5, 0, 3, 9], [0, 2], [1]]
    expected = ka.generation.generate(model, prompts, 5, end_token_id=2)
    stepwise = generator.generate(prompts, 5)
    np.testing.assert_array_equal(stepwise, expected[:, : stepwise.shape[1]])
    np.testing.assert_array_equal(generator.loop(prompts)["generated_ids"], expected)
    beams = ka.generation.generate(model, prompts, 5, ka.generation.Beam(2), end_token_id=2)
    np.testing.assert_array_equal(generator.loop(prompts, "beam")["generated_ids"][:, 0], beams)
    best = generator.beam(prompts, 5, width=2)["generated_ids"][:, 0]
    np.testing.assert_array_equal(best, beams[:, : best.shape[1]])


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "name", sampled(["masked_language_model", "encoder_decoder", "seq2seq_recurrent"], 2)
)
def test_files_with_another_padding_id(name, tmp_path):
    model = build(name, PADDING)
    if not is_pair(name):
        assert ka.export.to_litert(model, tmp_path / "model.tflite").max_abs_error < 1e-4
        return
    options = {"start_token_id": PADDING, "end_token_id": 2, "max_new_tokens": 5}
    generate = ka.export.Generation(**options)
    ka.export.to_litert(model, tmp_path / "model.tflite", generate=generate)
    generator = ka.export.LiteRTGenerator(tmp_path / "model.tflite")
    sources = [[5, 0, 3, 9], [0, 2], [1]]
    del options["max_new_tokens"]
    expected = ka.generation.generate(model, sources, 5, **options)
    np.testing.assert_array_equal(generator.loop(sources)["generated_ids"], expected)
