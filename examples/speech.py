"""Recognize strings of spoken digits with a Conformer, also as a stream while they are spoken.

    python examples/speech.py [--epochs 20] [--unseen yweweler] [--made-up]

The recordings are TFDS's `spoken_digit`, joined to strings of 1 to 7 digits. One speaker is left
out, to test the model on an unseen voice. With `--made-up` the digits are tones. Writes
saved_models/speech-by-hand/model.tflite, which maps audio samples to label ids, and subtitles.srt,
the transcript of a recording of 40 seconds. To train the same model and also write a model card,
run `keras-attention train speech_recognizer --dataset spoken_digit --output DIR`.
"""

import argparse
import itertools
import pathlib

import numpy as np

import keras_attention as ka
from keras_attention.data.made_up.spoken_digits import RATE, SPEAKERS, join_digits


def load(unseen):
    """Return the recordings of all speakers but `unseen`, and test recordings of `unseen`."""
    speakers = [name for name in SPEAKERS if name != unseen]
    seen = ka.data.connected_digits(speakers=speakers)
    return seen, ka.data.connected_digits(0, 0, 250, speakers=[unseen]).test


def make_tones():
    """Generate each digit as a tone, with a slightly different pitch for each speaker."""
    draw = np.random.default_rng(0)
    time = np.arange(1600) / RATE

    def speak(digit, voice):
        tone = np.sin(2 * np.pi * (250 + 300 * digit) * (1 + 0.02 * voice) * time)
        return (0.3 * tone + draw.normal(size=time.shape, scale=0.003)).astype("float32")

    digits = [(str(voice), digit, speak(digit, voice)) for voice in range(4) for digit in range(10)]
    parts = (join_digits(digits, count, 3, draw) for count in (64, 16, 16))
    unseen = [(str(4), digit, speak(digit, 4)) for digit in range(10)]
    data = ka.data.Recording.collect(*parts, sampling_rate=RATE)
    return data, join_digits(unseen, 16, 3, draw)


def listen(model, preprocessor, sound):
    """Recognize a recording in pieces of 0.1 seconds, and print the text as it grows."""
    stream, text = ka.generation.SpeechStream(model), ""
    for start in range(0, len(sound), RATE // 10):
        new = preprocessor.decode(stream.hear(sound[start : start + RATE // 10]))
        text += new
        if new:
            print(f"after {(start + RATE // 10) / RATE:.1f} s: {text}")
    print(f"at the end: {text + preprocessor.decode(stream.finish())}")


def join_recordings(recordings, seconds):
    """Repeat and join recordings, with pauses of a second, until they last `seconds`."""
    pieces, pause = [], np.zeros(RATE, "float32")
    for recording in itertools.cycle(recordings):
        pieces += [recording.sound, pause]
        if sum(map(len, pieces)) > seconds * RATE:
            return np.concatenate(pieces)


def main(seen, unseen, epochs, output):
    task = ka.tasks.SpeechRecognizer.from_data(seen, chunk_size=8)  # latency of at most 335 ms
    task.fit(seen, epochs=epochs)
    print("seen speakers", task.evaluate(seen))
    print("unseen speaker", task.evaluate(unseen))
    listen(task.model, task.preprocessor, seen.test[0].sound)
    print(f"right: {seen.test[0].text}")

    output.mkdir(parents=True, exist_ok=True)
    print(task.export(output / "model.tflite", quantization="int8_weights"))
    task.attention(seen.test[0].sound, output / "attention.png")
    (transcript,) = task.transcribe([join_recordings(seen.test, 40)])
    (output / "subtitles.srt").write_text(transcript.format_srt(), "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--unseen", choices=SPEAKERS, default="yweweler")
    parser.add_argument("--made-up", action="store_true")
    parser.add_argument(
        "--output", type=pathlib.Path, default=pathlib.Path("saved_models/speech-by-hand")
    )
    arguments = parser.parse_args()
    data = make_tones() if arguments.made_up else load(arguments.unseen)
    main(*data, arguments.epochs, arguments.output)
