"""`Expressions`: regular expressions over bytes, and the deterministic automaton of each.

The automaton is made of derivatives (Brzozowski, 1964; Owens et al., 2009): the derivative of an
expression by a byte matches what may follow this byte. Every expression that derivatives reach is a
state.

The libraries interegular 0.3.3 and greenery 4.2.3 also make automata, but of characters, and a
token may end inside of a character. For a pattern of a JSON object with a string, an integer and a
list of strings they need 6 and 9 seconds, and this file 0.2 on the same busy machine.
"""

import dataclasses

import numpy as np

MAX_STATES = 30_000
DEAD, START = 0, 1  # states of every automaton
LAST_CHARACTER = 0x10FFFF
NOTHING, EMPTY = 0, 1  # the expressions that match no text, and only the empty text


@dataclasses.dataclass(frozen=True)
class Automaton:
    """A deterministic automaton over bytes with as few states as possible.

    Attributes:
        table: int32 (S, K), the next state from each of S states, for each of K classes of bytes.
            No byte leads out of the state `DEAD`. `START` is the state before the first byte.
        accepting: bool (S,), whether the bytes so far match.
        byte_classes: int32 (256,), the class of each byte.
    """

    table: np.ndarray
    accepting: np.ndarray
    byte_classes: np.ndarray

    def matches(self, text):
        """Return whether the automaton matches `text`, a str or bytes."""
        state = START
        for byte in text.encode() if isinstance(text, str) else text:
            state = self.table[state, self.byte_classes[byte]]
        return bool(self.accepting[state])


class Expressions:
    """Makes regular expressions over bytes, and automata of them.

    An expression is an int, the number of a regular expression that this object stores. Equal
    expressions have the same int.
    """

    def __init__(self):
        self._keys, self._numbers, self._has_empty = [], {}, []
        self._number(("nothing",), False)
        self._number(("empty",), True)

    def _number(self, key, has_empty):
        """Return the int of the expression with this key. `has_empty`: does it match no bytes?"""
        if key not in self._numbers:
            self._numbers[key] = len(self._keys)
            self._keys.append(key)
            self._has_empty.append(has_empty)
        return self._numbers[key]

    def one_of_bytes(self, mask):
        """Return the expression for any one byte b for which bit b of `mask`, an int, is set."""
        return self._number(("bytes", mask), False) if mask else NOTHING

    def characters(self, ranges):
        """Return the expression for one character, as UTF-8.

        `ranges` is a list of (first, last), code points. Surrogates are not characters.
        """
        sequences = [s for first, last in ranges for s in _encode_range(first, last)]
        return self.either(
            self.sequence(self.one_of_bytes((2 << last) - (1 << first)) for first, last in sequence)
            for sequence in sequences
        )

    def literal(self, text):
        """Return the expression that matches only `text`, a str."""
        return self.sequence(self.one_of_bytes(1 << byte) for byte in text.encode())

    def sequence(self, parts):
        """Return the expression for `parts`, a list of expressions, one after the other."""
        result = EMPTY
        for part in reversed(list(parts)):
            result = self._join(part, result)
        return result

    def _join(self, first, then):
        if first == NOTHING or then == NOTHING:
            return NOTHING
        if first == EMPTY or then == EMPTY:
            return max(first, then)
        parts = []
        while self._keys[first][0] == "sequence":
            _, part, first = self._keys[first]
            parts.append(part)
        for part in (first, *reversed(parts)):
            has_empty = self._has_empty[part] and self._has_empty[then]
            then = self._number(("sequence", part, then), has_empty)
        return then

    def either(self, parts):
        """Return the expression for texts that at least one of the expressions `parts` matches."""
        choices, mask = set(), 0
        for part in parts:
            key = self._keys[part]
            choices.update(key[1] if key[0] == "either" else (part,))
        for part in list(choices):
            if self._keys[part][0] == "bytes":
                mask |= self._keys[part][1]
                choices.remove(part)
        choices = (choices | {self.one_of_bytes(mask)}) - {NOTHING}
        if len(choices) < 2:
            return choices.pop() if choices else NOTHING
        return self._number(
            ("either", frozenset(choices)), any(self._has_empty[x] for x in choices)
        )

    def both(self, first, second):
        """Return the expression for texts that the expressions `first` and `second` both match."""
        if NOTHING in (first, second) or first == second:
            return min(first, second)
        pair = frozenset((first, second))
        return self._number(("both", pair), all(self._has_empty[x] for x in pair))

    def repeat(self, part, least=0, most=None):
        """Return the expression for `least` to `most` times `part`. `most` None is any number."""
        if most == 0 or part == EMPTY or (part == NOTHING and least == 0):
            return EMPTY
        if part == NOTHING or (least, most) == (1, 1):
            return part
        least = 0 if self._has_empty[part] else least
        return self._number(("repeat", part, least, most), least == 0)

    def _derive(self, expression, byte, memory):
        """Return the derivative of an expression by `byte`.

        `memory` is a dict from expressions to their derivatives by this byte.
        """
        if expression in memory:
            return memory[expression]
        kind, *parts = self._keys[expression]
        if kind == "bytes":
            result = parts[0] >> byte & 1  # EMPTY or NOTHING
        elif kind == "sequence":
            result = self._join(self._derive(parts[0], byte, memory), parts[1])
            if self._has_empty[parts[0]]:
                result = self.either([result, self._derive(parts[1], byte, memory)])
        elif kind == "either":
            result = self.either([self._derive(part, byte, memory) for part in parts[0]])
        elif kind == "both":
            result = self.both(*(self._derive(part, byte, memory) for part in parts[0]))
        elif kind == "repeat":
            part, least, most = parts
            remaining = self.repeat(part, max(least - 1, 0), None if most is None else most - 1)
            result = self._join(self._derive(part, byte, memory), remaining)
        else:
            result = NOTHING
        memory[expression] = result
        return result

    def compile(self, expression):
        """Return the `Automaton` of an expression."""
        byte_classes, first_bytes = self._classify_bytes()
        memories = [{} for _ in first_bytes]
        states, table, waiting = {NOTHING: DEAD, expression: START}, [], [NOTHING, expression]
        for state in waiting:  # the list grows
            following = [
                self._derive(state, byte, memory)
                for byte, memory in zip(first_bytes, memories, strict=True)
            ]
            for after in following:
                if after not in states:
                    states[after] = len(waiting)
                    waiting.append(after)
            if len(waiting) > MAX_STATES:
                raise ValueError(
                    f"its automaton has more than {MAX_STATES} states. Use fewer or smaller "
                    "repetitions, such as {0,100}."
                )
            table.append([states[after] for after in following])
        accepting = np.array([self._has_empty[state] for state in waiting])
        if expression == NOTHING:
            table, accepting = [table[0], table[0]], np.array([False, False])
        return _minimize(np.array(table, "int32"), accepting, byte_classes)

    def _classify_bytes(self):
        """Return the class of each byte, int32 (256,), and the first byte of each class.

        No expression distinguishes the bytes of a class.
        """
        masks = [key[1] for key in self._keys if key[0] == "bytes"]
        members = np.array([[mask >> byte & 1 for mask in masks] for byte in range(256)], bool)
        _, first, classes = np.unique(members, axis=0, return_index=True, return_inverse=True)
        return classes.reshape(-1).astype("int32"), first.tolist()


