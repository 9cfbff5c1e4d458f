"""Constraints, by definition."""

import dataclasses

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from tests.generation.toy import Toy

constraints = ka.generation.constraints
random = np.random.default_rng(0)
V = 5


def written(tokens, begin=0):
    """Return the history of rows with an empty last position, and -1 in front."""
    tokens = np.array([[*row, -1] for row in tokens], "int32")
    return ka.generation.TokenHistory(tokens, tokens.shape[1] - 1, begin, V)


def allowed(constraint, *arguments):
    result = ops.convert_to_numpy(constraint.allows(written(*arguments)))
    return [set(np.flatnonzero(row).tolist()) for row in result]


def repeated(row, n):
    """Return the tokens that would complete an n-gram of `row`."""
    row = [token for token in row if token >= 0]
    n_grams = [tuple(row[i : i + n]) for i in range(len(row) - n + 1)]
    return {
        gram[-1]
        for gram in n_grams
        if len(row) >= n - 1 and gram[:-1] == tuple(row[len(row) - n + 1 :])
    }


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_no_n_gram_twice(n):
    for length in (1, 2, 3, 9, 20):
        rows = random.integers(0, V, size=(6, length))
        rows[1, : length // 2] = -1
        result = allowed(constraints.NoRepeatNGrams(n), rows)
        assert result == [set(range(V)) - repeated(row, n) for row in rows.tolist()]


def test_ids_that_alone_may_come_and_that_never_may():
    assert allowed(constraints.Allowed([1, 3]), [[2, 2]]) == [{1, 3}]
    assert allowed(constraints.Forbidden([1, 3]), [[2, 2]]) == [{0, 2, 4}]


def test_no_end_too_early():
    constraint = constraints.MinimumLength(2, [1, 2])
    assert allowed(constraint, [[3, 3, 4]], 2) == [{0, 3, 4}]
    assert allowed(constraint, [[3, 3, 4]], 1) == [set(range(V))]


def test_a_constraint_on_only_the_first_new_token():
    forced = constraints.AtFirst(constraints.Allowed([3]))
    assert allowed(forced, [[2, 2], [2, 1]], 2) == [{3}]
    assert allowed(forced, [[2, 2], [2, 1]], 1) == [set(range(V))]
    first = constraints.AtFirst(lambda written: ops.arange(V)[None] > written.last(1))
    assert allowed(first, [[4, 2], [2, 4]], 2) == [{3, 4}, set()]


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["greedy", ka.generation.Sample(), ka.generation.Beam(3)])
def test_a_forced_first_token_comes_first_and_is_read(sampler):
    """After the forced token the row continues as after the same token in a prompt."""
    model = Toy(7, seed=3, has_source=True)
    options = {"start_token_id": 2, "seed": 5, "padding_id": None}
    forced = [constraints.AtFirst(constraints.Allowed([4])), constraints.Forbidden([1])]
    ids = ka.generation.generate(model, [[1, 5]], 6, sampler, constraints=forced, **options)
    assert ids[0, 0] == 4 and 1 not in ids
    if sampler == "greedy":
        prompt = {"prompt": [[4]], "source": np.array([[1, 5]]), "start_token_id": 2}
        after = ka.generation.generate(
            model, max_new_tokens=5, constraints=forced[1:], padding_id=None, **prompt
        )
        np.testing.assert_array_equal(ids[:, 1:], after)
        result = ka.generation.stream(model, [[1, 5]], 6, constraints=forced, **options)
        np.testing.assert_array_equal(np.concatenate(list(result)), ids[0])


def test_one_of_several_sequences():
    constraint = constraints.OneOf([[3], [1, 2, 4], [1, 0]])
    assert allowed(constraint, [[2]], 1) == [{1, 3}]
    assert allowed(constraint, [[2, 1], [2, 3], [2, 4]], 1) == [{0, 2}, set(), set()]
    assert allowed(constraint, [[1, 2], [1, 0]], 0) == [{4}, set()]
    assert allowed(constraint, [[1, 2, 4, -1]], 0) == [set()]
    assert allowed(constraint, [[1, 2, 4, -1, -1]], 0) == [set()]


