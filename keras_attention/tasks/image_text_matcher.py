"""`ImageTextMatcher`: compares images with texts, for search and for classes that texts name."""

import typing

import numpy as np

from keras_attention import data, training
from keras_attention.core.checks import check_many, check_whole_number
from keras_attention.core.lazy import blocks, keras, models, visualization
from keras_attention.export import inspection
from keras_attention.files.io import number_errors, prefix_errors
from keras_attention.tasks import runners
from keras_attention.tasks.explaining import RecordedExample
from keras_attention.tasks.interface import AttentionMaps
from keras_attention.tasks.labels import Classification, check_top
from keras_attention.tasks.pictures import (
    check_picture_fields,
    check_picture_runner,
    choose_image_size,
    describe_pictures,
    find_channels,
    read_picture_sizes,
)
from keras_attention.tasks.task import Task
from keras_attention.tasks.text_embedder import compare_vectors, scale_to_unit

TEMPERATURE = 0.07  # initial value in CLIP
LEAST_TEMPERATURE, MOST_BIAS = 1e-4, 1e4  # bounds of the values in manifests
ROWS = 64  # images in a batch
# Name of a signature -> (layer of the model, its input, its output in an exported file).
SIGNATURES = {
    "embed_images": ("image_encoder", "images", "image_embedding"),
    "embed_texts": ("text_encoder", "token_ids", "text_embedding"),
}
TEMPLATE = "a photo of a {}"
# The arguments of `ka.models.image_encoder` that the text encoder of a new model has, too.
SHARED = ("num_layers", "num_heads", "hidden_dim", "intermediate_dim", "dropout")


class FoundImage(typing.NamedTuple):
    """An image that a search has found.

    `index` is its index in the list of images, and `score` the cosine with the query, from -1 to 1.
    """

    index: int
    score: float


class Towers(typing.NamedTuple):
    """The functions (`PaddedRunner`) that run the image encoder and the text encoder."""

    images: runners.PaddedRunner
    texts: runners.PaddedRunner


