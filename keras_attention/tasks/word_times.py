"""The words of generated tokens, and their times from the decoder's cross-attention."""

import string

import numpy as np

from keras_attention.core.lazy import generation, visualization
from keras_attention.tasks.transcript import Word

# Punctuation that belongs to the next word, and to the word before.
BEFORE, AFTER = "\"'“¿([{-", "\"'.。,，!！?？:：”)]}、"
WITHOUT_SPACES = ("zh", "ja", "th", "lo", "my", "yue")  # languages that do not separate words
LONGEST = 2.0  # the longest word at a pause, relative to the median word
MOST_MEDIAN = 0.7  # seconds, the longest median word, so that a slow recording has a limit, too


def split_words(tokenizer, ids, language=None):
    """Group ids into words.

    A word begins with a space. Punctuation is added to the word before or after. In languages
    without spaces, every character is a word.

    Args:
        tokenizer: `PretrainedTokenizer` with byte-level BPE.
        ids: list of ints, ids of text.
        language: str, the code of the language, or None.

    Returns:
        A list of (text, number of ids). The texts keep their spaces.
    """
    characters, pending = [], []
    for i in ids:
        pending.append(i)
        (text,) = tokenizer.decode([pending])
        if "\ufffd" not in text:  # a character may consist of several ids
            characters.append([text, len(pending)])
            pending = []
    if pending:
        characters.append([tokenizer.decode([pending])[0], len(pending)])
    if language in WITHOUT_SPACES:
        return _join_punctuation(characters)
    words = []
    for text, count in characters:
        if not words or text.startswith(" ") or text.strip() in string.punctuation:
            words.append([text, count])
        else:
            words[-1][0] += text
            words[-1][1] += count
    return _join_punctuation(words)


def _join_punctuation(words):
    """Join single punctuation marks with the words that they belong to."""
    joined = []
    for text, count in words:
        mark, before = text.strip(), joined[-1][0] if joined else ""
        ends = mark != "" and mark in AFTER and not text.startswith(" ")
        begins = before.startswith(" ") and before.strip() != "" and before.strip() in BEFORE
        if joined and (ends or begins):
            joined[-1] = (before + text, joined[-1][1] + count)
        else:
            joined.append((text, count))
    return joined


def align_tokens(model, encoded, ids, begin, num_vectors, heads=()):
    """Return when each token of a text begins and ends, and its probability.

    The model reads the whole text in one call. The times are those of `align_attention`, in encoder
    vectors.

    Args:
        model: functional `keras.Model` from `{"encoded", "target_ids"}` to logits.
        encoded: (1, S, D), the encoder's output.
        ids: list of ints, the prompt without timestamps, the text and the end id.
        begin: int, the number of ids in the prompt.
        num_vectors: int, the number of vectors before the padding of the recording.
        heads: pairs (layer, head) of the cross-attention. Empty for all heads of the upper half of
            the layers.

    Returns:
        A tuple of the bounds, int (T + 1,) for T tokens of text, and the probabilities, float (T,).
    """
    ids = np.array([ids], "int32")
    with visualization.record_attention(model) as maps:
        logits = np.asarray(model({"encoded": encoded, "target_ids": ids}))[0].astype("float64")
    layers = [np.asarray(x)[0] for path, x in maps.items() if "cross_attention" in path]
    heads = heads or [
        (i, k) for i in range(len(layers) // 2, len(layers)) for k in range(len(layers[i]))
    ]
    # The row before a token contains the weights of the step that chose the token.
    weights = np.stack([layers[i][k][begin - 1 : -1, :num_vectors] for i, k in heads])
    weights = weights / weights.sum(axis=-1, keepdims=True)
    logits = logits[begin - 1 : -2]
    logits -= logits.max(axis=1, keepdims=True)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    chosen = ids[0, begin:-1]
    return generation.align_attention(weights), shares[np.arange(len(chosen)), chosen]


def time_words(words, bounds, probabilities, seconds, offset):
    """Return a list of `Word` with times in seconds.

    Args:
        words: list of (text, number of tokens), from `split_words`.
        bounds: int (T + 1,), where each token begins, in encoder vectors.
        probabilities: float (T,).
        seconds: float, the duration of an encoder vector.
        offset: float, the time of the first vector in seconds.
    """
    results, first = [], 0
    for text, count in words:
        start, end = (float(bounds[k] * seconds) for k in (first, first + count))
        share = float(np.mean(probabilities[first : first + count]))
        results.append(Word(text.strip(), offset + start, offset + end, share))
        first += count
    return shorten_words(results)


def shorten_words(words):
    """Shorten words that contain a pause, because a token ends only where the next begins.

    The first word of the window and words after a pause lose their beginning, other words their
    end. A word is too long if it lasts twice as long as the median word.
    """
    durations = [word.end - word.start for word in words if word.end > word.start]
    if not durations:
        return words
    longest = LONGEST * min(MOST_MEDIAN, float(np.median(durations)))
    results = []
    for k, word in enumerate(words):
        if word.end - word.start > longest:
            if k == 0:
                word = word._replace(start=word.end - longest)
            elif word.text[-1:] in AFTER:
                word = word._replace(end=word.start + longest)
            elif words[k - 1].text[-1:] in AFTER:
                word = word._replace(start=word.end - longest)
        results.append(word)
    return results
