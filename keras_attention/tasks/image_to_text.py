"""`ImageToText`: generates a caption for each image, or lists its objects as text."""

import numpy as np

from keras_attention import data
from keras_attention.core.checks import check_many, check_whole_number
from keras_attention.core.lazy import models, visualization
from keras_attention.data.preprocessors.objects_as_text import BINS, MOST_BINS, find_objects
from keras_attention.data.tokenizers.building import build_tokenizer
from keras_attention.data.tokenizers.subwords import UNKNOWN_ID
from keras_attention.tasks.interface import AttentionMaps
from keras_attention.tasks.labels import make_accuracy, make_perplexity
from keras_attention.tasks.pictures import (
    check_picture_fields,
    choose_image_size,
    describe_pictures,
    find_channels,
    find_grid,
    read_picture_sizes,
)
from keras_attention.tasks.writing import Writing
from keras_attention.tasks.writing_task import WritingTask
from keras_attention.training.scores.boxes import score_boxes
from keras_attention.training.scores.texts import check_scorer, score_texts

ROWS = 16  # images per batch
PICTURED = 14  # maximum number of tokens in a figure


class ImageToText(WritingTask):
    """Generates a text about an image, token by token, such as a caption.

    The text may also list the objects in the image (Chen et al., 2022, *Pix2Seq*): the four sides
    of each box and its class, in the format of `ka.data.describe_objects`. `ka.data.find_objects`
    converts such a text to boxes.

    Args:
        model: functional `keras.Model`, such as `ka.models.image_to_sequence`.
        preprocessor: `ka.data.ImageTextPreprocessor`.
        writing: `ka.tasks.Writing`, the settings of beam search. None uses the defaults.
        score: str, the score that `evaluate` computes: `"bleu"` for captions, `"exact_match"`, or
            `"map"` (mean average precision) for objects. None selects `"bleu"`.
        labels: list of str, the class names of the objects. None if the text is not a list of
            objects. Required if and only if `score` is `"map"`.
        bins: int, the number of values that a coordinate in a list of objects can have.
        builder: str, the name of the function of `ka.models` that built the model, one of the
            class attribute `builders`. It is stored with the task, and chooses the recipe of
            `fit`. None is the first of them.

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
    example_kind, holds, example = data.CaptionedImage, "images with text", "picture.png"
    unit = "images"
    score_names = ("bleu", "exact_match", "map")

    predict_options, rows = ("beam",), ROWS

    def __init__(
        self, model, preprocessor, *, writing=None, score=None, labels=None, bins=BINS, builder=None
    ):
        super().__init__(model, preprocessor, writing=writing, score=score, builder=builder)
        if (self.score == "map") != (labels is not None):
            raise ValueError(
                f"ImageToText(score={self.score!r}, labels={labels!r}): expected labels, the class "
                "names of the objects, if and only if the score is 'map'."
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
            positions = [f"<{k}>" for k in range(bins)]
            target = data.Words.build([*texts, " ".join(positions)])
        else:
            target = build_tokenizer(options.tokens, texts, options.vocabulary_size)
        keywords = recipe.list_keywords(models.ImageEmbedding)
        size = choose_image_size(data_set, options.image_size, keywords)
        channels = keywords.setdefault("num_channels", find_channels(train))
        preprocessor = data.ImageTextPreprocessor(target, size, channels)
        longest = options.max_length
        if longest is None:
            longest = max(map(len, preprocessor.target_ids(texts))) - 1  # without BEGIN
        settings = {
            "writing": Writing(options.beam, options.length_penalty, longest),
            "score": score,
            "labels": data_set.labels,
            "bins": bins,
        }
        model = models.image_to_sequence(size, len(target), **keywords)
        return model, preprocessor, settings

    @classmethod
    def read_settings(cls, fields):
        check_picture_fields(fields)
        settings = super().read_settings(fields)
        if settings["score"] == "map":
            bins = fields.whole("bins", least=2, most=MOST_BINS, default=BINS)
            settings |= {"labels": fields.texts("labels"), "bins": bins}
        return settings

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        return data.ImageTextPreprocessor.load(folder, **read_picture_sizes(folder, manifest))

    @property
    def settings(self):
        objects = {} if self.labels is None else {"labels": list(self.labels), "bins": self.bins}
        return super().settings | objects | describe_pictures(self.preprocessor)

    def adapt(self, data_set):
        """Raise a ValueError if the model cannot write the classes or coordinates of a dataset.

        `data_set` is the `DataSet` to train on. The method returns (), because nothing changes.
        """
        if data_set.labels is not None and not set(data_set.labels) <= set(self.labels or ()):
            raise ValueError(
                f"The classes are {', '.join(data_set.labels)}, and this model writes "
                f"{', '.join(self.labels or ('captions',))}. Train a new one with "
                "ImageToText.from_data(data)."
            )
        bins = data_set.about.get("bins", BINS)
        if data_set.labels is not None and bins != self.bins:
            raise ValueError(
                f"The captions have {bins} positions along a side, and this model has "
                f"{self.bins}. Make them with ka.data.caption_objects(data, bins={self.bins})."
            )
        return ()

    def describe_data(self, data_set):
        """Return a tuple of str, notes on captions that are too long and on unknown words.

        `data_set` is a `DataSet` of `CaptionedImage`.
        """
        texts = [text for one in data_set.train for text in one.texts]
        short = self.select(data_set.train, "The train part", training=True)
        count_short = sum(len(one.texts) for one in short)
        notes = []
        if long := len(texts) - count_short:
            limit = self.writing.max_new_tokens
            notes.append(f"{long:,} captions of more than {limit} tokens were not trained on")
        if isinstance(self.preprocessor.target, data.Words):
            ids = self.preprocessor.target.encode(texts)
            if unknown := sum(int((row == UNKNOWN_ID).sum()) for row in ids):
                count = sum(map(len, ids))
                notes.append(
                    f"{unknown:,} of the {count:,} words in the captions are unknown to the model"
                )
        return tuple(notes)

    def select(self, examples, where, training=False):
        """Remove captions that are too long for training, and return the other examples.

        `examples` is a list of `CaptionedImage`. Images without another caption are left out. If
        `training` is False, `examples` are returned unchanged. Error messages begin with `where`, a
        str.
        """
        if not training:
            return examples
        pictures, most = [], self.writing.max_new_tokens
        for example in examples:
            ids = self.preprocessor.target_ids(example.texts)
            pairs = zip(example.texts, ids, strict=True)
            texts = tuple(text for text, row in pairs if len(row) - 1 <= most)
            if texts:
                pictures.append(example._replace(texts=texts))
        if not pictures:
            raise ValueError(
                f"Every text to train on has more than {most} tokens: train with a larger "
                "max_length=."
            )
        return pictures

    def make_metrics(self):
        """Return metrics of each predicted token, given the correct tokens before it.

        Token accuracy selects the best epoch.
        """
        return [make_accuracy, make_perplexity]

    def make_examples(self):
        """Return a batch for checking an export: two images of noise with a few target ids."""
        shape = (*self.preprocessor.image_size, self.preprocessor.channels)
        images = np.random.default_rng(0).uniform(size=(2, *shape)).astype("float32")
        begin = self.preprocessor.start_token_id
        return [{"images": images, "target_ids": np.array([[begin, 4, 4]] * 2, "int32")}]

    def compute_scores(self, examples, where):
        """Compute the score of the captions, or the mean average precision of the objects.

        `examples` is a list of `CaptionedImage`. Error messages begin with `where`, a str.
        """
        if not examples:
            return {}
        written = self.predict([example.image for example in examples])
        if self.score != "map":
            return score_texts(self.score, written, [example.texts for example in examples])
        pairs = zip(written, examples, strict=True)
        predicted = [
            find_objects(text, example.size, self.labels, self.bins) for text, example in pairs
        ]
        actual = [list(example.objects) for example in examples]
        scores = score_boxes(actual, predicted, labels=self.labels)
        return {name: round(scores[name], 6) for name in ("map", "map50", "map75")}

    def predict(self, inputs, *, beam=None):
        """Generate a text for each image.

        Args:
            inputs: list of paths, or of arrays (H, W, C) of any size, uint8 or floats from 0 to 1.
            beam: int, the beam width. None uses the beam width in the task's `writing`.

        Returns:
            A list with a str for each image. `ka.data.find_objects` converts a list of objects to
            boxes.
        """
        check_many(inputs, "image", ndim=3)
        texts = []
        for start in range(0, len(inputs), ROWS):
            ids = self.runner(self.preprocessor(inputs[start : start + ROWS]), beam)
            texts += self.preprocessor.texts(ids)
        return texts

    def attention(self, example, path=None):
        """Plot the image regions that each generated token attended to, averaged over the heads.

        `example` is the path of an image, or an array (H, W, C). The figure is saved at `path`,
        unless this is None. Return the attention weights of all layers and the figure as
        `AttentionMaps`.
        """
        pixels, _ = self.preprocessor.read(example)
        maps, layer, words = self.record_writing({"images": pixels[None]})
        figure = visualization.words_map(
            pixels,
            maps[layer][:, :, : len(words[:PICTURED])],
            words[:PICTURED],
            grid=find_grid(self.model.get_layer("encoder"), self.preprocessor.image_size),
            title=f"{layer}: where each written token looked",
            path=path,
        )
        return AttentionMaps(maps, words, None, figure)

    def find_pictured(self, data_set):
        return (data_set.test or data_set.dev)[0].image
