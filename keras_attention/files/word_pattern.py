"""`word_pattern`: the regular expression whose matches are the words of a text.

`manifest.json` contains it for apps in Python, JavaScript, Kotlin and Swift. `\\w` and `\\s` differ
between these languages, and Python lacks `\\p{L}`. So the pattern lists the characters. Python's
`findall` would return groups and not matches. So the pattern has no capturing groups, and matches
runs of equal signs by `!+|"+|#+|...`.
"""

import functools
import itertools
import re
import unicodedata

INNER = "-'’.,:@/"  # part of a word if they are between two letters
JOINERS = "\u200c\u200d"  # ZWNJ, ZWJ: part of a word after its first letter
ZWJ = r"\u200d"
INVISIBLE = (
    r"\u00ad\u061c\u180e\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"  # as INNER
)
SYMBOLS = "←-⯿🀀-🫿"  # may follow a ZWJ
MODIFIERS = "🏻-🏿\U000e0020-\U000e007f"  # skin tones and tags
FLAG = "[🇦-🇿]{2}"


@functools.cache
def word_pattern():
    """Return a str, the regular expression by which `ka.data.split_words` finds words.

    A word consists of letters and digits with their combining marks and joiners. Any other
    character, except white space, is a sign. A run of equal signs is one word, and so is an emoji
    of several characters.
    """
    categories = _read_categories()
    marks = {c for c, category in categories.items() if category[0] == "M"}
    letters = {c for c in categories if c.isalnum() or c == "_"} | marks
    run, spaces = _write_signs(categories, letters)
    word = rf"(?![{_write_set(JOINERS)}])[{_write_set(letters.union(JOINERS))}]+"
    end = f"[{_write_set(marks)}{MODIFIERS}]*"
    emoji = f"{FLAG}|(?:{run}){end}(?:{ZWJ}[{SYMBOLS}]{end})*"
    return f"{word}(?:[{_write_set(INNER)}{INVISIBLE}]{word})*|(?=[^{spaces}])(?:{emoji})"


def check_pattern(caller, pattern):
    """Return the regular expression `pattern`, or `word_pattern()` if it is None, after a check.

    Raises:
        ValueError: `pattern` is not a regular expression, has a capturing group, or matches the
            empty string. The message begins with `caller`, the name of a class.
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
            f"{caller}(pattern={pattern!r:.60}): expected a regular expression whose matches are "
            "words, without capturing groups. Write groups as (?:...), or leave it out for the "
            "pattern of ka.data.split_words."
        )
    return pattern


def _read_categories():
    """Return a dict {character: Unicode category}, such as {"a": "Ll"}, for assigned characters.

    It covers the planes of Unicode 0 to 3 and part of plane 14. The other planes have no assigned
    characters, except for private use.
    """
    characters = map(chr, itertools.chain(range(0x40000), range(0xE0000, 0xE0200)))
    categories = {c: unicodedata.category(c) for c in characters}
    # Unassigned code points among the emoji are reserved for future emoji.
    return {c: k for c, k in categories.items() if k not in ("Cn", "Co", "Cs")} | {
        c: "So" for c in map(chr, range(0x1F000, 0x1FB00)) if categories[c] == "Cn"
    }


def _write_signs(categories, letters):
    """Return two strings: a pattern for a run of equal signs, and white space for use in `[...]`.

    `categories` is the dict of `_read_categories`, and `letters` a set of characters. Signs are the
    characters in `categories` that are neither in `letters` nor white space.
    """
    spaces = {c for c in categories if c.isspace()}
    signs = sorted(categories.keys() - letters - spaces)
    groups = []  # each begins with a lookahead, so that a match tries only a few signs
    for _, group in itertools.groupby(signs, lambda sign: ord(sign) // 64):
        group = list(group)
        runs = "|".join(f"{_quote(sign)}+" for sign in group)
        groups.append(f"(?=[{_write_set(group)}])(?:{runs})")
    spaces = _write_set(spaces)
    return "|".join([*groups, f"[^{spaces}]"]), spaces


def _write_set(characters):
    """Return a pattern of ranges for a set of characters, for use inside `[...]`."""
    ranges = []
    for character in sorted(characters):
        if ranges and ord(character) == ord(ranges[-1][1]) + 1:
            ranges[-1][1] = character
        else:
            ranges.append([character, character])
    return "".join(_quote(a) if a == b else f"{_quote(a)}-{_quote(b)}" for a, b in ranges)


def _quote(character):
    """Escape a character as Python, JavaScript, Kotlin and Swift all understand.

    Characters above U+FFFF are not escaped, because each language has a different escape for them.
    """
    code = ord(character)
    if code < 128:
        return character if character.isalnum() else rf"\x{code:02x}"
    hidden = not character.isprintable() or unicodedata.category(character)[0] == "M"
    return rf"\u{code:04x}" if hidden and code < 0x10000 else character
