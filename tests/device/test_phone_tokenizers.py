"""Tokenizers on a phone or in a browser: copied files, and the guide's JavaScript."""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.data.tokenizers.engines import LibraryEngine
from keras_attention.device import byte_bpe, word_piece
from tests.conftest import ROOT
from tests.data.tokenizers.test_pretrained import LINES, make_plain, train_bytes, train_word_piece
from tests.tasks.checkpoint_files import make_bert

PROSE = (ROOT / "docs" / "guides" / "pretrained.md").read_text("utf-8").splitlines()
ALONE = """
import json, sys
name, rules = sys.argv[1], json.load(open(sys.argv[2], encoding="utf-8"))
module = __import__(name)
pieces = getattr(module, {"word_piece": "WordPiece", "byte_bpe": "ByteBPE"}[name]).from_json(rules)
lines = json.load(sys.stdin)
loaded = [m for m in sys.modules if m.partition(".")[0] in ("keras_attention", "keras", "numpy")]
print(json.dumps({"ids": [pieces.encode(line) for line in lines], "loaded": loaded}))
"""
PROGRAM = """
import fs from 'node:fs';
import {fill, wordPiece} from './tokenizer.mjs';
const {rules, about, length, lines} = JSON.parse(fs.readFileSync(0, 'utf-8'));
const encode = wordPiece(rules);
const ids = lines.map(encode);
const rows = ids.map(row => Object.fromEntries(
    Object.entries(fill(about, row, length)).map(([name, array]) => [name, [...array]])));
console.log(JSON.stringify({ids, rows}));
"""


@pytest.mark.parametrize("module", [word_piece, byte_bpe])
def test_a_copied_file_runs_without_packages(module, tmp_path):
    name = module.__name__.rpartition(".")[2]
    shutil.copy(module.__file__, tmp_path)
    content = train_word_piece(True) if module is word_piece else train_bytes()
    (tmp_path / "tokenizer.json").write_bytes(content)
    (tmp_path / "run.py").write_text(ALONE)
    # -I -S: without any package. The folder of the copy is added to the path explicitly.
    start = f"import sys, runpy; sys.path.insert(0, {str(tmp_path)!r}); runpy.run_path('run.py')"
    command = [sys.executable, "-I", "-S", "-c", start, name, "tokenizer.json"]
    inputs = json.dumps(LINES + PROSE)
    done = subprocess.run(
        command, input=inputs, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["loaded"] == []
    pieces = make_plain(content)
    assert result["ids"] == [pieces.encode(line) for line in LINES + PROSE]


def read_program():
    """Return the JavaScript of `docs/on-device/browser-text.md` that turns a text into ids."""
    page = (ROOT / "docs" / "on-device" / "browser-text.md").read_text("utf-8")
    blocks = re.findall(r"^```js\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (block,) = [block for block in blocks if "wordPiece" in block]
    return block


def run_node(folder, **inputs):
    """Run the guide's program in Node, and return its result."""
    if not (node := shutil.which("node")):
        pytest.skip("Node is not installed.")
    (folder / "tokenizer.mjs").write_text(read_program(), "utf-8")
    (folder / "run.mjs").write_text(PROGRAM)
    done = subprocess.run(
        [node, "run.mjs"],
        input=json.dumps(inputs),
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_javascript_reads_the_files_of_an_export(tmp_path):
    """Use the files that an app gets with a checkpoint's tokenizer."""
    task = ka.tasks.TextClassifier.from_preset(make_bert(tmp_path / "bert"))
    task.preprocessor.save(tmp_path / "app")
    manifest = json.loads((tmp_path / "app" / "manifest.json").read_text("utf-8"))
    settings = manifest["preprocessing"]["tokenizer"]
    (name,) = settings["files"]
    rules = json.loads((tmp_path / "app" / name).read_text("utf-8"))
    lines = ["The cats sat on the mat.", "A dog sat on [MASK] cats", *PROSE]
    tokenizer = task.preprocessor.tokenizer
    result = run_node(tmp_path, rules=rules, about=settings, length=12, lines=lines)
    assert result["ids"] == [tokenizer.encode_plain(line) for line in lines]
    expected = tokenizer(lines, max_length=12)
    for column, array in expected.items():
        rows = np.array([row[column] for row in result["rows"]])
        np.testing.assert_array_equal(rows[:, : array.shape[1]], array)
        assert not rows[:, array.shape[1] :].any()
    assert result["rows"][0].keys() == expected.keys()


@pytest.mark.parametrize("lowercase", [True, False])
def test_javascript_gives_the_same_ids(lowercase, tmp_path):
    """Use a larger vocabulary with accents, other scripts and signs."""
    content = train_word_piece(lowercase)
    settings = {"text": [["text", 0]], "padding_id": 0, "has_segments": False, "max_length": None}
    result = run_node(
        tmp_path, rules=json.loads(content), about=settings, length=8, lines=LINES + PROSE
    )
    tokenizer = LibraryEngine(content)
    expected = [tokenizer.encode(line) for line in LINES + PROSE]
    assert result["ids"] == expected
    assert [row["token_ids"] for row in result["rows"]] == [(row + 8 * [0])[:8] for row in expected]
