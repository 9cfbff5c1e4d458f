"""`TokenAutomaton`: an automaton over bytes, lifted to tokens (Willard & Louf, 2023)."""

import dataclasses

import numpy as np

from keras_attention.generation.grammars.expressions import DEAD, START

NEVER = 1 << 30  # the distance of a state from which no match can be reached


@dataclasses.dataclass(frozen=True)
class TokenAutomaton:
    """A deterministic automaton over tokens. From every state but 0, a match can be reached.

    Attributes:
        table: int16 or int32 (S, C), the next state from each of S states, for each of C classes of
            tokens. No token leads out of state 0. Tokens of class 0 are not allowed anywhere.
        token_classes: int16 or int32 (vocabulary_size,), the class of each token. The tokens of a
            class have the same effect in every state.
        start: int, the state before the first token.
        accepting: bool (S,), whether the tokens so far match.
        distances: int32 (S,), the minimum number of tokens from each state to a match.
    """

    table: np.ndarray
    token_classes: np.ndarray
    start: int
    accepting: np.ndarray
    distances: np.ndarray

    @property
    def nbytes(self):
        """Return the size of all tables in bytes, an int."""
        arrays = (self.table, self.token_classes, self.accepting, self.distances)
        return sum(array.nbytes for array in arrays)


def lift(automaton, texts):
    """Convert an automaton over bytes to an automaton over tokens, a `TokenAutomaton`.

    `automaton` is the `Automaton`, and `texts` a `TokenTexts`, the text of each token. The
    attribute `start` of the result is 0 if no match can be written with these tokens.
    """
    functions, classes = _find_functions(automaton, [x or None for x in texts.encode()])
    table, accepting, start = functions.T, automaton.accepting, START
    if texts.first is not None:  # one more state, before the first token
        start = len(table)
        first = _run(automaton, texts.encode_first(), before=start)
        pairs, classes = np.unique(np.stack([classes, first]), axis=1, return_inverse=True)
        classes = classes.reshape(-1)
        table = np.concatenate([table[:, pairs[0]], pairs[1:]])
        accepting = np.append(accepting, accepting[START])
    return _reduce(table, classes, start, accepting)


def _find_functions(automaton, texts):
    """Return what each text does to the states of an automaton, as a function of states.

    Texts are read byte by byte. Beginnings with the same effect are continued together, so each
    node of the trie of the vocabulary that differs from the others is visited once.

    Returns:
        F functions, int32 (F, S), and the index of the function of each text, int (V,). Function 0
        leads to `DEAD` from every state. It is also that of None.
    """
    size, number_of_classes = automaton.table.shape
    identity = np.arange(size, dtype="int32")
    functions = [np.full_like(identity, DEAD), identity]
    numbers = {function.tobytes(): i for i, function in enumerate(functions)}
    results = np.array([0 if text is None else 1 for text in texts])
    for indices, codes in _walk(automaton, texts):
        pairs = results[indices] * number_of_classes + codes
        pairs, inverse = np.unique(pairs, return_inverse=True)
        after = []
        for i, code in zip(*np.divmod(pairs, number_of_classes), strict=True):
            function = automaton.table[functions[i], code]
            number = numbers.setdefault(function.tobytes(), len(functions))
            if number == len(functions):
                functions.append(function)
            after.append(number)
        results[indices] = np.array(after)[inverse.reshape(-1)]
    used, results = np.unique(np.append(results, 0), return_inverse=True)
    return np.stack([functions[i] for i in used]), results.reshape(-1)[:-1]


def _run(automaton, texts, before):
    """Return the state after each text, int (V,), or `before` after an empty text."""
    lengths = np.array([-1 if text is None else len(text) for text in texts])
    states = np.where(lengths < 0, DEAD, START)
    for indices, codes in _walk(automaton, texts):
        states[indices] = automaton.table[states[indices], codes]
    return np.where(lengths == 0, before, states)


def _walk(automaton, texts):
    """Yield for each n the indices of texts with more than n bytes, and the classes of byte n."""
    joined = b"".join(text or b"" for text in texts)
    codes = automaton.byte_classes[np.frombuffer(joined, "uint8")]
    lengths = np.array([len(text or b"") for text in texts])
    begins = np.cumsum(lengths) - lengths
    for n in range(lengths.max(initial=0)):
        indices = np.flatnonzero(lengths > n)
        yield indices, codes[begins[indices] + n]


def _reduce(table, classes, start, accepting):
    """Return the `TokenAutomaton` without states that no match goes through.

    `table` (S, C) is the next state from each state, for each class of tokens, `classes` (V,) the
    class of each token, and `accepting` bool (S,). Class 0 leads to `DEAD`.
    """
    distances = np.where(accepting, 0, NEVER).astype("int32")
    step, waiting = 0, np.flatnonzero(~accepting)
    while waiting.size:
        near = (distances[table[waiting]] == step).any(axis=1)
        if not near.any():
            break
        step += 1
        distances[waiting[near]] = step
        waiting = waiting[~near]
    table = np.where(distances[table] == NEVER, DEAD, table)
    reached = np.zeros(len(table), bool)
    frontier = np.array([start] if distances[start] < NEVER else [], "int64")
    while frontier.size:
        reached[frontier] = True
        frontier = np.unique(table[frontier])
        frontier = frontier[~reached[frontier] & (frontier != DEAD)]
    kept = np.concatenate([[DEAD], np.flatnonzero(reached)])
    names = np.zeros(len(table), "int32")
    names[kept] = np.arange(len(kept))
    columns = np.unique(np.append(classes, 0))
    renamed = np.zeros(table.shape[1], "int64")
    table, renamed[columns] = np.unique(names[table[kept][:, columns]], axis=1, return_inverse=True)
    return TokenAutomaton(
        _shrink(table),
        _shrink(renamed[classes]),
        int(names[start]),
        accepting[kept],
        distances[kept],
    )


def _shrink(array):
    """Return ints as int16 if they fit, else as int32."""
    return array.astype("int16" if array.max(initial=0) < 1 << 15 else "int32")
