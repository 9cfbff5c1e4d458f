"""The tasks of pairs of texts, `seq2seq_transformer` and `seq2seq_recurrent`."""

from keras_attention import data, models, training
from keras_attention.cli import alignment, wording, writing
from keras_attention.cli.console import say
from keras_attention.cli.job import Job

# Lengths of batches where no program is compiled for each: a third less padding than the default's.
FINE = (*range(2, 64, 2), *range(64, 512, 8))


class Translating:
    """A task that makes texts of texts; it offers what a module of `tasks.py` does.

    Args:
        task: str, the name of its builder.
        one_table: bool, whether the builder takes None as the size of a target vocabulary that is
            the source's, too.
    """

    OPTIONS = ()
    KIND, HOLDS, EXAMPLE = data.Pairs, "pairs of texts", '"Ein Mann fährt Fahrrad."'

    def __init__(self, task, one_table):
        self.TASK, self.one_table = task, one_table

    def job(self, pairs, recipe, source, about):
        """The job for `pairs`, a `ka.data.Pairs`."""
        if not pairs.train:
            raise ValueError("There is nothing to train on: give a file with --train.")
        options = recipe.data
        wording.check(options["score"])
        preprocessor = _preprocessor(pairs.train, options["tokens"], options["vocabulary_size"])
        train = _fitting(pairs.train, preprocessor, options["maximum_length"])
        metadata = {
            "task": self.TASK,
            **source,
            "score": options["score"],
            "writing": {
                "beam": options["beam"],
                "max_new_tokens": options["maximum_length"],
                "begin_id": preprocessor.begin_id,
                "end_id": preprocessor.end_id,
            },
        }
        sizes = {"batch_size": recipe.batch_size, "max_tokens": options["max_tokens"]}
        if not recipe.jit_compile:
            sizes["edges"] = FINE
        return Job(
            task=self.TASK,
            model=self._model(preprocessor, recipe),
            train=data.seq2seq_batches(
                train, preprocessor, shuffle=True, seed=recipe.seed, **sizes
            ),
            dev=batches(pairs.dev, preprocessor, **sizes),
            test=pairs.test,
            metrics=METRICS[options["score"]],
            metadata=metadata,
            sidecars=preprocessor.save,
            picture=lambda model, folder: alignment.picture(
                model, folder, pairs.test or pairs.dev, preprocessor, metadata
            ),
            about={**about, "notes": (*about["notes"], *_left_out(pairs.train, train, options))},
        )

    def _model(self, preprocessor, recipe):
        size = len(preprocessor.target)
        shared = self.one_table and preprocessor.source is preprocessor.target
        builder = getattr(models, self.TASK)
        return builder(len(preprocessor.source), None if shared else size, **recipe.model)

    def counts(self, pairs):
        parts = {part: getattr(pairs, part) for part in ("train", "dev", "test")}
        return {f"{part} pairs": len(split) for part, split in parts.items() if split}

    def prepare(self, folder, manifest, part, where):
        """Batches of `part` as the model in `folder` takes them, and its metrics."""
        preprocessor = data.SequencePreprocessor.load(folder)
        return batches(part, preprocessor, batch_size=64), METRICS[manifest["score"]]

    def load(self, path, manifest):
        """The file as a function: source ids to ids."""
        return writing.load(path, manifest)

    def scores(self, run, folder, manifest, part, where):
        """What the texts that are written are worth, beside those there are; {} without any."""
        if not part:
            return {}
        preprocessor = data.SequencePreprocessor.load(folder)
        written = writing.write(run, preprocessor, [pair.source for pair in part])
        return wording.score(manifest["score"], written, [pair.target for pair in part])

    def show(self, run, folder, manifest, texts, options):
        """Prints a line for each of `texts`: what the model makes of it."""
        if empty := [text for text in texts if not text.strip()]:
            raise ValueError(f"{empty[0]!r} holds no word.")
        preprocessor = data.SequencePreprocessor.load(folder)
        for text in writing.write(run, preprocessor, texts):
            say(text)


def _preprocessor(pairs, tokens, vocabulary_size):
    """Characters of each side, or subwords of both, of pairs to train on."""
    sources, targets = ([pair[side] for pair in pairs] for side in (0, 1))
    if tokens == "characters":
        build = data.Characters.build
        return data.SequencePreprocessor(build(targets), build(sources))
    subwords = data.Subwords.build(sources + targets, vocabulary_size)
    return data.SequencePreprocessor(subwords, subwords)


def _fitting(pairs, preprocessor, maximum_length):
    """The pairs of which neither side has more tokens, END included."""
    sources = preprocessor.source_ids([pair.source for pair in pairs])
    targets = preprocessor.target_ids([pair.target for pair in pairs])
    fitting = [
        pair
        for pair, source, target in zip(pairs, sources, targets, strict=True)
        if max(len(source), len(target) - 1) <= maximum_length
    ]
    if not fitting:
        raise ValueError(
            f"Every pair to train on has a side of more than {maximum_length} tokens: train with a "
            "larger --maximum-length."
        )
    return fitting


def _left_out(pairs, train, options):
    """For the card: how many pairs are too long to train on, if any are."""
    left = len(pairs) - len(train)
    longest = options["maximum_length"]
    return (f"{left:,} pairs of more than {longest} tokens were not trained on",) if left else ()


def batches(pairs, preprocessor, **sizes):
    """Batches for scoring, or None when there is no pair."""
    return data.seq2seq_batches(pairs, preprocessor, **sizes) if pairs else None


def accuracy():
    return training.MaskedSparseCategoricalAccuracy(name="accuracy")


def exact_match():
    return training.MaskedSequenceAccuracy(name="exact_match")


def perplexity():
    return training.MaskedPerplexity(name="perplexity")


# What is measured of given targets while training; the first chooses the epoch.
METRICS = {"exact_match": [exact_match, accuracy], "bleu": [accuracy, perplexity]}

TRANSFORMER = Translating("seq2seq_transformer", one_table=True)
RECURRENT = Translating("seq2seq_recurrent", one_table=False)
