"""Draws handwritten digits, pixel by pixel: a language model whose tokens are levels of brightness.

    python examples/drawn_digits.py [--epochs N] [--ask 2026]

The class comes first, and each pixel looks back on the class and on the pixels near it (Parmar et
al., 2018; Chen et al., 2020). The 1,797 digits of 8 by 8 pixels come with scikit-learn. The way
with exports and a model card is `keras-attention train image_generator --dataset digits --output
DIR`.
"""

import argparse

import keras
from sklearn import datasets, model_selection

import keras_attention as ka

EACH = 8  # pictures of a class among the samples


def load():
    """The digits as `ka.data.Images`: a fifth is for testing, a tenth of the rest for choosing."""
    digits = datasets.load_digits()
    pixels = (digits.images[..., None] / 16).astype("float32")
    train, test, train_labels, test_labels = model_selection.train_test_split(
        pixels, digits.target, test_size=0.2, stratify=digits.target, random_state=0
    )
    labels = [str(digit) for digit in range(10)]
    return ka.data.ImageSplit.collect(
        (train, train_labels), test=(test, test_labels), labels=labels
    )


def draw_samples(task, labels, path):
    """Writes a picture of drawn ones, a column for each class."""
    drawn = task.draw(list(labels) * EACH, seed=0)  # (n, H, W, 1)
    large = drawn.repeat(4, axis=1).repeat(4, axis=2)
    _, height, width, _ = large.shape
    cells = large.reshape(EACH, len(labels), height, width).swapaxes(1, 2)
    keras.utils.save_img(path, cells.reshape(EACH * height, -1, 1), scale=False)


def print_drawn(task, digits, temperature):
    """Prints a drawn picture of each of `digits`, two columns for a pixel."""
    for picture in task.draw(list(digits), temperature=temperature):
        for row in picture[:, :, 0]:
            print("".join(2 * " ░▒▓█"[level // 52] for level in row))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--ask", default="2026", help="digits to draw")
    parser.add_argument("--temperature", type=float)
    parser.add_argument("--samples", default="samples.png", help="picture of drawn digits")
    parser.add_argument("--attention", default="attention.png", help="picture of what one saw")
    given = parser.parse_args()
    digits = load()
    task = ka.tasks.ImageGenerator.from_data(
        digits,
        num_levels=17,  # as many as a pixel of these pictures has
        window=4,
        num_layers=3,
        intermediate_dim=256,
        dropout=0.3,
    )
    task.fit(digits, epochs=given.epochs)
    for name, score in task.evaluate(digits).items():
        print(f"{name}: {score:.3f}")
    print_drawn(task, given.ask, given.temperature)
    draw_samples(task, digits.labels, given.samples)
    task.attention(given.ask[0], path=given.attention)
