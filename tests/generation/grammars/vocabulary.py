"""A vocabulary for tests of grammars, and what its ids write."""

END = 3
TOKENS = [None, None, None, None, *map(chr, range(32, 127)), *(bytes([b]) for b in range(128, 256))]
TOKENS += ["ab", "12", '": ', "true", "\n", '", "', "é", "日本", "}}", "]}", '{"', " ", "0."]


def write(row):
    """Return the text of ids up to the end id, a str. The bytes must be UTF-8."""
    row = [int(i) for i in row]
    row = row[: row.index(END)] if END in row else row
    texts = (TOKENS[i] or "" for i in row)
    return b"".join(text.encode() if isinstance(text, str) else text for text in texts).decode()


def walk(automaton, texts, room, random, stop=0.3):
    """Return a random text, bytes, of at most `room` tokens that a `TokenAutomaton` allows.

    `texts` are the texts of the ids. After a match, the text ends with the probability `stop`.
    """
    state, text = automaton.start, b""
    while True:
        following = automaton.table[state][automaton.token_classes]
        allowed = [i for i, x in enumerate(automaton.distances[following]) if x < room]
        if automaton.accepting[state] and (not allowed or random.random() < stop):
            return text
        assert allowed, f"a dead end after {text!r}"
        token = random.choice(allowed)
        text, state, room = text + texts[token], following[token], room - 1
