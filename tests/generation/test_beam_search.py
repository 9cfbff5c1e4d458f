"""Beam search against all sequences of a small vocabulary, one by one."""

import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention.core.special_ids import Padding
from tests.generation.toy import Toy

G = ka.generation
V, LENGTH = 4, 4
PROMPTS = [[1, 2, 3], [3], [2, 2]]
pytestmark = pytest.mark.usefixtures("eagerly")


@pytest.fixture(scope="module")
def toy():
    return Toy(V)


def ranked(toy, prompt, alpha, ends, length=LENGTH, source=(), fits=lambda text: True):
    """Return all sequences with their totals, best first."""
    texts = [text for text in toy.all_sequences(length, ends) if fits(text)]
    totals = [toy.total(prompt, text, source) / ((5 + len(text)) / 6) ** alpha for text in texts]
    order = np.argsort(-np.array(totals), kind="stable")
    return [(list(texts[i]) + [0] * (length - len(texts[i])), totals[i]) for i in order]


@pytest.mark.parametrize(
    ("seed", "alpha", "ends"), [(0, 0.0, (2,)), (1, 1.0, (2,)), (2, 3.0, (1, 3)), (3, 1.0, ())]
)
def test_a_beam_that_holds_all_finds_the_best_of_all(seed, alpha, ends):
    toy = Toy(V, seed)
    beam = G.Beam(V**LENGTH, length_penalty=alpha, num_return_sequences=5)
    result = G.generate(toy, PROMPTS, LENGTH, beam, end_token_id=ends or None, return_scores=True)
    assert result.ids.shape == result.scores.shape == (3, 5, LENGTH)
    for prompt, ids, totals in zip(PROMPTS, result.ids, result.totals, strict=True):
        expected = ranked(toy, prompt, alpha, ends)[:5]
        np.testing.assert_allclose(totals, [total for _, total in expected], atol=1e-5)
        assert ids.tolist() == [text for text, _ in expected]


