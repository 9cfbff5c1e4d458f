"""`SpeechRecognizer`: recordings, and what is said in each."""

import dataclasses
import itertools

import numpy as np

from keras_attention import data, training
from keras_attention.core.checks import check_many
from keras_attention.core.lazy import (
    blocks,
    generation,
    keras,
    keras_internals,
    models,
    visualization,
)
from keras_attention.files.io import prefix_errors
from keras_attention.tasks.folders import MANIFEST
from keras_attention.tasks.interface import AttentionMaps
from keras_attention.tasks.recipes.speech import EMBEDDING
from keras_attention.tasks.runners import check_sizes
from keras_attention.tasks.task import Task

ROWS = 16  # recordings that are scored at a time
PICTURED = 40  # vectors of a recording that a picture shows
MOST_RATE, MOST_FEATURES = 1_000_000, 1 << 16
BEAM = 16  # prefixes that a search for known words holds
BLANK = "·"  # how pictures show a vector that is neither a character nor a word


class SpeechRecognizer(Task):
    """Writes what is said.

    Files hold a greedy decoder, too: they take `"waveform"` (B, samples) and `"lengths"` (B,), or
    `"features"`, and give `"labels"`, int32 (B, T), beside the logits. Label k > 0 is character
    k - 1 of the manifest's `characters`, or word k - 1 of its `words`; zeros follow the last.

    It writes characters, and so any word. `from_data(tokens="words")` makes one that knows the
    words of its transcripts alone, for digits and commands: it cannot misspell them.

    Args:
        model: functional `keras.Model`, as `ka.models.speech_recognizer`.
        preprocessor: `ka.data.SpeechPreprocessor`.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    time = np.arange(4000) / 8000
    low, high = (0.3 * np.sin(6.28 * f * time).astype("float32") for f in (300, 1500))
    train = [ka.data.Recording(low, "a"), ka.data.Recording(high, "b")] * 16
    recordings = ka.data.Recording.collect(train, sampling_rate=8000)
    size = dict(num_layers=1, num_heads=2, hidden_dim=16, kernel_size=3, dropout=0.0)
    task = ka.tasks.SpeechRecognizer.from_data(recordings, embedding={"spec_augment": None}, **size)
    task.fit(recordings, epochs=6, batch_size=4, learning_rate=0.01, verbose=False)
    assert all(isinstance(text, str) for text in task.predict([low, high]))
    ```
    """

    builders = ("speech_recognizer",)
    example_kind, holds, example = data.Recording, "recordings with transcripts", "recording.wav"
    unit = "recordings"
    predict_options, rows = ("words",), ROWS

    @classmethod
    def make_parts(cls, data_set, recipe, builder):
        sounds = measure_sounds(data_set)
        texts = list_texts(data_set, words=recipe.data.tokens == "words")
        preprocessor = data.SpeechPreprocessor.build(texts, **sounds, tokens=recipe.data.tokens)
        sound = choose_sounds(preprocessor, recipe)
        keywords = recipe.list_keywords(models.SpeechEmbedding, **sound)
        model = models.speech_recognizer(preprocessor.vocabulary_size, **keywords)
        return model, preprocessor, dict()

    @classmethod
    def read_settings(cls, fields):
        given = [name for name in ("characters", "words") if name in fields.values]
        fields.texts("characters" if len(given) != 1 else given[0])
        if len(given) > 1:
            raise fields.error("words", "no words, as there are characters")
        check_sounds(fields)
        return {}

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        tokens = "words" if "words" in manifest else "characters"
        return data.SpeechPreprocessor(**{tokens: manifest[tokens]}, **read_sounds(manifest))

    @property
    def _kind(self):
        """Return what transcripts consist of."""
        return "words" if self.preprocessor.words else "characters"

    @property
    def settings(self):
        return {self._kind: list(self.preprocessor.tokens)} | describe_sounds(self.preprocessor)

    def check_data(self, data):
        check_rate(data, self.preprocessor)

    def adapt(self, data):
        """Gives the model a new last layer where transcripts have characters, or words, that it
        cannot write.

        It writes those of `data` then; of the ones that it knew it keeps the weights, and of the
        blank.
        """
        old, kind = self.preprocessor, self._kind
        texts = list_texts(data, words=bool(old.words))
        tokens = sorted({token for text in texts for token in old.split(text)})
        new = [token for token in tokens if token not in old.tokens]
        if not new:
            return ()
        self.preprocessor = dataclasses.replace(old, **{kind: tuple(tokens)})
        before = keras_internals.producer(self._model.output)
        self._model = self.replace_head(self.preprocessor.vocabulary_size)
        copy_labels(before, keras_internals.producer(self._model.output), old, self.preprocessor)
        self.source = {name: None for name in self.source}
        self.forget_runner()
        return (
            f"the last layer is new, for {len(tokens)} {kind}: it did not know {old.join(new)!r}",
        )

    def describe_data(self, data):
        """Return how many transcripts are too long for CTC, if any are."""
        long = self._count_long(data.train)
        if not long:
            return ()
        return (
            f"{long:,} transcripts have more {self._kind} than their recordings have vectors, and "
            "teach nothing",
        )

    def _count_long(self, examples):
        """Count the transcripts that are too long for CTC, whose loss of them is 0."""
        count_all = [count_vectors(self.model, len(one.sound)) for one in examples]
        texts = [self.preprocessor.split(one.text) for one in examples]
        return sum(
            vectors < len(tokens) + sum(a == b for a, b in itertools.pairwise(tokens))
            for tokens, vectors in zip(texts, count_all, strict=True)
        )

    def make_training_batches(self, examples, recipe):
        if examples and self._count_long(examples) == len(examples):
            raise ValueError(
                f"Every transcript has more {self._kind} than its recording has vectors: CTC "
                "learns nothing of them. Give longer recordings, or build with a smaller "
                "subsampling=."
            )
        return super().make_training_batches(examples, recipe)

    def make_loss(self, recipe, train):
        return training.MaskedCTC()

    def make_metrics(self):
        return [training.CTCTranscriptAccuracy]

    def make_exportable(self, model):
        """Return the recognizer with a greedy decoder, so that files give labels."""
        labels = blocks.GreedyCTCDecoder(name="labels")(model.output)
        return keras.Model(model.input, {"logits": model.output, "labels": labels}, name=model.name)

    def make_examples(self):
        """Return a second of noise: files are compared on sounds longer than a frame."""
        return [self.preprocessor(make_noise(self.preprocessor))]

    def wrap_model(self, model, path=None):
        return super().wrap_model(self.make_exportable(model), path)

    def check_runner(self, path, run):
        if (name := self.preprocessor.input_name) not in run.shapes:
            raise ValueError(
                f"{path.parent / MANIFEST} says that {path.name} beside it hears {name!r}, and it "
                f"takes {', '.join(run.shapes)}. Put the right files together."
            )
        outputs = {tensor.name: tensor.shape for tensor in run.inspection.signatures[0].outputs}
        labels = outputs.get("logits", (None,))[-1]  # the blank's, and those of the tokens
        tokens = None if labels is None else labels - 1
        sizes = [(self._kind, len(self.preprocessor.tokens), tokens)]
        if self.preprocessor.num_features is not None:
            features = run.shapes[name][-1]
            sizes.append(("features in a frame", self.preprocessor.num_features, features))
        check_sizes(path, [(MANIFEST, *each) for each in sizes])

    def compute_scores(self, examples, where):
        """Return word and character error rates."""
        if not examples:
            return {}
        found = self.predict([recording.sound for recording in examples])
        texts = [recording.text for recording in examples]
        return {
            "word_error_rate": round(training.compute_word_error_rate(texts, found), 6),
            "character_error_rate": round(training.compute_character_error_rate(texts, found), 6),
        }

    def predict(self, inputs, *, words=None):
        """Return the transcripts of recordings.

        Args:
            inputs: list of paths of WAV or FLAC files, or of arrays: samples (n,), floats from -1
                to 1, int16 or int32, or features (T, F), floats.
            words: list of str, or one str with spaces between them: the only words that there are,
                such as commands. The likeliest sequence of them is searched for with
                `ka.generation.search_ctc_prefixes`, or the likeliest one where transcripts have no
                spaces; None takes the best character, or word, of each vector.

        Returns:
            For each recording a str.
        """
        check_many(inputs, "recording", ndim=1)
        if words is not None:
            known = self._encode_words(words)
            return [self._search(sound, known) for sound in inputs]
        texts = []
        for start in range(0, len(inputs), ROWS):
            found = self.runner(self.preprocessor(inputs[start : start + ROWS]))
            texts += [self.preprocessor.decode(row) for row in np.asarray(found["labels"])]
        return texts

    def _encode_words(self, words):
        """Return keywords of `search_ctc_prefixes` for the only words that there are."""
        words = words.split() if isinstance(words, str) else list(words)
        if not words or any(word.split() != [word] for word in words):
            raise ValueError(f"words={words!r}: expected some, each without spaces.")
        with prefix_errors("words"):
            encoded = [tuple(self.preprocessor.encode(word)) for word in words]
        spaced = " " in self.preprocessor.characters
        return {
            "words": encoded,
            "separator": self.preprocessor.encode(" ")[0] if spaced else None,
            "several": spaced or bool(self.preprocessor.words),
        }

    def _search(self, sound, known):
        """Return the likeliest words of one recording."""
        inputs = self.preprocessor([sound])
        (logits,) = np.asarray(self.runner(inputs)["logits"])
        name, length = self.preprocessor.input_name, int(inputs["lengths"][0])
        if length < (self.runner.shapes[name][1] or inputs[name].shape[1]):  # there is padding
            logits = logits[: count_vectors(self.model, length)]
        found = generation.search_ctc_prefixes(logits, BEAM, **known)
        return self.preprocessor.decode(found[0][0]) if found else ""

    def attention(self, example, path=None):
        inputs = self.preprocessor([example])
        with visualization.record_attention(self.model) as maps:
            logits = np.asarray(self.model(inputs))[0]
        layer, weights = list(maps.items())[-1]
        best = logits.argmax(axis=1)
        tokens = [self.preprocessor.decode([label]) or BLANK for label in best]
        figure = visualization.attention_map(
            weights[:, :, :PICTURED, :PICTURED],
            tokens[:PICTURED],
            title=f"{layer}: what each vector looked at, and what it was taken for",
            path=path,
        )
        return AttentionMaps(dict(maps), tokens, tokens, figure)

    def find_pictured(self, data_set):
        return (data_set.test or data_set.dev)[0].sound


