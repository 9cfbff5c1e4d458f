"""The words of generated tokens, and their times from the decoder's cross-attention."""

import string

import numpy as np

from keras_attention.core.lazy import generation, visualization
from keras_attention.tasks.transcript import Word

# Punctuation that belongs to the next word, and to the word before.
BEFORE, AFTER = "\"'“¿([{-", "\"'.。,，!！?？:：”)]}、"
WITHOUT_SPACES = ("zh", "ja", "th", "lo", "my", "yue")  # languages that do not separate words
MOST_HEADS, FILTER_WIDTH = 10, 3  # for spelled words, as in the code of Yeh et al. (2025)
NOISE_AND_SPEECH = 0.05, 0.99  # quantiles of the loudness that stand for noise and speech
SILENT = 0.05  # greatest loudness of silence, between the two
MOST_SOUND = 0.5  # sound between a bound of a word and a pause, relative to the pause


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


def spell_words(tokenizer, words, ids, room):
    """Return the ids of each word when it is spelled, a list of lists.

    A word is cut into single characters, or into longer pieces if the ids would not fit. Characters
    give more exact times than longer tokens (Yeh et al., 2025, section II-C).

    Args:
        tokenizer: `PretrainedTokenizer` with byte-level BPE.
        words: list of (text, number of ids), from `split_words`.
        ids: list of ints, the ids of the words. They are returned, cut into words, if no spelling
            fits.
        room: int, the largest number of ids.
    """
    for size in range(1, 1 + max(len(text) for text, _ in words)):
        spelled = [_spell(tokenizer, text, size) for text, _ in words]
        if sum(map(len, spelled)) <= room:
            return spelled
    ends = np.cumsum([count for _, count in words]).tolist()
    return [ids[a:b] for a, b in zip([0, *ends], ends, strict=False)]


def _spell(tokenizer, text, size):
    """Return the ids of `text` in pieces of `size` characters. The first keeps its space."""
    begin = size + text.startswith(" ")
    pieces = [text[:begin], *(text[k : k + size] for k in range(begin, len(text), size))]
    return [i for piece in pieces for i in tokenizer.encode_plain(piece)]


def rate_tokens(model, encoded, ids, begin):
    """Return the probability of each token of a text, float (T,).

    Args:
        model: functional `keras.Model` from `{"encoded", "target_ids"}` to logits.
        encoded: (1, S, D), the encoder's output.
        ids: list of ints, the prompt without timestamps, and T ids of text.
        begin: int, the number of ids in the prompt.
    """
    logits = model({"encoded": encoded, "target_ids": np.array([ids[:-1]], "int32")})
    logits = np.asarray(logits)[0, begin - 1 :].astype("float64")
    logits -= logits.max(axis=1, keepdims=True)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return shares[np.arange(len(shares)), ids[begin:]]


def align_words(model, encoded, start, spelled, num_vectors, heads=None):
    """Return when each of W words begins and the last one ends, int (W + 1,), in encoder vectors.

    The model reads the spelled words in one call. The times are those of
    `ka.generation.align_attention`.

    Args:
        model, encoded: as for `rate_tokens`.
        start: ints, the prompt without timestamps.
        spelled: list of W lists of ints, from `spell_words`.
        num_vectors: int, the number of vectors before the padding of the recording.
        heads: pairs (layer, head) of the cross-attention. None chooses those that align best.
    """
    ids = np.array([[*start, *(i for word in spelled for i in word)]], "int32")
    with visualization.record_attention(model) as maps:
        model({"encoded": encoded, "target_ids": ids})
    # The row before a token contains the weights of the step that chose the token.
    layers = [
        np.asarray(x)[0, :, len(start) - 1 :, :num_vectors]
        for path, x in maps.items()
        if "cross_attention" in path
    ]
    layers = [layer / layer.sum(axis=-1, keepdims=True) for layer in layers]
    weights = np.stack([layers[i][k] for i, k in heads or choose_heads(layers)])
    firsts = generation.align_attention(weights, filter_width=FILTER_WIDTH)
    return firsts[np.cumsum([0, *map(len, spelled)])]


def choose_heads(layers):
    """Return pairs (layer, head): a third of all heads, at most 10, that align best.

    `layers` is a list with the attention weights (N, T, S) of each layer.
    """
    ratings = {
        (i, k): rating
        for i, layer in enumerate(layers)
        for k, rating in enumerate(generation.rate_heads(layer))
    }
    count = min(MOST_HEADS, max(1, len(ratings) // 3))
    return sorted(ratings, key=ratings.get)[-count:]


def measure_loudness(samples, num_vectors):
    """Return the mean absolute sample during each encoder vector, float (num_vectors,)."""
    size = -(-len(samples) // num_vectors)
    padded = np.pad(np.abs(samples), (0, size * num_vectors - len(samples)))
    return padded.reshape(num_vectors, size).mean(axis=1)


def find_pauses(loudness):
    """Return the first vector of each pause and the one after it, int (P, 2).

    A vector is silent if it is not much louder than the noise, compared with the loudest vectors.
    """
    low, high = np.quantile(loudness, NOISE_AND_SPEECH)
    silent = loudness <= low + SILENT * (high - low)
    edges = np.diff(np.concatenate([[0], silent, [0]]))
    return np.stack([np.flatnonzero(edges > 0), np.flatnonzero(edges < 0)], axis=1)


def cut_pauses(begin, end, pauses):
    """Return when a word begins and ends, after pauses at its ends are cut off.

    A bound of a word can be a little before or after a pause. Sound between a bound and a pause is
    thus cut off too, if it is at most half as long as the pause. The idea is that of the package
    stable-ts.

    Args:
        begin, end: ints, in encoder vectors.
        pauses: int (P, 2), from `find_pauses`.
    """
    first, last = begin, end
    for a, b in np.clip(pauses, begin, end).tolist():
        if b < end and a - first <= MOST_SOUND * (b - a):
            first = max(first, b)
        elif a > first and end - b <= MOST_SOUND * (b - a):
            last = min(last, a)
    return first, last


def time_words(words, bounds, probabilities, seconds, offset):
    """Return a list of `Word` with times in seconds.

    Args:
        words: list of W pairs (text, number of tokens), from `split_words`.
        bounds: W pairs of ints, when each word begins and ends, in encoder vectors.
        probabilities: float (T,), of the tokens.
        seconds: float, the duration of an encoder vector.
        offset: float, the time of the first vector in seconds.
    """
    results, token = [], 0
    for (text, count), bound in zip(words, bounds, strict=True):
        start, end = (offset + float(k * seconds) for k in bound)
        share = float(np.mean(probabilities[token : token + count]))
        results.append(Word(text.strip(), start, end, share))
        token += count
    return results
