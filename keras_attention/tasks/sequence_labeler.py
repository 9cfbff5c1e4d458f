"""`SequenceLabeler`: predicts a tag for every token of a sentence."""

import typing

import numpy as np

from keras_attention import data, training
from keras_attention.core.entity_tags import find_forbidden, find_spans, is_entity_tag
from keras_attention.core.lazy import blocks, keras, keras_internals, models
from keras_attention.data.preprocessors.tagger import check_tags
from keras_attention.data.tokenizers.vocabulary import find_words
from keras_attention.files.io import prefix_errors
from keras_attention.tasks.explaining import Choice, RecordedExample
from keras_attention.tasks.interface import draw_map
from keras_attention.tasks.labels import make_accuracy, make_balanced_loss
from keras_attention.tasks.runners import compute_each, softmax
from keras_attention.tasks.sentence_task import SentenceTask, build_preprocessor, size_characters
from keras_attention.training.scores.class_scores import score_tags


class TaggedToken(typing.NamedTuple):
    """A token, its tag, and the probability of the tag from 0 to 1.

    For a model with a conditional random field, `probability` compares the tag with the other tags
    of the token. The tags before it stay the same, and each tag is scored with its best
    continuation.
    """

    token: str
    tag: str
    probability: float


class Entity(typing.NamedTuple):
    """A named entity, such as a person: the tokens `tokens[start:end]` of a sentence.

    `text` is the entity as a str, and `label` its kind. `probability` is the lowest probability
    among its tokens. If the sentence is a str, `characters` is (start, end), so that
    `sentence[start:end]` is the entity. If the sentence is a list of tokens, `characters` is None.
    """

    text: str
    label: str
    start: int
    end: int
    probability: float
    characters: tuple | None = None