def by_hand(toy, prompt, wide, alpha, ends, length):
    """Run the beam search of `Beam` for one row with lists, without an early stop."""
    beam, ended = [((), 0.0)], []
    for size in range(1, length + 1):
        longer = [
            ((*text, token), total + toy.log_probabilities((*prompt, *text))[token])
            for text, total in beam
            for token in range(1, V)
        ]
        longer.sort(key=lambda pair: -pair[1])
        divisor = ((5 + size) / 6) ** alpha
        ended += [(text, total / divisor) for text, total in longer[:wide] if text[-1] in ends]
        beam = [pair for pair in longer if pair[0][-1] not in ends][:wide]
    ended += [(text, total / divisor) for text, total in beam]
    return sorted(ended, key=lambda pair: -pair[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wide", "ends", "alpha"), [(2, (2,), 0.7), (3, (2,), 0.7), (2, (1, 3), 4.0), (1, (1, 2), 4.0)]
)
def test_a_narrow_beam_equals_its_definition(toy, wide, ends, alpha):
    beam = G.Beam(wide, length_penalty=alpha, num_return_sequences=min(wide, 2))
    result = G.generate(toy, PROMPTS, 6, beam, end_token_id=ends, return_scores=True)
    ids, totals = result.ids.reshape(3, -1, 6), result.totals.reshape(3, -1)
    for prompt, rows, scores in zip(PROMPTS, ids, totals, strict=True):
        expected = by_hand(toy, prompt, wide, alpha, ends, 6)[: min(wide, 2)]
        np.testing.assert_allclose(scores, [total for _, total in expected], atol=1e-5)
        assert [tuple(filter(None, row)) for row in rows.tolist()] == [t for t, _ in expected]


@pytest.mark.slow
def test_a_batch_equals_its_rows(toy):
    beam = G.Beam(2, length_penalty=1.0, num_return_sequences=2)
    together = G.generate(toy, PROMPTS, 4, beam, end_token_id=2)
    alone = [G.generate(toy, [prompt], 4, beam, end_token_id=2) for prompt in PROMPTS]
    assert np.array_equal(together, np.concatenate(alone))


def test_a_beam_of_one_is_greedy(toy):
    greedy = G.generate(toy, PROMPTS, 6, end_token_id=2, return_scores=True)
    beam = G.generate(toy, PROMPTS, 6, G.Beam(1), end_token_id=2, return_scores=True)
    assert np.array_equal(beam.ids, greedy.ids)
    np.testing.assert_allclose(beam.totals, greedy.totals, atol=1e-5)
    np.testing.assert_allclose(beam.scores, greedy.scores, atol=1e-5)


def test_totals_are_the_scores_by_the_length_of_each(toy):
    beam = G.Beam(3, length_penalty=2.0, num_return_sequences=3)
    result = G.generate(toy, PROMPTS, 5, beam, end_token_id=2, return_scores=True)
    lengths = (result.ids != 0).sum(-1)
    expected = result.scores.sum(-1) / ((5 + lengths) / 6) ** 2.0
    assert len(set(lengths.ravel().tolist())) > 1
    np.testing.assert_allclose(result.totals, expected, atol=1e-5)


def test_every_beam_reads_its_source():
    toy = Toy(V, has_source=True)
    sources = [[3, 1], [2]]
    beam = G.Beam(V**3, num_return_sequences=2)
    result = G.generate(toy, sources, 3, beam, start_token_id=1, end_token_id=2)
    for source, ids in zip(sources, result.tolist(), strict=True):
        expected = ranked(toy, [1], 0.0, (2,), 3, source)[:2]
        assert ids == [text for text, _ in expected]


def test_constraints_cut_off_sequences_and_change_no_total(toy):
    """Forbid every token of a beam, which ends without an END: it would be a second 3."""
    constraints = dict(no_repeat_ngram_size=1, min_new_tokens=1)
    beam = G.Beam(V**LENGTH, num_return_sequences=4)
    result = G.generate(toy, [[1]], LENGTH, beam, end_token_id=2, return_scores=True, **constraints)
    # After 1 only 2 and 3 are new. 2 is END and may not come first. Nothing may follow 3, 2.
    assert result.ids[0].tolist() == [[3, 2, 0, 0], *[[0] * 4] * 3]
    assert result.totals[0, 1:].tolist() == [-np.inf] * 3
    np.testing.assert_allclose(result.totals[0, 0], toy.total([1], (3, 2)), atol=1e-5)
    stuck = G.generate(toy, [[1]], LENGTH, beam, no_repeat_ngram_size=1, return_scores=True)
    assert stuck.ids[0, :2].tolist() in ([[2, 3, 0, 0], [3, 2, 0, 0]], [[3, 2, 0, 0], [2, 3, 0, 0]])
    totals = sorted((toy.total([1], text) for text in ((2, 3), (3, 2))), reverse=True)
    np.testing.assert_allclose(stuck.totals[0, :2], totals, atol=1e-5)


@pytest.mark.parametrize(
    ("constraints", "fits"),
    [
        (dict(allowed_ids=[2, 3]), lambda text: set(text) <= {2, 3}),
        (dict(min_new_tokens=2), lambda text: 2 not in text[:2]),
    ],
    ids=["allowed", "late"],
)
def test_constraints_that_are_the_same_for_all_rows(toy, constraints, fits):
    beam = G.Beam(V**LENGTH, num_return_sequences=3)
    result = G.generate(
        toy, PROMPTS, LENGTH, beam, end_token_id=2, return_scores=True, **constraints
    )
    for prompt, ids, totals in zip(PROMPTS, result.ids, result.totals, strict=True):
        expected = ranked(toy, prompt, 0.0, (2,), fits=fits)[:3]
        np.testing.assert_allclose(totals, [total for _, total in expected], atol=1e-5)
        assert ids.tolist() == [text for text, _ in expected]


class Fixed:
    """A decoder whose logits are a table, indexed by the last token."""

    has_source, state_names, padding = False, frozenset(), Padding()
    encoder = model = None

    def __init__(self, table):
        self.table = np.asarray(table, "float32")
        self.vocabulary_size = len(self.table)

    def cache_shapes(self, max_length, memory_length=None, dtype=None):
        return {}

    def check_lengths(self, prompt_length, max_length):
        pass

    def step(self, tokens, cache, index):
        return ops.take(ops.convert_to_tensor(self.table), tokens, axis=0), cache

    def reorder(self, cache, rows, *, source=True):
        return cache


def test_finished_beams_stay_fixed_and_tiny_probabilities_differ():
    """Refuse [2, ...] after END, although a log of a softmax is -inf for both."""
    very_bad = -300.0
    table = np.full((5, 5), very_bad)
    table[1] = [very_bad, very_bad, 0.0, -0.1, very_bad]  # 2 is END, and comes first
    table[2] = [very_bad, very_bad, -50.0, -50.0, -50.0]
    table[3] = [very_bad, very_bad, very_bad, -250.0, -251.0]
    table[4] = [0.0, 0.0, 0.0, 0.0, 0.0]
    model = Fixed(table)
    beam = G.Beam(3, num_return_sequences=3)
    result = G.generate(model, [[1]], 2, beam, end_token_id=2, return_scores=True, padding_id=None)
    first = np.log(np.exp([0.0, -0.1]).sum())
    assert result.ids[0].tolist() == [[2, 0], [3, 3], [3, 4]]
    np.testing.assert_allclose(result.totals[0, 0], -first, atol=1e-6)
    second = np.log1p(np.exp(-1.0))
    np.testing.assert_allclose(result.totals[0, 1], -0.1 - first - second, atol=1e-5)
    np.testing.assert_allclose(result.totals[0, 2], -1.1 - first - second, atol=1e-5)


def test_a_certain_end_is_chosen_at_once():
    table = np.zeros((4, 4))
    table[:, 2] = 30.0
    result = G.generate(Fixed(table), [[1], [3]], 5, G.Beam(2), end_token_id=2)
    assert result.tolist() == [[2, 0, 0, 0, 0]] * 2


def test_length_penalty_uses_the_length_of_each_beam():
    """Exclude a penalty by the step, which would not change the order."""
    table = np.full((4, 4), -20.0)
    table[1] = [-20.0, -20.0, 0.0, -0.05]  # END now is a little better than 3
    table[3] = [-20.0, -20.0, -20.0, 3.0]  # after which all is sure
    orders = [
        G.generate(Fixed(table), [[1]], 4, G.Beam(2, alpha, 2), end_token_id=2)[0].tolist()
        for alpha in (0.0, 1.0)
    ]
    assert orders == [[[2, 0, 0, 0], [3, 3, 3, 3]], [[3, 3, 3, 3], [2, 0, 0, 0]]]


def test_a_beam_stays_full_beside_all_ends():
    """Both ENDs are more probable than 3, but the penalty prefers long sequences."""
    table = np.tile([-20.0, 2.0, 1.9, 1.5], (4, 1))
    result = G.generate(Fixed(table), [[3]], 3, G.Beam(1, 5.0), end_token_id=(1, 2))
    assert result.tolist() == [[3, 3, 1]]


def test_a_beam_may_be_wider_than_the_vocabulary():
    toy = Toy(V)
    beam = G.Beam(9, num_return_sequences=9)
    result = G.generate(toy, [[1]], 1, beam, return_scores=True)
    assert [row[0] for row in result.ids[0].tolist()][3:] == [0] * 6
    assert sorted(result.ids[0, :3, 0].tolist()) == [1, 2, 3]
    assert np.isinf(result.totals[0, 3:]).all() and np.isfinite(result.totals[0, :3]).all()