@dataclasses.dataclass(frozen=True)
class SumBelow(constraints.Constraint):
    """Allows tokens as long as the sum of the new tokens is below `limit`, by a state."""

    limit: int

    def begin_state(self, rows):
        return {"sum": ops.zeros((rows,), dtype="int32")}

    def advance_state(self, state, tokens):
        return {"sum": state["sum"] + tokens}

    def allows(self, history):
        sums = ops.expand_dims(history.state["sum"], axis=1) + ops.arange(history.vocabulary_size)
        return sums < self.limit


def sum_below(history):
    index = ops.expand_dims(ops.arange(ops.shape(history.tokens)[1]), axis=0)
    new = ops.logical_and(index >= history.begin, index < history.count)
    sums = ops.sum(ops.where(new, history.tokens, 0), axis=1, keepdims=True)
    return sums + ops.arange(history.vocabulary_size) < 12


@pytest.mark.parametrize(
    ("sampler", "ahead"),
    [
        ("sample", None),
        pytest.param("greedy", None, marks=pytest.mark.slow),
        pytest.param("greedy", 3, marks=pytest.mark.slow),
        pytest.param("sample", 3, marks=pytest.mark.slow),
        pytest.param(ka.generation.Beam(3), None, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_constraint_with_a_state_equals_one_that_reads_all_tokens(sampler, ahead):
    model, prompts = Toy(7, seed=3), [[1, 5], [2, 6]]
    options = {"seed": 5, "padding_id": None, "end_token_id": 0}
    if ahead:
        options |= {"draft_model": Toy(7, seed=4), "num_draft_tokens": ahead}
    forbidden = constraints.Forbidden([3])
    by_state, by_tokens = [
        ka.generation.generate(model, prompts, 9, sampler, constraints=[forbidden, one], **options)
        for one in (SumBelow(12), constraints.Rule(sum_below))
    ]
    np.testing.assert_array_equal(by_state, by_tokens)
    if not ahead and sampler == "greedy":
        steps = ka.generation.stream(model, prompts, 9, constraints=SumBelow(12), **options)
        ids = ka.generation.generate(model, prompts, 9, constraints=SumBelow(12), **options)
        streamed = np.stack(list(steps), axis=1)
        np.testing.assert_array_equal(streamed, ids[:, : streamed.shape[1]])


def only_larger(written):
    return ops.expand_dims(ops.arange(V), axis=0) > written.last(1)


def test_any_function_is_a_constraint():
    assert allowed(constraints.get(only_larger), [[4, 2], [2, 4]]) == [{3, 4}, set()]


@pytest.mark.parametrize(
    "constraint",
    [
        constraints.Allowed([1, 2]),
        constraints.Forbidden(np.array([3])),
        constraints.MinimumLength(3, (2,)),
        constraints.AtFirst(constraints.Allowed([1])),
        constraints.NoRepeatNGrams(2),
        constraints.OneOf([[1, 2], [3]]),
        ka.generation.Regex("a+|é", [None, "a", b"\xc3", b"\xa9"]),
        ka.generation.JSONSchema({"const": 1}, ka.generation.TokenTexts(["1", " 2"], ["1", "2"])),
        constraints.AtFirst(ka.generation.Regex("a", ["a"])),
    ],
    ids=str,
)
def test_parts_come_back_from_their_config(constraint):
    again = constraints.get(keras.saving.serialize_keras_object(constraint))
    assert again == constraint and hash(again) == hash(constraint)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: constraints.Allowed([1.5]), r"Allowed\(id=1.5\)"),
        (lambda: allowed(constraints.Allowed([9]), [[1]]), r"Allowed: ids \[9\].*vocabulary of 5"),
        (lambda: constraints.Forbidden([-1]), r"Forbidden\(id=-1\)"),
        (lambda: constraints.NoRepeatNGrams(0), r"NoRepeatNGrams\(size=0\)"),
        (lambda: constraints.OneOf([[1], []]), "no empty sequence"),
        (lambda: constraints.OneOf([]), "at least one sequence of ids"),
        (lambda: constraints.AtFirst(None), "constraints=None: expected a Constraint"),
        (lambda: constraints.get(3), "constraints=3: expected a Constraint"),
    ],
)
def test_bad_constraints_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
