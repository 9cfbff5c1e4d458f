"""Makes a folder of saved_models from one that `keras-attention train` made.

What stays is small: weights as float16, which train on as float32, and int8 files for phones and
browsers, of free shape and of fixed ones. Each is scored on the test part, and the card says so.

    python docs/tools/zoo.py DIR saved_models/NAME [--shapes 1x32 1x128] [--test FILE]
"""

import argparse
import json
import pathlib
import re
import shutil

from keras_attention import tasks
from keras_attention.cli.jobs import export_file
from keras_attention.cli.sources import Source
from keras_attention.export.checks.formatting import format_score, format_size
from keras_attention.files import manifest
from keras_attention.tasks.folders import CARD, FORMATS, LITERT_INT8, MODEL, SCORES
from keras_attention.tasks.model_file import rewrite_model_file
from keras_attention.tasks.registry import get_task_class

PURPOSES = {
    "digits-vit": (
        "Trying the package: digits of 8 by 8 pixels, one in a picture, light on dark.",
        "Photographs, or digits of another size or place in the picture: it saw 1,259 pictures of "
        "one kind.",
    ),
    "pos-tagger-en-ewt": (
        "The 17 universal parts of speech of written English: blogs, e-mails, reviews, answers, "
        "newsgroups. A start for other labels of English words, by `fit`.",
        "Other languages, texts without punctuation or from speech, sentences of over 512 words; "
        "words that the treebank splits (`do` `n't`) are tagged best when they are split so.",
    ),
    "emotions": (
        "The 27 emotions of GoEmotions, or none of them (`neutral`), in short comments in English. "
        "A start for other sets of labels of such texts, by `fit`.",
        "Judging people, or finding those in need: of labels it is often wrong, and it reads no "
        "irony. Its comments are Reddit's; other languages and long texts it does not know.",
    ),
    "digits-speech": (
        "Strings of English digits, spoken one after another, from a waveform of 8,000 samples a "
        "second, while they are spoken: what it needs to hear is at most 335 ms ahead. A start for "
        "other small vocabularies, by `fit`.",
        "Speech as people talk: it knows ten words, five speakers, a quiet room and pauses between "
        "words. Of a speaker whom it never heard such a model gets one word in five wrong.",
    ),
    "blood-cells": (
        "Red and white blood cells and platelets in photographs of stained blood under a "
        "microscope. A start for other kinds of small objects, by `fit`.",
        "Diagnosis, or counts that anything depends on: it saw 205 pictures of one laboratory, "
        "its boxes of platelets are rough (mAP 0.37), and of 1,359 objects that it finds in the "
        "test pictures 53 are there twice.",
    ),
    "multi30k-de-en": (
        "German captions of photographs in English: people, animals, what they wear and do.",
        "Anything else: it knows 29,000 captions and no other German. `Guten Morgen` becomes "
        "nonsense. Fine-tune it on pairs of your own first.",
    ),
    "dates": (
        "Dates from 1950 to 2049, as people write them in 33 locales, in ISO 8601; and seeing an "
        "alignment that one can check.",
        "Times, weekdays alone, other centuries, and forms that mean another day elsewhere "
        "(`03/04/2020`), which it never saw.",
    ),
    "shakespeare": (
        "Seeing a language model of characters write, on a phone or in a browser.",
        "Sense: it has read a million characters of plays, and knows words and layout, no facts.",
    ),
}


def make(made, output, shapes, test, split):
    """Copies `made` to `output`, and leaves what the repository keeps."""
    if output.exists():
        shutil.rmtree(output)
    shutil.copytree(made, output)
    for name in FORMATS.values():
        if name != MODEL:
            path = output / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    rewrite_model_file(output / MODEL, "float16")
    manifest.record_files(output, MODEL)
    for shape in [None, *shapes]:
        batch, length = (None, None) if shape is None else [*map(int, shape.split("x")), None][:2]
        report = export_file(
            output,
            None,
            format="litert",
            quantization="int8_weights",
            batch_size=batch,
            sequence_length=length,
            compatible_with=[] if shape is None else ["web"],
            examples=None,
        )
        print(pathlib.Path(report.path).name, format_size(report.size), report.max_abs_error)
    examples = find_test(output, test, split)
    scores = {name: score(output / name, examples) for name in (MODEL, LITERT_INT8)}
    write_scores(output, scores)
    write_card(output, scores)


def find_test(folder, test, split):
    metadata = manifest.read_manifest(folder)
    files = {} if test is None else {split: test}
    source = Source.remembered(metadata, files=files)
    return getattr(source.load(metadata["task"]), split)


def score(path, examples):
    task = get_task_class(manifest.read_manifest(path.parent)["task"]).open_file(path)
    found = task.compute_scores(examples, "The test part")
    print(path.name, found)
    return found


def write_scores(folder, scores):
    """Those of the files that are kept, in the place of those that are not."""
    path = folder / SCORES
    known = json.loads(path.read_text("utf-8"))
    known["test"] = {"keras": scores[MODEL], "litert-int8": scores[LITERT_INT8]}
    path.write_text(json.dumps(known, indent=2) + "\n", "utf-8")


def write_card(folder, scores):
    """The card with the scores and sizes of the files that are kept, and what the model is for."""
    text = (folder / CARD).read_text("utf-8")
    rows = [
        f"| test | {kind} | {name} | {format_score(name, value)} |"
        for kind, found in (("keras", scores[MODEL]), ("litert-int8", scores[LITERT_INT8]))
        for name, value in found.items()
    ]
    text = re.sub(r"(\| test \|.*\n)+", "\n".join(rows) + "\n", text, count=1)
    files = ["| file | size |", "| --- | ---: |"]
    entries = manifest.read_manifest(folder)["files"]
    size = format_size(entries[MODEL]["size"])
    files.append(f"| `{MODEL}`, weights in float16 | {size} |")
    for name in sorted(entries):
        if name.endswith(".tflite"):
            files.append(f"| `{name}` | {format_size(entries[name]['size'])} |")
    shaped = (
        "Files named by a shape (rows, or rows by tokens) are for browsers, GPU delegates and "
        "`CompiledModel`; callers fill up with zeros. "
    )
    said = "\n\n" + (shaped if any(re.search(r"\.\d", name) for name in entries) else "")
    said += (
        "`keras-attention export` makes the others. Signatures, ops and checks are in "
        "`manifest.json`, every epoch's numbers in `scores.json`."
    )
    text = re.sub(
        r"## Files\n.*?\n(?=## )",
        "## Files\n\n" + "\n".join(files) + said + "\n\n",
        text,
        flags=re.DOTALL,
    )
    purpose, others = PURPOSES[folder.name]
    about = f"## What it is for\n\n{purpose}\n\nNot for: {others[0].lower()}{others[1:]}\n\n"
    text = text.replace("## Scores\n", about + "## Scores\n", 1)
    (folder / CARD).write_text(text, "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("made", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--shapes", nargs="*", default=[])
    parser.add_argument("--test", help="file of the test part, where the data have no name")
    parser.add_argument("--split", default="test")
    parser.add_argument("--pictured", help="draws this input, in place of one of the test part")
    given = parser.parse_args()
    make(given.made, given.output, given.shapes, given.test, given.split)
    if given.pictured is not None:
        tasks.from_preset(given.output).attention(given.pictured, given.output / "attention.png")
    assert tasks.from_preset(given.output).model.count_params() > 0
