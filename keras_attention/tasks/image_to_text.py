"""`ImageToText`: pictures, and texts about them: captions, or their objects as tokens."""

import numpy as np

from keras_attention import data
from keras_attention.core.checks import check_many, check_whole_number
from keras_attention.core.lazy import models, visualization
from keras_attention.data.preprocessors.objects_as_text import BINS, MOST_BINS, find_objects
from keras_attention.data.tokenizers.building import build_tokenizer
from keras_attention.data.tokenizers.subwords import UNKNOWN_ID
from keras_attention.tasks.generators import FileGenerator, ModelGenerator
from keras_attention.tasks.interface import AttentionMaps
from keras_attention.tasks.labels import make_accuracy
from keras_attention.tasks.pictures import (
    check_picture_fields,
    describe_pictures,
    find_channels,
    find_grid,
    fit_image_size,
    read_picture_sizes,
)
from keras_attention.tasks.running_text import make_perplexity
from keras_attention.tasks.task import Task
from keras_attention.tasks.writing import (
    FINISHING_SECONDS,
    Writing,
    check_score,
    write_with_attention,
)
from keras_attention.training.scores.boxes import score_boxes
from keras_attention.training.scores.texts import check_scorer, score_texts

ROWS = 16  # pictures at a time
PICTURED = 14  # tokens