class SequenceLabeler(SentenceTask):
    """Predicts a tag for every token of a sentence: parts of speech, entities, chunks.

    Args:
        model: functional `keras.Model`, such as `ka.models.sequence_labeler`. Its input is token
            ids (B, T), or a dict with `token_ids` (B, T) and `character_ids` (B, T, characters).
            Its output is logits (B, T, L) for L tags.
        preprocessor: `ka.data.TaggerPreprocessor`.
        maximum_length: int, the maximum number of tokens in a sentence.
        builder: str, the function that built the model, a name in the attribute `builders`. None is
            the first.

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
        if recipe.data.crf and keywords.setdefault("head", "crf") != "crf":
            raise ValueError(
                f"crf=True and head={keywords['head']!r} are both heads. Leave one of the two out."
            )
        if keywords.get("head") == "crf":
            keywords["head"] = make_crf(preprocessor.labels.names)
        model = models.sequence_labeler(
            len(preprocessor.tokenizer), len(preprocessor.labels), **keywords
        )
        return model, preprocessor, dict(maximum_length=recipe.data.max_length)

    def replace_head(self, labels):
        """Return a copy of the model with new, untrained last layers for the tags `labels`."""
        if find_crf(self.model) is None:
            return super().replace_head(labels)
        emissions, *_ = keras_internals.inputs_of(self.model.output)  # and the mask
        model = keras.Model(self.model.input, emissions, name=self.model.name)
        model = models.replace_head(model, len(labels))
        logits = make_crf(labels)(model.output)
        return keras.Model(model.input, logits, name=model.name)

    def make_loss(self, recipe, train):
        labels, crf = self.preprocessor.labels, find_crf(self.model)
        tags = [tag for sentence in train for tag in sentence.tags]
        options = {}
        if crf is not None:
            options = dict(loss=training.CRFLoss, label_smoothing=0.0)
            check_transitions(train, crf.scheme)
        return make_balanced_loss(recipe, lambda: labels.ids(tags), len(labels), **options)

    def make_metrics(self):
        """Return the metrics: the F1 of entities, if the tags mark entities, and token accuracy.

        The first metric selects the best epoch.
        """
        labels = list(self.preprocessor.labels.names)
        if not marks_entities(labels):
            return [make_accuracy]
        return [lambda: training.EntityF1(labels), make_accuracy]

    def compute_scores(self, examples, where):
        """Compute token accuracy, macro F1, and the F1 of entities if the tags mark entities.

        `examples` is a list of `Sentence`. Error messages begin with `where`, a str.
        """
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
        """Tag the tokens of each sentence.

        Args:
            inputs: list of sentences, each a str or a list of tokens.
            group_entities: bool, whether to return entities instead of tokens. This requires tags
                that mark entities, such as `B-person`, `I-person` and `O`.

        Returns:
            A list with one list for each sentence. The inner list contains a `TaggedToken` for each
            token, or an `Entity` for each entity if `group_entities` is True.

        Raises:
            ValueError: a sentence is too long. The message contains its number (from 1). All
                sentences are checked before the first prediction.
        """
        if group_entities and not marks_entities(self.preprocessor.labels.names):
            raise ValueError(
                "group_entities= is for tags such as B-person, I-person and O; this model's are "
                f"{', '.join(self.preprocessor.labels.names[:5])}, ...: leave it out."
            )
        sentences = self.split_sentences(inputs)
        logits = self._compute_logits(sentences)
        tagged = []
        for tokens, row in zip(sentences, logits, strict=True):
            tags = self.preprocessor.tags([row], [tokens])[0]
            shares = softmax(self.preprocessor.word_logits(row, tokens)).max(axis=-1)
            tagged.append(
                [TaggedToken(*word) for word in zip(tokens, tags, map(float, shares), strict=True)]
            )
        if not group_entities:
            return tagged
        return [
            place_entities(find_entities(tokens), text, self.preprocessor.pattern)
            for tokens, text in zip(tagged, inputs, strict=True)
        ]

    def _compute_logits(self, sentences):
        return compute_each(self.runner, self.preprocessor, sentences, list(map(len, sentences)))

    def record_example(self, example):
        (tokens,) = self.split_sentences([example])
        crf, model = find_crf(self.model), self.model
        if crf is not None:  # its output for the best tags is 0, without a gradient
            model = keras.Model(model.input, keras.tree.flatten(crf.input)[0])
        recorded = RecordedExample.run(model, self.preprocessor([tokens]))
        logits = recorded.logits if crf is None else np.asarray(crf(recorded.logits))
        tags = self.preprocessor.tags(logits, [tokens])[0]
        queries, keys = self.preprocessor.name_places(tokens, tags)
        choices = [
            Choice(queries[place], (place, self.preprocessor.labels.index(tag)), int(place))
            for place, tag in zip(self.preprocessor.encode(tokens)[1], tags, strict=True)
        ]
        return recorded._replace(tokens=keys, outputs=queries, choices=choices)

    def attention(self, example, path=None):
        recorded = self.record_example(example)
        caption = "what each token (with its predicted tag) attended to"
        return draw_map(recorded.maps, recorded.outputs, recorded.tokens, caption, path)


def marks_entities(labels):
    """Return whether all labels are tags of entities, such as `O`, `B-person` and `I-person`."""
    return "O" in labels and len(labels) > 1 and all(map(is_entity_tag, labels))


def make_crf(labels):
    """Return a `ConditionalRandomField` for tags, a layer that scores sequences of tags.

    `labels` are the names of the tags. If they mark entities (as in BIO), the layer excludes
    invalid sequences of tags.
    """
    labels = list(labels) if marks_entities(labels) else None
    return blocks.ConditionalRandomField(labels, name="logits", dtype="float32")


def find_crf(model):
    """Return the `ConditionalRandomField` that is the last layer of a model, or None."""
    layer = keras_internals.producer(model.outputs[0])
    return layer if isinstance(layer, blocks.ConditionalRandomField) else None


def check_transitions(sentences, scheme):
    """Raise a ValueError if a sentence has tags in an order that a tag scheme forbids.

    `sentences` is a list of `ka.data.Sentence`. `scheme` is a name of a scheme, or None, which
    allows everything.
    """
    for tokens, tags in sentences if scheme else ():
        if (k := find_forbidden(tags, scheme)) is not None:
            before, tag = ([*tags, "the end"][i] if i >= 0 else "the start" for i in (k - 1, k))
            raise ValueError(
                f"The training sentence {' '.join(tokens)[:60]!r} has {tag} after {before} (tag "
                f"{k + 1}), and the scheme {scheme!r} forbids that. Correct the tags, or build the "
                "model with head=ka.blocks.ConditionalRandomField(), which allows all transitions."
            )


def place_entities(entities, text, pattern=None):
    """Add to each `Entity` its position in the sentence, the field `characters`.

    Args:
        entities: list of `Entity`.
        text: str, the sentence, or a list of tokens, for which `entities` are returned unchanged.
        pattern: str, the regular expression that splits the sentence into words. None uses the
            default.
    """
    if not isinstance(text, str):
        return entities
    spans = [span for _, span in find_words(text, pattern)]
    return [
        entity._replace(characters=(spans[entity.start][0], spans[entity.end - 1][1]))
        for entity in entities
    ]


def find_entities(tokens):
    """Convert a list of `TaggedToken`s with tags such as BIO or BIOES to a list of `Entity`."""
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
