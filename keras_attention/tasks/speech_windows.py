"""`WindowReader`: transcribes a recording of any length with a Whisper model, window by window."""

import itertools
import zlib

import numpy as np

from keras_attention.core.lazy import generation, keras
from keras_attention.tasks.transcript import Segment, Transcript
from keras_attention.tasks.word_times import (
    align_words,
    cut_pauses,
    find_pauses,
    measure_loudness,
    rate_tokens,
    spell_words,
    split_words,
    time_words,
)

# The thresholds of Radford et al. (2022, section 4.5) and of OpenAI's code.
TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # tried in turn, until a text looks right
MOST_COMPRESSION = 2.4  # text that repeats itself compresses better than this
LEAST_SCORE = -1.0  # mean log-probability of a token
SILENCE = 0.6  # least probability of <|nospeech|> for a window without speech
RESETTING = 0.5  # a text of a higher temperature does not become a prompt
LEAST_SECONDS = 0.1  # a shorter rest at the end of a recording is not read


class WindowReader:
    """Transcribes recordings of any length with a Whisper model.

    The model reads windows of 30 seconds and writes text with timestamps. The next window begins at
    the last timestamp, and the text so far is its prompt. A window without speech gives no text. If
    a text repeats itself, or its tokens are improbable, it is drawn again at higher temperatures.
    All this follows Radford et al. (2022, section 4.5).

    Args:
        model: the `keras.Model` of the task, with an `"encoder"` and a `"decoder"`.
        preprocessor: `ka.data.SpeechTextPreprocessor` with a prompt.
        writing: `ka.tasks.Writing`, the settings of the search.
        temperatures: floats, tried in turn. 0 is greedy or beam search.
        heads: pairs (layer, head) of the cross-attention, for the times of words. None chooses
            those that align best in each window.
    """

    def __init__(self, model, preprocessor, writing, temperatures=TEMPERATURES, heads=None):
        self.encoder, self.writer = split_model(model)
        self.preprocessor, self.writing, self.temperatures = preprocessor, writing, temperatures
        self.prompt, self.tokenizer = preprocessor.prompt, preprocessor.target
        self.heads = heads
        self.first_time = self.prompt.no_timestamps_id + 1
        self.vector = preprocessor.seconds / self.encoder.output_shape[1]  # seconds
        names = self.tokenizer.pieces(range(self.prompt.begin_token_id, self.first_time))
        ids = {name: self.prompt.begin_token_id + k for k, name in enumerate(names)}
        self.previous_id = ids.get("<|startofprev|>")
        self.no_speech_id = ids.get("<|nospeech|>", ids.get("<|nocaptions|>"))
        first_special = min(preprocessor.end_token_ids)
        forbidden = [i for i in writing.suppress_tokens if i < self.first_time]
        self.rules = generation.penalties.Timestamps(self.first_time, first_special, forbidden)

    def transcribe(self, samples, language=None, task=None, words=True):
        """Transcribe a recording, and return a `Transcript`.

        Args:
            samples: float32 (n,), at the sampling rate of the preprocessor.
            language: str, the spoken language, or `"auto"` to detect it in the first window. None
                is the default of the prompt.
            task: str, `"transcribe"` or `"translate"`. None is the default of the prompt.
            words: bool, whether to compute the times of words.
        """
        rate = self.preprocessor.sampling_rate
        size, position = round(self.preprocessor.seconds * rate), 0
        segments, history = [], []
        if language == "auto":
            shares = self.detect_language(samples)
            language = max(shares, key=shares.get)
        start = self.prompt.find(language, task)
        while len(samples) - position > LEAST_SECONDS * rate:
            window = samples[position : position + size]
            begin, position = position, position + size
            if not np.any(window):  # digital silence
                continue
            encoded = self.encode(window)
            ids, score, silence, temperature = self.write(encoded, start[:-1], history)
            if silence > SILENCE and score < LEAST_SCORE:
                continue
            duration, offset = len(window) / rate, begin / rate
            parts, end = self.cut(ids, duration)
            parts = [part for part in parts if self._decode(part[0])]
            segments += self._time(parts, encoded, start, offset, window if words else None)
            history = [] if temperature > RESETTING else [*history, *ids]
            if end is not None:
                position = begin + max(round(end * rate), round(self.vector * rate))
        return Transcript(segments, self._name_language(start))

    def _name_language(self, start):
        """Return the code of the language in the prompt `start`, or None if it has none."""
        codes = {i: code for code, i in self.prompt.languages.items()}
        return codes.get(start[1])

    def encode(self, window):
        """Return the encoder's output (1, S, D) for samples (n,) of at most one window."""
        inputs = self.preprocessor([window])
        inputs = {name: inputs[name] for name in self.encoder.input}
        return np.asarray(self.encoder(inputs, training=False))

    def detect_language(self, samples):
        """Return {code: probability} of the languages in the first window of samples (n,)."""
        if not self.prompt.languages:
            raise ValueError(
                "language='auto': this model has one language, so there is nothing to detect. "
                "Leave it out."
            )
        size = round(self.preprocessor.seconds * self.preprocessor.sampling_rate)
        logits = self._compute_logits(self.encode(samples[:size]), [self.prompt.begin_token_id])
        codes, ids = zip(*self.prompt.languages.items(), strict=True)
        shares = softmax(logits[list(ids)])
        return dict(zip(codes, shares.tolist(), strict=True))

    def _compute_logits(self, encoded, ids):
        """Return the logits (V,) after the last of `ids`, a list of ints."""
        logits = self.writer({"encoded": encoded, "target_ids": np.array([ids], "int32")})
        return np.asarray(logits)[0, -1].astype("float64")

    def write(self, encoded, start, history):
        """Write the text of a window with timestamps.

        Args:
            encoded: (1, S, D), the encoder's output.
            start: ints, the prompt for language and task, without `<|notimestamps|>`.
            history: list of ints, the text so far.

        Returns:
            A tuple of the ids without the end id, the mean log-probability of a token, the
            probability that nobody speaks, and the temperature.
        """
        before = self._list_previous(history, len(start))
        silence = 0.0
        if self.no_speech_id is not None:
            logits = self._compute_logits(encoded, [*before, start[0]])
            silence = float(softmax(logits)[self.no_speech_id])
        for temperature in self.temperatures:
            result = generation.generate(
                self.writer,
                encoded,
                self.writing.max_new_tokens,
                self._choose_sampler(temperature),
                start_token_id=(*before, *start),
                end_token_id=self.preprocessor.end_token_ids,
                padding_id=None,
                penalties=[self.rules],
                return_scores=True,
            )
            ids = cut_at(result.ids[0], self.preprocessor.end_token_ids)
            score = float(result.scores[0].sum() / (len(ids) + 1))
            is_silent = silence > SILENCE and score < LEAST_SCORE
            repeats = measure_compression(self._decode(ids)) > MOST_COMPRESSION
            if is_silent or (score >= LEAST_SCORE and not repeats):
                break
        return ids, score, silence, temperature

    def _list_previous(self, history, start):
        """Return the ids before the prompt: `<|startofprev|>` and the end of the text so far.

        `start` is the number of ids in the prompt.
        """
        positions = generation.piecewise.get_decoder(self.writer).max_positions
        room = min(self.writing.max_new_tokens, positions - self.writing.max_new_tokens - start)
        if self.previous_id is None or not history or room < 2:
            return []
        return [self.previous_id, *history[1 - room :]]

    def _choose_sampler(self, temperature):
        if temperature > 0:
            return generation.Sample(temperature, seed=0)
        if self.writing.beam == 1:
            return "greedy"
        return generation.Beam(self.writing.beam, length_penalty=self.writing.length_penalty)

    def _decode(self, ids):
        """Return the text of ids, a str without timestamps and spaces around it."""
        return self.tokenizer.decode([[i for i in ids if i < self.rules.end_token_id]])[0].strip()

    def cut(self, ids, duration):
        """Cut the ids of a window into segments at its pairs of timestamps.

        Args:
            ids: ints, text and timestamps.
            duration: float, the length of the recording in the window, in seconds.

        Returns:
            A tuple of a list of (ids, start, end), and the time where the next window begins.
            Times are in seconds from the beginning of the window. None means after this window.
        """
        ids = np.asarray(ids)
        is_time = ids >= self.first_time
        cuts = [k for k in range(1, len(ids)) if is_time[k - 1] and is_time[k]]
        whole = bool(len(ids) > 1 and is_time[-1] and not is_time[-2])  # nothing follows the text

        def find_time(i):
            return min(float(i - self.first_time) * self.vector, duration)

        if not cuts:
            times = ids[is_time]
            end = find_time(times[-1]) if len(times) and times[-1] > self.first_time else duration
            start = find_time(times[0]) if len(times) > 1 else 0.0
            return [(ids, start, end)], None
        bounds = [0, *cuts, *([len(ids)] if whole else [])]
        parts = [ids[a:b] for a, b in zip(bounds, bounds[1:], strict=False)]
        parts = [(part, find_time(part[0]), find_time(part[-1])) for part in parts]
        return parts, None if whole else parts[-1][2]

    def _time(self, parts, encoded, start, offset, window):
        """Return a list of `Segment` for the parts of a window, with the times of their words.

        `window` (n,) holds the samples. With None, the segments have no words.
        """
        words = [[] for _ in parts]
        if window is not None and parts:
            texts = [[int(i) for i in ids if i < self.rules.end_token_id] for ids, _, _ in parts]
            translates = self.prompt.tasks.get("translate") in start
            code = "en" if translates else self._name_language(start)
            groups = [split_words(self.tokenizer, text, code) for text in texts]
            flat, ids = sum(groups, []), sum(texts, [])
            timed = iter(self._time_words(flat, ids, encoded, start, offset, window))
            words = [[next(timed) for _ in group] for group in groups]
        return [
            Segment(
                self._decode(ids),
                group[0].start if group else offset + begin,
                group[-1].end if group else offset + end,
                group,
            )
            for (ids, begin, end), group in zip(parts, words, strict=True)
        ]

    def _time_words(self, words, ids, encoded, start, offset, window):
        """Return a list of `Word` for (text, number of ids) of each word of a window."""
        vectors = max(1, round(len(window) / self.preprocessor.sampling_rate / self.vector))
        shares = rate_tokens(self.writer, encoded, [*start, *ids], len(start))
        room = generation.piecewise.get_decoder(self.writer).max_positions - len(start)
        spelled = spell_words(self.tokenizer, words, ids, room)
        bounds = align_words(self.writer, encoded, start, spelled, vectors, self.heads)
        pauses = find_pauses(measure_loudness(window, vectors))
        bounds = [cut_pauses(begin, end, pauses) for begin, end in itertools.pairwise(bounds)]
        return time_words(words, bounds, shares, self.vector, offset)


