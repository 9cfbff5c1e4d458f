"""Draws bad inputs to the command line with a seed: damaged files and wrong options."""

import dataclasses
import gzip
import json
import pathlib
import random
import shutil

import numpy as np
import soundfile
import tensorflow as tf

from tests.data.readers.detection_files import draw as draw_squares
from tests.data.readers.detection_files import write_coco, write_voc
from tests.small_runs import write_conllu

DEEP = b"[" * 100_000 + b"]" * 100_000
HUGE = 99999999999999999999


@dataclasses.dataclass(frozen=True)
class Case:
    """A command line that should be refused.

    Attributes:
        words: the command.
        damage: str, describes the damage in the report of a failing test.
        named: str, the message must contain it: the file or the option.
        certain: bool, whether it must be refused. Otherwise the right answer is accepted, too.
    """

    words: tuple
    damage: str
    named: str
    certain: bool = True


# Functions that damage a file of any kind: (bytes, random.Random) -> bytes.


def flip(content, draw):
    """Flip a bit."""
    k = draw.randrange(len(content))
    return content[:k] + bytes([content[k] ^ (1 << draw.randrange(8))]) + content[k + 1 :]


def cut(content, draw):
    """Cut the end off."""
    return content[: draw.randrange(1, len(content))]


def lose_line(content, draw):
    """Remove a line."""
    lines = content.split(b"\n")
    del lines[draw.randrange(len(lines))]
    return b"\n".join(lines)


def lose_field(content, draw):
    """Remove the last field of a line."""
    lines = content.split(b"\n")
    several = [k for k, line in enumerate(lines) if b"\t" in line or b"," in line]
    if not several:
        return cut(content, draw)
    k = draw.choice(several)
    lines[k] = lines[k].replace(b"\t", b",").rpartition(b",")[0]
    return b"\n".join(lines)


def add_field(content, draw):
    """Add a field to a line."""
    lines = content.split(b"\n")
    k = draw.choice([k for k, line in enumerate(lines) if line])
    lines[k] += b"\tmore,more"
    return b"\n".join(lines)


def add_bytes(content, draw):
    """Insert bytes that are not text."""
    k = draw.randrange(len(content))
    return content[:k] + draw.choice([b"\0", b"\xff\xfe", b"\x80", b"\x1b[2J", b"\r"]) + content[k:]


def add_number(content, draw):
    """Insert a very long number."""
    k = draw.randrange(len(content))
    return content[:k] + b"9" * 5000 + content[k:]


def half_of(content, draw):
    """Return the beginning of a gzip file, including its magic number."""
    return content[: draw.randrange(5, min(60, len(content)))]


MAYBE = (flip, cut, lose_line, lose_field, add_field, add_bytes, add_number)

