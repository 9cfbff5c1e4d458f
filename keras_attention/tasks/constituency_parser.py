"""`ConstituencyParser`: sentences, and the trees of their constituents."""

import numpy as np

from keras_attention import data, training
from keras_attention.core.checks import check_whole_number
from keras_attention.core.lazy import generation, models, visualization
from keras_attention.core.tree_ids import CLOSE, EACH, END, FIRST_LABEL, START
from keras_attention.data.readers.constituency_trees import count_spare_constituents, decode_tree
from keras_attention.export import inspection
from keras_attention.files.fields import MOST_ID, MOST_TOKENS
from keras_attention.tasks.generators import check_ids, get_generation_options
from keras_attention.tasks.interface import AttentionMaps
from keras_attention.tasks.runners import load_runner, map_batches
from keras_attention.tasks.sentence_task import SentenceTask, build_preprocessor, size_characters
from keras_attention.training.scores.brackets import score_brackets

ROWS = 32  # sentences that are parsed at a time
SPARE = 8  # constituents that may open in front of the first word; more where trees have more


class ConstituencyParser(SentenceTask):
    """Writes the tree of a sentence: which words make a phrase, and of which kind.

    (Vinyals et al., 2015.) Every answer is a tree over exactly the words that were given, from the
    Keras model and from every exported file: the model itself gives other labels no chance.

    Args:
        model: functional `keras.Model` of `ka.models.constituency_parser`, or one of the same
            inputs, outputs and ids.
        preprocessor: `ka.data.TaggerPreprocessor`, whose labels are those of
            `ka.data.ConstituencyTree.collect`.
        maximum_length: int, the words of a sentence at most.
        spare_constituents: int, that of the model.

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
    assert list(tree.tokens) == ["the", "cat", "sat"]  # however little it has learnt
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
        """Return how many ids the tree of so many words has at most, its end included."""
        return words + 2 * (self.spare_constituents + EACH * words) + 1

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        return data.TaggerPreprocessor.load(folder)

    def replace_head(self, num_labels):
        raise ValueError(
            f"The trees have labels or tags that the model does not know ({num_labels} in all), "
            "and they are its words: make a new one with from_data."
        )

    def describe_data(self, data_set):
        """Count the trees that are too large to train on or to score."""
        limit = self.limit
        short = [tree for tree in data_set.train if not limit.is_long(tree, True)]
        notes = super().describe_data(data_set)
        if left := len(short) - len(self._drop_spare(short)):
            notes += (
                f"{left:,} trees that need more than {self.spare_constituents} spare constituents "
                "are not trained on",
            )
        return notes

    def _drop_spare(self, trees):
        """Return the trees that have no more spare constituents than the model can write."""
        return [t for t in trees if count_spare_constituents(t) <= self.spare_constituents]

    def select(self, examples, where, training=False):
        """Return the trees that the model can write."""
        fitting = self._drop_spare(super().select(examples, where, training))
        if training and not fitting:
            raise ValueError(
                f"Every tree to train on needs more than {self.spare_constituents} spare "
                "constituents: make a new model of these trees with from_data."
            )
        return fitting

    def make_metrics(self):
        """Of the labels behind those that are right."""
        return [lambda: training.MaskedSparseCategoricalAccuracy(name="accuracy")]

    def compute_scores(self, examples, where):
        """Return scores of brackets, as EVALB computes them: see `ka.training.score_brackets`."""
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

    def _check_sizes(self, path, found):
        """Refuses a file that was made for other vocabularies than those beside it."""
        self.check_words(path, found)
        logits = [t for s in found.signatures for t in s.outputs if t.name == "logits"]
        size = FIRST_LABEL + len(self.preprocessor.labels.names)
        if any(tensor.shape[-1] not in (None, size) for tensor in logits):
            raise ValueError(
                f"{path.parent / 'labels.txt'} has {size - FIRST_LABEL} labels, and {path.name} "
                f"was made with {logits[0].shape[-1] - FIRST_LABEL}: they are of different models, "
                "or damaged. Put the right files together."
            )

    def predict(self, inputs):
        """Return the trees of sentences.

        Args:
            inputs: list of sentences: str, or lists of tokens, as the trees have them that the
                model learnt from.

        Returns:
            A `ka.data.ConstituencyTree` for each, over exactly its words.
        """
        sentences = self.split_sentences(inputs)
        return map_batches(self._parse, sentences, list(map(len, sentences)), ROWS)

    def _parse(self, sentences):
        """Return the trees of sentences that fit into one batch."""
        number = self._count_labels(max(map(len, sentences)))
        rows = np.asarray(self.runner(self._make_inputs(sentences), number))
        labels = self.preprocessor.labels
        pairs = zip(rows, sentences, strict=True)
        return [decode_tree(ids, labels, tokens) for ids, tokens in pairs]

    def _make_inputs(self, sentences):
        inputs = self.preprocessor(sentences)
        return inputs if isinstance(inputs, dict) else {"token_ids": inputs}

    def attention(self, example, path=None):
        """The picture shows what each label of the tree looked at as it was written."""
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
            title=f"{crossing[-1]}: what each label of the tree looked at",
            path=path,
        )
        return AttentionMaps(dict(result.attention), queries, list(tokens), figure)
