"""`word_pattern`: the regular expression whose matches are the words of a text.

It stands in manifests, for apps in Python, JavaScript, Kotlin and Swift. These differ in what `\\w`
and `\\s` match, Python has no `\\p{L}`, and its `findall` returns groups instead of matches. So the
pattern lists characters, has no capturing group, and writes runs of equal signs as `!+|"+|#+|...`.
"""

import functools
import itertools
import re
import unicodedata

INNER = "-'’.,:@/"  # belong to a word where they stand between two letters
JOINERS = "\u200c\u200d"  # ZWNJ, ZWJ: belong to a word after its first letter
ZWJ = r"\u200d"
INVISIBLE = (
    r"\u00ad\u061c\u180e\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"  # as INNER
)
SYMBOLS = "←-⯿🀀-🫿"  # may follow a ZWJ
MODIFIERS = "🏻-🏿\U000e0020-\U000e007f"  # skin tones and tags
FLAG = "[🇦-🇿]{2}"


@functools.cache
def word_pattern():
    """Return the pattern of `ka.data.split_words`, a str.

    A word is letters and digits with their combining marks and joiners. Any other character is a
    sign: equal ones that touch are one word, and so is an emoji of several characters.
    """
    categories = _read_categories()
    marks = {c for c, category in categories.items() if category[0] == "M"}
    letters = {c for c in categories if c.isalnum() or c == "_"} | marks
    run, spaces = _write_signs(categories, letters)
    word = rf"(?![{_write_set(JOINERS)}])[{_write_set(letters.union(JOINERS))}]+"
    end = f"[{_write_set(marks)}{MODIFIERS}]*"
    emoji = f"{FLAG}|(?:{run}){end}(?:{ZWJ}[{SYMBOLS}]{end})*"
    return f"{word}(?:[{_write_set(INNER)}{INVISIBLE}]{word})*|(?=[^{spaces}])(?:{emoji})"


def check_pattern(owner, pattern):
    """Return `pattern`, or `word_pattern()` for None.

    Raises:
        ValueError: it is no regular expression, has a capturing group, or matches an empty text.
    """
    if pattern is None:
        return word_pattern()
    try:
        compiled = re.compile(pattern)
        right = not compiled.groups and not compiled.match("")
    except (re.error, RecursionError, OverflowError, TypeError):
        right = False
    if not right:
        raise ValueError(
            f"{owner}(pattern={pattern!r:.60}): expected a regular expression whose matches are "
            "words, with no capturing group. Write groups as (?:...), or leave it out for that of "
            "ka.data.split_words."
        )
    return pattern


def _read_categories():
    """{character: category} of planes 0 to 3 and 14: others hold private characters only."""
    characters = map(chr, itertools.chain(range(0x40000), range(0xE0000, 0xE0200)))
    categories = {c: unicodedata.category(c) for c in characters}
    # Unassigned ones among the emoji are for emoji of later versions of Unicode.
    return {c: k for c, k in categories.items() if k not in ("Cn", "Co", "Cs")} | {
        c: "So" for c in map(chr, range(0x1F000, 0x1FB00)) if categories[c] == "Cn"
    }


def _write_signs(categories, letters):
    """Return the pattern of one sign, or of a run of it, and the white space as a set."""
    spaces = {c for c in categories if c.isspace()}
    signs = sorted(categories.keys() - letters - spaces)
    groups = []  # looked up by their first characters, so that a match tries a few signs only
    for _, group in itertools.groupby(signs, lambda sign: ord(sign) // 64):
        group = list(group)
        runs = "|".join(f"{_quote(sign)}+" for sign in group)
        groups.append(f"(?=[{_write_set(group)}])(?:{runs})")
    spaces = _write_set(spaces)
    return "|".join([*groups, f"[^{spaces}]"]), spaces


def _write_set(characters):
    """Return characters as ranges, to stand between brackets."""
    ranges = []
    for character in sorted(characters):
        if ranges and ord(character) == ord(ranges[-1][1]) + 1:
            ranges[-1][1] = character
        else:
            ranges.append([character, character])
    return "".join(_quote(a) if a == b else f"{_quote(a)}-{_quote(b)}" for a, b in ranges)


def _quote(character):
    """Return a character of a pattern in a form that all languages read.

    Above U+FFFF each language has another escape, so these characters stand for themselves.
    """
    code = ord(character)
    if code < 128:
        return character if character.isalnum() else rf"\x{code:02x}"
    hidden = not character.isprintable() or unicodedata.category(character)[0] == "M"
    return rf"\u{code:04x}" if hidden and code < 0x10000 else character