SURE = {
    "empty": lambda content, draw: b"",
    "blank": lambda content, draw: b"\n \n\n",
    "random bytes": lambda content, draw: b"\xff" + draw.randbytes(400),
    "UTF-16": lambda content, draw: content.decode("utf-8").encode("utf-16"),
    "Latin-1": lambda content, draw: content + "été".encode("latin-1"),
    "a picture": lambda content, draw: b"\x89PNG\r\n\x1a\n" + draw.randbytes(100),
    "half a gzip file": lambda content, draw: half_of(gzip.compress(content), draw),
    "no gzip file": lambda content, draw: b"\x1f\x8b" + draw.randbytes(50),
}
OF_JSON = {
    "nested deeply": lambda line: DEEP,
    "half an object": lambda line: line[: len(line) // 2],
    "a list": lambda line: b"[1, 2]",
    "null": lambda line: b"null",
    "no keys": lambda line: b"{}",
    "an object for a text": lambda line: json.dumps(dict.fromkeys(json.loads(line), {})).encode(),
    "a fraction for a text": lambda line: json.dumps(dict.fromkeys(json.loads(line), 0.5)).encode(),
    "half a character": lambda line: json.dumps(dict.fromkeys(json.loads(line), "\ud800")).encode(),
    "a long number": lambda line: json.dumps(dict.fromkeys(json.loads(line), 0)).encode()
    .replace(b": 0", b": " + b"9" * 5000),
}  # fmt: skip


def damage_json(content, draw):
    """Damage one of several JSON lines. Return (damage, content)."""
    damage = draw.choice(sorted(OF_JSON))
    lines = content.splitlines()
    k = draw.randrange(len(lines))
    lines[k] = OF_JSON[damage](lines[k])
    return damage, b"\n".join(lines)


def damage_picture(content, draw):
    """Damage a picture. Return (damage, content)."""
    changed = {
        "empty": b"",
        "random bytes": draw.randbytes(300),
        "half": content[: draw.randrange(1, len(content) - 20)],
        "flipped": flip(content, draw),
        "text": b"no picture",
    }
    damage = draw.choice(sorted(changed))
    return damage, changed[damage]


class Drawn:
    """Draws cases of files.

    Args:
        folder: parent of all files that are written.
        models: dict, task -> the folder of a trained model. Other tasks are only trained.
        seed: int.
    """

    def __init__(self, folder, models, seed):
        self.folder, self.models, self.draw = folder, models, random.Random(seed)
        self.good = folder / "good"
        self.good.mkdir(parents=True)
        self.count = 0
        write_good(self.good)

    def case(self):
        """Draw the next case."""
        kinds = {"file": 50, "folder": 14, "place": 10, "option": 18, "picture": 8}
        (kind,) = self.draw.choices(list(kinds), kinds.values())
        return getattr(self, f"of_{kind}")()

    def new(self):
        """Return a path without suffix for a new file."""
        self.count += 1
        return self.folder / f"bad-{self.count}"

    def of_file(self):
        """Damage a file of data."""
        task, name, options = self.draw.choice(DATA)
        content = (self.good / name).read_bytes()
        damage, content = self._damage(name, content)
        certain = damage in SURE or damage in OF_JSON
        path = self.new().with_suffix("." + name.partition(".")[2])
        if self.draw.random() < 0.15 and not content.startswith(b"\x1f\x8b"):
            path, content = path.with_name(path.name + ".gz"), gzip.compress(content)
        path.write_bytes(content)
        if "--languages" in options:
            other = (self.good / name).with_suffix(".en").read_bytes()
            path.with_suffix("").with_suffix(".en").write_bytes(other)
            words = self._command(task, path.with_suffix("").with_suffix(""), options, certain)
        else:
            words = self._command(task, path, options, certain)
        named = path.name.partition(".")[0]  # aligned files share this stem
        return Case(words, f"{name}: {damage}", named, certain)

    def of_folder(self):
        """Damage one of several files that belong together."""
        task, argument, name, options = self.draw.choice(FOLDERS)
        top, copy = argument.partition("/")[0], self.new()
        shutil.copytree(self.good / top, copy)
        path = copy / name
        damage, content = self._damage(name, path.read_bytes())
        path.write_bytes(content)
        allowed = {".png": "flipped", ".xml": "UTF-16"}.get(path.suffix)
        certain = damage != allowed and (damage in SURE or path.suffix == ".png")
        words = self._train(task, copy / pathlib.PurePath(argument).relative_to(top), options)
        return Case(words, f"{top}/{name}: {damage}", copy.name, certain)

    def _damage(self, name, content):
        """Damage a file of data. Return (damage, content)."""
        if name.endswith(".png"):
            return damage_picture(content, self.draw)
        if name.endswith(".jsonl") and self.draw.random() < 0.6:
            return damage_json(content, self.draw)
        if self.draw.random() < 0.5:
            damage = self.draw.choice(sorted(SURE))
            return damage, SURE[damage](content, self.draw)
        change = self.draw.choice(MAYBE)
        return change.__doc__, change(content, self.draw)

    def of_place(self):
        """Replace a file by something that is not a file."""
        task, name, options = self.draw.choice([d for d in DATA if "--languages" not in d[2]])
        path = self.new().with_suffix(f".{name.partition('.')[2]}")
        damage = self.draw.choice(
            ["nothing", "a folder", "a circle", "a long name", "bytes", "NUL"]
        )
        if damage == "a folder":
            path.mkdir()
        elif damage == "a circle":
            path.symlink_to(path.name)
        elif damage == "a long name":
            path = path.with_name("x" * self.draw.choice([240, 300, 5000]) + path.suffix)
        elif damage == "bytes":
            path = path.with_name("x\udcff\udc80" + path.suffix)
        elif damage == "NUL":
            path = path.with_name("x\0y" + path.suffix)
        named = path.name if damage not in ("bytes", "NUL") else "x\\"
        return Case(self._command(task, path, options), f"{name}: {damage}", named)

    def _command(self, task, path, options, certain=True):
        """Return a command that reads `path`. Slow exports are only tried if they must fail."""
        choices = ["train"]
        if task in self.models:
            choices += ["evaluate", "evaluate", "export"]
        command = self.draw.choice(choices)
        if command == "train" or "--languages" in options:
            return self._train(task, path, options)
        model = self.models[task]
        if command == "evaluate" or task in WRITING or not certain:
            kind = self.draw.choice(("litert", "litert-int8"))
            return ("evaluate", model, "--file", path, "--with", kind)
        return ("export", model, "--quantization", "int8", "--file", path,
                "--output", self.folder / "new.tflite")  # fmt: skip

    def _train(self, task, path, options):
        """Return a command that trains on `path`."""
        output = self.folder / "new"
        return ("train", task, "--output", output, "--train", path, *options, *SMALL)

    def of_option(self):
        """Add a wrong option."""
        option, value, *named = self.draw.choice(OPTIONS)
        task, name, options = self.draw.choice(DATA)
        path = self.good / name
        path = path.with_suffix("") if "--languages" in options else path
        words = self._train(task, path, options)
        return Case((*words, option, value), f"{option} {value!r:.30}", *named or [option])

    def of_picture(self):
        """Damage a picture that is to be classified."""
        if "vision_transformer" not in self.models:
            return self.of_file()
        content = (self.good / "picture.png").read_bytes()
        path = self.new().with_suffix(self.draw.choice((".png", ".jpg", ".gif", ".bmp")))
        if self.draw.random() < 0.15:
            damage = "a folder"
            path.mkdir()
        else:
            damage, content = damage_picture(content, self.draw)
            path.write_bytes(content)
        words = ("predict", self.models["vision_transformer"], path, "--with", "litert")
        return Case(words, f"a picture: {damage}", path.name, damage != "flipped")


SMALL = ("--epochs", 1, "--hidden-dim", 8, "--batch-size", 8)
HEADS = ("--num-heads", 2)

WRITING = ("seq2seq_transformer", "seq2seq_recurrent", "causal_language_model")

# A task, a valid file for it, and its options.
DATA = [
    ("sequence_labeler", "train.conllu", HEADS),
    ("sequence_labeler", "train.conll", HEADS),
    ("text_classifier", "train.csv", HEADS),
    ("text_classifier", "texts.tsv", HEADS),
    ("text_classifier", "texts.jsonl", HEADS),
    ("multi_label_classifier", "label_sets.csv", HEADS),
    ("multi_label_classifier", "label_sets.jsonl", HEADS),
    ("text_embedder", "matches.csv", HEADS),
    ("text_embedder", "matches.jsonl", HEADS),
    ("question_answerer", "questions.json", HEADS),
    ("question_answerer", "questions.jsonl", HEADS),
    ("object_detector", "boxes.json", (*HEADS, "--image-size", 32)),
    ("image_to_sequence", "captions.json", (*HEADS, "--image-size", 32)),
    ("image_text_matcher", "captions.json", (*HEADS, "--image-size", 32)),
    ("constituency_parser", "trees.mrg", HEADS),
    ("dependency_parser", "heads.conllu", HEADS),
    ("speech_recognizer", "sounds.tsv", HEADS),
    ("speech_to_text", "said.tsv", HEADS),
    ("seq2seq_transformer", "train.tsv", (*HEADS, "--vocabulary-size", 24)),
    ("seq2seq_recurrent", "pairs.jsonl", ("--tokens", "characters")),
    ("seq2seq_transformer", "talk.jsonl", (*HEADS, "--vocabulary-size", 24)),
    ("seq2seq_transformer", "talk.yml", (*HEADS, "--vocabulary-size", 24)),
    ("seq2seq_transformer", "pairs.de", (*HEADS, "--languages", "de-en", "--vocabulary-size", 24)),
    (
        "causal_language_model",
        "train.txt",
        (*HEADS, "--tokens", "characters", "--max-length", 8),
    ),
]

# A task, its valid input in a folder, the file to damage in there, and its options.
FOLDERS = [
    ("object_detector", "voc", "Annotations/000.xml", (*HEADS, "--image-size", 32)),
    (
        "object_detector",
        "voc/ImageSets/Main/train.txt",
        "ImageSets/Main/train.txt",
        (*HEADS, "--image-size", 32),
    ),
    ("question_answerer", "qamr/train.tsv", "train.tsv", HEADS),
    ("question_answerer", "qamr/train.tsv", "wiki-sentences.tsv", HEADS),
    ("speech_recognizer", "librispeech", "84/121/84-121.trans.txt", HEADS),
    ("speech_recognizer", "sphinx/etc/said.fileids", "etc/said.fileids", HEADS),
    ("speech_recognizer", "sphinx/etc/said.fileids", "etc/said.transcription", HEADS),
    ("vision_transformer", "classes", "day/0.png", (*HEADS, "--image-size", 8)),
]

OPTIONS = [
    ("--seed", HUGE),
    ("--seed", -1),
    ("--seed", "1.5"),
    ("--seed", "９"),
    ("--epochs", HUGE),
    ("--epochs", "ten"),
    ("--batch-size", HUGE),
    ("--batch-size", 0),
    ("--learning-rate", "nan"),
    ("--learning-rate", "inf"),
    ("--learning-rate", -1),
    ("--learning-rate", ""),
    ("--minutes", "nan"),
    ("--minutes", -1),
    ("--num-layers", HUGE),
    ("--num-layers", 10**6),
    ("--num-heads", HUGE),
    ("--num-heads", 3, "--num-heads 3"),
    ("--hidden-dim", HUGE),
    ("--hidden-dim", 10**9),
    ("--dropout", 1),
    ("--dropout", "nan"),
    ("--max-length", HUGE),
    ("--max-length", "0x10"),
    ("--steps", HUGE),
    ("--tokens", "syllables"),
    ("--vocabulary-size", HUGE),
    ("--vocabulary-size", 1),
    ("--max-tokens", HUGE),
    ("--beam", HUGE),
    ("--beam", 0),
    ("--dataset", "digits"),
    ("--languages", "de"),
    ("--languages", "de-fr-en"),
    ("--languages", "\0-\udcff", "x00"),
    ("--label-column", HUGE, str(HUGE)),
    ("--label-column", "\udcff", "\\udcff"),
    ("--label-column", "", ""),
    ("--text-column", "no such column", "no such column"),
    ("--output", "x\0y", "x\\x00y"),
    ("--output", "/dev/null", "/dev/null"),
    ("--output", "/dev/null/x", "/dev/null/x"),
    ("--output", "x" * 5000, "xxx"),
    ("--colour", "red"),
]


def write_good(folder):
    """Write valid files of every kind."""
    draw = random.Random(0)
    numbers = {"eins": "one", "zwei": "two", "drei": "three", "vier": "four"}
    write_conllu(folder / "train.conllu", 40, 0)
    words = ["the\tDET", "cat\tNOUN", "sat\tVERB", ".\tPUNCT"]
    write(folder / "train.conll", [*words, ""] * 20)
    texts = [(f"a {draw.choice(('warm', 'clever'))} film", "good") for _ in range(20)]
    texts += [(f"a {draw.choice(('cold', 'dull'))} film", "bad") for _ in range(20)]
    write(folder / "train.csv", ["text,label", *(f'"{t}",{label}' for t, label in texts)])
    write(folder / "texts.tsv", ["text\tlabel", *("\t".join(pair) for pair in texts)])
    write(folder / "texts.jsonl", [json.dumps({"text": p[0], "label": p[1]}) for p in texts])
    sets = [
        (f"{text} again", ("warm", label) if k % 2 else ()) for k, (text, label) in enumerate(texts)
    ]
    lines = ["text,labels", *(f'{text},"{",".join(labels)}"' for text, labels in sets)]
    write(folder / "label_sets.csv", lines)
    lines = [json.dumps({"text": text, "labels": labels}) for text, labels in sets]
    write(folder / "label_sets.jsonl", lines)
    write(folder / "matches.csv", ["text,match", *(f"{label},{text}" for text, label in texts)])
    matches = [{"text": label, "match": text, "negative": f"no {text}"} for text, label in texts]
    write(folder / "matches.jsonl", [json.dumps(one) for one in matches])
    pairs = []
    for _ in range(40):
        source = [draw.choice(sorted(numbers)) for _ in range(draw.randrange(1, 4))]
        pairs.append((" ".join(source), " ".join(numbers[word] for word in source)))
    write(folder / "train.tsv", ["source\ttarget", *("\t".join(pair) for pair in pairs)])
    write(folder / "pairs.jsonl", [json.dumps({"source": p[0], "target": p[1]}) for p in pairs])
    write(folder / "pairs.de", [source for source, _ in pairs])
    write(folder / "pairs.en", [target for _, target in pairs])
    examples = draw_squares(12, 0)
    pictures = folder.parent / "images"  # at the path that the files name
    write_coco(pictures, examples).rename(folder / "boxes.json")
    names = [{"id": k, "file_name": f"{k}.png"} for k in range(len(examples))]
    captions = [
        {"image_id": k, "caption": f"{len(x.boxes)} squares"} for k, x in enumerate(examples)
    ]
    write(folder / "captions.json", [json.dumps({"images": names, "annotations": captions})])
    sounds = folder.parent / "sounds"  # at the path that the tables name
    sounds.mkdir()
    for k in range(12):
        soundfile.write(sounds / f"{k}.wav", 0.1 * np.sin(np.arange(800 + 80 * k)), 8000)
    (folder / "sounds").symlink_to("../sounds")
    rows = [f"sounds/{k}.wav\t{'ab' * (1 + k % 3)}" for k in range(12)]
    write(folder / "sounds.tsv", rows)
    write(folder / "said.tsv", [f"{row}\tme\t{'c' * (1 + k % 3)}" for k, row in enumerate(rows)])
    nouns = [f"(NP (DT the) (NN {noun}))" for noun in ("cat", "dog", "house")]
    trees = [f"(S {one} (VP (VBD saw) {other}))" for one in nouns for other in nouns]
    write(folder / "trees.mrg", trees * 3)
    contexts = [f"the cat sat on the {place}" for place in ("mat", "hat", "roof", "bed")] * 5
    asked = {"id": "a", "question": "who sat?", "answers": [{"text": "cat", "answer_start": 4}]}
    paragraphs = [{"context": context, "qas": [asked]} for context in contexts]
    write(folder / "questions.json", [json.dumps({"data": [{"paragraphs": paragraphs}]})])
    answers = {"text": ["cat"], "answer_start": [4]}
    lines = [{"context": c, "question": "who sat?", "answers": answers} for c in contexts]
    write(folder / "questions.jsonl", [json.dumps(line) for line in lines])
    write(folder / "train.txt", ["the cat sat on the mat and the dog saw it"] * 20)
    write_picture(folder / "picture.png")
    words = [("the", "DET", 2, "det"), ("cat", "NOUN", 3, "nsubj"), ("sat", "VERB", 0, "root")]
    lines = [f"{k}\t{w}\t_\t{tag}\t_\t_\t{head}\t{to}\t_\t_" for k, (w, tag, head, to) in
             enumerate(words, start=1)]  # fmt: skip
    write(folder / "heads.conllu", [*lines, ""] * 20)
    turns = ["the cat sat", "on the mat", "and the dog saw it"]
    write(folder / "talk.jsonl", [json.dumps({"turns": turns})] * 20)
    lines = [f"{'  ' if k else '- '}- {turn}" for k, turn in enumerate(turns)]
    write(folder / "talk.yml", ["conversations:", *lines * 20])
    write_folders(folder)


def write_folders(folder):
    """Write valid folders of files that belong together."""
    write_voc(folder / "voc", draw_squares(6, 0))
    write(folder / "voc/ImageSets/Main/train.txt", [f"{k:03}" for k in range(6)])
    sound = 0.1 * np.sin(np.arange(800))
    for path in ("librispeech/84/121", "sphinx/etc", "sphinx/wav/me", "qamr", "classes"):
        (folder / path).mkdir(parents=True)
    for k in range(6):
        soundfile.write(folder / f"librispeech/84/121/84-121-{k:04}.flac", sound, 8000)
        soundfile.write(folder / f"sphinx/wav/me/{k}.wav", sound, 8000)
    lines = [f"84-121-{k:04} {'ab' * (1 + k % 3)}" for k in range(6)]
    write(folder / "librispeech/84/121/84-121.trans.txt", lines)
    write(folder / "sphinx/etc/said.fileids", [f"me/{k}" for k in range(6)])
    lines = [f"<s> {'ab' * (1 + k % 3)} </s> ({k})" for k in range(6)]
    write(folder / "sphinx/etc/said.transcription", lines)
    asked = ["", "", "", "", "who sat?", "1", "1:1", "2:0 1"]
    write(folder / "qamr/train.tsv", ["\t".join([f"S:{k}", *asked]) for k in range(20)])
    write(folder / "qamr/wiki-sentences.tsv", [f"S:{k}\tthe cat sat {k} times" for k in range(20)])
    for name in ("day", "night"):
        (folder / "classes" / name).mkdir()
        for k in range(5):
            write_picture(folder / "classes" / name / f"{k}.png")


def write_picture(path):
    """Write a picture of 8 by 8 pixels, and return its path."""
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 1), dtype="uint8")
    path.write_bytes(tf.io.encode_png(pixels).numpy())
    return path


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
