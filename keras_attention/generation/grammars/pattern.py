"""`parse_pattern`: reads a regular expression, in the part of Python's syntax that is regular."""

import re

from keras_attention.generation.grammars.expressions import LAST_CHARACTER

EVERY = ((0, LAST_CHARACTER),)
SPACE = ((9, 13), (32, 32))
DIGIT = ((48, 57),)
WORD = (*DIGIT, (65, 90), (95, 95), (97, 122))
_CONTROLS = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11, "a": 7, "0": 0}
_HEX = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})")
_COUNT = re.compile(r"\{(?:(\d+)(?:(,)(\d*))?|,(\d+))\}")
_GROUP = re.compile(r"\(\?(?::|P<[A-Za-z_]\w*>)|\((?!\?)")
_CONSTRUCTS = {
    "(?=": "a lookahead",
    "(?!": "a lookahead",
    "(?<=": "a lookbehind",
    "(?<!": "a lookbehind",
    "(?P=": "a back reference",
    "(?(": "a condition",
    "(?>": "an atomic group",
    "(?#": "a comment",
}


def parse_pattern(pattern, expressions, characters=None, search=False):
    r"""Return the expression for the texts that `pattern` matches as a whole.

    Supported are literals, `.`, classes such as `[a-z_]` and `[^"]`, the escapes of Python except
    those below, groups, `|`, and the quantifiers `* + ? {m} {m,} {,n} {m,n}`. `\d`, `\w` and `\s`
    match ASCII, as with `re.ASCII`. Not supported are anchors, lookarounds, back references, flags,
    `\b`, `\A`, `\Z`, `\N{...}`, and lazy and possessive quantifiers.

    Args:
        pattern: str.
        expressions: an `Expressions`, which makes the expression.
        characters: function from ranges of code points to an expression for one of them. None uses
            UTF-8.
        search: bool, whether the pattern matches if a part of the text matches, unless it begins
            with `^` and ends with `$`.

    Raises:
        ValueError: the pattern has a mistake, or is not supported. The message does not name the
            caller.
    """
    return _Parser(pattern, expressions, characters or expressions.characters, search).parse()