def split_model(model):
    """Return the encoder of an encoder-decoder, and a model that writes from its output.

    The second model has the inputs `"encoded"` and `"target_ids"`, so that the encoder runs once
    for several calls. It is stored in the model, because its compiled loops are stored in it.
    """
    cached = vars(model)  # not `setattr`: Keras would track and save the value
    if "_writer" not in cached:
        encoder, decoder = model.get_layer("encoder"), model.get_layer("decoder")
        encoded = keras.Input(encoder.output.shape[1:], dtype=encoder.output.dtype, name="encoded")
        passed = keras.Model(encoded, keras.layers.Identity()(encoded), name="encoder")
        ids = keras.Input((None,), dtype="int32", name="target_ids")
        logits = decoder({"target_ids": ids, "encoded": passed(encoded)})
        writer = keras.Model({"encoded": encoded, "target_ids": ids}, logits, name="writer")
        cached["_writer"] = encoder, writer
    return cached["_writer"]


def cut_at(ids, ends):
    """Return ids (T,) before the first of the ids `ends`, a list of ints."""
    end = np.flatnonzero(np.isin(ids, ends))[:1]
    return [int(i) for i in (ids[: end[0]] if end.size else ids)]


def measure_compression(text):
    """Return how many times shorter a text becomes by compression. Repetitions compress well."""
    content = text.encode()
    return len(content) / len(zlib.compress(content))


def softmax(logits):
    """Return the probabilities of logits (V,), float64."""
    shares = np.exp(logits - logits.max())
    return shares / shares.sum()
