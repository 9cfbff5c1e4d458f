"""Translate speech: from spoken English digits to a written German number.

    python examples/speech_translation.py [--epochs 30] [--unseen yweweler] [--made-up]

"seven two" becomes "zweiundsiebzig", so the last digit may have to be written first. The recordings
are TFDS's `spoken_digit`, joined to strings of 1 to 3 digits. One speaker is left out, to test the
model on an unseen voice. With `--made-up` the digits are tones. Writes a preset and a LiteRT file,
which maps audio samples to text, to saved_models/speech-translation-by-hand/preset/. To train the
same model and also write a model card, run `keras-attention train speech_to_text --dataset
spoken_numbers --output DIR`.
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
    """Return the recordings of all speakers but `unseen`, and test recordings of `unseen`."""
    speakers = [name for name in SPEAKERS if name != unseen]
    seen = ka.data.spoken_numbers(speakers=speakers, max_digits=3, top_db=TOP_DB)
    return seen, ka.data.spoken_numbers(0, 0, 250, speakers=[unseen], max_digits=3).test


def translate(recordings):
    """Add the written German number to each recording as its translation."""
    name = make_number_namer("de")
    return [recording._replace(translation=name(recording.text)) for recording in recordings]


def make_tones():
    """Generate each digit as a tone, with a slightly different pitch for each speaker."""
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
    examples = seen.test[:5]
    for recording, text in zip(examples, task.predict([x.sound for x in examples]), strict=True):
        print(f"{recording.text}: {text} (right: {recording.translation})")

    output.mkdir(parents=True, exist_ok=True)
    task.save_to_preset(output / "preset", overwrite=True)
    path = output / "preset" / "model.tflite"
    print(ka.tasks.from_preset(output / "preset").export(path, quantization="int8_weights"))
    in_file = ka.tasks.from_preset(output / "preset", "litert")
    assert all(isinstance(text, str) for text in in_file.predict([x.sound for x in examples]))
    task.attention(min(examples, key=lambda x: len(x.sound)).sound, output / "attention.png")


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
    data = make_tones() if arguments.made_up else load(arguments.unseen)
    main(*data, arguments.epochs, arguments.output)
