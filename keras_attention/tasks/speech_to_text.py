"""`SpeechToText`: recordings, and texts of what is said in each, in that language or another."""

import dataclasses

import numpy as np

from keras_attention import data, training
from keras_attention.core.checks import check_many
from keras_attention.core.lazy import blocks, keras, models
from keras_attention.data.preprocessors.speech_text import find_target
from keras_attention.data.tokenizers.building import build_tokenizer
from keras_attention.tasks.generators import FileGenerator, ModelGenerator
from keras_attention.tasks.length_limit import LengthLimit
from keras_attention.tasks.runners import map_batches
from keras_attention.tasks.speech_recognizer import (
    ROWS,
    check_rate,
    check_sounds,
    choose_sounds,
    describe_sounds,
    make_noise,
    measure_sounds,
    read_sounds,
)
from keras_attention.tasks.task import Task
from keras_attention.tasks.writing import FINISHING_SECONDS, Writing, check_score, draw_writing
from keras_attention.training.scores.texts import score_texts

LONGEST = 160  # tokens, unless another number is asked for


class SpeechToText(Task):
    """Writes what is said, or what it means in another language, word by word.

    Where recordings have translations, these are what it writes, and their transcripts, in the
    language that is spoken, only help to learn it. Of a checkpoint of Whisper, `from_preset` makes
    one that knows many languages; `language=` says which is spoken, and `task="translate"` writes
    English. Recordings with longer texts than it writes are not trained on. Those of more seconds
    than a checkpoint takes are not scored either. Their number is printed.

    Args:
        model: functional `keras.Model`, as `ka.models.speech_to_text`.
        preprocessor: `ka.data.SpeechTextPreprocessor`.
        writing: `ka.tasks.Writing`, the search and its limits.
        score: `"error_rates"` of words and characters, or `"translation"`: chrF and exact match.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    time = np.arange(4000) / 8000
    low, high = (0.3 * np.sin(6.28 * f * time).astype("float32") for f in (300, 1500))
    train = [ka.data.Recording(low, "a"), ka.data.Recording(high, "b")] * 16
    recordings = ka.data.Recording.collect(train, sampling_rate=8000)
    size = dict(num_layers=1, num_heads=2, hidden_dim=16, kernel_size=3, dropout=0.0)
    task = ka.tasks.SpeechToText.from_data(
        recordings, embedding={"spec_augment": None}, max_length=4, **size
    )
    task.fit(recordings, epochs=4, batch_size=4, learning_rate=0.01, verbose=False)
    assert all(isinstance(text, str) for text in task.predict([low, high]))
    ```
    """

    builders = ("speech_to_text",)
    example_kind, holds, example = data.Recording, "recordings with texts", "recording.wav"
    unit = "recordings"
    score_names = ("error_rates", "translation")
    predict_options, rows = ("beam", "language", "task"), ROWS
    finishing_seconds = FINISHING_SECONDS

    def __init__(self, model, preprocessor, *, writing=None, score=None, builder=None):
        super().__init__(model, preprocessor, builder=builder)
        self.writing = Writing(max_new_tokens=LONGEST) if writing is None else writing
        self.score = check_score(self, score)

    @classmethod
    def make_parts(cls, data_set, recipe, builder):
        sounds = measure_sounds(data_set)
        options, train = recipe.data, data_set.train
        texts = [text for one in train for text in {one.text, find_target(one)}]
        translates = any(one.translation is not None for one in train)
        target = build_tokenizer(options.tokens, texts, options.vocabulary_size)
        preprocessor = data.SpeechTextPreprocessor(target, **sounds)
        sound = choose_sounds(preprocessor, recipe)
        keywords = recipe.list_keywords(models.SpeechEmbedding, **sound)
        return (
            models.speech_to_text(len(target), ctc_head=options.ctc_weight > 0, **keywords),
            preprocessor,
            dict(
                writing=Writing(options.beam, options.length_penalty, options.max_length),
                score="translation" if translates else "error_rates",
            ),
        )

    @classmethod
    def read_settings(cls, fields):
        check_sounds(fields)
        return {
            "writing": Writing.read(fields.object("writing")),
            "score": fields.one_of("score", cls.score_names),
        }

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        return data.SpeechTextPreprocessor.load(folder, **read_sounds(manifest))

    @property
    def settings(self):
        return describe_sounds(self.preprocessor) | {
            "score": self.score,
            "writing": self.writing.describe(self.preprocessor),
        }

    def open_runner(self, path):
        return FileGenerator(path, self.metadata)

    def wrap_model(self, model, path=None):
        return ModelGenerator(model, self.metadata, path)

    @property
    def limit(self):
        """More seconds than the model takes; in training also more tokens than it writes."""
        most, seconds = f"{self.writing.max_new_tokens} tokens to write", self.preprocessor.seconds
        most = most if seconds is None else f"{seconds:g} seconds or {most}"
        return LengthLimit("recordings", most, self._is_long)

    def _is_long(self, example, training):
        if self.preprocessor.is_long(example.sound):
            return True
        if not training:
            return False
        (ids,) = self.preprocessor.target_ids([find_target(example)])
        begin = np.size(self.preprocessor.start_token_id)
        return len(ids) - begin > self.writing.max_new_tokens

    @property
    def _has_ctc(self):
        return isinstance(self.model.output, dict)

    @property
    def batch_preprocessor(self):
        """Return the preprocessor, which makes labels of CTC where the model has such a head."""
        return dataclasses.replace(self.preprocessor, ctc=self._has_ctc)

    def check_data(self, data):
        check_rate(data, self.preprocessor)

    def make_loss(self, recipe, train):
        smoothing = {"label_smoothing": recipe.label_smoothing}
        if self._has_ctc:
            return training.CTCAttention(recipe.data.ctc_weight, **smoothing)
        return training.MaskedSparseCategoricalCrossentropy(**smoothing)

    def make_metrics(self):
        """Of given texts: the share of tokens chooses the epoch."""
        if self._has_ctc:
            tokens, texts = training.DecoderAccuracy, training.DecoderSequenceAccuracy
        else:
            tokens = training.MaskedSparseCategoricalAccuracy
            texts = training.MaskedSequenceAccuracy
        return [lambda: tokens(name="accuracy"), lambda: texts(name="exact_match")]

    def make_exportable(self, model):
        """Return the model without CTC's logits, which only training needs."""
        if not isinstance(model.output, dict):
            return model
        return keras.Model(model.input, model.output["logits"], name=model.name)

    def make_examples(self):
        """Return two recordings of noise with the beginnings of texts."""
        sounds = self.preprocessor(make_noise(self.preprocessor))
        begin = np.atleast_1d(self.preprocessor.start_token_id)
        return [{**sounds, "target_ids": np.array([[*begin, 4, 4]] * 2, "int32")}]

    def compute_scores(self, examples, where):
        """Return word and character error rates, or chrF and exact match of translations."""
        if not examples:
            return {}
        examples = self.select(examples, where)
        written = self.predict([recording.sound for recording in examples])
        wanted = [find_target(recording) for recording in examples]
        return score_texts(self.score, written, wanted)

    def predict(self, inputs, *, beam=None, language=None, task=None):
        """Return the texts of recordings.

        Args:
            inputs: list of paths of WAV or FLAC files, or of arrays, samples (n,) or features
                (T, F).
            beam: int, how many texts the search holds; None for the task's own.
            language: str, of a checkpoint of Whisper what is spoken, such as `"de"` or `"german"`;
                None for the task's own.
            task: str, likewise: `"transcribe"`, or `"translate"` into English.

        Returns:
            For each recording a str.
        """
        check_many(inputs, "recording", ndim=1)
        options = {} if beam is None else {"beam": beam}
        if language is not None or task is not None:
            options["start_token_id"] = self._find_prompt(language, task)
        alike = all(hasattr(sound, "shape") for sound in inputs)  # those share a batch

        def write(sounds):
            return self.preprocessor.texts(self.runner(self.preprocessor(sounds), **options))

        lengths = [len(sound) if alike else 0 for sound in inputs]
        return map_batches(write, inputs, lengths, ROWS)

    def _find_prompt(self, language, task):
        """Return the tokens that texts begin with, for a language and a task of Whisper's."""
        if self.preprocessor.prompt is None:
            name, value = ("task", task) if language is None else ("language", language)
            raise ValueError(
                f"{name}={value!r} is for checkpoints of Whisper, and this model writes what it "
                "was trained to write: leave it out."
            )
        return self.preprocessor.prompt.find(language, task)

    def attention(self, example, path=None):
        """Return the maps of cross-attention: what each token that was written listened to."""
        sounds = self.preprocessor([example])

        def name_keys(count):
            return self._name_times(sounds, count)

        looked = "which part of the sound each token that was written listened to"
        return draw_writing(self, sounds, name_keys, looked, path)

    def _name_times(self, sounds, count):
        """Where each of `count` vectors begins, in seconds; of features in frames."""
        length = int(sounds["lengths"][0])
        rate = self.preprocessor.sampling_rate
        if self.preprocessor.prompt is not None:
            length = round(self.preprocessor.seconds * rate)  # silence is heard, too
        if rate is None:
            return [f"{k * length // count}" for k in range(count)]
        stride = blocks.log_mel_spectrogram.STRIDE
        step = max(1, round(length / rate / stride / count)) * stride
        return [f"{k * step:.2f}" for k in range(count)]

    def find_pictured(self, data_set):
        """Return a short recording."""
        every = data_set.test or data_set.dev
        return min(every, key=lambda recording: len(recording.sound)).sound