class ImageTextMatcher(Task):
    """Compares images with texts. It finds images by a description, and names what they show.

    An image encoder and a text encoder (towers) compute vectors, and an image and a text that match
    have similar vectors (Radford et al., 2021, CLIP). So `classify` knows classes that it was never
    trained on (zero-shot), because their names are texts. `from_preset` opens checkpoints of CLIP
    and SigLIP (Zhai et al., 2023).

    `fit` trains both encoders on images with captions. The other pairs of a batch are the
    negatives, so larger batches train better (`ka.training.InfoNCE`). This loss does not train the
    bias of SigLIP. So train SigLIP further only for search.

    Args:
        model: functional `keras.Model` from `"images"` (B, H, W, C), with values from 0 to 1, and
            `"token_ids"` (B, T) to logits (B, B), with the layers `image_encoder`, `text_encoder`
            and `logits`, a `ka.blocks.ContrastiveLogits`.
        preprocessor: `ka.data.ImageTextPairPreprocessor`.
        temperature, bias: floats, if the task runs an exported file: the numbers that
            `ka.blocks.ContrastiveLogits` learned. A model has its own.
        builder: str, the name of the task. None is the first in the attribute `builders`.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    dark, light = np.zeros((8, 8, 3), "uint8"), np.full((8, 8, 3), 255, "uint8")
    pairs = [(dark, "a dark night"), (light, "a bright day")] * 20
    size = dict(patch_size=4, num_layers=1, num_heads=2, hidden_dim=16, dropout=0.0)
    task = ka.tasks.ImageTextMatcher.from_data(
        pairs, image_size=(8, 8), embedding={"stem_filters": ()}, min_count=1, **size
    )
    task.fit(pairs, epochs=6, batch_size=8, learning_rate=0.01, verbose=False)
    first, second = task.classify([light, dark], ["night", "day"], template="a {}")
    assert (first.label, second.label) == ("day", "night")
    ((best,),) = task.search(["a bright day"], [dark, light], top_k=1)
    assert best.index == 1
    ```
    """

    builders = ("image_text_matcher",)
    example_kind, holds, unit = data.CaptionedImage, "images with text", "images"
    example, rows = "picture.png", ROWS

    def __init__(self, model, preprocessor, *, temperature=TEMPERATURE, bias=None, builder=None):
        super().__init__(model, preprocessor, builder=builder)
        self._temperature, self._bias = float(temperature), None if bias is None else float(bias)

    @staticmethod
    def join_encoders(image_encoder, text_encoder, *, temperature=TEMPERATURE, bias=None):
        """Return a model that compares every image of a batch with every text.

        Args:
            image_encoder: functional `keras.Model` from images (B, H, W, C) to vectors (B, D).
            text_encoder: functional `keras.Model` from token ids (B, T) to vectors (B, D).
            temperature, bias: as in `ka.blocks.ContrastiveLogits`.

        Returns:
            A functional `keras.Model` from a dict of `"images"` and `"token_ids"` to logits, with a
            row for each image and a column for each text.
        """
        image, text = image_encoder.input, text_encoder.input
        inputs = {
            "images": keras.Input(image.shape[1:], dtype=image.dtype, name="images"),
            "token_ids": keras.Input(text.shape[1:], dtype=text.dtype, name="token_ids"),
        }
        vectors = image_encoder(inputs["images"]), text_encoder(inputs["token_ids"])
        logits = blocks.ContrastiveLogits(temperature, bias=bias, dtype="float32", name="logits")
        return keras.Model(inputs, logits(*vectors), name="image_text_matcher")

    @classmethod
    def make_parts(cls, data_set, recipe, builder):
        options, train = recipe.data, data_set.train
        keywords = recipe.list_keywords(models.ImageEmbedding)
        size = choose_image_size(data_set, options.image_size, keywords)
        channels = keywords.setdefault("num_channels", find_channels(train))
        preprocessor = data.ImageTextPairPreprocessor.build(
            train,
            size,
            channels,
            min_count=options.min_count,
            max_size=options.max_size,
            lowercase=options.lowercase,
            maximum_length=options.max_length,
        )
        shared = {name: keywords[name] for name in SHARED if name in keywords}
        texts = models.text_encoder(
            len(preprocessor.tokenizer), **shared, pooling="mean", head=_make_head(keywords)
        )
        images = models.image_encoder(size, **keywords, head=_make_head(keywords))
        return cls.join_encoders(images, texts), preprocessor, {}

    @classmethod
    def read_settings(cls, fields):
        check_picture_fields(fields)
        return {
            "temperature": fields.number("temperature", least=LEAST_TEMPERATURE),
            "bias": fields.number("bias", default=None, least=-MOST_BIAS, most=MOST_BIAS),
        }

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        sizes = read_picture_sizes(folder, manifest)
        return data.ImageTextPairPreprocessor.load(folder, **sizes)

    @property
    def settings(self):
        return {
            "temperature": self.temperature,
            "bias": self.bias,
            **describe_pictures(self.preprocessor),
        }

    @property
    def temperature(self):
        """float, by which cosines are divided. Training changes it."""
        if self._model is None:
            return self._temperature
        return float(np.exp(-_read(self._model.get_layer("logits").logit_scale)))

    @property
    def bias(self):
        """float, added to the divided cosines, or None. Training changes it.

        With a bias, the probabilities of `classify` are a sigmoid for each name. Without one, they
        are a softmax over all names.
        """
        if self._model is None:
            return self._bias
        weight = self._model.get_layer("logits").logit_bias
        return None if weight is None else float(_read(weight))

    # Training.

    def adapt(self, data_set):
        """Return (), because the model reads any caption. Unknown words have one id."""
        return ()

    def describe_data(self, data_set):
        is_cut, parts = self.preprocessor.is_cut, data_set.parts.values()
        count = sum(is_cut(text) for part in parts for one in part for text in one.texts)
        if not count:
            return ()
        limit = f"{self.preprocessor.maximum_length} {self.preprocessor.unit}"
        return (f"only the first {limit} of {count:,} long captions are used",)

    def make_job(self, train, dev, recipe):
        bias = self.model.get_layer("logits").logit_bias
        if bias is not None:  # its gradient is 0, but AdamW enlarges rounding errors
            bias.trainable = False
        return super().make_job(train, dev, recipe)

    def make_loss(self, recipe, train):
        return training.InfoNCE()

    def make_metrics(self):
        return [training.ContrastiveAccuracy]

    # The two encoders, and files.

    def make_exportable(self, model):
        """Return a dict from the names of two signatures to the encoders of `model`.

        Their vectors have length 1.
        """
        towers = {}
        for signature, (layer, given, name) in SIGNATURES.items():
            encoder = model.get_layer(layer)
            unit = keras.layers.UnitNormalization(dtype="float32", name=f"unit_{name}")
            vectors = {name: unit(encoder.output)}
            towers[signature] = keras.Model({given: encoder.input}, vectors, name=signature)
        return towers

    def make_examples(self):
        """Return a batch for checking an export: two images of noise, and two texts."""
        shape = self.preprocessor.image_shape
        images = np.random.default_rng(0).uniform(size=(2, *shape)).astype("float32")
        return [{"images": images, "token_ids": self.preprocessor(["a photo of a cat", "a cat"])}]

    def open_runner(self, path):
        towers = Towers(*(runners.load_runner(path, name) for name in SIGNATURES))
        towers.texts.padding_id = self.preprocessor.padding_id
        self.check_runner(path, towers)
        return towers

    def wrap_model(self, model, path=None):
        towers = Towers(
            *(runners.wrap_model(tower, path) for tower in self.make_exportable(model).values())
        )
        if path is not None:
            self.check_runner(path, towers)
        return towers

    def check_runner(self, path, run):
        check_picture_runner(path, run.images, self.preprocessor)
        vocabularies = {"token_ids": self.preprocessor.vocabulary_size}
        inspection.check_sizes(run.texts.inspection, vocabularies=vocabularies)

    # Results.

    def predict(self, inputs):
        """Convert images to vectors.

        Args:
            inputs: list of N images: paths, or arrays (H, W, C) of any size, uint8 or floats from 0
                to 1.

        Returns:
            Vectors of length 1, float32 (N, D). `search` accepts them.
        """
        check_many(inputs, "image", ndim=3)
        if not len(inputs):
            return self.predict([np.zeros(self.preprocessor.image_shape, "float32")])[:0]
        run, vectors = self.runner.images, []
        for start in range(0, len(inputs), ROWS):
            pixels = self.preprocessor.read_images(inputs[start : start + ROWS])
            vectors.append(runners.compute_logits(run, pixels))
        return scale_to_unit(np.concatenate(vectors).astype("float32"))

    embed_images = predict

    def embed_texts(self, texts):
        """Convert a list of N str to vectors of length 1, float32 (N, D)."""
        check_many(texts, "text", of="str")
        if not len(texts):
            return self.predict([])
        lengths = [len(ids) for ids in number_errors("Text", texts, self.preprocessor.ids)]
        vectors = runners.compute_each(self.runner.texts, self.preprocessor, texts, lengths)
        return scale_to_unit(np.asarray(vectors, "float32"))

    def compare(self, images, texts):
        """Compute the logit of each pair of an image and a text.

        A logit is the cosine of the two vectors, divided by `temperature`, plus `bias`. These are
        the `logits_per_image` of Hugging Face's models.

        Args:
            images: list of N images, or their vectors (N, D), which `predict` returns.
            texts: list of M str, or their vectors (M, D), which `embed_texts` returns.

        Returns:
            float32 (N, M).
        """
        images = images if _are_vectors(images) else self.predict(images)
        texts = texts if _are_vectors(texts) else self.embed_texts(texts)
        logits = images @ texts.T / self.temperature
        return logits if self.bias is None else logits + self.bias

    def classify(self, images, names, *, template=TEMPLATE, top=None):
        """Return the class of each image, from classes that are only described by their names.

        The probabilities of a model without a `bias`, such as CLIP, sum to 1 over the names. With a
        bias, such as SigLIP's, each is the probability that this name fits the image, and they do
        not depend on the other names.

        Args:
            images: list of images, as for `predict`, or their vectors (N, D).
            names: list of str, the names of the classes.
            template: str with `{}`, which makes a text of a name, such as `"a photo of a {}"`. Use
                texts that look like the captions in training. With a list of str, the vector of a
                class is the mean over its texts (Radford et al., 2021, section 3.1.4).
            top: int, the number of classes to return for each image. None returns only the most
                probable class.

        Returns:
            A list with a `Classification` for each image. If `top` is an int, each element is
            instead a list of `top` `Classification`s, sorted by decreasing probability.

        Raises:
            ValueError: there is no name, a name is there twice, or a template has no `{}`.
        """
        check_many(names, "name", of="str")
        check_top(top)
        templates = [template] if isinstance(template, str) else list(template)
        self._check_names(names, templates)
        texts = [one.replace("{}", name) for one in templates for name in names]
        vectors = self.embed_texts(texts)
        vectors = vectors.reshape(len(templates), len(names), vectors.shape[-1]).mean(axis=0)
        logits = self.compare(images, scale_to_unit(vectors))
        shares = runners.softmax(logits) if self.bias is None else 1 / (1 + np.exp(-logits))
        answers = []
        for row, probabilities in zip(logits, shares, strict=True):
            best = np.argsort(-row, kind="stable")[: 1 if top is None else top]
            answers.append([Classification(names[i], float(probabilities[i])) for i in best])
        return [classes[0] for classes in answers] if top is None else answers

    def search(self, queries, images, top_k=5):
        """Find the images that fit each query best.

        Args:
            queries: list of str.
            images: list of images to search in, as for `predict`, or their vectors (N, D), which
                saves time if you search again.
            top_k: int, the number of results for each query.

        Returns:
            A list with a list of `FoundImage` for each query, sorted by decreasing score.
        """
        check_whole_number(f"{type(self).__name__}.search", "top_k", top_k)
        found = self.embed_texts(queries)
        vectors = images if _are_vectors(images) else self.predict(images)
        results = []
        for scores in compare_vectors(found, scale_to_unit(vectors)):
            order = np.argsort(-scores, kind="stable")[:top_k]
            results.append([FoundImage(int(i), float(scores[i])) for i in order])
        return results

    def compute_scores(self, examples, where):
        """Search for the images of each distinct caption, and for the captions of each image.

        `examples` is a list of `CaptionedImage`. `ka.training.score_retrieval` defines the scores.
        Those of captions have the prefix `text_`. Error messages begin with `where`.
        """
        if not examples:
            return {}
        texts, described, captions = {}, [], []
        for k, example in enumerate(examples):
            captions.append({texts.setdefault(text, len(texts)) for text in example.texts})
            described += [set() for _ in range(len(texts) - len(described))]
            for number in captions[-1]:
                described[number].add(k)
        with prefix_errors(where):
            images = self.predict([example.image for example in examples])
            vectors = self.embed_texts(list(texts))
        scores = training.score_retrieval(compare_vectors(vectors, images), described)
        back = training.score_retrieval(compare_vectors(images, vectors), captions)
        scores |= {f"text_{name}": value for name, value in back.items()}
        return {name: round(value, 6) for name, value in scores.items()}

    def _check_names(self, names, templates):
        where = f"{type(self).__name__}.classify"
        if not len(names) or len(set(names)) != len(names):
            raise ValueError(
                f"{where}(names={names!r:.60}): expected different names, at least one."
            )
        for one in templates:
            if not isinstance(one, str) or "{}" not in one:
                raise ValueError(
                    f"{where}(template={one!r:.60}): expected a text with {{}} for the name."
                )
        if not templates:
            raise ValueError(f"{where}(template=[]): expected at least one text.")

    # Figures.

    def attention(self, example, path=None):
        """Plot the attention weights of the image encoder for one image.

        `example` is an input of `predict`. The figure is saved at `path`, unless this is None.
        """
        pixels = self.preprocessor.read_images([example])
        recorded = RecordedExample.run(self.model.get_layer("image_encoder"), pixels)
        layer, weights = list(recorded.maps.items())[-1]
        figure = visualization.attention_map(
            weights, image=pixels[0], title=f"{layer}, head by head", path=path
        )
        return AttentionMaps(recorded.maps, None, None, figure)

    def find_pictured(self, data_set):
        return (data_set.test or data_set.dev)[0].image


def _make_head(keywords):
    """Return the layers after an encoder: a projection to vectors of the common space."""
    size = keywords["hidden_dim"]
    return [keras.layers.Dense(size, use_bias=False, dtype="float32", name="projection")]


def _read(weight):
    """Return the value of a variable as an array."""
    return keras.ops.convert_to_numpy(weight)


def _are_vectors(inputs):
    """Return whether inputs are vectors (N, D), and not a list of images or texts."""
    return isinstance(inputs, np.ndarray) and inputs.ndim == 2
