"""Draws the pictures of docs/pictures from the trained models in saved_models/.

make pictures
"""

import pathlib

import keras
import numpy as np
from sklearn import datasets

import keras_attention as ka

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"


def draw_digits():
    """One test picture of six digits, and the patches that the last layer looked at."""
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


if __name__ == "__main__":
    draw_digits()