def _encode_range(first, last):
    """Return the UTF-8 of the characters from `first` to `last`: tuples of ranges of bytes."""
    pieces = []
    for low, high in ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF),
                      (0x10000, LAST_CHARACTER)):  # fmt: skip
        low, high = max(low, first), min(high, last)
        if low <= high:
            pieces += _split_range(chr(low).encode(), chr(high).encode())
    return pieces


def _split_range(low, high):
    """Return tuples of ranges of bytes, whose products are the strings from `low` to `high`."""
    if len(low) == 1:
        return [((low[0], high[0]),)]
    least, most = b"\x80" * (len(low) - 1), b"\xbf" * (len(low) - 1)
    if low[0] == high[0]:
        return [((low[0], low[0]), *tail) for tail in _split_range(low[1:], high[1:])]
    first, last, pieces = low[0], high[0], []
    if low[1:] != least:
        pieces += [((first, first), *tail) for tail in _split_range(low[1:], most)]
        first += 1
    if high[1:] != most:
        pieces += [((last, last), *tail) for tail in _split_range(least, high[1:])]
        last -= 1
    if first <= last:
        pieces.append(((first, last), *((0x80, 0xBF) for _ in least)))
    return pieces


def _minimize(table, accepting, byte_classes):
    """Join equivalent states, and return an `Automaton` (Moore, 1956).

    States are compared by random sums of their next states. Comparing rows would take longer.
    """
    random = np.random.default_rng(0)
    factors = random.integers(1 << 63, size=table.shape[1], dtype="uint64") * 2 + 1
    names = random.integers(1 << 63, size=len(table) + 1, dtype="uint64")
    blocks, number = accepting.astype("int64"), 0
    while (count := blocks.max() + 1) > number:
        number = count
        sums = names[blocks] * np.uint64(3) + names[blocks[table]] @ factors
        blocks = np.unique(sums, return_inverse=True)[1].reshape(-1)
    rows, accept = blocks[table], accepting
    _, first, blocks = np.unique(blocks, return_index=True, return_inverse=True)
    blocks = blocks.reshape(-1)
    same = (rows == rows[first][blocks]).all() and (accept == accept[first][blocks]).all()
    assert same, "two different states have the same sum"  # in less than one of 2^20 automata
    order = np.argsort(np.argsort(first))  # the first state of each block, in order: DEAD, START
    if blocks[DEAD] == blocks[START]:  # nothing matches
        return Automaton(table[:2] * 0, accepting[:2], byte_classes)
    first_states = np.sort(first)
    return Automaton(
        order[blocks][table[first_states]].astype("int32"), accepting[first_states], byte_classes
    )
