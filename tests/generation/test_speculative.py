"""Speculative decoding: the results are the model's, whatever the draft proposes."""

import numpy as np
import pytest

import keras_attention as ka
from tests.generation.toy import Toy
from tests.grids import quick, sampled

G = ka.generation
V = 5
PROMPTS = [[1, 2, 3], [4], [2, 2]]
pytestmark = pytest.mark.usefixtures("eagerly")


@pytest.fixture(scope="module")
def toy():
    return Toy(V)


@pytest.mark.parametrize("ahead", quick([1, 3], 3))
@pytest.mark.parametrize("options", [dict(end_token_id=3), dict(no_repeat_ngram_size=2)], ids=str)
def test_greedy_results_are_the_models(toy, ahead, options):
    expected = G.generate(toy, PROMPTS, 9, return_scores=True, **options)
    for draft in (Toy(V, seed=1), toy):
        proposed = dict(draft_model=draft, num_draft_tokens=ahead)
        result = G.generate(toy, PROMPTS, 9, return_scores=True, **options, **proposed)
        assert np.array_equal(result.ids, expected.ids)
        np.testing.assert_allclose(result.scores, expected.scores, atol=1e-5)
    longest = (expected.ids != 0).sum(-1).max()
    assert result.rounds <= -(-(longest - 1) // (ahead + 1))  # its own draft is always right


def shares(toy, prompt, length, sampler):
    """Return the probability of each sequence, (V,) * length."""
    result = np.zeros((V,) * length)
    for text in toy.all_sequences(length):
        share = 1.0
        for i, token in enumerate(text):
            logits = toy.logits([*prompt, *text[:i]]).copy()
            logits[0] = -1e9
            share *= float(sampler.probabilities(logits[None])[0][token])
        result[text] = share
    return result


def chi_square(ids, expected):
    """Compute chi-square of the sequences `ids` (B, length), and the degrees of freedom."""
    counts = np.zeros_like(expected)
    np.add.at(counts, tuple(ids.T), 1)
    possible = expected > 0
    assert not counts[~possible].any()
    difference = (counts - len(ids) * expected)[possible]
    return (difference**2 / (len(ids) * expected[possible])).sum(), possible.sum() - 1


def test_samples_have_the_models_distribution(toy):
    """Use a bad draft, so that large batches accept one token at a time."""
    sampler, prompt = G.Sample(temperature=1.2, top_k=3), [2, 1]
    draft = dict(draft_model=Toy(V, seed=1, scale=3.0), num_draft_tokens=2)
    result = G.generate(toy, [prompt] * 10_000, 2, sampler, seed=0, **draft)
    statistic, freedom = chi_square(result, shares(toy, prompt, 2, sampler))
    assert freedom == 8 and statistic < 31.8  # once in 10,000


@pytest.mark.slow
@pytest.mark.parametrize("rows", sampled([2, 1]))
def test_samples_of_small_batches_have_the_models_distribution(rows, monkeypatch):
    """Use one row, which keeps several tokens, and two rows, which wait for each other."""
    monkeypatch.undo()  # compiled, for there are many
    toy, sampler, prompt = Toy(V), G.Sample(), [2, 1]
    draft = dict(draft_model=Toy(V, seed=1), num_draft_tokens=3)
    result = [
        G.generate(toy, [prompt] * rows, 3, sampler, seed=seed, return_scores=True, **draft)
        for seed in range(2000)
    ]
    statistic, freedom = chi_square(
        np.concatenate([x.ids for x in result]), shares(toy, prompt, 3, sampler)
    )
    assert freedom == 63 and statistic < 114.8  # once in 10,000
    assert np.mean([x.rounds for x in result]) < 2  # of the tokens after the first


def test_a_draft_of_an_encoder_decoder():
    toy, draft = (Toy(V, seed, has_source=True) for seed in (0, 1))
    sources = [[3, 4], [2]]
    expected = G.generate(toy, sources, 6, start_token_id=1, end_token_id=3)
    result = G.generate(toy, sources, 6, start_token_id=1, end_token_id=3, draft_model=draft)
    assert np.array_equal(result, expected)


class Rolling(Toy):
    """A decoder whose cache is a window."""

    def cache_shapes(self, max_length, memory_length=None, dtype=None):
        return {"block_0_attention_recent_key": ((3,), "int32")}


@pytest.mark.parametrize(
    ("model", "draft", "sampler", "message"),
    [
        (Toy(V), Toy(V + 1), "greedy", "6 ids and no encoder, and the model 5 ids"),
        (Toy(V), Toy(V, has_source=True), "greedy", "5 ids and an encoder"),
        (Rolling(V), Toy(V), "greedy", "block_0_attention_recent_key in the cache is"),
        (Toy(V), Rolling(V), "greedy", "block_0_attention_recent_key in the draft cache"),
        (Toy(V), Toy(V), G.Beam(2), r"Beam\(width=2.*does not choose one token"),
    ],
)
def test_models_that_do_not_fit_a_draft_are_refused(model, draft, sampler, message):
    with pytest.raises(ValueError, match=message):
        G.generate(model, [[1]], 3, sampler, draft_model=draft)


def test_a_number_of_draft_tokens_below_one_is_refused(toy):
    with pytest.raises(ValueError, match="num_draft_tokens=0"):
        G.generate(toy, [[1]], 3, draft_model=toy, num_draft_tokens=0)
