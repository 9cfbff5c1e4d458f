"""`SequenceLabeler`: sentences, and a tag for every token."""

import typing

import numpy as np

from keras_attention import data, training
from keras_attention.core.lazy import models, visualization
from keras_attention.data.preprocessors.tagger import check_tags
from keras_attention.data.tokenizers.vocabulary import find_words
from keras_attention.files.io import prefix_errors
from keras_attention.tasks.interface import AttentionMaps
from keras_attention.tasks.labels import make_accuracy, make_balanced_loss
from keras_attention.tasks.runners import compute_each, softmax
from keras_attention.tasks.sentence_task import SentenceTask, build_preprocessor, size_characters
from keras_attention.training.scores.class_scores import score_tags
from keras_attention.training.scores.entity_tags import find_spans, is_entity_tag


class TaggedToken(typing.NamedTuple):
    """A token, its tag, and how likely the model finds it, from 0 to 1."""

    token: str
    tag: str
    probability: float


class Entity(typing.NamedTuple):
    """Tokens that belong together: `start` is the index of the first, `end` that after the last.

    `probability` is that of its least likely token. `characters` are the (start, end) of the entity
    in the text, or None where the input is a list of tokens.
    """

    text: str
    label: str
    start: int
    end: int
    probability: float
    characters: tuple | None = None


class SequenceLabeler(SentenceTask):
    """Tags every token of a sentence: parts of speech, entities, chunks.

    Args:
        model: functional `keras.Model`, token ids (B, T) -> logits (B, T, L), or a dict of
            `token_ids` and `character_ids` (B, T, C), as `ka.models.sequence_labeler`.
        preprocessor: `ka.data.TaggerPreprocessor`.
        maximum_length: int, the tokens of a sentence at most.

    Example:

    ```python
    import keras_attention as ka

    cat = ka.data.Sentence(("The", "cat", "sat"), ("DET", "NOUN", "VERB"))
    dogs = ka.data.Sentence(("Dogs", "ran"), ("NOUN", "VERB"))
    task = ka.tasks.SequenceLabeler.from_data(
        [cat, dogs] * 20, num_layers=1, num_heads=2, hidden_dim=16, dropout=0.0
    )
    task.fit([cat, dogs] * 20, epochs=5, batch_size=4, learning_rate=0.02, verbose=False)
    (tokens,) = task.predict(["The cat ran"])
    assert [token.tag for token in tokens] == ["DET", "NOUN", "VERB"]
    assert task.evaluate([cat])["accuracy"] == 1.0
    ```
    """

    builders = ("sequence_labeler",)
    example_kind, holds = data.Sentence, "tagged sentences"
    predict_options = ("group_entities",)

    @classmethod
    def make_parts(cls, data_set, recipe, builder):
        preprocessor = build_preprocessor(data_set.train, data_set.labels, recipe.data)
        keywords = recipe.list_keywords(characters=size_characters(preprocessor))
        model = models.sequence_labeler(
            len(preprocessor.tokenizer), len(preprocessor.labels), **keywords
        )
        return model, preprocessor, dict(maximum_length=recipe.data.max_length)

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        return data.TaggerPreprocessor.load(folder)

    def make_loss(self, recipe, train):
        labels = self.preprocessor.labels
        tags = [tag for sentence in train for tag in sentence.tags]
        return make_balanced_loss(recipe, lambda: labels.ids(tags), len(labels))

    def make_metrics(self):
        """Token accuracy; for BIO tags and the like (entities) F1 of entities before it."""
        labels = list(self.preprocessor.labels.names)
        if not marks_entities(labels):
            return [make_accuracy]
        return [lambda: training.EntityF1(labels), make_accuracy]

    def compute_scores(self, examples, where):
        """Compute the scores that `make_metrics` names, and macro F1."""
        with prefix_errors(where):
            words, tags = zip(*examples, strict=True)
            check_tags(words, tags, self.preprocessor.labels)
        examples = self.select(examples, where)
        sentences = [sentence.tokens for sentence in examples]
        predicted = [
            self.preprocessor.tags([row], [tokens])[0]
            for row, tokens in zip(self._compute_logits(sentences), sentences, strict=True)
        ]
        actual = [sentence.tags for sentence in examples]
        names = self.preprocessor.labels.names
        return score_tags(names, predicted, actual, marks_entities(names))

    def check_runner(self, path, run):
        self.check_words(path, run.inspection, len(self.preprocessor.labels))

    def predict(self, inputs, *, group_entities=False):
        """Return the tags of sentences.

        Args:
            inputs: list of sentences: str, or lists of tokens.
            group_entities: bool, whether to give the entities that BIO tags mark, and not tokens.

        Returns:
            For each sentence a list of `TaggedToken`, or of `Entity`.
        """
        if group_entities and not marks_entities(self.preprocessor.labels.names):
            raise ValueError(
                "group_entities= is for tags such as B-person, I-person and O; this model's are "
                f"{', '.join(self.preprocessor.labels.names[:5])}, ...: leave it out."
            )
        sentences = self.split_sentences(inputs)
        logits = self._compute_logits(sentences)
        tagged = [self._tag(*pair) for pair in zip(sentences, logits, strict=True)]
        if not group_entities:
            return tagged
        return [
            place_entities(find_entities(tokens), given, self.preprocessor.pattern)
            for tokens, given in zip(tagged, inputs, strict=True)
        ]

    def _compute_logits(self, sentences):
        return compute_each(self.runner, self.preprocessor, sentences, list(map(len, sentences)))

    def _tag(self, tokens, logits):
        tags = self.preprocessor.tags([logits], [tokens])[0]
        sure = softmax(self.preprocessor.word_logits(logits, tokens)).max(axis=-1)
        return [TaggedToken(*row) for row in zip(tokens, tags, map(float, sure), strict=False)]

    def attention(self, example, path=None):
        (tokens,) = self.split_sentences([example])
        with visualization.record_attention(self.model) as maps:
            logits = self.model(self.preprocessor([tokens]))
        layer, weights = list(maps.items())[-1]
        tags = self.preprocessor.tags(np.asarray(logits), [tokens])[0]
        queries, keys = self.preprocessor.name_places(tokens, tags)
        figure = visualization.attention_map(
            weights,
            queries,
            keys,
            title=f"{layer}: what each token (with its predicted tag) looked at",
            path=path,
        )
        return AttentionMaps(dict(maps), queries, keys, figure)


def marks_entities(labels):
    """Return whether labels are BIO tags, or the like: `O`, and others such as `B-person`."""
    return "O" in labels and len(labels) > 1 and all(map(is_entity_tag, labels))


def place_entities(entities, text, pattern=None):
    """Add to entities the characters that they are in a text; a list of tokens has none."""
    if not isinstance(text, str):
        return entities
    spans = [span for _, span in find_words(text, pattern)]
    return [
        one._replace(characters=(spans[one.start][0], spans[one.end - 1][1])) for one in entities
    ]


def find_entities(tokens):
    """Return the entities that BIO tags, or tags of BIOES, BILOU or BMES, mark in a sentence.

    Args:
        tokens: list of `TaggedToken`.

    Returns:
        list of `Entity`.
    """
    return [
        Entity(
            " ".join(token.token for token in tokens[start:end]),
            label,
            start,
            end,
            min(token.probability for token in tokens[start:end]),
        )
        for start, end, label in find_spans([token.tag for token in tokens])
    ]
