"""Speech to text in another language: English digits are heard, German numbers are written.

    python examples/speech_translation.py [--epochs 30] [--unseen yweweler] [--made-up]

"seven two" becomes "zweiundsiebzig": an encoder and a decoder that may write the end first. The
recordings are TFDS's `spoken_digit`, joined to strings of 1 to 3 digits; one speaker is left out.
With --made-up digits are tones, invented on the spot. Writes
saved_models/speech-translation-by-hand/model.tflite: samples in, text out, in one file.
`keras-attention train speech_to_text --dataset spoken_numbers --output DIR` writes a card, too.
"""

import argparse
import pathlib

import numpy as np

import keras_attention as ka
from keras_attention.data.made_up.spoken_digits import (
    RATE,
    SPEAKERS,
    TOP_DB,
    join_digits,
    make_number_namer,
)


def load(unseen):
    """(recordings of the others, strings of the one who is left out)."""
    others = [name for name in SPEAKERS if name != unseen]
    seen = ka.data.spoken_numbers(speakers=others, max_digits=3, top_db=TOP_DB)
    return seen, ka.data.spoken_numbers(0, 0, 250, speakers=[unseen], max_digits=3).test


def translate(recordings):
    """With what is said as a German number."""
    name = make_number_namer("de")
    return [recording._replace(translation=name(recording.text)) for recording in recordings]


def invented():
    """Digits that are tones, each speaker a little higher than the one before."""
    draw, time = np.random.default_rng(0), np.arange(1600) / RATE

    def speak(digit, voice):
        tone = np.sin(2 * np.pi * (250 + 300 * digit) * (1 + 0.02 * voice) * time)
        return (0.3 * tone + draw.normal(size=time.shape, scale=0.003)).astype("float32")

    digits = [(str(voice), digit, speak(digit, voice)) for voice in range(4) for digit in range(10)]
    parts = (translate(join_digits(digits, count, 2, draw)) for count in (64, 16, 16))
    unseen = [(str(4), digit, speak(digit, 4)) for digit in range(10)]
    data = ka.data.Recording.collect(*parts, sampling_rate=RATE)
    return data, translate(join_digits(unseen, 16, 2, draw))


def main(seen, unseen, epochs, output):
    task = ka.tasks.SpeechToText.from_data(seen, max_length=48)
    task.fit(seen, epochs=epochs)
    print("seen speakers", task.evaluate(seen))
    print("unseen speaker", task.evaluate(unseen))
    heard = seen.test[:5]
    for recording, text in zip(heard, task.predict([x.sound for x in heard]), strict=True):
        print(f"{recording.text}: {text} (right: {recording.translation})")

    output.mkdir(parents=True, exist_ok=True)
    task.save_to_preset(output / "preset", overwrite=True)
    path = output / "preset" / "model.tflite"
    print(ka.tasks.from_preset(output / "preset").export(path, quantization="int8_weights"))
    in_file = ka.tasks.from_preset(output / "preset", "litert")
    assert all(isinstance(text, str) for text in in_file.predict([x.sound for x in heard]))
    task.attention(min(heard, key=lambda x: len(x.sound)).sound, output / "attention.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--unseen", choices=SPEAKERS, default="yweweler")
    parser.add_argument("--made-up", action="store_true")
    parser.add_argument(
        "--output",
        type=pathlib.Path,
        default=pathlib.Path("saved_models/speech-translation-by-hand"),
    )
    arguments = parser.parse_args()
    data = invented() if arguments.made_up else load(arguments.unseen)
    main(*data, arguments.epochs, arguments.output)
