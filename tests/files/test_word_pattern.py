"""The words of a text in all scripts, equal in every programming language."""

import ctypes
import ctypes.util
import json
import re
import shutil
import subprocess
import unicodedata

import pytest

import keras_attention as ka
from keras_attention.data.tokenizers.vocabulary import find_words
from keras_attention.files.word_pattern import word_pattern

WORDS = {  # {text: words separated by "|"}
    "Wait... it's 3.5%!": "Wait|...|it's|3.5|%|!",
    "snake_case a@b.org don’t -x- ==== #tag": "snake_case|a@b.org|don’t|-|x|-|====|#|tag",
    "हिन्दी भाषा अच्छी है": "हिन्दी|भाषा|अच्छी|है",
    "தமிழ் மொழி, বাংলা ভাষা।": "தமிழ்|மொழி|,|বাংলা|ভাষা|।",
    "ภาษาไทย นี้ที่": "ภาษาไทย|นี้ที่",
    "مُحَمَّدٌ رَسُولٌ؟": "مُحَمَّدٌ|رَسُولٌ|؟",
    "שָׁלוֹם עוֹלָם": "שָׁלוֹם|עוֹלָם",
    "می\u200cخواهم کتاب\u200cها": "می\u200cخواهم|کتاب\u200cها",
    "അവന്\u200d ക്\u200dഷ": "അവന്\u200d|ക്\u200dഷ",
    unicodedata.normalize("NFD", "L'été, naïve Straße"): unicodedata.normalize(
        "NFD", "L'été|,|naïve|Straße"
    ),
    "Donau\u00addampf a\u200eb \u200fא\u200f": "Donau\u00addampf|a\u200eb|\u200f|א|\u200f",
    "1\ufe0f\u20e3 #\ufe0f\u20e3": "1\ufe0f\u20e3|#\ufe0f\u20e3",
    "😂😂😂🤣 ☹☹": "😂😂😂|🤣|☹☹",
    "❤\ufe0f❤\ufe0f👍🏽👍🏽": "❤\ufe0f|❤\ufe0f|👍🏽|👍🏽",
    "👨\u200d👩\u200d👧👩🏽\u200d🚀": "👨\u200d👩\u200d👧|👩🏽\u200d🚀",
    "🏳\ufe0f\u200d🌈🏳\ufe0f\u200d🌈": "🏳\ufe0f\u200d🌈|🏳\ufe0f\u200d🌈",
    "🇩🇪🇫🇷 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f!": "🇩🇪|🇫🇷"
    "|🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f|!",
    "日本語、中文！！ か\u3099": "日本語|、|中文|！！|か\u3099",
    "𝒳𝒴 𐍈𐍈 𞤀\U0001e944": "𝒳𝒴|𐍈𐍈|𞤀\U0001e944",
    "a\x1cb\u3000c\x85d\u2028e\ufefff": "a|b|c|d|e\ufefff",
    " \n\u00a0": "",
    "\u0301\u200d\u200c x\ue000\U00100000": "\u0301\u200d\u200c|x|\ue000|\U00100000",
}


@pytest.mark.parametrize(("text", "words"), WORDS.items())
def test_words_keep_marks_and_joiners(text, words):
    assert ka.data.split_words(text) == [word for word in words.split("|") if word]


def test_findall_returns_words():
    pattern = word_pattern()
    for text in WORDS:
        assert re.findall(pattern, text) == [word for word, _ in find_words(text, pattern)]
    assert re.findall(pattern, "hi mum!!") == ["hi", "mum", "!!"]


def write_texts(characters, count=200):
    """Write texts with each character repeated, at the end of a word, and inside a word."""
    samples = [f"{c}{c} a{c} b{c}c {c}" for c in characters]
    return ["\n".join(samples[i : i + count]) for i in range(0, len(samples), count)]


def list_characters(plain):
    """List assigned characters except CJK and Hangul, and with `plain` except marks and formats."""
    without = ("Cn", "Co", "Cs", *("Mn", "Mc", "Me", "Cf", "Zs") * plain)
    numbers = (
        *range(0x3400),
        *range(0xA000, 0xAC00),
        *range(0xF900, 0x20000),
        *range(0xE0000, 0xE0200),
    )
    characters = [c for c in map(chr, numbers) if unicodedata.category(c) not in without]
    return [c for c in characters if not (plain and ("🏻" <= c <= "🏿" or "🇦" <= c <= "🇿"))]