class ImageToText(Task):
    """Writes what is in a picture, word by word.

    Where the data are boxes, the text names objects, each by the four sides of its box and its
    class (`ka.data.describe_objects`), and `ka.data.find_objects` reads it: detection as a task of
    language (Chen et al., 2022, *Pix2Seq*).

    Args:
        model: functional `keras.Model`, as `ka.models.image_to_sequence`.
        preprocessor: `ka.data.ImageTextPreprocessor`.
        writing: `ka.tasks.Writing`, the search and its limits.
        score: `"bleu"` of captions, `"exact_match"`, or `"map"` of objects.
        labels: names of the classes, where texts name objects; None else.
        bins: int, the places along a side that such texts know.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    dark, light = np.zeros((8, 8, 1), "float32"), np.ones((8, 8, 1), "float32")
    pictures = [(dark, "a dark night"), (light, "a day")] * 20
    size = dict(patch_size=4, num_layers=1, num_heads=2, hidden_dim=16, dropout=0.0)
    task = ka.tasks.ImageToText.from_data(
        pictures,
        image_size=(8, 8),
        embedding={"stem_filters": ()},
        score="exact_match",
        beam=1,
        **size,
    )
    task.fit(pictures, epochs=8, batch_size=8, learning_rate=0.02, verbose=False)
    assert task.predict([light, dark]) == ["a day", "a dark night"]
    ```
    """

    builders = ("image_to_sequence",)
    example_kind, holds, example = data.CaptionedImage, "pictures with texts", "picture.png"
    unit = "images"
    score_names = ("bleu", "exact_match", "map")

    predict_options, rows = ("beam",), ROWS
    finishing_seconds = FINISHING_SECONDS

    def __init__(
        self, model, preprocessor, *, writing=None, score=None, labels=None, bins=BINS, builder=None
    ):
        super().__init__(model, preprocessor, builder=builder)
        self.writing = Writing() if writing is None else writing
        self.score = check_score(self, score)
        if (self.score == "map") != (labels is not None):
            raise ValueError(
                f"ImageToText(score={self.score!r}, labels={labels!r}): expected labels, the "
                "classes of the objects, with 'map' alone."
            )
        self.labels = None if labels is None else tuple(labels)
        self.bins = check_whole_number("ImageToText", "bins", bins, least=2, most=MOST_BINS)

    @classmethod
    def make_parts(cls, data_set, recipe, builder):
        options, train = recipe.data, data_set.train
        bins = data_set.about.get("bins", BINS)
        score = options.score if data_set.labels is None else "map"
        check_scorer(score)
        texts = [text for example in train for text in example.texts]
        if data_set.labels is not None:
            places = [f"<{k}>" for k in range(bins)]
            target = data.Words.build([*texts, " ".join(places)])
        else:
            target = build_tokenizer(options.tokens, texts, options.vocabulary_size)
        keywords = recipe.list_keywords(models.ImageEmbedding)
        size = data_set.about.get("image_size") or options.image_size
        if not isinstance(size, tuple | list):
            known = all(example.size is not None for example in train)
            size = fit_image_size(train, size, keywords) if known else (size, size)
        channels = keywords.setdefault("num_channels", find_channels(train))
        preprocessor = data.ImageTextPreprocessor(target, tuple(size), channels)
        longest = options.max_length
        if longest is None:
            longest = max(map(len, preprocessor.target_ids(texts))) - 1  # without BEGIN
        return (
            models.image_to_sequence(tuple(size), len(target), **keywords),
            preprocessor,
            dict(
                writing=Writing(options.beam, options.length_penalty, longest),
                score=score,
                labels=data_set.labels,
                bins=bins,
            ),
        )

    @classmethod
    def read_settings(cls, fields):
        check_picture_fields(fields)
        about = {
            "writing": Writing.read(fields.object("writing")),
            "score": fields.one_of("score", cls.score_names),
        }
        if about["score"] == "map":
            bins = fields.whole("bins", least=2, most=MOST_BINS, default=BINS)
            about |= {"labels": fields.texts("labels"), "bins": bins}
        return about

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        return data.ImageTextPreprocessor.load(folder, **read_picture_sizes(folder, manifest))

    @property
    def settings(self):
        about = {} if self.labels is None else {"labels": list(self.labels), "bins": self.bins}
        return {
            "score": self.score,
            "writing": self.writing.describe(self.preprocessor),
            **about,
            **describe_pictures(self.preprocessor),
        }

    def adapt(self, data_set):
        """Refuses objects of other classes, or places, than the model's words name."""
        if data_set.labels is not None and not set(data_set.labels) <= set(self.labels or ()):
            raise ValueError(
                f"The classes {', '.join(data_set.labels)}: this model writes "
                f"{', '.join(self.labels or ('captions',))}. Train a new one: "
                "ImageToText.from_data(data)."
            )
        bins = data_set.about.get("bins", BINS)
        if data_set.labels is not None and bins != self.bins:
            raise ValueError(
                f"Texts with {bins} places along a side: this model knows {self.bins}. "
                f"Make them with ka.data.caption_objects(data, bins={self.bins})."
            )
        return ()

    def describe_data(self, data_set):
        """Return how many texts are too long to train on, and words unknown, if any are."""
        texts = [text for one in data_set.train for text in one.texts]
        short = self.select(data_set.train, "The train part", training=True)
        kept = [text for one in short for text in one.texts]
        said = []
        if left := len(texts) - len(kept):
            limit = self.writing.max_new_tokens
            said.append(f"{left:,} texts of more than {limit} tokens were not trained on")
        if isinstance(self.preprocessor.target, data.Words):
            ids = self.preprocessor.target.encode(texts)
            if unknown := sum(int((row == UNKNOWN_ID).sum()) for row in ids):
                count = sum(map(len, ids))
                said.append(f"{unknown:,} of the texts' {count:,} words are unknown to the model")
        return tuple(said)

    def select(self, examples, where, training=False):
        """Return the pictures to train on with those of their texts that are short enough."""
        if not training:
            return examples
        kept, most = [], self.writing.max_new_tokens
        for example in examples:
            ids = self.preprocessor.target_ids(example.texts)
            pairs = zip(example.texts, ids, strict=True)
            texts = tuple(text for text, row in pairs if len(row) - 1 <= most)
            if texts:
                kept.append(example._replace(texts=texts))
        if not kept:
            raise ValueError(
                f"Every text to train on has more than {most} tokens: train with a larger "
                "max_length=."
            )
        return kept

    def open_runner(self, path):
        return FileGenerator(path, self.metadata)

    def wrap_model(self, model, path=None):
        return ModelGenerator(model, self.metadata, path)

    def make_metrics(self):
        """Of given texts: the share of tokens chooses the epoch."""
        return [make_accuracy, make_perplexity]

    def make_examples(self):
        """Return two grey pictures with the beginnings of texts."""
        shape = (*self.preprocessor.image_size, self.preprocessor.channels)
        images = np.random.default_rng(0).uniform(size=(2, *shape)).astype("float32")
        begin = self.preprocessor.start_token_id
        return [{"images": images, "target_ids": np.array([[begin, 4, 4]] * 2, "int32")}]

    def compute_scores(self, examples, where):
        """Compute scores of captions, or mean average precision of objects."""
        if not examples:
            return {}
        written = self.predict([example.image for example in examples])
        if self.score != "map":
            return score_texts(self.score, written, [example.texts for example in examples])
        pairs = zip(written, examples, strict=True)
        found = [
            find_objects(text, example.size, self.labels, self.bins) for text, example in pairs
        ]
        wanted = [list(example.objects) for example in examples]
        scores = score_boxes(wanted, found, labels=self.labels)
        return {name: round(scores[name], 6) for name in ("map", "map50", "map75")}

    def predict(self, inputs, *, beam=None):
        """Return the texts that the model writes about pictures.

        Args:
            inputs: list of paths, or of arrays (H, W, C) of any size, uint8 or floats from 0 to 1.
            beam: int, how many texts the search holds; None for the task's own.

        Returns:
            A str for each. Where it names objects, `ka.data.find_objects` reads it.
        """
        check_many(inputs, "picture", ndim=3)
        texts = []
        for start in range(0, len(inputs), ROWS):
            ids = self.runner(self.preprocessor(inputs[start : start + ROWS]), beam)
            texts += self.preprocessor.texts(ids)
        return texts

    def attention(self, example, path=None):
        """The picture shows where each token that was written looked, over the heads' mean."""
        pixels, _ = self.preprocessor.read(example)
        maps, layer, weights, words = write_with_attention(self, {"images": pixels[None]})
        figure = visualization.words_map(
            pixels,
            weights[:, :, :PICTURED],
            words[:PICTURED],
            grid=find_grid(self.model.get_layer("encoder"), self.preprocessor.image_size),
            title=f"{layer}: where each token that was written looked",
            path=path,
        )
        return AttentionMaps(maps, words, None, figure)

    def find_pictured(self, data_set):
        return (data_set.test or data_set.dev)[0].image
