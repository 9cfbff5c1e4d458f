"""The task `text_classifier`: texts and a label for each."""

import numpy as np

from keras_attention import data, models, training, visualization
from keras_attention.cli import model_files
from keras_attention.cli.console import format_percent, show_table
from keras_attention.cli.fit import Job
from keras_attention.cli.model_files import by_name, score_batches, softmax
from keras_attention.data.files import prefix_errors
from keras_attention.export import inspection

TASK, KIND, HOLDS = "text_classifier", data.Texts, "texts with labels"
EXAMPLE = '"A film to remember."'
OPTIONS = ()
PICTURED = range(7, 15)  # words of a text whose picture is easy to read
SHOWN = 60  # characters of a text beside its label


def make_job(texts, recipe, source, about):
    """The job for `texts`, a `ka.data.Texts`."""
    if not texts.train:
        raise ValueError("There is nothing to train on: give a file with --train.")
    preprocessor = data.TextPreprocessor.build(texts.train, texts.labels, **recipe.data)
    model = models.text_classifier(
        len(preprocessor.words), len(preprocessor.labels), **recipe.model
    )
    return Job(
        task=TASK,
        model=model,
        train=data.text_batches(
            texts.train, preprocessor, recipe.batch_size, shuffle=True, seed=recipe.seed
        ),
        dev=batch_for_scoring(texts.dev, preprocessor, recipe.batch_size),
        test=texts.test,
        metrics=[accuracy],
        metadata={"task": TASK, **source, "labels": list(texts.labels)},
        sidecars=preprocessor.save,
        picture=lambda model, folder: draw_attention(model, folder, texts, preprocessor),
        about={**about, "notes": (*about["notes"], *_cut(texts, preprocessor))},
    )


def count_examples(texts):
    parts = {part: getattr(texts, part) for part in ("train", "dev", "test")}
    return {f"{part} texts": len(split) for part, split in parts.items() if split}


def _cut(texts, preprocessor):
    """For the card: how many texts are too long for the model, if any are."""
    limit = preprocessor.maximum_length
    every = [*texts.train, *texts.dev, *texts.test]
    cut = sum(len(data.split_words(text)) > limit for text, _ in every)
    return (f"of {cut:,} longer texts only the first {limit} words are used",) if cut else ()


def batch_for_scoring(texts, preprocessor, size=64):
    """Batches for scoring, or None when there is no text."""
    return data.text_batches(texts, preprocessor, size) if texts else None


def accuracy():
    return training.MaskedSparseCategoricalAccuracy(name="accuracy")


def check_manifest(fields):
    """Refuses no manifest: this module reads no field of it."""


def make_batches(folder, manifest, part, where):
    """Batches of `part` as the model in `folder` takes them, and its metrics."""
    preprocessor = data.TextPreprocessor.load(folder)
    with prefix_errors(where):
        return batch_for_scoring(part, preprocessor), [accuracy]


def load_runner(path, manifest):
    """The file as a function: dict of arrays -> dict of arrays."""
    run = model_files.load_runner(path)
    preprocessor = data.TextPreprocessor.load(path.parent)
    inspection.check_sizes(
        run.inspection,
        labels=len(preprocessor.labels),
        vocabularies={next(iter(run.inputs)): len(preprocessor.words)},
    )
    return run


def compute_scores(run, folder, manifest, part, where):
    """{metric name: score} of `run` on a part of the data."""
    return score_batches(run, *make_batches(folder, manifest, part, where))


def print_predictions(run, folder, manifest, texts, options):
    """Prints the likeliest label of every text, and how likely it is."""
    preprocessor = data.TextPreprocessor.load(folder)
    rows = []
    for text in texts:
        logits = next(iter(run(by_name(run, preprocessor([text]))).values()))
        shown = text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
        rows.append(
            (preprocessor.names(logits)[0], format_percent(softmax(logits[0]).max()), shown)
        )
    show_table(("label", "probability", "text"), rows)


def draw_attention(model, folder, texts, preprocessor):
    """Draws the attention of every head of the last block on one test text."""
    every = [text for text, _ in texts.test or texts.dev]
    words = [preprocessor.split(text) for text in every]
    k = next((k for k, split in enumerate(words) if len(split) in PICTURED), 0)
    with visualization.record_attention(model) as maps:
        logits = model(preprocessor([every[k]]))
    path, weights = next((p, w) for p, w in reversed(maps.items()) if w.shape[2] == w.shape[3])
    tokens = ["<class>"] * (weights.shape[2] - len(words[k])) + words[k]
    label = preprocessor.names(np.asarray(logits))[0]
    visualization.attention_map(
        weights[:, :, : max(PICTURED), : max(PICTURED)],
        tokens[: max(PICTURED)],
        title=f"{path}: what each word looked at; the text was taken for {label}",
        path=folder / "attention.png",
    )
    return ["attention.png"]
