"""Generate handwritten digits pixel by pixel, with a language model over brightness levels.

    python examples/drawn_digits.py [--epochs N] [--ask 2026]

A sequence starts with the class of the digit, followed by its pixels. Each pixel attends to the
class and to earlier pixels near it (Parmar et al., 2018, and Chen et al., 2020). The 1,797 digits
of 8 by 8 pixels are part of scikit-learn. The following command trains the same model, exports it
and writes a model card: `keras-attention train image_generator --dataset digits --output DIR`.
"""

import argparse

import keras
from sklearn import datasets, model_selection

import keras_attention as ka

EACH = 8  # samples per class


def load():
    """Load the digits: a fifth for testing, and a tenth of the others for validation."""
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
    """Save an image with generated digits, one column per class."""
    drawn = task.draw(list(labels) * EACH, seed=0)  # (n, H, W, 1)
    large = drawn.repeat(4, axis=1).repeat(4, axis=2)
    _, height, width, _ = large.shape
    cells = large.reshape(EACH, len(labels), height, width).swapaxes(1, 2)
    keras.utils.save_img(path, cells.reshape(EACH * height, -1, 1), scale=False)


def print_drawn(task, digits, temperature):
    """Generate an image of each digit in a string, and print it with two characters per pixel."""
    for image in task.draw(list(digits), temperature=temperature):
        for row in image[:, :, 0]:
            print("".join(2 * " ░▒▓█"[level // 52] for level in row))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--ask", default="2026", help="digits to draw")
    parser.add_argument("--temperature", type=float)
    parser.add_argument("--samples", default="samples.png", help="figure of generated digits")
    parser.add_argument("--attention", default="attention.png", help="figure of the attention")
    arguments = parser.parse_args()
    digits = load()
    task = ka.tasks.ImageGenerator.from_data(
        digits,
        num_levels=17,  # the number of levels in these images
        window=4,
        num_layers=3,
        intermediate_dim=256,
        dropout=0.3,
    )
    task.fit(digits, epochs=arguments.epochs)
    for name, score in task.evaluate(digits).items():
        print(f"{name}: {score:.3f}")
    print_drawn(task, arguments.ask, arguments.temperature)
    draw_samples(task, digits.labels, arguments.samples)
    task.attention(arguments.ask[0], path=arguments.attention)
