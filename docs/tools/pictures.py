"""Draw the pictures of docs/pictures from the trained models in saved_models/.

make pictures

The picture of speech needs Whisper tiny.en and eSpeak NG, as benchmarks/long_recordings.py says:

PYTHONPATH=FOLDER python docs/tools/pictures.py CHECKPOINT
"""

import pathlib
import sys

import keras
import numpy as np
from sklearn import datasets

import keras_attention as ka
from keras_attention.tasks import speech_windows, word_times

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
GERMAN = "Ein Mann mit einem roten Hut fährt auf der Straße Fahrrad."
ENGLISH = "She sells fresh bread and cheese at the market every Saturday morning."
WORD_START = "▁"  # SentencePiece begins words with it
SIZE = (8.4, 4.9)  # inches: as wide as a page
FONT_SIZE = 12.5


def draw_translation():
    """Draw which German words the translator looked at for each English word that it wrote."""
    task = ka.tasks.from_preset(ROOT / "saved_models" / "multi30k-de-en")
    texts = task.preprocessor
    source = texts([GERMAN])
    with ka.visualization.record_attention(task.model) as maps:
        target = ka.generation.generate(
            task.model,
            source=source,
            start_token_id=texts.start_token_id,
            end_token_id=texts.end_token_id,
            max_new_tokens=24,
        )
    weights = np.asarray(maps["decoder_block_2/cross_attention"])[0].mean(axis=0)  # (T, S)
    end = list(target[0]).index(texts.end_token_id)
    english = texts.target.pieces(target[0][:end])
    german = texts.source.pieces(source[0])[:-1]  # without the end of the text
    german, starts = join_pieces(german)
    weights = np.add.reduceat(weights[:, : starts[-1] + 1], starts, axis=1)
    english, starts = join_pieces(english)
    weights = np.stack([rows.mean(axis=0) for rows in np.split(weights[:end], starts[1:])])
    draw_alignment(weights, english, german, PICTURES / "translation.png")


def join_pieces(pieces):
    """Return the words that subwords spell, and the index of the first subword of each word."""
    starts = [k for k, piece in enumerate(pieces) if piece.startswith(WORD_START) or piece == "."]
    groups = np.split(np.array(pieces), starts[1:])
    return ["".join(group).removeprefix(WORD_START) for group in groups], starts


def draw_alignment(weights, rows, columns, path):
    """Draw weights (T, S) with large labels, so that they are readable at the width of a page."""
    figure = ka.visualization.attention_map(weights, rows, columns)
    figure.set_size_inches(*SIZE)
    panel, bar = figure.axes
    panel.set_title("")
    panel.xaxis.tick_top()
    panel.xaxis.set_label_position("top")
    panel.set_xlabel("German, as it was read", fontsize=FONT_SIZE)
    panel.set_ylabel("English, as it was written", fontsize=FONT_SIZE)
    panel.tick_params(labelsize=FONT_SIZE, length=0)
    panel.tick_params(axis="x", rotation=40)
    for label in panel.get_xticklabels():
        label.set_horizontalalignment("left")
        label.set_rotation_mode("anchor")
    bar.tick_params(labelsize=FONT_SIZE - 2)
    bar.set_ylabel("attention weight", fontsize=FONT_SIZE)
    figure.savefig(path)


def draw_digits():
    """Draw six digits of the test part and the patches that the last layer looked at."""
    model = keras.models.load_model(ROOT / "saved_models" / "digits-vit" / "model.keras")
    digits = datasets.load_digits()
    chosen = [int(np.flatnonzero(digits.target == digit)[7]) for digit in (0, 2, 3, 4, 7, 9)]
    images = (digits.images[chosen] / 16.0).astype("float32")[..., None]
    with ka.visualization.record_attention(model) as maps:
        logits = model(images)
    titles = [str(digit) for digit in np.argmax(logits, axis=-1)]
    ka.visualization.attention_gallery(
        images, maps["block_1/attention"], titles, path=PICTURES / "digits.png"
    )


def draw_speech(checkpoint):
    """Draw a spoken sentence, the times of its words, and the attention of its letters."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import long_recordings

    ((samples, rate, _),) = long_recordings.speak([ENGLISH], "en-us", 150)
    samples = long_recordings.resample(samples, rate, long_recordings.RATE)
    task = ka.tasks.from_preset(checkpoint)
    calls, align = [], word_times.align_words
    speech_windows.align_words = lambda *call: calls.append(call) or align(*call)
    (transcript,) = task.transcribe([samples], temperatures=[0.0])
    ((model, encoded, start, spelled, num_vectors, *_),) = calls
    letters = [i for word in spelled for i in word]
    with ka.visualization.record_attention(model) as maps:
        model({"encoded": encoded, "target_ids": np.array([[*start, *letters]], "int32")})
    layers = [
        np.asarray(x)[0, :, len(start) - 1 :, :num_vectors]
        for path, x in maps.items()
        if "cross_attention" in path
    ]
    heads = word_times.choose_heads(layers)
    weights = np.mean([layers[layer][head] for layer, head in heads], axis=0)
    names = [task.preprocessor.tokenizer.decode([[i]])[0] for i in letters]
    times = np.arange(len(samples)) / long_recordings.RATE
    draw_words(times, samples / np.abs(samples).max(), transcript.words, weights, names)


def draw_words(times, samples, words, weights, letters):
    """Draw a waveform with the times of words above the attention of letters (T, S).

    `times` are the seconds of the samples.
    """
    from matplotlib import pyplot

    figure, (above, below) = pyplot.subplots(
        2, 1, sharex=True, figsize=(8.4, 6.4), height_ratios=(1, 3), layout="constrained"
    )
    above.plot(times, samples, color="0.6", linewidth=0.5)
    above.set_ylim(-1.1, 1.9)
    above.set_yticks([])
    for k, word in enumerate(words):
        color = f"C{k % 2}"
        above.axvspan(word.start, word.end, ymax=0.73, color=color, alpha=0.2, linewidth=0)
        middle = (word.start + word.end) / 2
        above.text(middle, 1.25, word.text, ha="center", fontsize=FONT_SIZE - 3, color=color)
        below.axvline(word.start, color=color, linewidth=0.8)
    scaled = weights / weights.max(axis=1, keepdims=True)
    extent = (0, times[-1], len(letters), 0)
    below.imshow(scaled[: len(letters)], aspect="auto", extent=extent, cmap="Greys")
    below.set_yticks(np.arange(len(letters)) + 0.5, letters, fontsize=FONT_SIZE - 6)
    below.tick_params(length=0)
    below.set_ylabel("letter", fontsize=FONT_SIZE)
    below.set_xlabel("seconds", fontsize=FONT_SIZE)
    figure.savefig(PICTURES / "speech.png", dpi=100)


if __name__ == "__main__":
    draw_translation()
    draw_digits()
    for path in sys.argv[1:]:
        draw_speech(path)
