"""The card of a model, written from a finished training."""

import pathlib
import re
import shlex
import sys

from keras_attention.export import backend
from keras_attention.export.checks.formatting import format_size
from keras_attention.tasks import class_report, folders
from keras_attention.tasks.printing import format_percent, format_score

WATCHED = "development, as training watched it"  # which may be another definition than the test's
PRIVATE = ("--data-dir",)  # options that say where things lie on one machine


def write_card(task, recipe, scores, reports, pictures, about):
    """The card of a training as Markdown text."""
    name, best = about["name"], scores["best_epoch"]
    tested, picture = scores["test"]["keras"], about.get("confusion")
    begun = f"Fine-tuned from {about['begun']}" if about.get("begun") else "Trained from scratch"
    parts = [
        f"# {task.builder.replace('_', ' ')} trained on {name}",
        f"{task.model.count_params():,} parameters, of layers of keras_attention. {begun}; "
        f"the weights are those of epoch {best} of {recipe.epochs}, chosen on the development set."
        f"{describe_end(recipe, scores)}",
        _section("Scores", _scores(scores)),
        _section("Classes", class_report.write_classes(tested, picture)),
        _section("Data", _data(about)),
        _section("Files", _files(reports)),
        _section("Use", _use(task)),
        _section("Training", _training(recipe, scores)),
        _section("What it looks at", "\n\n".join(f"![{p}]({p})" for p in pictures)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def describe_end(recipe, scores):
    """A sentence where the minutes were over before the epochs were; "" otherwise."""
    trained = len(scores["history"])
    if recipe.minutes is None or trained == recipe.epochs:
        return ""
    return f" Its time ({recipe.minutes:g} min) was over in epoch {trained}."


def write_preset_card(task):
    """The card of a task that was saved from Python."""
    scores = {"dev": {}, "test": {}} | task.scores
    parts = [
        f"# {task.builder.replace('_', ' ')}",
        f"{task.model.count_params():,} parameters. Saved from Python by `save_to_preset` of "
        f"`ka.tasks.{type(task).__name__}`.",
        _section("Scores", _scores(scores) if scores["dev"] or scores["test"] else ""),
        _section("Use", _use(task)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(title, body):
    return f"## {title}\n\n{body}" if body else ""


def _scores(scores):
    rows = [(WATCHED, "keras", name, value) for name, value in scores["dev"].items()]
    for kind, values in scores["test"].items():
        rows += [("test", kind, name, value) for name, value in values.items()]
    lines = [
        f"| {part} | {kind} | {name} | {format_score(name, v)} |" for part, kind, name, v in rows
    ]
    return "\n".join(["| split | file | score | |", "| --- | --- | --- | ---: |", *lines])


def _data(about):
    counts = ", ".join(f"{count:,} {what}" for what, count in about.get("counts", {}).items())
    lines = [f"- {about['name']}", f"- {counts}" if counts else ""]
    lines.append(f"- licence: {about.get('licence') or 'not known to the program; see its source'}")
    lines += [f"- {note}" for note in about.get("notes", ())]
    return "\n".join(line for line in lines if line)


def _files(reports):
    lines = [
        "| file | size | largest error seen | same answer as the model |",
        "| --- | ---: | ---: | ---: |",
    ]
    for report in reports:
        same = report.argmax_agreement
        lines.append(
            f"| `{pathlib.Path(report.path).name}` | {format_size(report.size)} "
            f"| {report.max_abs_error:.1e} | {'-' if same is None else format_percent(same)} |"
        )
    lines += [
        "",
        f"`{folders.MODEL}` is the Keras model. Signatures, ops and checks are in "
        f"`{folders.MANIFEST}`, every epoch's numbers in `{folders.SCORES}`.",
    ]
    return "\n".join(lines)


def _use(task):
    plain = re.fullmatch(r"[\w./-]+", task.example)
    example = task.example if plain else _quote(task.example)
    if task.takes_context:
        example = f"--question {example} --context FILE"
    given = [example, *(["--chat"] if task.converses else [])]
    lines = [f"keras-attention predict . {words}" for words in given]
    return "\n".join(["```", *lines, "```"])


def _quote(text):
    """`text` for a shell, in the quotes that people type where they will do."""
    return shlex.quote(text) if set(text) & set('"$`\\!') else f'"{text}"'


def _training(recipe, scores):
    versions = backend.find_versions("tensorflow", "ai_edge_litert", "numpy")
    numbers = {
        "command": f"`{command()}`",
        "seed": recipe.seed,
        "epochs": recipe.epochs,
        "batch size": recipe.batch_size,
        "peak learning rate": f"{recipe.learning_rate:g} (AdamW, warm-up of "
        f"{format_percent(recipe.warmup)} of the steps, then a cosine)",
        "weight decay": recipe.weight_decay,
        "label smoothing": recipe.label_smoothing,
        "model": f"`{recipe.model}`",
        "data": f"`{recipe.data}`",
        "training time": f"{scores['training_seconds'] / 60:.1f} minutes",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }
    rows = [f"| {name} | {value} |" for name, value in numbers.items()]
    return "\n".join(["| | |", "| --- | --- |", *rows])


def command(arguments=None):
    """The command that is running, without paths that only this machine has."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    kept = []
    while arguments:
        word = arguments.pop(0)
        if word in PRIVATE:
            arguments = arguments[1:]
        elif not word.startswith(tuple(f"{option}=" for option in PRIVATE)):
            kept.append(_portable(word))
    return shlex.join(["keras-attention", *kept])


def _portable(word):
    """An absolute path as its last part; everything else as it is."""
    return pathlib.Path(word).name if pathlib.Path(word).is_absolute() else word
