"""`ConstituencyParser`: generates the constituency trees of sentences."""

import numpy as np

from keras_attention import data, training
from keras_attention.core.checks import check_whole_number
from keras_attention.core.lazy import generation, models, visualization
from keras_attention.core.special_ids import CLOSE, EACH, END, FIRST_LABEL, START
from keras_attention.data.readers.constituency_trees import count_spare_constituents, decode_tree
from keras_attention.export import inspection
from keras_attention.files.fields import MOST_ID, MOST_TOKENS
from keras_attention.tasks.generators import check_ids, get_generation_options
from keras_attention.tasks.interface import AttentionMaps
from keras_attention.tasks.runners import load_runner, map_batches
from keras_attention.tasks.sentence_task import SentenceTask, build_preprocessor, size_characters
from keras_attention.training.scores.brackets import score_brackets

ROWS = 32  # sentences per batch
SPARE = 8  # minimum value of `spare_constituents` in a new model


class ConstituencyParser(SentenceTask):
    """Predicts the constituency tree of a sentence: its phrases and their categories.

    The model generates the tree as a sequence of labels (Vinyals et al., 2015, *Grammar as a
    Foreign Language*). It masks invalid labels. So the result is always a tree over exactly the
    words of the input, with the Keras model and with exported files.

    Args:
        model: functional `keras.Model` from `ka.models.constituency_parser`, or one with the same
            inputs, outputs and ids.
        preprocessor: `ka.data.TaggerPreprocessor`, whose labels are the `labels` of a dataset from
            `ka.data.ConstituencyTree.collect`.
        maximum_length: int, the maximum number of words in a sentence.
        spare_constituents: int, how many constituents a tree may have in addition to two for each
            word. It must equal this argument of `ka.models.constituency_parser`.
        builder: str, the name of the function of `ka.models` that built the model, one of the
            class attribute `builders`. It is stored with the task, and chooses the recipe of
            `fit`. None is the first of them.

    Example:

    ```python
    import keras_attention as ka

    trees = ka.data.parse_brackets('''
        (S (NP (DT the) (NN cat)) (VP (VBD sat)))
        (S (NP (NNS dogs)) (VP (VBD saw) (NP (DT the) (NN house))))
    ''')
    task = ka.tasks.ConstituencyParser.from_data(
        trees * 16, num_layers=1, num_heads=2, hidden_dim=32
    )
    task.fit(trees * 16, epochs=2, batch_size=4, verbose=False)
    (tree,) = task.predict(["the cat sat"])
    assert list(tree.tokens) == ["the", "cat", "sat"]  # after any amount of training
    ```
    """

    builders = ("constituency_parser",)
    example_kind, holds = data.ConstituencyTree, "sentences with constituency trees"

    def __init__(
        self, model, preprocessor, *, maximum_length=128, spare_constituents=SPARE, builder=None
    ):
        super().__init__(model, preprocessor, maximum_length=maximum_length, builder=builder)
        self.spare_constituents = check_whole_number(
            type(self).__name__, "spare_constituents", spare_constituents, most=MOST_TOKENS
        )

    @classmethod
    def make_parts(cls, data_set, recipe, builder):
        sentences = [data.Sentence(tree.tokens, tree.tags) for tree in data_set.train]
        preprocessor = build_preprocessor(sentences, data_set.labels, recipe.data)
        spare = max(SPARE, *map(count_spare_constituents, data_set.train + data_set.dev))
        num_constituents = sum(name.startswith("(") for name in data_set.labels)
        model = models.constituency_parser(
            len(preprocessor.tokenizer),
            num_constituents,
            len(data_set.labels) - num_constituents,
            spare_constituents=spare,
            **recipe.list_keywords(characters=size_characters(preprocessor)),
        )
        return (
            model,
            preprocessor,
            dict(maximum_length=recipe.data.max_length, spare_constituents=spare),
        )

    @classmethod
    def read_settings(cls, fields):
        writing = fields.object("writing")
        writing.whole("beam", most=1)
        writing.whole("max_new_tokens", most=MOST_TOKENS)
        writing.whole("start_token_id", least=0, most=MOST_ID)
        check_ids(writing, "end_token_id")
        writing.whole("padding_id", least=0, most=MOST_ID)
        spare = fields.whole("spare_constituents", most=MOST_TOKENS)
        return super().read_settings(fields) | {"spare_constituents": spare}

    @property
    def settings(self):
        return {
            **super().settings,
            "spare_constituents": self.spare_constituents,
            "writing": {
                "beam": 1,
                "max_new_tokens": self._count_labels(self.maximum_length),
                "start_token_id": START,
                "end_token_id": END,
                "padding_id": 0,
            },
        }

    def _count_labels(self, words):
        """Return the maximum number of ids of a tree over `words` words, including the end id."""
        return words + 2 * (self.spare_constituents + EACH * words) + 1

    def replace_head(self, labels):
        raise ValueError(
            f"The trees have labels or tags that the model cannot write ({len(labels)} in all): "
            "make a new model with from_data."
        )

    def describe_data(self, data_set):
        """Return a tuple of str, notes on trees that are too large for training or scoring.

        `data_set` is a `DataSet` of `ConstituencyTree`.
        """
        limit = self.limit
        short = [tree for tree in data_set.train if not limit.is_long(tree, True)]
        notes = super().describe_data(data_set)
        if count := len(short) - len(self._drop_spare(short)):
            notes += (
                f"{count:,} trees that need more than {self.spare_constituents} spare constituents "
                "are not trained on",
            )
        return notes

    def _drop_spare(self, trees):
        """Return the trees that the model can generate, given its limit `spare_constituents`."""
        return [t for t in trees if count_spare_constituents(t) <= self.spare_constituents]

    def select(self, examples, where, training=False):
        """Return the trees of `examples` that are small enough for the model.

        `examples` is a list of `ConstituencyTree`. `training` says whether they are for training.
        If all of them are too large for training, a ValueError is raised. Error messages begin with
        `where`, a str.
        """
        fitting = self._drop_spare(super().select(examples, where, training))
        if training and not fitting:
            raise ValueError(
                f"Every tree to train on needs more than {self.spare_constituents} spare "
                "constituents: make a new model of these trees with from_data."
            )
        return fitting

    def make_metrics(self):
        """Return the metrics: the accuracy of each label, given the correct labels before it."""
        return [lambda: training.MaskedSparseCategoricalAccuracy(name="accuracy")]

    def compute_scores(self, examples, where):
        """Compute precision, recall and F1 of phrases with `ka.training.score_brackets`.

        `examples` is a list of `ConstituencyTree`. Error messages begin with `where`, a str.
        """
        if not examples:
            return {}
        examples = self.limit.select(examples, where)
        return score_brackets(self.predict([tree.tokens for tree in examples]), examples)

    def open_runner(self, path):
        run = load_runner(path, "generate")
        self._check_sizes(path, run.inspection)
        return lambda inputs, number: run(inputs)["generated_ids"]

    def wrap_model(self, model, path=None):
        if path is not None:
            self._check_sizes(path, inspection.inspect_model(model, path))
        options = get_generation_options(self.metadata)
        sampler = options.pop("generate")

        def write(inputs, number):
            options["max_new_tokens"] = number
            return generation.generate(model, inputs, sampler=sampler, **options)

        return write

    def _check_sizes(self, path, inspection):
        """Raise a ValueError if the sizes of a model file do not match the files next to it."""
        self.check_words(path, inspection)
        logits = [t for s in inspection.signatures for t in s.outputs if t.name == "logits"]
        size = FIRST_LABEL + len(self.preprocessor.labels.names)
        if any(tensor.shape[-1] not in (None, size) for tensor in logits):
            raise ValueError(
                f"{path.parent / 'labels.txt'} has {size - FIRST_LABEL} labels, and {path.name} "
                f"was made with {logits[0].shape[-1] - FIRST_LABEL}: they are of different models, "
                "or damaged. Put the right files together."
            )

    def predict(self, inputs):
        """Parse each sentence.

        Args:
            inputs: list of sentences, each a str or a list of tokens. Tokens must be split as in
                the training trees.

        Returns:
            A list with a `ka.data.ConstituencyTree` for each sentence.
        """
        sentences = self.split_sentences(inputs)
        return map_batches(self._parse, sentences, list(map(len, sentences)), ROWS)

    def _parse(self, sentences):
        number = self._count_labels(max(map(len, sentences)))
        rows = np.asarray(self.runner(self._make_inputs(sentences), number))
        labels = self.preprocessor.labels
        pairs = zip(rows, sentences, strict=True)
        return [decode_tree(ids, labels, tokens) for ids, tokens in pairs]

    def _make_inputs(self, sentences):
        inputs = self.preprocessor(sentences)
        return inputs if isinstance(inputs, dict) else {"token_ids": inputs}

    def attention(self, example, path=None):
        """Plot which words of a sentence the model attended to as it generated each label.

        `example` is a str or a list of tokens. The figure is saved at `path`, unless this is None.
        Return the attention weights of all layers and the figure as `AttentionMaps`.
        """
        (tokens,) = self.split_sentences([example])
        result = generation.generate(
            self.model,
            self._make_inputs([tokens]),
            max_new_tokens=self._count_labels(len(tokens)),
            start_token_id=START,
            end_token_id=END,
            return_attention=True,
        )
        ids = np.asarray(result.ids[0])
        ids = ids[: list(ids).index(END)]
        labels, words = self.preprocessor.labels, iter(tokens)
        queries = []
        for i in ids:
            name = ")" if i == CLOSE else labels.names[i - FIRST_LABEL]
            is_tag = i != CLOSE and not name.startswith("(")
            queries.append(f"{name} {next(words)}" if is_tag else name)
        crossing = [name for name in result.attention if "cross_attention" in name]
        figure = visualization.attention_map(
            result.attention[crossing[-1]][:, :, : len(queries)],
            queries,
            tokens,
            title=f"{crossing[-1]}: what each label of the tree attended to",
            path=path,
        )
        return AttentionMaps(dict(result.attention), queries, list(tokens), figure)