def list_texts(data_set, words):
    """Return the transcripts whose characters, or words, a model is to know: of words a part for
    development has some that training lacks, which it scores, too.
    """
    return [one.text for one in (*data_set.train, *(data_set.dev if words else ()))]


def measure_sounds(data_set):
    """Return the `sampling_rate` or `num_features` of recordings to train on, as a dict."""
    shape = data_set.train[0].sound.shape[1:]
    if shape:
        return {"num_features": shape[0]}
    sampling_rate = data_set.about.get("sampling_rate")
    if sampling_rate is None:
        raise ValueError(
            "The recordings are samples, and nothing says how many a second has: give "
            "ka.data.Recording.collect(..., sampling_rate=...)."
        )
    return {"sampling_rate": sampling_rate}


def choose_sounds(preprocessor, recipe):
    """Return the settings of a `ka.models.SpeechEmbedding` that the sounds decide."""
    sound = {"input": preprocessor.input_name}
    if preprocessor.sampling_rate is not None:
        return sound | {"sampling_rate": preprocessor.sampling_rate}
    sound["num_mel_bins"] = preprocessor.num_features
    embedding = recipe.model.get("embedding")
    if isinstance(embedding, dict) and embedding["filter_augment"] is EMBEDDING["filter_augment"]:
        sound["filter_augment"] = None  # the recipe's decibels are of spectrograms
    return sound


