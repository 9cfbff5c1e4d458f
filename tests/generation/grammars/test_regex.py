"""Regular expressions against Python's `re`, and texts that models write under them."""

import random as standard_random
import re

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.core.special_ids import Padding
from keras_attention.generation import loop
from keras_attention.generation.config import make_config
from keras_attention.generation.grammars.expressions import DEAD, START, Expressions
from keras_attention.generation.grammars.pattern import parse_pattern
from tests.generation.grammars.vocabulary import END, TOKENS, walk, write
from tests.generation.toy import Toy
from tests.grids import sampled

Regex = ka.generation.Regex
ATOMS = ["a", "b", "é", "日", ".", r"\d", r"\w", r"\s", r"\D", "[ab]", "[^a]", "[0-9é-ü]", r"\.",
         r"[\d_]", "1", r"\n", "ab", r"\x62", "-"]  # fmt: skip
QUANTIFIERS = ["", "", "", "*", "+", "?", "{2}", "{1,3}", "{,2}", "{2,}"]


def draw_pattern(random, depth=3):
    """Return a random regular expression. `random` is a `random.Random`."""
    if depth == 0 or random.random() < 0.3:
        return random.choice(ATOMS)
    if random.random() < 0.3:
        choices = (draw_pattern(random, depth - 1) for _ in range(2))
        return random.choice(["({}|{})", "(?:{}|{})", "({}|{}|)"]).format(*choices)
    parts = (draw_pattern(random, depth - 1) for _ in range(random.randint(1, 3)))
    return f"(?:{''.join(parts)}){random.choice(QUANTIFIERS)}"


def compile_pattern(pattern):
    expressions = Expressions()
    return expressions.compile(parse_pattern(pattern, expressions))


def check_patterns(seeds):
    letters = ["a", "b", "é", "日", "1", "7", "_", "-", ".", " ", "\n", "\u0660", "😀"]
    matched = refused = 0
    for seed in seeds:
        random = standard_random.Random(seed)
        pattern = draw_pattern(random)
        try:
            automaton, texts = compile_pattern(pattern), [""]
        except ValueError as error:  # nested repetitions can need too many states
            assert "states" in str(error), pattern
            refused += 1
            continue
        texts += ["".join(random.choices(letters, k=random.randint(1, 6))) for _ in range(20)]
        regex = Regex(pattern, [*letters, b"\xc3", b"\xa9", "ab", "a\n"])
        encoded = regex.tokens.encode()
        if regex.automaton.start:
            texts += [
                walk(regex.automaton, encoded, regex.least_tokens + 4, random).decode()
                for _ in range(5)
            ]
        for text in texts:
            expected = re.fullmatch(pattern, text, re.ASCII) is not None
            assert automaton.matches(text) == expected, (pattern, text)
            matched += expected
    assert refused <= len(seeds) / 100
    return matched


def test_patterns_match_as_in_python():
    assert check_patterns(range(60)) > 250


@pytest.mark.slow
@pytest.mark.parametrize("part", sampled(range(6)))
def test_many_patterns_match_as_in_python(part):
    assert check_patterns(range(1000 + 500 * part, 1500 + 500 * part)) > 1500


@pytest.mark.parametrize(
    ("pattern", "states"),
    [
        ("a", 3),
        ("a*", 2),
        ("(a|b)*abb", 5),
        ("a?a?a?a?aaaa", 10),
        ("a|ab|abc|abcd", 6),
        (".*é", 11),
    ],
)
def test_automata_are_minimal(pattern, states):
    automaton = compile_pattern(pattern)
    assert len(automaton.table) == states
    assert not automaton.table[DEAD].any() and not automaton.accepting[DEAD]
    # No two states have the same future, for texts of up to 8 classes of bytes.
    names = automaton.accepting.astype(int)
    for _ in range(states):
        rows = np.concatenate([names[:, None], names[automaton.table]], axis=1)
        names = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    assert len(set(names)) == states and START == 1


def test_no_state_is_a_dead_end():
    """Forbid c, because only d may follow it, which no token writes."""
    regex = Regex("ab|c[de]|xy", [None, "a", "b", "c", "x", "y"])
    automaton = regex.automaton
    first = automaton.table[automaton.start][automaton.token_classes]
    assert (first > 0).tolist() == [False, True, False, False, True, False]
    assert (automaton.distances[1:] < 3).all()


def test_tokens_may_end_inside_of_characters():
    regex = Regex("[é日]+", [None, b"\xc3", b"\xa9", "日", b"\xa9\xe6\x97", b"\xa5", b"\xa8"])
    automaton = regex.automaton
    allowed = automaton.table[:, automaton.token_classes] > 0
    assert allowed[automaton.start].tolist() == [False, True, False, True, False, False, False]
    after = automaton.table[automaton.start, automaton.token_classes[1]]
    assert allowed[after].tolist() == [False, False, True, False, True, False, False]


