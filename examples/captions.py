"""Pictures to captions: a model reads the patches of a picture, and writes what is in it.

    python examples/captions.py [--train PATH --test PATH] [--epochs 30]

PATH is COCO's JSON of captions, such as `annotations/captions_train2017.json`; without it shapes
are drawn and described here: "a red circle above a blue square". The way with exports and a model
card is `keras-attention train image_to_sequence --train captions.json --output DIR`.
"""

import argparse

import numpy as np
from PIL import Image, ImageDraw

import keras_attention as ka

COLOURS = {"red": (220, 40, 40), "green": (30, 170, 60), "blue": (50, 70, 210)}
SHAPES = {"circle": ImageDraw.ImageDraw.ellipse, "square": ImageDraw.ImageDraw.rectangle}


def draw(count, seed, size=48):
    """Pictures of two shapes, one above the other, each with its caption."""
    random, examples = np.random.default_rng(seed), []
    for _ in range(count):
        image, named = Image.new("RGB", (size, size), (235, 235, 235)), []
        for top in (2, 2 + size // 2):
            shape, colour = random.choice(list(SHAPES)), random.choice(list(COLOURS))
            x, width = random.integers(2, size // 2), size // 2 - 6
            box = (int(x), top, int(x) + width, top + width)
            SHAPES[shape](ImageDraw.Draw(image), box, fill=COLOURS[colour])
            named.append(f"a {colour} {shape}")
        examples.append((np.asarray(image), " above ".join(named)))
    return examples


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train")
    parser.add_argument("--test")
    parser.add_argument("--pictures", type=int, default=800, help="that are drawn to train on")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--attention", default="attention.png", help="picture to write")
    given = parser.parse_args()
    if given.train is None:
        data = ka.data.CaptionedImage.collect(draw(given.pictures, 0), draw(60, 1), draw(60, 2))
        options = dict(image_size=48, embedding={"stem_filters": (32, 64, 128)}, hidden_dim=96)
    else:
        data, options = ka.data.from_captions(train=given.train, test=given.test), {}
    print("to learn:", data.train[0].texts[0])
    task = ka.tasks.ImageToText.from_data(data, **options)
    task.fit(data, epochs=given.epochs)
    for name, score in task.evaluate(data).items():
        print(f"{name}: {score:.3f}")
    picture = (data.test or data.dev)[0]
    print("caption:", picture.texts[0])
    print("written:", task.predict([picture.image])[0])
    task.attention(picture.image, path=given.attention)