def count_vectors(model, length):
    """Return the vectors that a recognizer makes of so many samples, or frames of features."""
    for layer in keras_internals.all_layers(model):
        if isinstance(layer, blocks.LogMelSpectrogram):
            length = layer.count_frames(length)
        elif isinstance(layer, blocks.ConvolutionSubsampling):
            length = layer.count_vectors(length)
    return length


def check_rate(data_set, preprocessor):
    """Refuses recordings of another rate than the model hears."""
    given, wanted = data_set.about.get("sampling_rate"), preprocessor.sampling_rate
    if given != wanted and None not in (given, wanted):
        raise ValueError(
            f"The recordings have {given} samples a second, and the model takes {wanted}: read "
            f"them with from_recordings(..., sampling_rate={wanted}), which resamples."
        )


def copy_labels(before, after, old, new):
    """Gives the `Dense` `after` the weights of `before` for the blank and for equal tokens."""
    known = {token: k for k, token in enumerate(old.tokens, 1)}
    kept = [(known[token], k) for k, token in enumerate(new.tokens, 1) if token in known]
    sources, targets = zip((0, 0), *kept, strict=True)
    for weight, learned in zip(after.weights, before.weights, strict=True):
        values = np.array(weight)
        values[..., list(targets)] = np.asarray(learned)[..., list(sources)]
        weight.assign(values)


def describe_sounds(preprocessor):
    """Return the manifest's entries that say what sounds are."""
    if preprocessor.sampling_rate is None:
        return {"inputs": "features", "num_features": preprocessor.num_features}
    return {"inputs": "waveform", "sampling_rate": preprocessor.sampling_rate}


def read_sounds(manifest):
    """Return keywords of a preprocessor of sounds, from a manifest that is checked."""
    name = "sampling_rate" if manifest["inputs"] == "waveform" else "num_features"
    return {name: manifest[name]}


def check_sounds(fields):
    """Refuses a manifest (`Fields`) that does not say what sounds are."""
    fields.one_of("inputs", ("features", "waveform"))
    if fields.values["inputs"] == "waveform":
        fields.whole("sampling_rate", most=MOST_RATE)
    else:
        fields.whole("num_features", most=MOST_FEATURES)


def make_noise(preprocessor):
    """Return two recordings of a second, or as long as the model hears, a list."""
    length = preprocessor.sampling_rate or 100
    length = min(length, round(length * (preprocessor.seconds or 1)))
    shape = (2, length, *preprocessor.sound_shape)
    return list(np.random.default_rng(0).normal(size=shape, scale=0.1))
