"""`question_answerer`: allowed answers, inputs, and padding."""

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
    logits = model(inputs)
    assert list(logits) == ["start_logits", "end_logits"]
    return np.stack([np.asarray(logits[name]) for name in logits], axis=-1)  # (B, T, 2)


@pytest.mark.parametrize("no_answer", [False, True])
def test_only_the_context_and_the_first_token_have_logits(no_answer):
    model = ka.models.question_answerer(V, no_answer=no_answer, **SIZE)
    logits = call(model, make_inputs())
    assert (logits[:, 1:4] == NOWHERE).all() and (logits[:, 4:] > NOWHERE).all()
    assert ((logits[:, 0] > NOWHERE) == no_answer).all()


def test_logits_are_a_linear_layer_over_the_encoder():
    """Compare with W x + b of the encoder's output."""
    import keras

    model, inputs = ka.models.question_answerer(V, **SIZE), make_inputs()
    head = model.get_layer("logits")
    below = keras.Model(model.input, head.input)
    kernel, bias = (np.asarray(w) for w in head.weights)
    expected = np.asarray(below(inputs)) @ kernel + bias
    np.testing.assert_allclose(call(model, inputs)[:, 4:], expected[:, 4:], atol=1e-5)


def test_padding_changes_nothing_and_has_low_logits():
    model = ka.models.question_answerer(
        V, embedding=embed_characters(LETTERS, num_segments=2, exact_match=True), **SIZE
    )
    short = make_inputs()
    shape = short["token_ids"].shape
    short["exact_match"] = random.integers(0, 3, shape).astype("int32")
    short["character_ids"] = random.integers(1, LETTERS, (*shape, 16)).astype("int32")
    long = {name: np.pad(x, [(0, 0), (0, 3), (0, 0)][: x.ndim]) for name, x in short.items()}
    logits = call(model, long)
    np.testing.assert_allclose(logits[:, :-3], call(model, short), atol=1e-5)
    assert (logits[:, -3:] == NOWHERE).all()
    long["segment_ids"][:, -3:] = 1  # even with the segment id of the context
    assert (call(model, long)[:, -3:] == NOWHERE).all()


@pytest.mark.slow
@pytest.mark.parametrize("feature", ["segment_ids", "exact_match", "character_ids", "token_ids"])
def test_every_input_changes_the_logits(feature):
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


def test_segments_limit_the_answer_without_being_embedded():
    model = ka.models.question_answerer(V, embedding=ka.models.TextEmbedding(), **SIZE)
    assert not any("segments" in weight.path for weight in model.weights)
    logits = call(model, make_inputs())
    assert (logits[:, :4] == NOWHERE).all() and (logits[:, 4:] > NOWHERE).all()


def test_sizes_are_those_of_the_paper():
    """Devlin et al. (2019), section 3: L, A, H, and 4H."""
    sizes = ka.models.sizes("question_answerer")
    actual = {}
    for name, size in sizes.items():
        encoder = size["encoder"]
        heads, inner = encoder.attention.num_heads, encoder.feed_forward.intermediate_dim
        actual[name] = (encoder.num_layers, heads, size["hidden_dim"], inner)
    assert actual == {"BERT-Base": (12, 12, 768, 3072), "BERT-Large": (24, 16, 1024, 4096)}
    one = dataclasses.replace(sizes["BERT-Base"]["encoder"], num_layers=1)
    model = ka.models.question_answerer(V, **(sizes["BERT-Base"] | {"encoder": one}))
    assert model.get_layer("block_0").attention.num_heads == 12
