"""Draws handwritten digits, pixel by pixel: a language model whose tokens are levels of brightness.

    python examples/drawn_digits.py [--epochs N] [--ask 2026]

The class comes first, and each pixel looks back on the class and on the pixels near it (Parmar et
al., 2018; Chen et al., 2020). The 1,797 digits of 8 by 8 pixels come with scikit-learn. The way
with exports and a model card is `keras-attention train image_generator --dataset digits --output
DIR`.
"""

import argparse

import keras_attention as ka
from keras_attention.tasks import sources
from keras_attention.tasks.image_generator import draw_grid
from keras_attention.tasks.recipes import RECIPES

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--ask", default="2026", help="digits to draw")
    parser.add_argument("--temperature", type=float)
    parser.add_argument("--samples", default="samples.png", help="picture of drawn digits")
    parser.add_argument("--attention", default="attention.png", help="picture of what one saw")
    given = parser.parse_args()
    digits, recipe = sources.load_digits(), RECIPES["image_generator/digits"]
    task = ka.tasks.ImageGenerator.from_data(digits, **recipe.model, **recipe.data)
    task.fit(digits, epochs=given.epochs or recipe.epochs)
    for name, score in task.evaluate(digits).items():
        print(f"{name}: {score:.3f}")
    task.show(list(given.ask), temperature=given.temperature)
    draw_grid(task, list(digits.labels), 8, given.samples)
    task.attention(given.ask[0], path=given.attention)
