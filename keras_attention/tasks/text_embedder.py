"""`TextEmbedder`: converts texts to vectors, and searches texts by them."""

import dataclasses
import typing

import numpy as np

from keras_attention import data, training
from keras_attention.core.checks import check_many, check_whole_number
from keras_attention.core.lazy import blocks, keras, models
from keras_attention.data.preprocessors.text_pairs import ROLES, has_negatives, list_texts
from keras_attention.export import inspection
from keras_attention.files.fields import MOST_TOKENS
from keras_attention.files.io import prefix_errors
from keras_attention.tasks.text_task import TextTask

TEMPERATURE, LEAST_TEMPERATURE = 0.05, 0.01
ROWS = 256  # queries that are compared with the corpus at once
EDGES = (16, 32, 64, 128, 256)  # fewer lengths than in other tasks, so that batches are full


class FoundText(typing.NamedTuple):
    """A text of a corpus that a search has found.

    `index` is its index in the corpus, and `score` the cosine with the query, from -1 to 1.
    """

    index: int
    text: str
    score: float


class TextEmbedder(TextTask):
    """Converts texts to vectors of length 1, whose dot product is large for similar meanings.

    Use it for search, clustering and the detection of duplicates. `fit` trains it on pairs of texts
    that match, such as questions and answers or sentences and translations. The other pairs of a
    batch are the negatives (`ka.training.InfoNCE`), so larger batches train better. The temperature
    of the loss is learned, too.

    Args:
        model: functional `keras.Model` that converts token ids (B, T) to vectors (B, D), such as
            `ka.models.text_encoder` with `pooling`.
        preprocessor: `ka.data.TextPairPreprocessor`.
        temperature: float, the temperature at the beginning of the next training.
        dimensions: list of ints, the sizes of vectors that the model was trained for. None if it
            was trained only for size D.
        builder: str, the function that built the model, a name in the attribute `builders`. None is
            the first.

    `from_data` and `fit` have one hyperparameter of their own, `dimensions`. With `(384, 128, 64)`,
    the first 128 and the first 64 components of a vector are trained to be vectors themselves
    (Kusupati et al., 2022), and the loss is the mean over the three sizes. The whole vector is
    always trained, too.

    Example:

    ```python
    import keras_attention as ka

    pairs = [("reset my password", "how to change a password"), ("opening hours", "when we open")]
    task = ka.tasks.TextEmbedder.from_data(
        pairs * 8, num_layers=1, num_heads=2, hidden_dim=16, dropout=0.0, min_count=1
    )
    task.fit(pairs * 8, epochs=6, learning_rate=0.01, verbose=False)
    corpus = ["when we open", "how to change a password"]
    ((best,),) = task.search(["reset my password"], corpus, top_k=1)
    assert best.index == 1 and best.text == corpus[1]
    assert task.predict(corpus).shape == (2, 16)
    ```
    """

    builders = ("text_embedder",)
    example_kind, holds, unit = data.MatchingTexts, "texts with matching texts", "pairs"
    example = "How do I reset my password?"

    def __init__(
        self, model, preprocessor, *, temperature=TEMPERATURE, dimensions=None, builder=None
    ):
        super().__init__(model, preprocessor, builder=builder)
        if dimensions is None:
            dimensions = model.output_shape[-1:]
        self.dimensions = tuple(dimensions)
        self._temperature, self._logits = float(temperature), None
        self._negatives = None

    @classmethod
    def make_parts(cls, data_set, recipe, builder):
        options = recipe.data
        preprocessor = data.TextPairPreprocessor.build(
            data_set.train,
            min_count=options.min_count,
            max_size=options.max_size,
            lowercase=options.lowercase,
            maximum_length=options.max_length,
        )
        model = models.text_encoder(len(preprocessor.tokenizer), **recipe.list_keywords())
        return model, preprocessor, {}

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        return data.TextPairPreprocessor.load(folder)

    @classmethod
    def read_settings(cls, fields):
        sizes = fields.get("dimensions")
        count = len(sizes) if isinstance(sizes, list) and sizes else 1
        return {
            "temperature": fields.number("temperature", least=LEAST_TEMPERATURE),
            "dimensions": fields.wholes("dimensions", count, most=MOST_TOKENS),
        }

    @property
    def settings(self):
        return {"temperature": round(self.temperature, 6), "dimensions": list(self.dimensions)}

    @property
    def temperature(self):
        """float, the divisor of cosines in the loss. Training changes this number."""
        if self._logits is None or not self._logits.built:
            return self._temperature
        return float(np.exp(-keras.ops.convert_to_numpy(self._logits.logit_scale)))

    def list_texts(self, examples):
        return list_texts(examples)

    # Training on pairs.

    def make_job(self, train, dev, recipe):
        width = self.model.output_shape[-1]
        sizes = recipe.data.dimensions or self.dimensions
        for size in sizes:
            check_whole_number(type(self).__name__, "dimensions", size, most=width)
        temperature = self.temperature
        self.dimensions = tuple(sorted({width, *sizes}, reverse=True))
        self._logits = blocks.ContrastiveLogits(
            max(temperature, LEAST_TEMPERATURE), self.dimensions, dtype="float32", name="logits"
        )
        self._negatives = has_negatives(train)
        job = super().make_job(train, dev, recipe)
        return dataclasses.replace(job, model=self._join_texts())

    def _join_texts(self):
        """Return a model from the texts of a batch of pairs to the logits of `InfoNCE`."""
        given = self.model.input
        given = given if isinstance(given, dict) else {"token_ids": given}
        inputs, vectors = {}, []
        for role in ROLES if self._negatives else ROLES[:2]:
            own = {
                name: keras.Input(x.shape[1:], dtype=x.dtype, name=f"{role}_{name}")
                for name, x in given.items()
            }
            inputs |= {x.name: x for x in own.values()}
            vectors.append(self.model(own if len(own) > 1 else own["token_ids"]))
        queries, *documents = vectors
        if len(documents) > 1:
            documents = [keras.layers.Concatenate(axis=0, name="documents")(documents)]
        return keras.Model(inputs, self._logits(queries, *documents), name=self.model.name)

    @property
    def batch_preprocessor(self):
        return _Pairs(self.preprocessor, self._negatives)

    def make_training_batches(self, examples, recipe):
        options = {"shuffle": True, "seed": recipe.seed, "edges": EDGES}
        return data.batches(examples, self.batch_preprocessor, recipe.batch_size, **options)

    def take_inputs(self, batches, count):
        """Return inputs of single texts, first that of the query and then that of its match."""
        texts = []
        for inputs in super().take_inputs(batches, count):
            for prefix in (f"{role}_" for role in ROLES[:2]):
                own = {k.removeprefix(prefix): x for k, x in inputs.items() if k.startswith(prefix)}
                texts.append(own if len(own) > 1 else own["token_ids"])
        return texts

    def make_loss(self, recipe, train):
        return training.InfoNCE()

    def make_metrics(self):
        return [training.ContrastiveAccuracy]

    def make_exportable(self, model):
        unit = keras.layers.UnitNormalization(name="unit_vector")(model.output)
        return keras.Model(model.input, unit, name=model.name)

    def check_runner(self, path, run):
        vocabularies = {"token_ids": self.preprocessor.vocabulary_size}
        inspection.check_sizes(run.inspection, vocabularies=vocabularies)

    # Results.

    def compute_scores(self, examples, where):
        """Compute the scores of a search: find the matching text of each text.

        `examples` is a list of `MatchingTexts`. The corpus of the search is all distinct matching
        texts and hard negatives. `ka.training.score_retrieval` defines the scores. Error messages
        begin with `where`, a str.
        """
        if not examples:
            return {}
        queries, corpus, relevant = {}, {}, []
        for one in examples:
            number = queries.setdefault(one.text, len(queries))
            if number == len(relevant):
                relevant.append(set())
            relevant[number].add(corpus.setdefault(one.match, len(corpus)))
        for text in list_texts(examples):
            if text not in queries:
                corpus.setdefault(text, len(corpus))
        with prefix_errors(where):
            vectors, documents = self.predict(list(queries)), self.predict(list(corpus))
        scores = training.score_retrieval(compare_vectors(vectors, documents), relevant)
        return {name: round(value, 6) for name, value in scores.items()}

    def predict(self, inputs, *, dimension=None):
        """Convert texts to vectors.

        Args:
            inputs: list of N str.
            dimension: int, the number of components, one of `dimensions`. None is all of them.

        Returns:
            Vectors of length 1, float32 (N, D).
        """
        check_many(inputs, "text", of="str")
        self._check_dimension(dimension)
        size = self.dimensions[0]
        vectors = np.reshape(self.compute_outputs(inputs), (len(inputs), -1 if inputs else size))
        return scale_to_unit(np.asarray(vectors[:, :dimension], "float32"))

    def search(self, queries, corpus, top_k=5, *, vectors=None, dimension=None):
        """Find the texts of a corpus that are most similar to each query.

        Args:
            queries: list of str.
            corpus: list of str, the texts to search in.
            top_k: int, the number of results for each query.
            vectors: float array (N, D), the result of `predict` for the N texts in `corpus`. It
                saves time if you search again. None computes the vectors.
            dimension: int, the number of components to compare, one of `dimensions`. None is all.

        Returns:
            A list with a list of `FoundText` for each query, sorted by decreasing score.

        Raises:
            ValueError: `vectors` does not have the shape for `corpus`.
        """
        name = f"{type(self).__name__}.search"
        check_whole_number(name, "top_k", top_k)
        check_many(corpus, "text", of="str")
        found = self.predict(queries, dimension=dimension)
        if vectors is None:
            vectors = self.predict(corpus, dimension=dimension)
        vectors, width = np.asarray(vectors, "float32"), found.shape[1]
        if vectors.ndim != 2 or len(vectors) != len(corpus) or vectors.shape[1] < width:
            raise ValueError(
                f"{name}(vectors=...): an array of shape {vectors.shape} for {len(corpus)} texts: "
                f"expected {(len(corpus), width)}. Compute it with predict(corpus)."
            )
        results = []
        for scores in compare_vectors(found, scale_to_unit(vectors[:, :width])):
            order = np.argsort(-scores, kind="stable")[:top_k]
            results.append([FoundText(int(i), corpus[i], float(scores[i])) for i in order])
        return results

    def _check_dimension(self, dimension):
        if dimension not in (None, *self.dimensions):
            sizes = ", ".join(map(str, self.dimensions))
            raise ValueError(
                f"{type(self).__name__}: dimension={dimension!r}: expected one of {sizes}, the "
                "sizes that the model was trained for. Train others with fit(dimensions=...)."
            )


class _Pairs(typing.NamedTuple):
    """A preprocessor that includes hard negatives in all batches, or in none.

    `preprocessor` is a `TextPairPreprocessor`, and `negatives` the argument of its `columns`.
    """

    preprocessor: data.TextPairPreprocessor
    negatives: bool | None

    def columns(self, pairs):
        """Convert a list of `MatchingTexts` to `Columns`."""
        return self.preprocessor.columns(pairs, self.negatives)


def scale_to_unit(vectors):
    """Scale vectors (N, D) to length 1. Vectors of zeros stay zeros."""
    lengths = np.sqrt(np.sum(np.square(vectors), axis=1, keepdims=True))
    return vectors / np.maximum(lengths, 1e-12)


def compare_vectors(queries, documents):
    """Yield the products (C,) of each of the queries (Q, D) with all documents (C, D)."""
    for start in range(0, len(queries), ROWS):
        yield from queries[start : start + ROWS] @ documents.T
