"""Questions as rows of ids, and answers as positions in them and as characters again."""

import json

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.data.preprocessors.answer_spans import (
    cut_windows,
    locate_answer,
    place_in_window,
)

CONTEXT = "The naïve dog – it’s old – barks at 3.5 cats, U.S.-made; then it sleeps all day long."
ASKED = ka.data.Question(
    "What barked at cats?", CONTEXT, (ka.data.Answer("naïve dog", 4), ka.data.Answer("it’s", 16))
)
PIECES = [
    *(
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "the",
        "naive",
        "dog",
        "bark",
        "##s",
        "##ed",
        "at",
        "cat",
    ),
    *("what", "it", "sleep", "all", "day", "long", "–", "?", ".", ",", "’", "3", "5", "old", "s"),
]


def words(**options):
    return ka.data.QuestionPreprocessor.build([ASKED], **options)


def subwords(**options):
    tokenizer = ka.data.PretrainedTokenizer.from_vocabulary(PIECES, lowercase=True)
    return ka.data.QuestionPreprocessor(tokenizer, **options)


BOTH = pytest.mark.parametrize("make", [words, subwords])


@pytest.mark.parametrize("room, stride", [(6, 2), (5, 0), (7, 3), (4, 30), (40, 3), (1, 0)])
def test_windows_cover_every_token_and_overlap(room, stride):
    for length in range(1, 40):
        windows = cut_windows(length, room, stride)
        seen = [set(range(first, first + count)) for first, count in windows]
        assert set().union(*seen) == set(range(length)) and max(map(len, seen)) <= room
        for before, after in zip(seen[:-1], seen[1:], strict=True):
            assert len(before & after) == min(stride, room // 2) and not after <= before


@BOTH
def test_tokens_are_spans_of_the_unchanged_context(make):
    encoded = make().encode(ASKED.question, CONTEXT)
    texts = [CONTEXT[start:end] for start, end in encoded.spans]
    joined = "".join(texts)
    assert joined == CONTEXT.replace(" ", "")  # in order, and nothing twice
    (window,) = encoded.windows
    assert len(texts) == window.count and "naïve" in texts and "dog" in texts
    inputs = window.inputs
    assert {len(x) for x in inputs.values()} == {len(window.tokens)}
    context = slice(window.begin, window.begin + window.count)
    assert (inputs["segment_ids"][: window.begin] == 0).all()
    assert (inputs["segment_ids"][window.begin :] == 1).all()
    if make is words:
        assert window.tokens[context] == tuple(texts)
        assert window.tokens[0] == "<cls>" and window.tokens[window.begin - 1] == "<sep>"


@BOTH
@pytest.mark.parametrize("length", [30, 96])
def test_answers_come_back(make, length):
    """Search each span of whole tokens in the windows with it, and only there."""
    options = {"maximum_question": 8, "stride": 4}
    preprocessor = make(maximum_length=length, **options)
    encoded = preprocessor.encode(ASKED.question, CONTEXT)
    assert (len(encoded.windows) > 1) == (length == 30)
    for i in range(len(encoded.spans)):
        for j in range(i, min(i + 3, len(encoded.spans))):
            start, end = encoded.spans[i, 0], encoded.spans[j, 1]
            answer = ka.data.Answer(CONTEXT[start:end], int(start))
            assert locate_answer(encoded.spans, answer) == (i, j)
            for window in encoded.windows:
                place = place_in_window(window, (i, j))
                holds = window.first <= i and j < window.first + window.count
                assert (place is not None) == holds
                logits = np.zeros((2, len(window.tokens)))
                if place:
                    logits[0, place[0]] = logits[1, place[1]] = 5.0
                    one = encoded._replace(windows=[window])
                    best, _, _ = ka.data.search_span(*[[x] for x in logits], one, maximum_answer=3)
                    assert (best.start, best.end, best.score) == (start, end, 10.0)


def test_answer_within_a_word_touches_the_word():
    encoded = words().encode(ASKED.question, CONTEXT)
    first, last = locate_answer(encoded.spans, ka.data.Answer("U.S.", CONTEXT.index("U.S.")))
    start, end = encoded.spans[first, 0], encoded.spans[last, 1]
    assert CONTEXT[start:end].startswith("U.S.")
    assert locate_answer(encoded.spans, ka.data.Answer(" ", 3)) is None


def search_by_definition(starts, ends, encoded, longest):
    best = (-np.inf, None, None)
    for start, end, window in zip(starts, ends, encoded.windows, strict=True):
        for i in range(window.count):
            for j in range(i, min(i + longest, window.count)):
                score = start[window.begin + i] + end[window.begin + j]
                if score > best[0]:
                    span = encoded.spans[window.first + i, 0], encoded.spans[window.first + j, 1]
                    best = (score, *span)
    return best


@pytest.mark.parametrize("no_answer", [False, True])
def test_the_search_by_definition(no_answer):
    encoded = words(maximum_length=26, maximum_question=8, stride=3).encode(ASKED.question, CONTEXT)
    random = np.random.default_rng(0)
    for longest in (1, 2, 50):
        sizes = [len(window.tokens) for window in encoded.windows]
        starts, ends = ([random.normal(size=n) for n in sizes] for _ in range(2))
        best, null, total = ka.data.search_span(
            starts, ends, encoded, maximum_answer=longest, no_answer=no_answer
        )
        expected = search_by_definition(starts, ends, encoded, longest)
        np.testing.assert_allclose((best.score, best.start, best.end), expected)
        lowest = min(s[0] + e[0] for s, e in zip(starts, ends, strict=True))
        assert null == (pytest.approx(lowest) if no_answer else None)
        scores = [
            s[w.begin + i] + e[w.begin + j]
            for s, e, w in zip(starts, ends, encoded.windows, strict=True)
            for i in range(w.count)
            for j in range(i, min(i + longest, w.count))
        ] + ([lowest] if no_answer else [])
        assert np.exp(total) == pytest.approx(np.exp(scores).sum())


def test_exact_match_marks_words_of_the_other_text():
    (window,) = words().encode("Which DOGS barked at 3.5 of the US?", CONTEXT).windows
    matches = dict(zip(window.tokens, window.inputs["exact_match"].tolist(), strict=True))
    right = {"DOGS": 0, "barked": 1, "barks": 1, "at": 2, "3.5": 2, "the": 2, "The": 2, "<cls>": 0}
    assert {word: matches[word] for word in right} == right


@BOTH
def test_batches_equal_the_output_of_the_preprocessor(make):
    preprocessor = make(maximum_length=30, maximum_question=8, stride=4)
    windows = preprocessor.encode(ASKED.question, CONTEXT).windows
    spans = [(k + 1, k + 2) for k in range(len(windows))]
    batches = ka.data.batches(list(zip(windows, spans, strict=True)), preprocessor, 2, edges=(64,))
    inputs, labels = zip(*batches.as_numpy_iterator(), strict=True)
    whole = preprocessor.stack(windows)
    assert set(whole) == set(inputs[0]) and len(batches) == -(-len(windows) // 2)
    for name, expected in whole.items():
        actual = np.concatenate([x[name] for x in inputs])
        np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(np.concatenate(labels), spans)
    assert preprocessor([(ASKED.question, CONTEXT)])["token_ids"].shape == (len(windows), 30)


def test_a_batch_sees_the_spelling():
    preprocessor = words(word_length=6)
    (window,) = preprocessor.encode(ASKED.question, CONTEXT).windows
    letters = preprocessor.stack([window])["character_ids"]
    assert letters.shape == (1, len(window.tokens), 6)
    assert (letters[0, 0] == 0).all() and (letters[0, window.begin - 1] == 0).all()
    word = window.tokens.index("dog")
    np.testing.assert_array_equal(letters[0, word, :3], preprocessor.characters.ids("dog"))
    (inputs, _), *_ = ka.data.batches([(window, (0, 0))], preprocessor).take(1)
    np.testing.assert_array_equal(inputs["character_ids"], letters)


@BOTH
def test_preprocessor_is_saved(make, tmp_path):
    preprocessor = make(maximum_length=50, maximum_question=9, maximum_answer=7, stride=3)
    preprocessor.save(tmp_path)
    again = type(preprocessor).load(tmp_path)
    assert again == preprocessor
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["preprocessing"]["maximum_answer"] == 7


@BOTH
@pytest.mark.parametrize(
    "pair, options, message",
    [
        ((" ", CONTEXT), {}, "' ' holds no word"),
        (("Who?", "\n"), {}, "holds no word"),
        (("Who?", CONTEXT), {"maximum_length": 60}, "maximum_length=60 leaves no room for a cont"),
        (("Who?", CONTEXT), {"stride": -1}, "stride=-1"),
        (("Who?", CONTEXT), {"maximum_answer": 0}, "maximum_answer=0"),
    ],
)
def test_encode_refuses_empty_texts_and_invalid_limits(make, pair, options, message):
    with pytest.raises(ValueError, match=message):
        make(**options).encode(*pair)


def test_invalid_rows_and_vocabularies_are_errors():
    with pytest.raises(ValueError, match="has 31 tokens, more than sequence_length=9"):
        words()([(ASKED.question, CONTEXT)], sequence_length=9)
    with pytest.raises(ValueError, match="have <cls> and <sep> at the ids 2 and 3"):
        ka.data.QuestionPreprocessor(ka.data.Vocabulary(("<pad>", "<unk>", "a", "b")))
