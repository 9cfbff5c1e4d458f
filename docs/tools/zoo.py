"""Makes a folder of saved_models from one that `keras-attention train` made.

The result is small: weights as float16, which can be trained further in float32, and int8 files
for phones and browsers, of free shape and of fixed ones. The card has the test score of each.

    python docs/tools/zoo.py DIR saved_models/NAME [--shapes 1x32 1x128] [--test FILE]
"""

import argparse
import json
import pathlib
import re
import shutil

from keras_attention import tasks
from keras_attention.cli.inspect import export_file
from keras_attention.cli.sources import Source
from keras_attention.export.checks.formatting import format_score, format_size
from keras_attention.files import manifest
from keras_attention.tasks.folders import CARD, FORMATS, LITERT_INT8, MODEL, SCORES
from keras_attention.tasks.model_file import rewrite_model_file
from keras_attention.tasks.registry import get_task_class

PURPOSES = {
    "digits-vit": (
        "Trying out the package with digits of 8 by 8 pixels, one digit per image, light on dark.",
        "Photographs, or digits of another size or position. It was trained on 1,259 images of "
        "one kind.",
    ),
    "pos-tagger-en-ewt": (
        "The 17 universal parts of speech of written English: blogs, e-mails, reviews, answers, "
        "newsgroups. Use `fit` to train it on other labels of English words.",
        "Other languages, speech, text without punctuation, or sentences of over 512 words. "
        "Split contractions as the treebank does (`do` `n't`) for the best results.",
    ),
    "emotions": (
        "The 27 emotions of GoEmotions, or `neutral`, in short English comments. Use `fit` to "
        "train it on other labels of such comments.",
        "Judging people, or finding people in need. The labels are often wrong, and the model "
        "does not detect irony. It was trained on Reddit comments, and not on long text or other "
        "languages.",
    ),
    "digits-speech": (
        "Sequences of spoken English digits, from a waveform of 8,000 samples per second. It "
        "works while the speaker talks, with a delay of at most 335 ms. Use `fit` to train it on "
        "other small vocabularies.",
        "Natural speech. It was trained on ten words of five speakers, in a quiet room and with "
        "pauses. With new speakers such a model gets one word in five wrong.",
    ),
    "blood-cells": (
        "Red and white blood cells and platelets in microscope images of stained blood. Use "
        "`fit` to train it on other small objects.",
        "Diagnosis, or counts that decisions depend on. It was trained on 205 images of one "
        "laboratory. Its boxes of platelets are imprecise (mAP 0.37), and 53 of its 1,359 boxes "
        "in the test images are duplicates.",
    ),
    "multi30k-de-en": (
        "Translation of German photo captions into English: people, animals, clothes, actions.",
        "Other German text. It was trained on 29,000 captions, and `Guten Morgen` becomes "
        "nonsense. Fine-tune it on your own pairs first.",
    ),
    "dates": (
        "Converting dates from 1950 to 2049, as written in 33 locales, to ISO 8601. Its "
        "alignments are easy to check by eye.",
        "Times, weekdays without a date, other centuries, and ambiguous forms such as "
        "`03/04/2020`, which were not in the training data.",
    ),
    "shakespeare": (
        "Demonstrating a character-level language model on a phone or in a browser.",
        "Facts, or meaningful text. It was trained on a million characters of plays, and imitates "
        "their words and layout.",
    ),
}


def make(made, output, shapes, test, split):
    """Copy `made` to `output`, with only the files that the repository has."""
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
        )
        print(pathlib.Path(report.path).name, format_size(report.size), report.max_abs_error)
    examples = find_test(output, test, split)
    scores = {name: score(output / name, examples) for name in (MODEL, LITERT_INT8)}
    write_scores(output, scores)
    write_card(output, scores)


def find_test(folder, test, split):
    metadata = manifest.read_manifest(folder)
    files = {} if test is None else {split: test}
    source = Source.from_manifest(metadata, files=files)
    return getattr(source.load(metadata["task"]), split)


def score(path, examples):
    task = get_task_class(manifest.read_manifest(path.parent)["task"]).open_file(path)
    scores = task.compute_scores(examples, "The test part")
    print(path.name, scores)
    return scores


def write_scores(folder, scores):
    """Write the test scores of the files that are kept."""
    path = folder / SCORES
    entries = json.loads(path.read_text("utf-8"))
    entries["test"] = {"keras": scores[MODEL], "litert-int8": scores[LITERT_INT8]}
    path.write_text(json.dumps(entries, indent=2) + "\n", "utf-8")


def write_card(folder, scores):
    """Write scores and sizes of the files that are kept, and the model's purpose, into the card."""
    text = (folder / CARD).read_text("utf-8")
    rows = [
        f"| test | {kind} | {name} | {format_score(name, value)} |"
        for kind, values in (("keras", scores[MODEL]), ("litert-int8", scores[LITERT_INT8]))
        for name, value in values.items()
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
        "`CompiledModel`. Pad their inputs with zeros. "
    )
    note = "\n\n" + (shaped if any(re.search(r"\.\d", name) for name in entries) else "")
    note += (
        "`keras-attention export` makes other files. `manifest.json` lists signatures, ops and "
        "checks, and `scores.json` the numbers of every epoch."
    )
    text = re.sub(
        r"## Files\n.*?\n(?=## )",
        "## Files\n\n" + "\n".join(files) + note + "\n\n",
        text,
        flags=re.DOTALL,
    )
    purpose, misuse = PURPOSES[folder.name]
    use = f"## Purpose\n\n{purpose}\n\nNot for: {misuse[0].lower()}{misuse[1:]}\n\n"
    text = text.replace("## Scores\n", use + "## Scores\n", 1)
    (folder / CARD).write_text(text, "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("made", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--shapes", nargs="*", default=[])
    parser.add_argument("--test", help="file of the test part, where the data have no name")
    parser.add_argument("--split", default="test")
    parser.add_argument("--pictured", help="draws this input, in place of one of the test part")
    arguments = parser.parse_args()
    make(arguments.made, arguments.output, arguments.shapes, arguments.test, arguments.split)
    if arguments.pictured is not None:
        tasks.from_preset(arguments.output).attention(
            arguments.pictured, arguments.output / "attention.png"
        )
    assert tasks.from_preset(arguments.output).model.count_params() > 0
