"""The task `sequence_labeler`: sentences and a tag for every token."""

import numpy as np

from keras_attention import data, models, training, visualization
from keras_attention.cli import model_files
from keras_attention.cli.console import format_percent, say, show_table
from keras_attention.cli.fit import Job
from keras_attention.cli.model_files import by_name, check_labels, score_batches, softmax
from keras_attention.data.fields import MOST_TOKENS
from keras_attention.data.files import prefix_errors
from keras_attention.export import inspection

TASK, KIND, HOLDS = "sequence_labeler", data.Tagged, "tagged sentences"
EXAMPLE = '"The cat sat"'
OPTIONS = ()
PICTURED = range(7, 15)  # tokens of a sentence whose picture is easy to read


def make_job(tagged, recipe, source, about):
    """The job for `tagged`, a `ka.data.Tagged`."""
    options = dict(recipe.data)
    maximum_length = options.pop("maximum_length")
    for part in ("train", "dev", "test"):
        check_lengths(getattr(tagged, part), maximum_length, f"The {part} part")
    if not tagged.train:
        raise ValueError("There is nothing to train on: give a file with --train.")
    preprocessor = data.TaggerPreprocessor.build(tagged.train, tagged.labels, **options)
    characters = preprocessor.characters
    model = models.sequence_labeler(
        len(preprocessor.words),
        len(preprocessor.labels),
        character_vocabulary_size=len(characters) if characters else None,
        **({"word_length": preprocessor.word_length} if characters else {}),
        **recipe.model,
    )
    metadata = {
        "task": TASK,
        "dataset": source["dataset"],
        "label_column": source["label_column"],
        "labels": list(tagged.labels),
        "maximum_length": maximum_length,
    }
    return Job(
        task=TASK,
        model=model,
        train=data.tagging_batches(
            tagged.train, preprocessor, recipe.batch_size, shuffle=True, seed=recipe.seed
        ),
        dev=batch_for_scoring(tagged.dev, preprocessor, recipe.batch_size),
        test=tagged.test,
        metrics=metrics(tagged.labels),
        metadata=metadata,
        sidecars=preprocessor.save,
        picture=lambda model, folder: draw_attention(model, folder, tagged, preprocessor),
        about=about,
    )


def count_examples(tagged):
    found = {}
    for part in ("train", "dev", "test"):
        if split := getattr(tagged, part):
            found[f"{part} sentences"] = len(split)
            found[f"{part} tokens"] = sum(len(sentence.tokens) for sentence in split)
    return found


def batch_for_scoring(sentences, preprocessor, size=32):
    """Batches for scoring, or None when there is no sentence."""
    return data.tagging_batches(sentences, preprocessor, size) if sentences else None


def check_lengths(sentences, maximum_length, part):
    """Refuses sentences over the limit: to cut them would change the score unseen."""
    longest = max((len(sentence.tokens) for sentence in sentences), default=0)
    if longest > maximum_length:
        first = next(" ".join(s.tokens[:6]) for s in sentences if len(s.tokens) == longest)
        raise ValueError(
            f"{part} has a sentence of {longest} tokens, over the limit of {maximum_length}: "
            f"{first!r}... Split it, or train with a larger --maximum-length."
        )


def metrics(labels):
    """Token accuracy; for BIO tags (entities) F1 of entities before it."""
    entities = "O" in labels and all(tag == "O" or tag[:2] in ("B-", "I-") for tag in labels)
    if not entities or len(labels) < 2:
        return [accuracy]
    return [lambda: training.EntityF1(list(labels)), accuracy]


def accuracy():
    return training.MaskedSparseCategoricalAccuracy(name="accuracy")


def check_manifest(fields):
    """Refuses a manifest that lacks a field which this module reads."""
    fields.texts("labels")
    fields.whole("maximum_length", most=MOST_TOKENS)


def make_batches(folder, manifest, part, where):
    """Batches of `part`, from `where`, as the model in `folder` takes them, and its metrics."""
    check_lengths(part, manifest["maximum_length"], where)
    preprocessor = data.TaggerPreprocessor.load(folder)
    with prefix_errors(where):
        return batch_for_scoring(part, preprocessor), metrics(manifest["labels"])


def load_runner(path, manifest):
    """The file as a function: dict of arrays -> dict of arrays."""
    run = model_files.load_runner(path)
    preprocessor = data.TaggerPreprocessor.load(path.parent)
    characters = preprocessor.characters
    spelling = {} if characters is None else {"character_ids": len(characters)}
    inspection.check_sizes(
        run.inspection,
        labels=len(preprocessor.labels),
        vocabularies={"token_ids": len(preprocessor.words), **spelling},
        lengths={"character_ids": preprocessor.word_length},
    )
    if (characters is not None) != ("character_ids" in run.shapes):
        sees = "spelling" if "character_ids" in run.shapes else "no spelling"
        raise ValueError(
            f"{path.parent / 'manifest.json'}: preprocessing.characters is not of {path.name} "
            f"beside it, which sees {sees}. Put the right files together."
        )
    check_labels(path, manifest, preprocessor.labels)
    return run


def compute_scores(run, folder, manifest, part, where):
    """{metric name: score} of `run` on a part of the data."""
    return score_batches(run, *make_batches(folder, manifest, part, where))


def print_predictions(run, folder, manifest, texts, options):
    """Prints every sentence as a table of tokens and tags."""
    preprocessor = data.TaggerPreprocessor.load(folder)
    sentences = [tokens_of(text, manifest["maximum_length"]) for text in texts]
    for k, tokens in enumerate(sentences):
        inputs = preprocessor([tokens])
        logits = next(iter(run(by_name(run, inputs)).values()))
        if k:
            say("")
        tags = preprocessor.tags(logits, [tokens])[0]
        sure = [format_percent(p) for p in softmax(logits[0]).max(axis=-1)]
        show_table(("token", "tag", "probability"), zip(tokens, tags, sure, strict=True))


def tokens_of(text, maximum_length):
    """The tokens of a text; an error if there is none, or too many."""
    tokens = data.split_words(text)
    if not tokens:
        raise ValueError(f"{text!r} holds no word.")
    if len(tokens) > maximum_length:
        raise ValueError(
            f"The text has {len(tokens)} tokens, over this model's limit of {maximum_length}: "
            f"{text[:40]!r}... Split it into sentences."
        )
    return tokens


def draw_attention(model, folder, tagged, preprocessor):
    """Draws the attention of every head of the last block on one test sentence."""
    sentences = tagged.test or tagged.dev
    fitting = [s for s in sentences if len(s.tokens) in PICTURED]
    tokens = (fitting or sentences)[0].tokens[: max(PICTURED)]
    with visualization.record_attention(model) as maps:
        logits = model(preprocessor([tokens]))
    path, weights = list(maps.items())[-1]
    tags = preprocessor.tags(np.asarray(logits), [tokens])[0]
    visualization.attention_map(
        weights,
        [f"{token}  {tag}" for token, tag in zip(tokens, tags, strict=True)],
        list(tokens),
        title=f"{path}: what each token (with its predicted tag) looked at",
        path=folder / "attention.png",
    )
    return ["attention.png"]
