"""generate with a decoder that is a table, whose every sequence can be told by hand."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention.generation.inputs import read_source
from tests.generation.toy import Toy

G = ka.generation
V = 7
pytestmark = pytest.mark.usefixtures("eagerly")
PROMPTS = [[1, 2, 3], [4], [5, 6, 1, 2, 2]]


@pytest.fixture(scope="module")
def toy():
    return Toy(V)


@pytest.fixture(scope="module")
def translator():
    return Toy(V, has_source=True)


def greedy(toy, prompt, number, ends=(), forbidden=(0,), source=()):
    """Greedy decoding of one row, by hand."""
    text = list(prompt)
    while len(text) < len(prompt) + number:
        logits = toy.logits(text, source).copy()
        logits[list(forbidden)] = -np.inf
        text.append(int(logits.argmax()))
        if text[-1] in ends:
            break
    return text[len(prompt) :] + [0] * (len(prompt) + number - len(text))


def test_greedy_by_hand_for_prompts_of_any_lengths(toy):
    result = G.generate(toy, PROMPTS, 8)
    assert result.dtype == "int32"
    assert result.tolist() == [greedy(toy, prompt, 8) for prompt in PROMPTS]


@pytest.mark.parametrize("end", [3, (3, 5)])
def test_rows_end_and_are_padded(toy, end):
    ends = np.ravel(end).tolist()
    result = G.generate(toy, PROMPTS, 9, end_token_id=end)
    assert result.tolist() == [greedy(toy, prompt, 9, ends) for prompt in PROMPTS]
    assert (result == 0).any()


@pytest.mark.parametrize(
    "prompts",
    [
        np.array([[1, 2, 3, 0, 0], [4, 0, 0, 0, 0], [5, 6, 1, 2, 2]]),
        np.array([[0, 0, 1, 2, 3], [0, 0, 0, 0, 4], [5, 6, 1, 2, 2]], "int64"),
        [np.array(prompt) for prompt in PROMPTS],
        ops.convert_to_tensor([[1, 2, 3, 0, 0], [4, 0, 0, 0, 0], [5, 6, 1, 2, 2]]),
    ],
    ids=["padded behind", "padded in front", "arrays", "tensor"],
)
def test_prompts_in_any_form(toy, prompts):
    assert np.array_equal(G.generate(toy, prompts, 4), G.generate(toy, PROMPTS, 4))


def test_one_row_alone_and_a_begin(toy):
    assert G.generate(toy, [1, 2, 3], 4).tolist() == [greedy(toy, [1, 2, 3], 4)]
    assert G.generate(toy, start_token_id=6, max_new_tokens=4).tolist() == [greedy(toy, [6], 4)]
    result = G.generate(toy, PROMPTS, 4, start_token_id=6)
    assert result.tolist() == [greedy(toy, [6, *prompt], 4) for prompt in PROMPTS]


def test_every_id_may_be_a_token(toy):
    prompts = [[0, 2, 0], [0]]
    result = G.generate(toy, prompts, 9, padding_id=None)
    assert result.tolist() == [greedy(toy, prompt, 9, forbidden=()) for prompt in prompts]
    assert (result == 0).any()


def test_padding_may_be_the_end(toy):
    result = G.generate(toy, PROMPTS, 9, end_token_id=0)
    expected = [greedy(toy, prompt, 9, ends=(0,), forbidden=()) for prompt in PROMPTS]
    assert result.tolist() == expected


def test_an_encoder_reads_the_prompt(translator):
    sources = [[3, 4, 5], [6]]
    result = G.generate(translator, sources, 5, start_token_id=1)
    assert result.tolist() == [greedy(translator, [1], 5, source=s) for s in sources]
    result = G.generate(translator, [[2, 3], [4]], 5, source=sources, start_token_id=1)
    rows = zip([[1, 2, 3], [1, 4]], sources, strict=True)
    assert result.tolist() == [greedy(translator, p, 5, source=s) for p, s in rows]


def test_max_length_counts_the_prompt(toy):
    result = G.generate(toy, PROMPTS, max_length=9)
    assert result.shape == (3, 4)
    assert np.array_equal(result, G.generate(toy, PROMPTS, 4, max_length=9))


def test_scores_are_log_probabilities(toy):
    plain = G.generate(toy, PROMPTS, 6, end_token_id=3)
    result = G.generate(toy, PROMPTS, 6, end_token_id=3, return_scores=True)
    assert np.array_equal(result.ids, plain)
    for prompt, ids, scores, total in zip(
        PROMPTS, result.ids, result.scores, result.totals, strict=True
    ):
        text = [token for token in ids.tolist() if token]
        expected = [toy.total([*prompt, *text[:i]], text[i : i + 1]) for i in range(len(text))]
        np.testing.assert_allclose(scores[: len(text)], expected, atol=1e-5)
        assert not scores[len(text) :].any()
        np.testing.assert_allclose(total, toy.total(prompt, text), atol=1e-5)


def test_samples_are_as_frequent_as_the_model_says(toy):
    """Beyond 74.5 chi-square with 35 degrees of freedom is once in 10,000."""
    number = 20_000
    result = G.generate(toy, [[2, 1]] * number, 2, "sample", seed=3)
    pairs = np.bincount(result[:, 0] * V + result[:, 1], minlength=V * V).reshape(V, V)
    expected = np.zeros((V, V))
    for i in range(1, V):
        first, second = (np.exp(toy.logits(text)[1:]) for text in ([2, 1], [2, 1, i]))
        expected[i, 1:] = first[i - 1] / first.sum() * second / second.sum() * number
    assert not pairs[0].any() and not pairs[:, 0].any()
    difference, expected = (pairs - expected)[1:, 1:], expected[1:, 1:]
    assert (difference**2 / expected).sum() < 74.5


def test_a_seed_gives_the_same_again(toy):
    sampler = G.Sample(seed=5)
    first = G.generate(toy, PROMPTS, 8, sampler)
    assert np.array_equal(first, G.generate(toy, PROMPTS, 8, "sample", seed=5))
    assert not np.array_equal(first, G.generate(toy, PROMPTS, 8, sampler, seed=6))


def test_penalties_and_constraints_apply(toy):
    prompt = [1, 2, 3]
    text = [token for token in G.generate(toy, [prompt], 12, no_repeat_ngram_size=1)[0] if token]
    assert sorted(text) == [4, 5, 6]  # and there it ends: nothing is left
    allowed = G.generate(toy, PROMPTS, 8, allowed_ids=[2, 5])
    assert set(allowed.ravel().tolist()) <= {2, 5}
    free, late = (G.generate(toy, PROMPTS, 8, end_token_id=3, min_new_tokens=n) for n in (0, 6))
    assert (free[:, :5] == 3).any() and not (late[:, :6] == 3).any()
    penalized = G.generate(toy, PROMPTS, 8, repetition_penalty=100.0)
    assert not np.array_equal(penalized, G.generate(toy, PROMPTS, 8))
    answers = G.constraints.OneOf([[6, 6, 3], [5, 1]])
    for row in G.generate(toy, PROMPTS, 5, constraints=[answers]).tolist():
        assert row in ([6, 6, 3, 0, 0], [5, 1, 0, 0, 0])


def test_a_stream_stops_when_all_rows_have_ended(toy):
    end = greedy(toy, [4], 2)[1]
    assert len(list(G.stream(toy, [[4]], 30, end_token_id=end))) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(prompt=[[1], []], max_new_tokens=2), "prompt: row 1 is empty"),
        (dict(prompt=[[1], [0, 0]], max_new_tokens=2), "prompt: row 1 is empty"),
        (dict(prompt=[], max_new_tokens=2), "no rows"),
        (dict(max_new_tokens=2), "neither a prompt nor"),
        (
            dict(prompt=[[1, 7]], max_new_tokens=2),
            "row 0 has the id 7.*vocabulary of 7 ids.*0 to 6",
        ),
        (dict(prompt=[[1, -2]], max_new_tokens=2), "the id -2"),
        (dict(prompt=[[2**40]], max_new_tokens=2), "the id 1099511627776.*of 7 ids.*0 to 6"),
        (dict(prompt=[[2**32 + 1, 1]], max_new_tokens=2), "the id 4294967297"),
        (dict(prompt=[[-(2**40)]], max_new_tokens=2), "the id -1099511627776"),
        (dict(prompt=[[2**63]], max_new_tokens=2), "outside the vocabulary of 7"),
        (dict(prompt=[[2**70]], max_new_tokens=2), "Expected token ids, whole numbers"),
        (dict(prompt=[[1.5]], max_new_tokens=2), "row 0 holds float64"),
        (dict(prompt=[[1]]), "needs a limit"),
        (dict(prompt=[[1]], max_new_tokens=0), r"max_new_tokens=0"),
        (dict(prompt=[[1, 2, 3]], max_length=3), "prompt has 3 tokens.*max_length=3"),
        (dict(prompt=[[1, 2, 3]], max_length=5, max_new_tokens=4), "room for 2 new"),
        (dict(prompt=[[1]], max_new_tokens=2, end_token_id=7), "end_token_id=7 is outside"),
        (dict(prompt=[[1]], max_new_tokens=2, padding_id=9), "padding_id=9 is outside"),
        (dict(prompt=[[1]], max_new_tokens=2, start_token_id=9), "start_token_id=9 is outside"),
        (dict(prompt=[[1]], max_new_tokens=2, source=[[1]]), "this model has none"),
        (dict(prompt="a text", max_new_tokens=2), "prompt='a text': expected token ids"),
        (dict(prompt=5, max_new_tokens=2), "prompt=5: expected token ids"),
        (dict(prompt={"token_ids": [[1]]}, max_new_tokens=2), "expected token ids"),
        (dict(prompt=[["a"]], max_new_tokens=2), "Tokenize text with"),
        (dict(prompt=[[1]], max_new_tokens=2, memory_length=0), "memory_length=0"),
        (dict(prompt=[[1]], max_new_tokens=2, callback=3), "callback=3: expected a function"),
        (dict(prompt=[[1]], max_new_tokens=2, allowed_ids=[]), "List the ids that may come"),
        (
            dict(prompt=[[1]], max_new_tokens=2, constraints=[G.constraints.NoRepeatNGrams]),
            "is a class",
        ),
        (dict(prompt=[[1]], max_new_tokens=2, seed="x"), "seed='x'"),
        (dict(prompt=[[1]], max_new_tokens=2, allowed_ids=[8]), r"Allowed: ids \[8\]"),
        (dict(prompt=[[1]], max_new_tokens=2, sampler=3), "sampler=3 is not a sampler"),
        (
            dict(prompt=[[1]], max_new_tokens=2, sampler=G.Beam(2), callback=print),
            "Beam.*does not choose one token",
        ),
    ],
    ids=str,
)
def test_bad_arguments_are_refused(toy, arguments, message):
    with pytest.raises(ValueError, match=message):
        G.generate(toy, **arguments)


@pytest.mark.parametrize("ids", [[2**31], [-(2**31) - 1]])
def test_inputs_by_name_are_not_wrapped(ids):
    decoder = SimpleNamespace(encoder=SimpleNamespace(inputs=[keras.Input((None,), dtype="int32")]))
    name = decoder.encoder.inputs[0].name
    read_source(decoder, {name: np.array([[5]])})
    with pytest.raises(ValueError, match=f"has the id {ids[0]}, but the encoder reads int32"):
        read_source(decoder, {name: np.array([ids])})


def test_a_stream_refuses_before_its_first_token(toy):
    with pytest.raises(ValueError, match="does not choose one token"):
        G.stream(toy, [[1]], 2, G.Beam(2))
    with pytest.raises(ValueError, match="row 0 is empty"):
        G.stream(toy, [[]], 2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'return_scores'"):
        G.stream(toy, [[1]], 2, return_scores=True)


def test_padding_in_front_is_not_a_token_without_a_padding_id(toy):
    """0 is an id like others here, and may come once, in a row that begins with padding as well."""
    options = dict(padding_id=None, no_repeat_ngram_size=1)
    together = G.generate(toy, PROMPTS, 4, **options)
    for prompt, row in zip(PROMPTS, together, strict=True):
        assert row.tolist() == G.generate(toy, [prompt], 4, **options)[0].tolist()


def test_a_single_part_needs_no_list(toy):
    one = G.constraints.NoRepeatNGrams(1)
    several = G.generate(toy, PROMPTS, 6, constraints=[one])
    assert np.array_equal(G.generate(toy, PROMPTS, 6, constraints=one), several)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(max_new_tokens=2, start_token_id=1), "The model has an encoder"),
        (dict(prompt=[[3]], max_new_tokens=2), "neither a prompt nor"),
        (dict(prompt=[[3], []], max_new_tokens=2, start_token_id=1), "source: row 1 is empty"),
        (
            dict(prompt=[[3, 2**40]], max_new_tokens=2, start_token_id=1),
            "source: row 0 has the id 1099511627776.*any vocabulary.*0 to 2147483647",
        ),
        (dict(prompt=[], max_new_tokens=2, start_token_id=1), "source has no rows"),
        (dict(prompt=[[3]], source=[[3], [4]], max_new_tokens=2), "1 rows and the source 2"),
    ],
    ids=str,
)
def test_bad_sources_are_refused(translator, arguments, message):
    with pytest.raises(ValueError, match=message):
        G.generate(translator, **arguments)
