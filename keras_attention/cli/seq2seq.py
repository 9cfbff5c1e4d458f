"""The tasks of pairs of texts, `seq2seq_transformer` and `seq2seq_recurrent`."""

from keras_attention import data, generation, models, training, visualization
from keras_attention.cli.console import say
from keras_attention.cli.fit import Job
from keras_attention.cli.generating_files import (
    generate_texts,
    get_generation_options,
    load_generator,
)
from keras_attention.data.fields import MOST_BEAMS, MOST_ID, MOST_TOKENS
from keras_attention.data.files import prefix_errors

# Lengths of batches where no program is compiled for each: a third less padding than the default's.
FINE = (*range(2, 64, 2), *range(64, 512, 8))


class Translating:
    """A task from texts to texts, with the interface of `tasks.py`.

    Args:
        task: str, the name of its builder.
        one_table: bool, whether the builder takes None as the size of a target vocabulary that is
            the source's, too.
    """

    OPTIONS = ()
    KIND, HOLDS, EXAMPLE = data.Pairs, "pairs of texts", '"Ein Mann fährt Fahrrad."'

    def __init__(self, task, one_table):
        self.TASK, self.one_table = task, one_table

    def make_job(self, pairs, recipe, source, about):
        """The job for `pairs`, a `ka.data.Pairs`."""
        if not pairs.train:
            raise ValueError("There is nothing to train on: give a file with --train.")
        options = recipe.data
        check_scorer(options["score"])
        preprocessor = _preprocessor(pairs.train, options["tokens"], options["vocabulary_size"])
        train = _fitting(pairs.train, preprocessor, options["maximum_length"])
        metadata = {
            "task": self.TASK,
            **source,
            "score": options["score"],
            "writing": {
                "beam": options["beam"],
                "max_new_tokens": options["maximum_length"],
                "start_token_id": preprocessor.start_token_id,
                "end_token_id": preprocessor.end_token_id,
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
            dev=batch_for_scoring(pairs.dev, preprocessor, **sizes),
            test=pairs.test,
            metrics=METRICS[options["score"]],
            metadata=metadata,
            sidecars=preprocessor.save,
            picture=lambda model, folder: draw_alignment(
                model, folder, pairs.test or pairs.dev, preprocessor, metadata
            ),
            about={**about, "notes": (*about["notes"], *_left_out(pairs.train, train, options))},
        )

    def _model(self, preprocessor, recipe):
        size = len(preprocessor.target)
        shared = self.one_table and preprocessor.source is preprocessor.target
        builder = getattr(models, self.TASK)
        return builder(len(preprocessor.source), None if shared else size, **recipe.model)

    def count_examples(self, pairs):
        parts = {part: getattr(pairs, part) for part in ("train", "dev", "test")}
        return {f"{part} pairs": len(split) for part, split in parts.items() if split}

    def check_manifest(self, fields):
        """Refuses a manifest that lacks a field which this module reads."""
        fields.one_of("score", METRICS)
        known = fields.object("writing")
        known.whole("beam", most=MOST_BEAMS)
        known.whole("max_new_tokens", most=MOST_TOKENS)
        known.whole("start_token_id", least=0, most=MOST_ID)
        known.whole("end_token_id", least=0, most=MOST_ID)

    def make_batches(self, folder, manifest, part, where):
        """Batches of `part` as the model in `folder` takes them, and its metrics."""
        preprocessor = data.SequencePreprocessor.load(folder)
        with prefix_errors(where):
            return batch_for_scoring(part, preprocessor, batch_size=64), METRICS[manifest["score"]]

    def load_runner(self, path, manifest):
        """The file as a function: source ids to ids."""
        return load_generator(path, manifest)

    def compute_scores(self, run, folder, manifest, part, where):
        """Scores of the generated texts beside the given ones; {} without any."""
        if not part:
            return {}
        preprocessor = data.SequencePreprocessor.load(folder)
        written = generate_texts(run, preprocessor, [pair.source for pair in part])
        return score_texts(manifest["score"], written, [pair.target for pair in part])

    def print_predictions(self, run, folder, manifest, texts, options):
        """Prints the text that the model generates for each of `texts`, one per line."""
        if empty := [text for text in texts if not text.strip()]:
            raise ValueError(f"{empty[0]!r} holds no word.")
        preprocessor = data.SequencePreprocessor.load(folder)
        for text in generate_texts(run, preprocessor, texts):
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


def batch_for_scoring(pairs, preprocessor, **sizes):
    """Batches for scoring, or None when there is no pair."""
    return data.seq2seq_batches(pairs, preprocessor, **sizes) if pairs else None


def accuracy():
    return training.MaskedSparseCategoricalAccuracy(name="accuracy")


def exact_match():
    return training.MaskedSequenceAccuracy(name="exact_match")


def perplexity():
    return training.MaskedPerplexity(name="perplexity")


# Metrics on given targets while training; the first chooses the epoch.
METRICS = {"exact_match": [exact_match, accuracy], "bleu": [accuracy, perplexity]}

TRANSFORMER = Translating("seq2seq_transformer", one_table=True)
RECURRENT = Translating("seq2seq_recurrent", one_table=False)


def check_scorer(name):
    """Raises before the training if the library that computes the score is not installed."""
    if name == "bleu":
        _sacrebleu()


def score_texts(name, written, wanted):
    """{name: score} by `"exact_match"`, a share, or by `"bleu"`, from 0 to 100.

    Args:
        name: str.
        written, wanted: lists of str.
    """
    if name == "bleu":
        return _bleu(written, wanted)
    right = sum(one == other for one, other in zip(written, wanted, strict=True))
    return {"exact_match": round(right / len(wanted), 6)}


def _bleu(written, wanted):
    """sacreBLEU (Post, 2018) of the whole, with its own tokens, and the same in lower case."""
    bleu = _sacrebleu().corpus_bleu
    lower = bleu(written, [wanted], lowercase=True)
    return {
        "bleu": round(bleu(written, [wanted]).score, 4),
        "bleu_lowercase": round(lower.score, 4),
    }


def _sacrebleu():
    try:
        import sacrebleu
    except ImportError as error:
        raise ImportError(
            "Translations are scored by sacreBLEU, which is not installed: "
            "pip install 'keras-attention-zoo[nlp]'."
        ) from error
    return sacrebleu


PICTURED = range(12, 27)  # tokens of a source whose picture is easy to read
LATIN = "\u024f"  # the last letter that every font has


def draw_alignment(model, folder, pairs, preprocessor, manifest):
    """Draws the last cross-attention, written tokens against those of one source."""
    source = _nice([pair.source for pair in pairs], preprocessor)
    options = get_generation_options(manifest) | {"sampler": "greedy", "return_attention": True}
    del options["generate"]
    ids = preprocessor([source])
    result = generation.generate(model, ids, **options)
    path, weights = last_of_source(result.attention)
    written = result.ids[0]
    ended = preprocessor.end_token_id in written
    length = 1 + list(written).index(preprocessor.end_token_id) if ended else None
    visualization.attention_map(
        weights,
        preprocessor.target.pieces(written[:length]),
        preprocessor.source.pieces(ids[0]),
        title=f"{path}: what each token that was written looked at",
        path=folder / "attention.png",
    )
    return ["attention.png"]


def last_of_source(maps):
    """(path, weights) of the last layer that looks at the source: the only one, or the last of
    those called cross-attention.
    """
    crossing = [path for path in maps if "cross_attention" in path] or list(maps)
    return crossing[-1], maps[crossing[-1]]


def _nice(sources, preprocessor):
    """The first source of a good length in letters that every font has, or simply the first."""
    lengths = map(len, preprocessor.source_ids(sources))
    of_length = [s for s, n in zip(sources, lengths, strict=True) if n in PICTURED]
    return next((s for s in of_length if max(s) <= LATIN), sources[0])
