"""`SpeechToText`: transcribes or translates recordings with an encoder-decoder model."""

import dataclasses
import pathlib

import numpy as np

from keras_attention import data, training
from keras_attention.core.checks import check_many
from keras_attention.core.lazy import blocks, keras, models
from keras_attention.data.preprocessors.speech_text import find_target
from keras_attention.data.readers.sounds import measure_duration
from keras_attention.data.tokenizers.building import build_tokenizer
from keras_attention.tasks.length_limit import LengthLimit
from keras_attention.tasks.runners import map_batches
from keras_attention.tasks.sounds import (
    ROWS,
    check_rate,
    check_sounds,
    choose_sounds,
    describe_sounds,
    make_noise,
    measure_sounds,
    read_sounds,
)
from keras_attention.tasks.writing import Writing
from keras_attention.tasks.writing_task import WritingTask
from keras_attention.training.scores.texts import score_texts

AUTO = "auto"  # as a language: detect it


class SpeechToText(WritingTask):
    """Generates the transcript of a recording, or its translation, token by token.

    If the training recordings have translations, the model learns to generate these, and the
    transcripts are used only for the CTC loss. `from_preset` also opens Whisper checkpoints, which
    transcribe many languages: `language=` is the spoken language, and `task="translate"` translates
    into English.

    Whisper reads at most 30 seconds at a time. `predict` and `transcribe` read longer recordings
    window by window, and `transcribe` also returns the times of segments and words. This takes the
    Keras model, so an exported file needs `model.keras` in its folder.

    Recordings whose text has too many tokens are skipped in training. Recordings that are too long
    for a checkpoint are skipped in training and in `evaluate`. A message reports their number.

    Args:
        model: functional `keras.Model`, such as `ka.models.speech_to_text`.
        preprocessor: `ka.data.SpeechTextPreprocessor`.
        writing: `ka.tasks.Writing`, the settings of beam search. None uses the defaults.
        score: str, the scores that `evaluate` computes: `"error_rates"` for the word and character
            error rates, or `"translation"` for chrF and exact match. None selects `"error_rates"`.
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
    task = ka.tasks.SpeechToText.from_data(
        recordings, embedding={"spec_augment": None}, max_length=4, **size
    )
    task.fit(recordings, epochs=4, batch_size=4, learning_rate=0.01, verbose=False)
    assert all(isinstance(text, str) for text in task.predict([low, high]))
    ```
    """

    builders = ("speech_to_text",)
    example_kind, holds, example = data.Recording, "recordings with text", "recording.wav"
    unit = "recordings"
    score_names = ("error_rates", "translation")
    predict_options, rows = ("beam", "language", "task", "srt"), ROWS
    default_writing = Writing(max_new_tokens=160)

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
        model = models.speech_to_text(len(target), ctc_head=options.ctc_weight > 0, **keywords)
        settings = {
            "writing": Writing(options.beam, options.length_penalty, options.max_length),
            "score": "translation" if translates else "error_rates",
        }
        return model, preprocessor, settings

    @classmethod
    def read_settings(cls, fields):
        check_sounds(fields)
        return super().read_settings(fields)

    @classmethod
    def load_preprocessor(cls, folder, manifest):
        return data.SpeechTextPreprocessor.load(folder, **read_sounds(manifest))

    @property
    def settings(self):
        return describe_sounds(self.preprocessor) | super().settings

    @property
    def limit(self):
        """Return the `LengthLimit` of recordings and, in training, of their text."""
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
        """Return the preprocessor, which also makes CTC labels if the model has a CTC head."""
        return dataclasses.replace(self.preprocessor, ctc=self._has_ctc)

    def check_data(self, data):
        check_rate(data, self.preprocessor)

    def make_loss(self, recipe, train):
        smoothing = {"label_smoothing": recipe.label_smoothing}
        if self._has_ctc:
            return training.CTCAttention(recipe.data.ctc_weight, **smoothing)
        return training.MaskedSparseCategoricalCrossentropy(**smoothing)

    def make_metrics(self):
        """Return metrics of each predicted token, given the correct tokens before it.

        Token accuracy selects the best epoch.
        """
        if self._has_ctc:
            tokens, texts = training.DecoderAccuracy, training.DecoderSequenceAccuracy
        else:
            tokens = training.MaskedSparseCategoricalAccuracy
            texts = training.MaskedSequenceAccuracy
        return [lambda: tokens(name="accuracy"), lambda: texts(name="exact_match")]

    def make_exportable(self, model):
        """Return the model to export, without the CTC logits, which only training needs."""
        if not isinstance(model.output, dict):
            return model
        return keras.Model(model.input, model.output["logits"], name=model.name)

    def make_examples(self):
        """Return a batch for checking an export: two recordings of noise with a few target ids."""
        sounds = self.preprocessor(make_noise(self.preprocessor))
        begin = np.atleast_1d(self.preprocessor.start_token_id)
        return [{**sounds, "target_ids": np.array([[*begin, 4, 4]] * 2, "int32")}]

    def compute_scores(self, examples, where):
        """Compute word and character error rates, or chrF and exact match for translations.

        `examples` is a list of `Recording`. Error messages begin with `where`, a str.
        """
        if not examples:
            return {}
        examples = self.select(examples, where)
        written = self.predict([recording.sound for recording in examples])
        targets = [find_target(recording) for recording in examples]
        return score_texts(self.score, written, targets)

    def predict(self, inputs, *, beam=None, language=None, task=None, srt=False):
        """Transcribe or translate each recording.

        Args:
            inputs: list of paths of WAV or FLAC files, or of arrays with samples (n,) or features
                (frames, features). Whisper reads recordings of any length, as `transcribe`
                explains.
            beam: int, the beam width. None uses the beam width in the task's `writing`.
            language: str, the spoken language, such as `"de"` or `"german"`, or `"auto"` to detect
                it. None keeps the language that was passed to `from_preset`. Only for Whisper
                checkpoints.
            task: str, `"transcribe"`, or `"translate"` to translate into English. None keeps the
                task that was passed to `from_preset`. Only for Whisper checkpoints.
            srt: bool, whether to return SubRip subtitles, which contain times. Only for Whisper
                checkpoints.

        Returns:
            A list with a str for each recording.
        """
        check_many(inputs, "recording", ndim=1)
        settings = {"beam": beam, "language": language, "task": task}
        if srt:
            return [one.format_srt() for one in self.transcribe(inputs, **settings)]
        windowed = [language == AUTO or self._takes_windows(sound) for sound in inputs]
        long = [sound for sound, wide in zip(inputs, windowed, strict=True) if wide]
        short = [sound for sound, wide in zip(inputs, windowed, strict=True) if not wide]
        transcripts = iter(self.transcribe(long, words=False, **settings) if long else ())
        texts = iter(self._write(short, **settings))
        return [next(transcripts).text if wide else next(texts) for wide in windowed]

    def _write(self, inputs, beam, language, task):
        """Return the texts of recordings that fit into the model, a list of str.

        The arguments are those of `predict`.
        """
        options = {} if beam is None else {"beam": beam}
        if language is not None or task is not None:
            options["start_token_id"] = self._find_prompt(language, task)
        # Batch arrays of similar length. The lengths of files are unknown until they are read.
        are_arrays = all(isinstance(sound, np.ndarray) for sound in inputs)

        def write(sounds):
            return self.preprocessor.texts(self.runner(self.preprocessor(sounds), **options))

        lengths = [len(sound) if are_arrays else 0 for sound in inputs]
        return map_batches(write, inputs, lengths, ROWS)

    def _takes_windows(self, sound):
        """Return whether a recording, a path or an array, is longer than Whisper reads at once."""
        if self.preprocessor.prompt is None:
            return False
        if isinstance(sound, str | pathlib.Path):
            return measure_duration(sound) > self.preprocessor.seconds
        return self.preprocessor.is_long(sound)

    def transcribe(
        self,
        inputs,
        *,
        beam=None,
        language=None,
        task=None,
        words=True,
        temperatures=None,
        heads=None,
    ):
        """Transcribe recordings of any length with Whisper, and return texts with times.

        The model reads windows of 30 seconds (Radford et al., 2022, section 4.5). A window begins
        where the last complete segment ended, and continues the text so far. Silence gives no text.
        For the times of words, the model reads the text once more, letter by letter. Dynamic time
        warping over its cross-attention aligns the letters with the sound
        (`ka.generation.align_attention`), and words lose the silence at their ends.

        Args:
            inputs: list of paths of WAV or FLAC files, or of arrays with samples (n,).
            beam, language, task: as in `predict`.
            words: bool, whether to compute the times of words. Segments then begin and end with
                their words. Otherwise their times are the timestamps that the model wrote.
            temperatures: floats, tried in turn until a text does not repeat itself and is probable
                enough. 0 is greedy or beam search. None is 0, 0.2, ..., 1.
            heads: pairs (layer, head) of the cross-attention, for the times of words. None chooses
                those that align best in each window (`ka.generation.rate_heads`).

        Returns:
            A list with a `ka.tasks.Transcript` for each recording.

        Raises:
            ValueError: the model is not from a Whisper checkpoint.
        """
        check_many(inputs, "recording", ndim=1)
        if self.preprocessor.prompt is None:
            raise ValueError(
                "transcribe and srt= are for checkpoints of Whisper. This model writes no "
                "timestamps: use predict, or a SpeechRecognizer, which also has transcribe."
            )
        from keras_attention.tasks.speech_windows import TEMPERATURES, WindowReader

        writing = self.writing
        if beam is not None:
            writing = dataclasses.replace(writing, beam=beam)
        temperatures = TEMPERATURES if temperatures is None else tuple(temperatures)
        reader = WindowReader(self.model, self.preprocessor, writing, temperatures, heads)
        read = dataclasses.replace(self.preprocessor, seconds=None)
        results = []
        for sound in inputs:
            one = read([sound])
            samples = one["waveform"][0, : one["lengths"][0]]
            results.append(reader.transcribe(samples, language, task, words))
        return results

    def _find_prompt(self, language, task):
        """Return the ids that Whisper's decoder starts with, for a language and a task."""
        if self.preprocessor.prompt is None:
            name, value = ("task", task) if language is None else ("language", language)
            raise ValueError(
                f"{name}={value!r} is for checkpoints of Whisper. This model only does what it was "
                "trained for: leave it out."
            )
        return self.preprocessor.prompt.find(language, task)

    def attention(self, example, path=None):
        """Generate a text, and plot which parts of the recording each token attended to.

        `example` is an input of `predict`. The figure is saved at `path`, unless this is None.
        Return the attention weights of all layers and the figure as `AttentionMaps`.
        """
        sounds = self.preprocessor([example])

        def name_keys(count):
            return self._name_times(sounds, count)

        caption = "which part of the sound each written token attended to"
        return self.draw_writing(sounds, name_keys, caption, path)

    def _name_times(self, sounds, count):
        """Return the labels of the time axis in a figure: the start time of each encoder vector.

        `count` is the number of vectors. The unit is seconds, or frames if the inputs are features.
        """
        length = int(sounds["lengths"][0])
        rate = self.preprocessor.sampling_rate
        if self.preprocessor.prompt is not None:
            length = round(self.preprocessor.seconds * rate)  # including the padding
        if rate is None:
            return [f"{k * length // count}" for k in range(count)]
        stride = blocks.log_mel_spectrogram.STRIDE
        step = max(1, round(length / rate / stride / count)) * stride
        return [f"{k * step:.2f}" for k in range(count)]

    def find_pictured(self, data_set):
        """Return the shortest recording of a dataset, whose attention map is easy to read."""
        examples = data_set.test or data_set.dev
        return min(examples, key=lambda recording: len(recording.sound)).sound
