"""The model card of a preset (its README.md): model, scores, data, files and usage."""

import dataclasses
import pathlib
import re
import shlex

from keras_attention.export import backend
from keras_attention.export.checks.formatting import format_percent, format_score, format_size
from keras_attention.files.manifest import MANIFEST
from keras_attention.training.scores.class_scores import ClassScores

WATCHED = "development, during training"  # this metric may differ from the metric on the test split
MOST_ROWS = 40  # maximum number of classes in the table
MOST_ERRORS = 10  # maximum number of pairs of classes in the list of errors


@dataclasses.dataclass(frozen=True)
class Facts:
    """The information about a task that its model card contains.

    Attributes:
        task: str, the name of the task, such as `"text_classifier"`.
        made_by: str, the name of the task class, such as `"TextClassifier"`.
        parameters: int, the number of parameters of the model.
        example: str, an input for the example of a `predict` command.
        takes_context: bool, whether the example is a question about a context.
        converses: bool, whether the model can reply in a dialogue.
    """

    task: str
    made_by: str
    parameters: int
    example: str
    takes_context: bool = False
    converses: bool = False


def write_card(facts, recipe, scores, reports, figures, description):
    """Return the model card of a trained model as a str in Markdown.

    Args:
        facts: `Facts` about the task.
        recipe: `ka.tasks.recipes.Recipe`, the hyperparameters of the training.
        scores: dict, the content of `scores.json`. The test scores of the Keras model may be a
            `ClassScores`.
        reports: list of `ExportReport`, one for each exported file.
        figures: list of str, the file names of the attention figures.
        description: dict that describes the data and the command. `confusion` is the file name of
            the figure of the confusion matrix.
    """
    name, best = description["name"], scores["best_epoch"]
    tested, confusion = scores["test"]["keras"], description.get("confusion")
    begun = description.get("begun")
    origin = f"Fine-tuned from {begun}" if begun else "Trained from scratch"
    parts = [
        f"# {facts.task.replace('_', ' ')} trained on {name}",
        f"{facts.parameters:,} parameters, built from layers of keras_attention. {origin}. The "
        f"weights are from epoch {best} of {recipe.epochs}, the best epoch on the development set."
        f"{describe_end(recipe, scores)}",
        _section("Scores", _scores(scores)),
        _section("Classes", write_classes(tested, confusion)),
        _section("Data", _data(description)),
        _section("Files", _files(reports)),
        _section("Use", _use(facts)),
        _section("Training", _training(recipe, scores, description["command"])),
        _section("Attention", "\n\n".join(f"![{name}]({name})" for name in figures)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def describe_end(recipe, scores):
    """Return a sentence if a time limit ended the training, else an empty str.

    `recipe` is a `Recipe`, and `scores` the dict that the training stored, with its history.
    """
    trained = len(scores["history"])
    if recipe.minutes is None or trained == recipe.epochs:
        return ""
    return f" Training stopped in epoch {trained}, at its time limit of {recipe.minutes:g} minutes."


def write_preset_card(facts, scores):
    """Return the model card of a task that was saved with `save_to_preset`, as a str in Markdown.

    `facts` are the `Facts` about the task. `scores` is a dict, which may contain `dev` and `test`,
    the entries of `scores.json`.
    """
    scores = {"dev": {}, "test": {}} | scores
    parts = [
        f"# {facts.task.replace('_', ' ')}",
        f"{facts.parameters:,} parameters. Saved in Python with `save_to_preset` of "
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


def write_classes(scores, confusion=None):
    """Return a str in Markdown: the scores of each class, and the most frequent errors.

    Args:
        scores: `ClassScores`. For any other dict the result is an empty str.
        confusion: str, the file name of the figure of the confusion matrix. None for no figure.
    """
    if not isinstance(scores, ClassScores):
        return ""
    shown = sorted(scores.classes.items(), key=lambda item: item[1]["f1"])[:MOST_ROWS]
    lines = ["| class | precision | recall | F1 | count |", "| --- | ---: | ---: | ---: | ---: |"]
    lines += [f"| {' | '.join(map(str, format_class(*item)))} |" for item in shown]
    parts = ["\n".join(lines)]
    if len(shown) < len(scores.classes):
        parts.insert(0, f"The {MOST_ROWS} classes of {len(scores.classes)} with the lowest F1:")
    if pairs := scores.list_errors()[:MOST_ERRORS]:
        errors = (f"- {name} predicted as {x}: {n:,} of {total:,}" for name, x, n, total in pairs)
        parts.append("\n".join(["The most frequent errors:", "", *errors]))
    if confusion is not None:
        parts.append(f"![Confusion matrix]({confusion})")
    return "\n\n".join(parts)


def format_class(name, scores):
    """Return the cells for a class in a table of scores: name, precision, recall, F1 and count.

    `name` is the name of the class, and `scores` a dict of its scores.
    """
    shares = (format_percent(scores[key]) for key in ("precision", "recall", "f1"))
    return (name, *shares, scores["count"])


def _data(description):
    counts = description.get("counts", {}).items()
    counts = ", ".join(f"{count:,} {name}" for name, count in counts)
    lines = [f"- {description['name']}", f"- {counts}" if counts else ""]
    lines.append(
        f"- licence: {description.get('licence') or 'unknown, see the source of the data'}"
    )
    lines += [f"- {note}" for note in description.get("notes", ())]
    return "\n".join(line for line in lines if line)


def _files(reports):
    lines = [
        "| file | size | largest error | same answer as the model |",
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
        f"`model.keras` is the Keras model. `{MANIFEST}` lists signatures, ops and checks, and "
        "`scores.json` the numbers of every epoch.",
    ]
    return "\n".join(lines)


def _use(facts):
    plain = re.fullmatch(r"[\w./-]+", facts.example)
    example = facts.example
    if not plain:  # use double quotes unless the shell would change the text inside them
        needs_escape = set(example) & set('"$`\\!')
        example = shlex.quote(example) if needs_escape else f'"{example}"'
    if facts.takes_context:
        example = f"--question {example} --context FILE"
    arguments = [example, *(["--chat"] if facts.converses else [])]
    lines = [f"keras-attention predict . {words}" for words in arguments]
    return "\n".join(["```", *lines, "```"])


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
