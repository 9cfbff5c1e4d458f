"""`DependencyParser`: predicts the head of every word in a sentence, and their relation."""

import typing

import numpy as np

from keras_attention import data, training
from keras_attention.core.lazy import blocks, keras, keras_internals, models, visualization
from keras_attention.data.preprocessors.spanning_tree import find_tree
from keras_attention.tasks.interface import AttentionMaps
from keras_attention.tasks.runners import map_batches, softmax
from keras_attention.tasks.sentence_task import SentenceTask, build_preprocessor, size_characters

ROWS = 32  # sentences per batch
ROOT = "<root>"


class ParsedToken(typing.NamedTuple):
    """A word with its predicted head (the word that it depends on) and relation to the head.

    `head` is the position of the head in the sentence, counted from 1, or 0 for the root of the
    tree. `probability` is the joint probability of the head and the relation, from 0 to 1.
    """

    token: str
    head: int
    relation: str
    probability: float


class DependencyParser(SentenceTask):
    """Predicts for each word its head (the word that it depends on), and the relation.

    Relations are, for example, subject and object. The heads of a sentence always form a tree: the
    parser returns the tree with the greatest sum of scores (McDonald et al., 2005).

    Args:
        model: functional `keras.Model` from `ka.models.dependency_parser`, or one with the same
            inputs and outputs.
        preprocessor: `ka.data.TaggerPreprocessor`, whose labels are the relations.
        maximum_length: int, the maximum number of tokens in a sentence.
        builder: str, the name of the function of `ka.models` that built the model, one of the
            class attribute `builders`. It is stored with the task, and chooses the recipe of
            `fit`. None is the first of them.

    Example:

    ```python
    import keras_attention as ka

    cat = ka.data.DependencyTree(("The", "cat", "sat"), (2, 3, 0), ("det", "nsubj", "root"))
    dogs = ka.data.DependencyTree(("Dogs", "ran"), (2, 0), ("nsubj", "root"))
    task = ka.tasks.DependencyParser.from_data(
        [cat, dogs] * 20, num_layers=1, hidden_dim=16, dropout=0.0, embedding={}
    )
    task.fit([cat, dogs] * 20, epochs=5, batch_size=4, learning_rate=0.02, verbose=False)
    (words,) = task.predict(["The cat ran"])
    assert [word.head for word in words] == [2, 3, 0]
    assert task.evaluate([cat]) == {"las": 1.0, "uas": 1.0}
    ```
    """

    builders = ("dependency_parser",)
    example_kind, holds = data.DependencyTree, "sentences with dependency trees"

    @classmethod
    def make_parts(cls, data_set, recipe, builder):
        sentences = [data.Sentence(tree.tokens, tree.relations) for tree in data_set.train]
        preprocessor = build_preprocessor(sentences, data_set.labels, recipe.data)
        keywords = recipe.list_keywords(characters=size_characters(preprocessor))
        model = models.dependency_parser(
            len(preprocessor.tokenizer), len(preprocessor.labels), **keywords
        )
        return model, preprocessor, dict(maximum_length=recipe.data.max_length)

    def replace_head(self, labels):
        """Return a copy of the model with a new, untrained layer for the relations `labels`."""
        outputs = dict(self.model.output)
        old = keras_internals.producer(outputs["label_scores"])
        features, *_ = keras_internals.inputs_of(outputs["label_scores"])
        new = blocks.Biaffine.from_config({**old.get_config(), "num_outputs": len(labels)})
        outputs["label_scores"] = new(features)
        return keras.Model(self.model.input, outputs, name=self.model.name)

    def make_loss(self, recipe, train):
        return training.DependencyCrossentropy(label_smoothing=recipe.label_smoothing)

    def make_metrics(self):
        """Return the metrics LAS and UAS of the most probable head of each word.

        The heads are chosen independently, and need not form a tree.
        """
        return [
            lambda: training.LabeledAttachment(name="las"),
            lambda: training.UnlabeledAttachment(name="uas"),
        ]

    def compute_scores(self, examples, where):
        """Compute labeled and unlabeled attachment scores (LAS, UAS).

        The scores are defined as in the CoNLL 2018 shared task: punctuation counts, and subtypes of
        relations (`nsubj:pass`) are ignored. `examples` is a list of `DependencyTree`. Error
        messages begin with `where`, a str.
        """
        if not examples:
            return {}
        examples = self.select(examples, where)
        parsed = self.predict([tree.tokens for tree in examples])
        return score_trees(
            [
                ([word.head for word in words], [word.relation for word in words])
                for words in parsed
            ],
            [(tree.heads, tree.relations) for tree in examples],
        )

    def check_runner(self, path, run):
        self.check_words(path, run.inspection)

    def predict(self, inputs):
        """Parse each sentence.

        Args:
            inputs: list of sentences, each a str or a list of tokens.

        Returns:
            A list with one list for each sentence, which contains a `ParsedToken` for each token.
        """
        sentences = self.split_sentences(inputs)
        return map_batches(self._parse, sentences, list(map(len, sentences)), ROWS)

    def _parse(self, sentences):
        inputs = self.preprocessor(sentences)
        if not isinstance(inputs, dict):
            inputs = {next(iter(self.runner.inputs)): inputs}
        scores = self.runner(inputs)
        return [
            self._read_tree(tokens, arcs[: len(tokens), : len(tokens) + 1], labels)
            for tokens, arcs, labels in zip(
                sentences, scores["arc_scores"], scores["label_scores"], strict=True
            )
        ]

    def _read_tree(self, tokens, arcs, labels):
        """Find the tree of one sentence with the greatest score: a `ParsedToken` for each token.

        Args:
            tokens: list of T str.
            arcs: array (T, T + 1), the score of each possible head, with the root at index 0.
            labels: array (T, T + 1, L), the scores of the L relations to each head.
        """
        words, shares = [], softmax(arcs)
        for i, (token, head) in enumerate(zip(tokens, find_tree(arcs), strict=True)):
            relations = softmax(labels[i, head])
            best = int(np.argmax(relations))
            probability = float(shares[i, head] * relations[best])
            words.append(
                ParsedToken(token, head, self.preprocessor.labels.names[best], probability)
            )
        return words

    def attention(self, example, path=None):
        """Plot the probability that each word is the head of each other word.

        Args:
            example: a sentence, a str or a list of tokens.
            path: path for saving the figure. None does not save it.

        Returns:
            `AttentionMaps` with this figure, and the attention weights of all layers.
        """
        (tokens,) = self.split_sentences([example])
        with visualization.record_attention(self.model) as maps:
            scores = self.model(self.preprocessor([tokens]))
        arcs, labels = (np.asarray(scores[name])[0] for name in ("arc_scores", "label_scores"))
        words = self._read_tree(tokens, arcs, labels)
        queries, keys = [f"{word.token}  {word.relation}" for word in words], [ROOT, *tokens]
        figure = visualization.attention_map(
            softmax(arcs)[None, None],
            queries,
            keys,
            title="how likely each word is the head of a word (with its relation)",
            path=path,
        )
        return AttentionMaps(dict(maps), queries, keys, figure)


def score_trees(predicted, actual):
    """Compute the labeled and unlabeled attachment scores, `{"las": float, "uas": float}`.

    UAS is the share of words with the correct head, and LAS the share with the correct head and
    relation. `predicted` and `actual` are lists with a pair (heads, relations) for each sentence.
    """
    count = attached = labeled = 0
    for (heads, relations), (true_heads, true_relations) in zip(predicted, actual, strict=True):
        rows = zip(heads, relations, true_heads, true_relations, strict=True)
        for head, relation, other, name in rows:
            count += 1
            attached += head == other
            labeled += head == other and relation.split(":")[0] == name.split(":")[0]
    return {"las": round(labeled / count, 6), "uas": round(attached / count, 6)}
