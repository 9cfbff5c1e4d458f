"""`extend_vocabulary` for models of each kind: old tokens stay, new ones are means."""

import keras
import numpy as np
import pytest

import keras_attention as ka

SIZE = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=20)
IDS = np.array([[5, 8, 2, 0], [7, 2, 9, 4]], "int32")
PAIRS = {"source_ids": IDS, "target_ids": IDS[:, :3]}
SPELLINGS = [[5, 7, 7], [9]]
MODELS = ka.models
translator = MODELS.seq2seq_transformer
BIASED = ka.models.TextEmbedding(logit_bias=True)

BUILT = {
    "shared": (lambda: translator(12, **SIZE), PAIRS),
    "untied": (
        lambda: translator(12, 12, tie_embeddings=False, **SIZE),
        PAIRS,
    ),
    "biased": (lambda: translator(12, 12, target_embedding=BIASED, **SIZE), PAIRS),
    "recurrent": (lambda: MODELS.seq2seq_recurrent(12, 12, hidden_dim=12), PAIRS),
    "causal": (lambda: MODELS.causal_language_model(12, **SIZE), IDS),
    "masked": (lambda: MODELS.masked_language_model(12, **SIZE), IDS),
}


def build(name):
    """Build a model without zeros in its weights, and its inputs."""
    keras.utils.set_random_seed(0)
    make, inputs = BUILT[name]
    model = make()
    for weight in model.weights:
        weight.assign(weight + keras.random.normal(weight.shape, stddev=0.1))
    return model, inputs


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILT)
def test_old_logits_stay_and_new_ones_are_means(name, tmp_path):
    model, inputs = build(name)
    longer = MODELS.extend_vocabulary(model, SPELLINGS)
    assert longer.name == model.name and longer.output_shape[-1] == 14
    before, after = np.asarray(model(inputs)), np.asarray(longer(inputs))
    np.testing.assert_allclose(after[..., :12], before, atol=1e-5)
    for k, ids in enumerate(SPELLINGS):  # logits are linear in rows, columns and biases
        np.testing.assert_allclose(after[..., 12 + k], before[..., ids].mean(-1), atol=1e-5)
    rows = {str(w.path): np.asarray(w) for w in longer.weights if "table/embeddings" in w.path}
    assert rows
    for table in rows.values():
        np.testing.assert_allclose(table[12], (table[5] + 2 * table[7]) / 3, atol=1e-6)
        np.testing.assert_array_equal(table[13], table[9])
    longer.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(inputs), after, atol=1e-6)


def test_the_copy_shares_its_table_but_no_weights():
    model, _ = build("shared")
    longer = MODELS.extend_vocabulary(model, SPELLINGS)
    assert longer.count_params() == model.count_params() + 2 * 16
    tables = [longer.get_layer(s).get_layer("embedding").table for s in ("encoder", "decoder")]
    assert tables[0] is tables[1] and tables[0].embeddings.shape == (14, 16)
    assert model.output_shape[-1] == 12
    again = MODELS.extend_vocabulary(longer, [[13]])
    assert again.output_shape[-1] == 15


def test_new_tokens_are_embedded_as_their_mean():
    model, _ = build("causal")
    longer = MODELS.extend_vocabulary(model, SPELLINGS)
    np.testing.assert_allclose(longer(np.array([[4, 13]])), longer(np.array([[4, 9]])), atol=1e-6)


@pytest.mark.parametrize("ids", [[], [12], [-1, 3]])
def test_refuses_spellings_with_unknown_ids(ids):
    with pytest.raises(ValueError, match=r"spellings\[1\] is .*from 0 to 11"):
        MODELS.extend_vocabulary(build("causal")[0], [[4], ids])


@pytest.mark.parametrize(
    ("make", "sizes"),
    [
        (lambda: translator(12, 9, **SIZE), "9, 12"),
        (lambda: MODELS.vision_transformer(8, 3, patch_size=4, **SIZE), "none"),
        (lambda: keras.layers.Dense(2), "none"),
    ],
)
def test_models_of_other_vocabularies_are_refused(make, sizes):
    with pytest.raises(ValueError, match=f"of sizes {sizes}: expected one vocabulary"):
        MODELS.extend_vocabulary(make(), SPELLINGS)
