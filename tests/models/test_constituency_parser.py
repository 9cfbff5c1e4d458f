"""The constituency parser: decoding token by token, and trees as results."""

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.data.readers.constituency_trees import decode_tree
from tests.grids import sampled
from tests.stacks import embed_characters

SIZE = dict(num_layers=1, num_decoder_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=20)
LABELS = ka.data.Labels(("(A", "(B", "(C", "X", "Y"))


def make_model(**options):
    return ka.models.constituency_parser(30, 3, 2, **{**SIZE, **options})


def test_padding_changes_nothing():
    model, target = make_model(), np.array([[1, 4, 7, 5, 8, 7, 3]])
    ids = np.array([[4, 9, 7]], "int32")
    short = model({"token_ids": ids, "target_ids": target})
    long = model({"token_ids": np.pad(ids, [(0, 0), (0, 4)]), "target_ids": target})
    np.testing.assert_allclose(long, short, atol=1e-5)


def test_logits_allow_only_labels_that_continue_the_tree():
    logits = np.array(
        make_model()(
            {"token_ids": np.array([[4, 9]]), "target_ids": np.array([[1, 4, 7, 7, 3, 2]])}
        )
    )[0]
    allowed = [np.flatnonzero(row > -99).tolist() for row in logits]
    assert allowed == [[4, 5, 6], [4, 5, 6, 7, 8], [4, 5, 6, 7, 8], [3], [2], []]


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    sampled(
        [dict(sampler="greedy"), dict(sampler=ka.generation.Sample(5.0), seed=7), dict(beam=3)]
    ),
)
def test_generated_labels_form_a_tree_over_the_words(how):
    """Use an untrained model, a cache, and batches of different lengths."""
    how = dict(how)
    if "beam" in how:
        how["sampler"] = ka.generation.Beam(how.pop("beam"))
    model, random = make_model(spare_constituents=3), np.random.default_rng(0)
    words = random.integers(1, 30, (7, 9)).astype("int32")
    for row, length in enumerate([9, 1, 2, 5, 8, 3, 1]):
        words[row, length:] = 0
    ids = ka.generation.generate(
        model, words, start_token_id=1, end_token_id=2, max_new_tokens=9 + 2 * (3 + 18) + 1, **how
    )
    for row, written in zip(words, np.array(ids), strict=True):
        tokens = tuple(map(str, row[row > 0]))
        assert decode_tree(written, LABELS, tokens).tokens == tokens


@pytest.mark.sweep
@pytest.mark.parametrize("quantization", sampled([None, "int8_weights"]))
def test_exported_files_write_trees(quantization, tmp_path):
    model = make_model(embedding=embed_characters(9, 5), spare_constituents=2)
    options = dict(start_token_id=1, end_token_id=2, max_new_tokens=5 * 6 + 5)
    generate = ka.export.Generation(**options)
    report = ka.export.to_litert(
        model, tmp_path / "m.tflite", quantization=quantization, generate=generate
    )
    assert not [op for op in report.ops if "Flex" in op or "CUSTOM" in op]
    inputs = {
        "token_ids": np.array([[4, 5, 6, 7, 8, 9], [3, 2, 0, 0, 0, 0]], "int32"),
        "character_ids": np.random.default_rng(0).integers(1, 9, (2, 6, 5)).astype("int32"),
    }
    ids = ka.export.load(tmp_path / "m.tflite", "generate")(inputs)["generated_ids"]
    for row, written in zip(inputs["token_ids"], ids, strict=True):
        assert decode_tree(written, LABELS, tuple(map(str, row[row > 0])))
    if quantization is None:
        expected = ka.generation.generate(model, inputs, sampler="greedy", **options)
        np.testing.assert_array_equal(ids, expected)
