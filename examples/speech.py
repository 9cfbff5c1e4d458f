"""Spoken digits to words: a Conformer hears strings of digits, whole and while they are spoken.

    python examples/speech.py [--epochs 20] [--unseen yweweler] [--made-up]

The recordings are TFDS's `spoken_digit`, joined to strings of 1 to 7 digits; one speaker is left
out, to see how far the model gets with a voice it never heard. With --made-up digits are tones,
invented on the spot. Writes saved_models/speech-by-hand/model.tflite: samples in, labels out.
`keras-attention train speech_recognizer --dataset spoken_digit --output DIR` writes a card, too.
"""

import argparse
import pathlib

import numpy as np

import keras_attention as ka
from keras_attention.data.made_up.spoken_digits import RATE, SPEAKERS, join_digits


def load(unseen):
    """(recordings of the others, strings of the one who is left out)."""
    others = [name for name in SPEAKERS if name != unseen]
    seen = ka.data.connected_digits(speakers=others)
    return seen, ka.data.connected_digits(0, 0, 250, speakers=[unseen]).test


def invented():
    """Digits that are tones, each speaker a little higher than the one before."""
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
    """Hears a recording in pieces of a tenth of a second, and shows what is known after each."""
    stream, text = ka.generation.SpeechStream(model), ""
    for start in range(0, len(sound), RATE // 10):
        new = preprocessor.decode(stream.hear(sound[start : start + RATE // 10]))
        text += new
        if new:
            print(f"after {(start + RATE // 10) / RATE:.1f} s: {text}")
    print(f"at the end: {text + preprocessor.decode(stream.finish())}")


def main(seen, unseen, epochs, output):
    task = ka.tasks.SpeechRecognizer.from_data(seen, chunk_size=8)  # hears at most 335 ms ahead
    task.fit(seen, epochs=epochs)
    print("seen speakers", task.evaluate(seen))
    print("unseen speaker", task.evaluate(unseen))
    listen(task.model, task.preprocessor, seen.test[0].sound)
    print(f"said: {seen.test[0].text}")

    output.mkdir(parents=True, exist_ok=True)
    print(task.export(output / "model.tflite", quantization="int8_weights"))
    task.attention(seen.test[0].sound, output / "attention.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--unseen", choices=SPEAKERS, default="yweweler")
    parser.add_argument("--made-up", action="store_true")
    parser.add_argument(
        "--output", type=pathlib.Path, default=pathlib.Path("saved_models/speech-by-hand")
    )
    arguments = parser.parse_args()
    data = invented() if arguments.made_up else load(arguments.unseen)
    main(*data, arguments.epochs, arguments.output)