@pytest.mark.slow
def test_plain_characters_are_split_like_python_classes():
    python = r"\w+(?:[-'’.,:@/]\w+)*|([^\w\s])\1*"
    for text in write_texts(list_characters(plain=True)):
        words = [match[0] for match in re.finditer(python, text)]
        assert re.findall(word_pattern(), text) == words


def split_in_node(folder, patterns, texts):
    program = (
        "const {patterns, texts} = JSON.parse(require('fs').readFileSync(0, 'utf-8'));"
        "console.log(JSON.stringify(patterns.map(pattern =>"
        "    texts.map(text => text.match(new RegExp(pattern, 'gu')) ?? []))));"
    )
    stdin = json.dumps({"patterns": patterns, "texts": texts})
    return json.loads(run([need("node"), "-e", program], stdin))


JAVA = """
import java.nio.file.*;
import java.util.regex.*;

class Split {
  public static void main(String[] files) throws Exception {
    var out = new StringBuilder();
    for (String pattern : Files.readString(Path.of(files[0])).split("\\0")) {
      for (String text : Files.readString(Path.of(files[1])).split("\\0")) {
        var match = Pattern.compile(pattern).matcher(text);
        while (match.find()) out.append(match.group()).append('\\0');
        out.append('\\n');
      }
    }
    Files.writeString(Path.of(files[2]), out);
  }
}
"""


def split_in_java(folder, patterns, texts):
    """Split texts in Java, whose expressions Kotlin uses on a computer."""
    (folder / "Split.java").write_text(JAVA)
    (folder / "patterns").write_text("\0".join(patterns), "utf-8")
    (folder / "texts").write_text("\0".join(texts), "utf-8")
    run(
        [need("java"), "-Dfile.encoding=UTF-8", "Split.java", "patterns", "texts", "words"],
        "",
        folder,
    )
    lines = (folder / "words").read_bytes().decode("utf-8").split("\0\n")
    actual = [line.split("\0") for line in lines[:-1]]
    return [actual[i : i + len(texts)] for i in range(0, len(actual), len(texts))]


def split_in_icu(folder, patterns, texts):
    """Split texts with ICU, which Swift's `NSRegularExpression` and Kotlin on Android use."""
    name = ctypes.util.find_library("icui18n")
    if not name:
        pytest.skip("ICU is not installed.")
    icu, version = ctypes.CDLL(name), name.rpartition(".")[2]
    call = {
        f: getattr(icu, f"uregex_{f}_{version}") for f in "open setText findNext start end".split()
    }
    call["open"].restype = ctypes.c_void_p
    error = ctypes.c_int(0)
    actual = []
    for pattern in patterns:
        units = pattern.encode("utf-16-le")
        code = ctypes.c_void_p(call["open"](units, len(units) // 2, 0, None, ctypes.byref(error)))
        assert error.value <= 0, error
        for text in texts:
            units, words = text.encode("utf-16-le"), []
            call["setText"](code, units, len(units) // 2, ctypes.byref(error))
            while call["findNext"](code, ctypes.byref(error)) & 0xFF:
                start, end = (call[f](code, 0, ctypes.byref(error)) for f in ("start", "end"))
                words.append(units[2 * start : 2 * end].decode("utf-16-le"))
            assert error.value <= 0, error
            actual.append(words)
    return [actual[i : i + len(texts)] for i in range(0, len(actual), len(texts))]


def need(program):
    if not (path := shutil.which(program)):
        pytest.skip(f"{program} is not installed.")
    return path


def run(command, stdin, folder=None):
    done = subprocess.run(
        command, input=stdin, cwd=folder, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("split", [split_in_node, split_in_java, split_in_icu])
def test_other_languages_find_the_same_words(split, tmp_path):
    patterns = [word_pattern()]
    # NUL separates texts.
    texts = [text for text in WORDS if text.strip()] + write_texts(list_characters(False)[1:])
    actual = split(tmp_path, patterns, texts)
    for pattern, words in zip(patterns, actual, strict=True):
        assert words == [re.findall(pattern, text) for text in texts]