def test_the_first_token_may_write_another_text():
    words = ka.data.Words.build(["red green light"])
    regex = Regex("(red|green)( light){1,2}", words)
    ids = ka.generation.generate(
        Toy(len(words)), [[5]], 5, constraints=regex, end_token_id=END, padding_id=None
    )
    assert regex.matches(words.decode(ids)[0]) and regex.least_tokens == 2


def test_tables_are_small():
    """Tokens with the same effect share a column: 32,000 tokens need 32,000 numbers and a table."""
    random = np.random.default_rng(0)
    letters = np.array(list('abcdefghij0123456789 .-"'))
    tokens = ["".join(random.choice(letters, size=size)) for size in random.integers(1, 9, 32_000)]
    regex = Regex(r"\d{4}-[01]\d-[0-3]\d( [a-z]+)*", [*letters, *tokens])
    automaton = regex.automaton
    assert len(automaton.table) < 20 and automaton.table.dtype == "int16"
    assert automaton.nbytes < 70_000
    assert len(automaton.token_classes) * len(automaton.table) / automaton.nbytes > 4


SAMPLERS = ["greedy", ka.generation.Sample(3.0), ka.generation.Beam(3, num_return_sequences=2)]


def make_tokens(constraint, sampler, number, end=END):
    """Return the rows of the loop of `generate`, without compiling it."""
    decoder = Toy(len(TOKENS) + 2, seed=number)
    config = make_config(sampler, Padding(None), end_token_id=end, constraints=constraint)
    prompt = np.array([[5, 6], [7, 8], [9, 9]], "int32")
    uniform = np.random.default_rng(number).random((number, 3)).astype("float32")
    inputs = {"prompt": prompt, "uniform": uniform, "number": number}
    is_beam = isinstance(config.sampler, ka.generation.Beam)
    write_tokens = ka.generation.beam_search.search_beams if is_beam else loop.generate_tokens
    results = write_tokens(decoder, config, inputs)
    ids = np.asarray(results["ids"])
    if is_beam:
        exists = np.isfinite(results["totals"])  # there may be fewer texts than results
        assert exists[:, 0].all()
        return ids[exists]
    return ids


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
@pytest.mark.parametrize("end", [END, None])
def test_every_row_matches_however_little_room_there_is(sampler, end):
    regex = Regex(r"(ab|1[2-9]{2,3}|é日)(, (x|yz))*\.?", TOKENS)
    for number in range(regex.least_tokens, 12):
        rows = make_tokens(regex, sampler, number, end)
        assert rows.shape[1] == number and all(regex.matches(write(row)) for row in rows)


@pytest.mark.parametrize(
    "sampler", [SAMPLERS[1], pytest.param(SAMPLERS[2], marks=pytest.mark.slow)], ids=str
)
def test_generated_rows_match(sampler):
    regex = Regex("[ab]{3}(é|日)+", TOKENS)
    options = {"constraints": regex, "end_token_id": END, "padding_id": None, "seed": 0}
    ids = ka.generation.generate(Toy(len(TOKENS) + 2), [[5, 6], [7]], 9, sampler, **options)
    assert all(regex.matches(write(row)) for row in ids.reshape(-1, 9))


def generate(regex, number=9, **options):
    options = {"padding_id": None, "constraints": regex} | options
    return ka.generation.generate(Toy(5), [[1]], number, **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Regex("a(?=b)", ["a"]), r"Regex\(pattern='a\(\?=b\)'\): .* is a lookahead"),
        (lambda: Regex("^a", ["a"]), "'\\^' at index 0 is an anchor. Remove it"),
        (lambda: Regex(r"(a)\1", ["a"]), "at index 3 is not supported. Use"),
        (lambda: Regex("a*?", ["a"]), "lazy or possessive. Remove it"),
        (lambda: Regex("a**", ["a"]), "repeats a quantifier. Put a group"),
        (lambda: Regex("*a", ["a"]), "repeats nothing. Write"),
        (lambda: Regex("a{3,2}", ["a"]), "Write the smaller number first"),
        (lambda: Regex("(a", ["a"]), r"'\(' at index 0 is not closed. Add a \)"),
        (lambda: Regex("a)", ["a"]), "closes no group"),
        (lambda: Regex("[a", ["a"]), "is not closed"),
        (lambda: Regex("[b-a]", ["a"]), "is no range"),
        (lambda: Regex("(?i)a", ["a"]), "is a flag"),
        (lambda: Regex("x", ["a"]), "allows no text that these 1 tokens can write. Use"),
        (lambda: Regex("x", 3), "tokens=3 does not say what its tokens write"),
        (lambda: Regex("x", [3]), "TokenTexts: 3 is no text"),
        (lambda: Regex("((a{,99}b){,99}c){,99}", "abc".split()), "more than 30000 states"),
        (lambda: generate(Regex("a{5}", ["", "a"]), 4), "needs at least 5 new tokens"),
        (lambda: generate(Regex("a+", ["", "a"]), end_token_id=1), "The end id 1 of .* writes 'a'"),
        (lambda: generate(Regex("a+", 8 * ["a"])), "8 tokens, and the model has 5 ids"),
    ],
)
def test_mistakes_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
