"""`DependencyParser`: sentences, and the head of every word with its relation to it."""

import typing

import numpy as np

from keras_attention import data, training
from keras_attention.core.lazy import blocks, keras, keras_internals, models, visualization
from keras_attention.data.preprocessors.spanning_tree import find_tree
from keras_attention.tasks.interface import AttentionMaps
from keras_attention.tasks.runners import map_batches, softmax
from keras_attention.tasks.sentence_task import SentenceTask, build_preprocessor, size_characters

ROWS = 32  # sentences that are parsed at a time
ROOT = "<root>"


class ParsedToken(typing.NamedTuple):
    """A word, the number of its head (0 is the root), their relation, and how likely both are."""

    token: str
    head: int
    relation: str
    probability: float


class DependencyParser(SentenceTask):
    """Says which word depends on which, and how: subjects, objects, modifiers.

    What it answers is always a tree: where the likeliest heads make none, it is the tree of the
    greatest sum of scores (McDonald et al., 2005).

    Args:
        model: functional `keras.Model` of `ka.models.dependency_parser`, or one of the same inputs
            and outputs.
        preprocessor: `ka.data.TaggerPreprocessor`, whose labels are the relations.
        maximum_length: int, the tokens of a sentence at most.

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

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        return data.TaggerPreprocessor.load(folder)

    def replace_head(self, num_labels):
        """Return the model with new scores of relations; heads are found as before."""
        outputs = dict(self.model.output)
        old = keras_internals.producer(outputs["label_scores"])
        features, *_ = keras_internals.inputs_of(outputs["label_scores"])
        new = blocks.Biaffine.from_config({**old.get_config(), "num_outputs": num_labels})
        outputs["label_scores"] = new(features)
        return keras.Model(self.model.input, outputs, name=self.model.name)

    def make_loss(self, recipe, train):
        return training.DependencyCrossentropy(label_smoothing=recipe.label_smoothing)

    def make_metrics(self):
        """Of the likeliest heads, before they are made a tree."""
        return [
            lambda: training.LabeledAttachment(name="las"),
            lambda: training.UnlabeledAttachment(name="uas"),
        ]

    def compute_scores(self, examples, where):
        """LAS and UAS of the trees, by the definitions of the CoNLL 2018 shared task.

        Every word counts, punctuation too; subtypes of relations (`nsubj:pass`) do not.
        """
        if not examples:
            return {}
        examples = self.select(examples, where)
        found = self.predict([tree.tokens for tree in examples])
        return score_trees(
            [([word.head for word in words], [word.relation for word in words]) for words in found],
            [(tree.heads, tree.relations) for tree in examples],
        )

    def check_runner(self, path, run):
        self.check_words(path, run.inspection)

    def predict(self, inputs):
        """Return the trees of sentences.

        Args:
            inputs: list of sentences: str, or lists of tokens.

        Returns:
            For each sentence a list of `ParsedToken`.
        """
        sentences = self.split_sentences(inputs)
        return map_batches(self._parse, sentences, list(map(len, sentences)), ROWS)

    def _parse(self, sentences):
        """Return the `ParsedToken`s of sentences that fit into one batch."""
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
        """Return the `ParsedToken`s of one sentence, of scores (T, T + 1) and (T, T + 1, L)."""
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
        """The picture shows how likely each word is the head of each other one."""
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


def score_trees(found, wanted):
    """Return {"las": share, "uas": share} of words whose head, and relation to it, are right.

    Args:
        found, wanted: lists of (heads, relations) of the same sentences.
    """
    count = attached = labeled = 0
    for (heads, relations), (right, named) in zip(found, wanted, strict=True):
        for head, relation, other, name in zip(heads, relations, right, named, strict=True):
            count += 1
            attached += head == other
            labeled += head == other and relation.split(":")[0] == name.split(":")[0]
    return {"las": round(labeled / count, 6), "uas": round(attached / count, 6)}