class _Parser:
    """Reads `text` from left to right. `at` is the index of the next character."""

    def __init__(self, text, expressions, characters, search):
        self.text, self.at, self.search = text, 0, search
        self.make, self.characters = expressions, characters

    def parse(self):
        result = self.read_alternatives(outer=True)
        if self.at < len(self.text):
            raise self.error(")", "closes no group", r"Write \) for the character, or open a group")
        return result

    def read_alternatives(self, outer=False):
        parts = [self.read_sequence(outer)]
        while self.accept("|"):
            parts.append(self.read_sequence(outer))
        return self.make.either(parts)

    def read_sequence(self, outer):
        anchored = self.search and outer
        parts = []
        if anchored and not self.accept("^"):
            parts.append(self.make.repeat(self.characters(EVERY)))
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            if anchored and self.text[self.at] == "$" and self.text[self.at + 1 :][:1] in ("", "|"):
                self.at += 1
                return self.make.sequence(parts)
            parts.append(self.read_item())
        if anchored:
            parts.append(self.make.repeat(self.characters(EVERY)))
        return self.make.sequence(parts)

    def read_item(self):
        item = self.read_atom()
        if (bounds := self.read_bounds()) is None:
            return item
        if self.text[self.at : self.at + 1] in ("?", "+"):
            fix = "Remove it: the whole text must match, however much each part takes"
            raise self.error(self.text[self.at], "makes a quantifier lazy or possessive", fix)
        if (start := self.at) < len(self.text) and self.read_bounds() is not None:
            self.at = start
            raise self.error(
                self.text[start], "repeats a quantifier", "Put a group around the first"
            )
        return self.make.repeat(item, *bounds)

    def read_bounds(self):
        """Read a quantifier, and return (least, most), or None if there is none."""
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.accept(sign):
                return bounds
        if (match := _COUNT.match(self.text, self.at)) is None:
            return None
        least, comma, most, only_most = match.groups()
        least, most = int(least or 0), most if comma else least or only_most
        most = int(most) if most else None
        if most is not None and most < least:
            raise self.error(match[0], "has no numbers", "Write the smaller number first")
        self.at = match.end()
        return least, most

    def read_atom(self):
        character = self.text[self.at]
        if character == "(":
            return self.read_group()
        if character == "[":
            self.at += 1
            return self.characters(self.read_class())
        if character in "^$":
            fix = rf"Remove it: the whole text always matches. Write \{character} for the character"
            raise self.error(character, "is an anchor", fix)
        if character in "*+?" or _COUNT.match(self.text, self.at):
            raise self.error(character, "repeats nothing", rf"Write \{character} for the character")
        if character == "\\":
            return self.characters(self.read_escape())
        self.at += 1
        return self.characters([(0, 9), (11, LAST_CHARACTER)] if character == "." else
                               _single(character))  # fmt: skip

    def read_group(self):
        start = self.at
        if (match := _GROUP.match(self.text, start)) is None:
            sign = next((x for x in _CONSTRUCTS if self.text.startswith(x, start)), "(?")
            fix = "Leave it out, or write the texts that it allows as alternatives (a|b)"
            raise self.error(sign, f"is {_CONSTRUCTS.get(sign, 'a flag')}", fix)
        self.at = match.end()
        inner = self.read_alternatives()
        if not self.accept(")"):
            self.at = start
            raise self.error("(", "is not closed", r"Add a ), or write \( for the character")
        return inner

    def read_class(self):
        """Read a class after its `[`, and return its ranges."""
        start, negated, ranges = self.at - 1, self.accept("^"), []
        while not (ranges and self.accept("]")):
            if self.at >= len(self.text):
                self.at = start
                raise self.error("[", "is not closed", r"Add a ], or write \[ for the character")
            first = self.read_member()
            dash = self.text[self.at : self.at + 1] == "-"
            if dash and self.text[self.at + 1 : self.at + 2] not in ("", "]"):
                at, self.at = self.at, self.at + 1
                last = self.read_member()
                if (
                    len(first) > 1
                    or len(last) > 1
                    or first[0][0] > last[0][0]
                    or (first[0][0] != first[0][1] or last[0][0] != last[0][1])
                ):
                    self.at = at
                    raise self.error(
                        "-", "is no range", r"Write the smaller character first, or \-"
                    )
                first = [(first[0][0], last[0][1])]
            ranges += first
        return _complement(ranges) if negated else merge_ranges(ranges)

    def read_member(self):
        if self.text[self.at] == "\\":
            return self.read_escape(in_class=True)
        self.at += 1
        return _single(self.text[self.at - 1])

    def read_escape(self, in_class=False):
        """Read `\\` and what follows it, and return ranges of code points."""
        start, letter = self.at, self.text[self.at + 1 : self.at + 2]
        for name, ranges in (("d", DIGIT), ("w", WORD), ("s", SPACE)):
            if letter in (name, name.upper()) and letter:
                self.at += 2
                return ranges if letter == name else _complement(ranges)
        if match := _HEX.match(self.text, start + 1):
            code = int(match[1] or match[2] or match[3], 16)
            if code <= LAST_CHARACTER and not 0xD800 <= code <= 0xDFFF:
                self.at = match.end()
                return [(code, code)]
        is_octal = self.text[start + 2 : start + 3].isdigit()
        if letter in _CONTROLS and letter and not (letter == "0" and is_octal):
            self.at += 2
            return [(_CONTROLS[letter],) * 2]
        if in_class and letter == "b":
            self.at += 2
            return [(8, 8)]
        if not letter or (letter.isascii() and letter.isalnum()):
            fix = r"Use \d \w \s, \n \r \t \f \v, \xhh or \uhhhh, or leave it out"
            raise self.error(f"\\{letter}", "is not supported", fix)
        self.at += 2
        return _single(letter)

    def accept(self, sign):
        """Read `sign` if it comes next, and return whether it does."""
        comes = self.text.startswith(sign, self.at)
        self.at += len(sign) if comes else 0
        return comes

    def error(self, text, problem, fix):
        return ValueError(f"{text!r} at index {self.at} {problem}. {fix}.")


def _single(character):
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        raise ValueError(f"{character!r} is a surrogate, which no text has. Remove it.")
    return [(code, code)]


def merge_ranges(ranges):
    """Return sorted ranges of code points that neither overlap nor touch, a list."""
    merged = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def _complement(ranges):
    """Return the ranges of all other code points."""
    result, at = [], 0
    for first, last in merge_ranges(ranges):
        result += [(at, first - 1)] if first > at else []
        at = last + 1
    return result + ([(at, LAST_CHARACTER)] if at <= LAST_CHARACTER else [])


def subtract_ranges(ranges, removed):
    """Return the ranges of the code points in `ranges` that are not in `removed`."""
    return _complement([*_complement(ranges), *removed])
