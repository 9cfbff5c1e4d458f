"""`SpeechRecognizer`: transcribes recordings with a CTC model."""

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
from keras_attention.tasks.interface import draw_map
from keras_attention.tasks.overlapping_windows import (
    OVERLAP,
    SECONDS,
    collapse,
    cut_windows,
    find_words,
    join_windows,
)
from keras_attention.tasks.runners import check_sizes
from keras_attention.tasks.sounds import (
    ROWS,
    check_rate,
    check_sounds,
    choose_sounds,
    count_inputs,
    count_vectors,
    describe_sounds,
    make_noise,
    measure_sounds,
    read_sounds,
)
from keras_attention.tasks.task import Task
from keras_attention.tasks.transcript import Transcript, group_words

PICTURED = 40  # maximum number of encoder vectors in a figure
FRAMES = 100  # frames of features in a second
BEAM = 16  # beam width (number of prefixes) of a search that is restricted to given words
BLANK = "·"  # shown in figures for a vector whose most probable label is the CTC blank


class SpeechRecognizer(Task):
    """Transcribes speech with CTC (connectionist temporal classification).

    By default the model predicts characters, and can therefore transcribe any word.
    `from_data(tokens="words")` makes a recognizer that predicts only the words in its training
    transcripts, for example digits or commands.

    Exported files include a greedy decoder. Their inputs are `"waveform"` (B, samples) or
    `"features"` (B, frames, features), and `"lengths"` (B,). In addition to the logits they return
    `"labels"`, int32 (B, T). Label k > 0 is item k - 1 (0-based) of the list `characters` or
    `words` in `manifest.json`. The last label is followed by zeros.

    Args:
        model: functional `keras.Model`, such as `ka.models.speech_recognizer`.
        preprocessor: `ka.data.SpeechPreprocessor`.
        builder: str, the name of the function of `ka.models` that built the model, one of the
            class attribute `builders`. It is stored with the task, and chooses the recipe of
            `fit`. None is the first of them.

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
    predict_options, rows = ("words", "srt"), ROWS

    @classmethod
    def make_parts(cls, data_set, recipe, builder):
        sounds = measure_sounds(data_set)
        texts = list_texts(data_set, words=recipe.data.tokens == "words")
        preprocessor = data.SpeechPreprocessor.build(texts, **sounds, tokens=recipe.data.tokens)
        sound = choose_sounds(preprocessor, recipe)
        keywords = recipe.list_keywords(models.SpeechEmbedding, **sound)
        model = models.speech_recognizer(preprocessor.vocabulary_size, **keywords)
        return model, preprocessor, {}

    @classmethod
    def read_settings(cls, fields):
        names = [name for name in ("characters", "words") if name in fields.values]
        fields.texts("characters" if len(names) != 1 else names[0])
        if len(names) > 1:
            raise fields.error("words", "no words, as there are characters")
        check_sounds(fields)
        return {}

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        tokens = "words" if "words" in manifest else "characters"
        return data.SpeechPreprocessor(**{tokens: manifest[tokens]}, **read_sounds(manifest))

    @property
    def _kind(self):
        """str, the unit that the model predicts, `"words"` or `"characters"`."""
        return "words" if self.preprocessor.words else "characters"

    @property
    def settings(self):
        return {self._kind: list(self.preprocessor.tokens)} | describe_sounds(self.preprocessor)

    def check_data(self, data):
        check_rate(data, self.preprocessor)

    def adapt(self, data):
        """Replace the last layer if `data` has characters or words that the model lacks.

        The model then predicts exactly the characters or words in `data`. The new layer keeps the
        old weights of the blank (CTC's label for "no token"), and of all characters or words that
        the old layer had.
        """
        old, kind = self.preprocessor, self._kind
        texts = list_texts(data, words=bool(old.words))
        tokens = sorted({token for text in texts for token in old.split(text)})
        new = [token for token in tokens if token not in old.tokens]
        if not new:
            return ()
        self.preprocessor = dataclasses.replace(old, **{kind: tuple(tokens)})
        before = keras_internals.producer(self._model.output)
        self._model = models.replace_head(self.model, self.preprocessor.vocabulary_size)
        copy_labels(before, keras_internals.producer(self._model.output), old, self.preprocessor)
        self.source = {name: None for name in self.source}
        self.forget_runner()
        return (
            f"the last layer is new, for {len(tokens)} {kind}: it did not have {old.join(new)!r}",
        )

    def describe_data(self, data):
        """Return a tuple with a sentence on transcripts that are too long for CTC.

        The tuple is empty if no transcript is too long. `data` is a `DataSet` of `Recording`.
        """
        long = self._count_long(data.train)
        if not long:
            return ()
        return (
            f"{long:,} transcripts have more {self._kind} than their recordings have vectors, and "
            "cannot be learned",
        )

    def _count_long(self, examples):
        """Count transcripts with more tokens than encoder vectors. CTC cannot learn them."""
        count_all = [count_vectors(self.model, len(one.sound)) for one in examples]
        texts = [self.preprocessor.split(one.text) for one in examples]
        return sum(
            vectors < len(tokens) + sum(a == b for a, b in itertools.pairwise(tokens))
            for tokens, vectors in zip(texts, count_all, strict=True)
        )

    def make_training_batches(self, examples, recipe):
        if examples and self._count_long(examples) == len(examples):
            raise ValueError(
                f"Every transcript has more {self._kind} than its recording has vectors, so that "
                "CTC cannot learn from it. Give longer recordings, or build with a smaller "
                "subsampling=."
            )
        return super().make_training_batches(examples, recipe)

    def make_loss(self, recipe, train):
        return training.MaskedCTC()

    def make_metrics(self):
        return [training.CTCTranscriptAccuracy]

    def make_exportable(self, model):
        """Return a model that also decodes greedily, with one more output, `labels`."""
        labels = blocks.GreedyCTCDecoder(name="labels")(model.output)
        return keras.Model(model.input, {"logits": model.output, "labels": labels}, name=model.name)

    def export_live(self, path, *, max_length=1024, quantization=None):
        """Write a LiteRT file that recognizes speech while someone speaks.

        The model must have been built with `chunk_size=`. The file has the signatures `start` and
        `hear` of `ka.export.Hearing`, and gives the same labels as `ka.generation.SpeechStream`.

        Args:
            path: path of the file to write, which ends in `.tflite`.
            max_length: int, the maximum number of vectors in an utterance. 1024 vectors of 40 ms
                are 41 seconds.
            quantization: `"float16"` or `"int8_weights"`, how weights are stored. None for float32.

        Returns:
            A `ka.export.ExportReport`.
        """
        from keras_attention.export import Hearing, to_litert
        from keras_attention.tasks.exporting import keep_preprocessing

        hearing = Hearing(max_length)
        options = {"quantization": quantization, "metadata": self.metadata}
        with keep_preprocessing(self.preprocessor, path):
            return to_litert(self.model, path, generate=hearing, **options)

    def make_examples(self):
        """Return noise for checking an export. Inputs must be longer than a spectrogram frame."""
        return [self.preprocessor(make_noise(self.preprocessor))]

    def wrap_model(self, model, path=None):
        return super().wrap_model(self.make_exportable(model), path)

    def check_runner(self, path, run):
        if (name := self.preprocessor.input_name) not in run.shapes:
            raise ValueError(
                f"{path.parent / MANIFEST} says that {path.name} takes {name!r}, and it takes "
                f"{', '.join(run.shapes)}. Put the right files together."
            )
        outputs = {tensor.name: tensor.shape for tensor in run.inspection.signatures[0].outputs}
        labels = outputs.get("logits", (None,))[-1]  # the blank and all tokens
        tokens = None if labels is None else labels - 1
        sizes = [(self._kind, len(self.preprocessor.tokens), tokens)]
        if self.preprocessor.num_features is not None:
            features = run.shapes[name][-1]
            sizes.append(("features in a frame", self.preprocessor.num_features, features))
        check_sizes(path, [(MANIFEST, *each) for each in sizes])

    def compute_scores(self, examples, where):
        """Compute word and character error rates.

        `examples` is a list of `Recording`. Error messages begin with `where`, a str.
        """
        if not examples:
            return {}
        predicted = self.predict([recording.sound for recording in examples])
        texts = [recording.text for recording in examples]
        return {
            "word_error_rate": round(training.compute_word_error_rate(texts, predicted), 6),
            "character_error_rate": round(
                training.compute_character_error_rate(texts, predicted), 6
            ),
        }

    def predict(self, inputs, *, words=None, srt=False):
        """Transcribe each recording.

        Recordings of more than 30 seconds are read in windows, as `transcribe` explains.

        Args:
            inputs: list of paths of WAV or FLAC files, or of arrays. An array contains samples (n,)
                as int16, int32 or floats from -1 to 1, or features (frames, features) as floats.
            words: list of str, or a str with words separated by spaces. Transcripts are restricted
                to these words, for example to commands. `ka.generation.search_ctc_prefixes`
                then finds the most probable sequence of these words, or the most probable single
                word if the model cannot predict spaces. None does not restrict the transcripts, and
                uses greedy decoding: the most probable character (or word) at each position.
            srt: bool, whether to return SubRip subtitles, which contain times. This cannot be
                combined with `words`.

        Returns:
            A list with a str for each recording.
        """
        check_many(inputs, "recording", ndim=1)
        if srt:
            if words is not None:
                raise ValueError(
                    "srt=True and words= were both given. Subtitles have all words: leave one out."
                )
            return [one.format_srt() for one in self.transcribe(inputs)]
        if words is not None:
            options = self._encode_words(words)
            return [self._search(sound, options) for sound in inputs]
        texts = []
        for start in range(0, len(inputs), ROWS):
            batch = self.preprocessor(inputs[start : start + ROWS])
            sounds, lengths = batch[self.preprocessor.input_name], batch["lengths"]
            if sounds.shape[1] <= self._longest:
                rows = np.asarray(self.runner(batch)["labels"])
            else:
                sounds = [row[:length] for row, length in zip(sounds, lengths, strict=True)]
                rows = [collapse(self._compute_logits(sound)) for sound in sounds]
            texts += [self.preprocessor.decode(row) for row in rows]
        return texts

    def transcribe(self, inputs):
        """Transcribe recordings of any length, and return words with times.

        The model reads windows of 30 seconds. Two windows overlap by 4 seconds, and are cut in the
        middle of the overlap, where both sides of a sound are in the window. A segment ends at
        a pause of more than 0.8 seconds, or after 14 words. CTC labels are short peaks, so a word
        may begin a little before its time, and end a little after it.

        Args:
            inputs: list of recordings, as in `predict`.

        Returns:
            A list with a `ka.tasks.Transcript` for each recording.
        """
        check_many(inputs, "recording", ndim=1)
        rate = self.preprocessor.sampling_rate or FRAMES
        separator = " " if self.preprocessor.characters else None
        results = []
        for sound in inputs:
            logits = self._compute_logits(sound)
            seconds = count_inputs(self.model) / rate
            words = find_words(logits, self.preprocessor.tokens, separator, seconds)
            results.append(Transcript(group_words(words)))
        return results

    @property
    def _longest(self):
        """int, the most samples, or frames of features, that the model reads at once."""
        longest = round(SECONDS * (self.preprocessor.sampling_rate or FRAMES))
        fixed = self.runner.shapes[self.preprocessor.input_name][1]
        return longest if fixed is None else min(longest, fixed)

    def _compute_logits(self, sound):
        """Return the logits (T, V) of a recording of any length, without those of padding."""
        inputs, name = self.preprocessor([sound]), self.preprocessor.input_name
        length = int(inputs["lengths"][0])
        if length > self._longest:
            return self._read_windows(inputs[name][0])
        (logits,) = np.asarray(self.runner(inputs)["logits"])
        is_padded = length < (self.runner.shapes[name][1] or inputs[name].shape[1])
        return logits[: count_vectors(self.model, length)] if is_padded else logits

    def _read_windows(self, sound):
        """Return the logits (T, V) of samples (n,), or of features (n, F), of any length."""
        vector, rate = count_inputs(self.model), self.preprocessor.sampling_rate or FRAMES
        size = self._longest // vector
        overlap = min(round(OVERLAP * rate / vector), size // 2)
        windows = cut_windows(count_vectors(self.model, len(sound)), size, overlap)

        def compute(pieces):
            return np.asarray(self.runner(self.preprocessor(pieces))["logits"])

        return join_windows(compute, sound, windows, vector, ROWS)

    def _encode_words(self, words):
        """Return the arguments of `search_ctc_prefixes` that allow only `words` (list or str)."""
        words = words.split() if isinstance(words, str) else list(words)
        if not words or any(word.split() != [word] for word in words):
            raise ValueError(f"words={words!r}: expected one or several words without spaces.")
        with prefix_errors("words"):
            encoded = [tuple(self.preprocessor.encode(word)) for word in words]
        spaced = " " in self.preprocessor.characters
        return {
            "words": encoded,
            "separator": self.preprocessor.encode(" ")[0] if spaced else None,
            "several": spaced or bool(self.preprocessor.words),
        }

    def _search(self, sound, options):
        """Find the most probable transcript of a recording. `options` are from `_encode_words`."""
        logits = self._compute_logits(sound)
        results = generation.search_ctc_prefixes(logits, BEAM, **options)
        return self.preprocessor.decode(results[0][0]) if results else ""

    def attention(self, example, path=None):
        inputs = self.preprocessor([example])
        with visualization.record_attention(self.model) as maps:
            logits = np.asarray(self.model(inputs))[0]
        tokens = [self.preprocessor.decode([label]) or BLANK for label in logits.argmax(axis=1)]
        caption = "what each vector attended to, and its most probable token"
        return draw_map(maps, tokens, tokens, caption, path, most=PICTURED)

    def find_pictured(self, data_set):
        return (data_set.test or data_set.dev)[0].sound


def list_texts(data_set, words):
    """Return the transcripts that define a recognizer's vocabulary, a list of str.

    If the vocabulary consists of words (`words` is True), it includes the words of the development
    split, which may be missing from the training split.
    """
    return [one.text for one in (*data_set.train, *(data_set.dev if words else ()))]


def copy_labels(before, after, old, new):
    """Copy the weights of the blank and of shared tokens from one output layer to another.

    Args:
        before, after: `keras.layers.Dense`, the old and the new output layer.
        old, new: `SpeechPreprocessor`, with the tokens of these layers.
    """
    old_labels = {token: k for k, token in enumerate(old.tokens, 1)}
    pairs = [(old_labels[t], k) for k, t in enumerate(new.tokens, 1) if t in old_labels]
    sources, targets = zip((0, 0), *pairs, strict=True)
    for weight, learned in zip(after.weights, before.weights, strict=True):
        values = np.array(weight)
        values[..., list(targets)] = np.asarray(learned)[..., list(sources)]
        weight.assign(values)
