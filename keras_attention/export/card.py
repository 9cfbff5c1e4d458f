"""The card of a preset, its README.md: what the model is, its scores, data, files and use."""

import dataclasses
import pathlib
import re
import shlex

from keras_attention.export import backend
from keras_attention.export.checks.formatting import format_percent, format_score, format_size
from keras_attention.files.manifest import MANIFEST
from keras_attention.training.scores.class_scores import ClassScores

WATCHED = "development, as training watched it"  # which may be another definition than the test's
MOST_ROWS = 40  # classes in the table
MOST_ERRORS = 10  # pairs of classes that are shown


@dataclasses.dataclass(frozen=True)
class Facts:
    """What a card says of a task.

    Attributes:
        task: str, the name of the task.
        made_by: str, its class.
        parameters: int, how many numbers the model has.
        example: str, an input that it takes.
        takes_context: bool, whether that is a question about a text.
        converses: bool, whether it can hold a conversation.
    """

    task: str
    made_by: str
    parameters: int
    example: str
    takes_context: bool = False
    converses: bool = False


def write_card(facts, recipe, scores, reports, pictures, about):
    """Return the card of a training as Markdown text.

    Args:
        facts: `Facts`.
        recipe: `ka.tasks.recipes.Recipe`.
        scores: dict, the content of `scores.json`, with the `ClassScores` of the test.
        reports: list of `ExportReport`, of the files.
        pictures: list of str, file names.
        about: dict, what describes the data, the command, and the picture of the confusion matrix.
    """
    name, best = about["name"], scores["best_epoch"]
    tested, picture = scores["test"]["keras"], about.get("confusion")
    begun = f"Fine-tuned from {about['begun']}" if about.get("begun") else "Trained from scratch"
    parts = [
        f"# {facts.task.replace('_', ' ')} trained on {name}",
        f"{facts.parameters:,} parameters, of layers of keras_attention. {begun}; "
        f"the weights are those of epoch {best} of {recipe.epochs}, chosen on the development set."
        f"{describe_end(recipe, scores)}",
        _section("Scores", _scores(scores)),
        _section("Classes", write_classes(tested, picture)),
        _section("Data", _data(about)),
        _section("Files", _files(reports)),
        _section("Use", _use(facts)),
        _section("Training", _training(recipe, scores, about["command"])),
        _section("What it looks at", "\n\n".join(f"![{p}]({p})" for p in pictures)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def describe_end(recipe, scores):
    """Return a sentence where the minutes were over before the epochs were; "" otherwise."""
    trained = len(scores["history"])
    if recipe.minutes is None or trained == recipe.epochs:
        return ""
    return f" Its time ({recipe.minutes:g} min) was over in epoch {trained}."


def write_preset_card(facts, scores):
    """Return the card of a task that was saved from Python; `facts` are its `Facts`."""
    scores = {"dev": {}, "test": {}} | scores
    parts = [
        f"# {facts.task.replace('_', ' ')}",
        f"{facts.parameters:,} parameters. Saved from Python by `save_to_preset` of "
        f"`ka.tasks.{facts.made_by}`.",
        _section("Scores", _scores(scores) if scores["dev"] or scores["test"] else ""),
        _section("Use", _use(facts)),
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


def write_classes(scores, picture=None):
    """Return the scores of each class as Markdown; "" where `scores` are of no classes.

    Args:
        picture: str, the file name of the confusion matrix, or None.
    """
    if not isinstance(scores, ClassScores):
        return ""
    shown = sorted(scores.classes.items(), key=lambda item: item[1]["f1"])[:MOST_ROWS]
    lines = ["| class | precision | recall | F1 | count |", "| --- | ---: | ---: | ---: | ---: |"]
    lines += [f"| {' | '.join(map(str, format_class(*item)))} |" for item in shown]
    parts = ["\n".join(lines)]
    if len(shown) < len(scores.classes):
        parts.insert(0, f"The {MOST_ROWS} of {len(scores.classes)} classes with the lowest F1:")
    if pairs := scores.list_errors()[:MOST_ERRORS]:
        errors = (f"- {name} was taken for {x}: {n:,} of {total:,}" for name, x, n, total in pairs)
        parts.append("\n".join(["The most frequent errors:", "", *errors]))
    if picture is not None:
        parts.append(f"![Confusion matrix]({picture})")
    return "\n\n".join(parts)


def format_class(name, found):
    """Return the cells of a row for a class: its name, shares and count."""
    shares = (format_percent(found[key]) for key in ("precision", "recall", "f1"))
    return (name, *shares, found["count"])


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
        f"`model.keras` is the Keras model. Signatures, ops and checks are in `{MANIFEST}`, every "
        "epoch's numbers in `scores.json`.",
    ]
    return "\n".join(lines)


def _use(facts):
    plain = re.fullmatch(r"[\w./-]+", facts.example)
    example = facts.example if plain else _quote(facts.example)
    if facts.takes_context:
        example = f"--question {example} --context FILE"
    given = [example, *(["--chat"] if facts.converses else [])]
    lines = [f"keras-attention predict . {words}" for words in given]
    return "\n".join(["```", *lines, "```"])


def _quote(text):
    """`text` for a shell, in the quotes that people type where they will do."""
    return shlex.quote(text) if set(text) & set('"$`\\!') else f'"{text}"'


def _training(recipe, scores, command):
    versions = backend.find_versions("tensorflow", "ai_edge_litert", "numpy")
    numbers = {
        "command": f"`{command}`",
        "seed": recipe.seed,
        "epochs": recipe.epochs,
        "batch size": recipe.batch_size,
        "peak learning rate": f"{recipe.learning_rate:g} (AdamW, warm-up of "
        f"{format_percent(recipe.warmup)} of the steps, then a cosine)",
        "weight decay": recipe.weight_decay,
        "label smoothing": recipe.label_smoothing,
        "model": f"`{recipe.model}`",
        "data": f"`{dataclasses.asdict(recipe.data)}`",
        "training time": f"{scores['training_seconds'] / 60:.1f} minutes",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }
    rows = [f"| {name} | {value} |" for name, value in numbers.items()]
    return "\n".join(["| | |", "| --- | --- |", *rows])
