"""`question_answerer`: what counts as an answer, what is looked at, and what padding changes."""

import dataclasses

import numpy as np
import pytest

import keras_attention as ka
from tests.stacks import embed_characters

V, LETTERS, NOWHERE = 40, 20, -100.0
SIZE = dict(num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=24)
random = np.random.default_rng(0)


def make_inputs(question=4, context=7, rows=3):
    shape = (rows, question + context)
    segments = np.repeat([0, 1], [question, context])
    return {
        "token_ids": random.integers(1, V, shape).astype("int32"),
        "segment_ids": np.tile(segments, (rows, 1)).astype("int32"),
    }


def call(model, inputs):
    found = model(inputs)
    assert list(found) == ["start_logits", "end_logits"]
    return np.stack([np.asarray(found[name]) for name in found], axis=-1)  # (B, T, 2)


@pytest.mark.parametrize("no_answer", [False, True])
def test_only_the_context_counts_and_the_first_place_without_an_answer(no_answer):
    model = ka.models.question_answerer(V, no_answer=no_answer, **SIZE)
    logits = call(model, make_inputs())
    assert (logits[:, 1:4] == NOWHERE).all() and (logits[:, 4:] > NOWHERE).all()
    assert ((logits[:, 0] > NOWHERE) == no_answer).all()


def test_logits_are_a_linear_layer_over_the_encoder():
    """By definition: W x + b of the encoder's output, 0 the start and 1 the end."""
    import keras

    model, inputs = ka.models.question_answerer(V, **SIZE), make_inputs()
    head = model.get_layer("logits")
    below = keras.Model(model.input, head.input)
    kernel, bias = (np.asarray(w) for w in head.weights)
    expected = np.asarray(below(inputs)) @ kernel + bias
    np.testing.assert_allclose(call(model, inputs)[:, 4:], expected[:, 4:], atol=1e-5)


def test_padding_changes_nothing_and_is_no_answer():
    model = ka.models.question_answerer(
        V, embedding=embed_characters(LETTERS, num_segments=2, exact_match=True), **SIZE
    )
    short = make_inputs()
    shape = short["token_ids"].shape
    short["exact_match"] = random.integers(0, 3, shape).astype("int32")
    short["character_ids"] = random.integers(1, LETTERS, (*shape, 16)).astype("int32")
    long = {name: np.pad(x, [(0, 0), (0, 3), (0, 0)][: x.ndim]) for name, x in short.items()}
    found = call(model, long)
    np.testing.assert_allclose(found[:, :-3], call(model, short), atol=1e-5)
    assert (found[:, -3:] == NOWHERE).all()
    long["segment_ids"][:, -3:] = 1  # even where a segment says that it is the context's
    assert (call(model, long)[:, -3:] == NOWHERE).all()


@pytest.mark.slow
@pytest.mark.parametrize("feature", ["segment_ids", "exact_match", "character_ids", "token_ids"])
def test_every_input_is_looked_at(feature):
    model = ka.models.question_answerer(
        V, embedding=embed_characters(LETTERS, num_segments=2, exact_match=True), **SIZE
    )
    inputs = make_inputs()
    inputs["exact_match"] = np.zeros_like(inputs["token_ids"])
    inputs["character_ids"] = random.integers(1, LETTERS, (3, 11, 16)).astype("int32")
    before = call(model, inputs)
    changed = inputs[feature].copy()
    changed[:, 2] = 2 - changed[:, 2] if feature == "exact_match" else (changed[:, 2] + 1) % LETTERS
    if feature == "segment_ids":
        changed[:, 2] = 1
    after = call(model, inputs | {feature: changed})
    assert np.abs(after[:, 4:] - before[:, 4:]).max() > 1e-5


def test_without_embedded_segments_they_still_say_what_counts():
    model = ka.models.question_answerer(V, embedding=ka.models.TextEmbedding(), **SIZE)
    assert not any("segments" in weight.path for weight in model.weights)
    logits = call(model, make_inputs())
    assert (logits[:, :4] == NOWHERE).all() and (logits[:, 4:] > NOWHERE).all()


def test_sizes_are_those_of_the_paper():
    """Devlin et al. (2019), section 3: L, A, H, and 4H."""
    sizes = ka.models.sizes("question_answerer")
    found = {}
    for name, size in sizes.items():
        encoder = size["encoder"]
        heads, inner = encoder.attention.num_heads, encoder.feed_forward.intermediate_dim
        found[name] = (encoder.num_layers, heads, size["hidden_dim"], inner)
    assert found == {"BERT-Base": (12, 12, 768, 3072), "BERT-Large": (24, 16, 1024, 4096)}
    one = dataclasses.replace(sizes["BERT-Base"]["encoder"], num_layers=1)
    model = ka.models.question_answerer(V, **(sizes["BERT-Base"] | {"encoder": one}))
    assert model.get_layer("block_0").attention.num_heads == 12
