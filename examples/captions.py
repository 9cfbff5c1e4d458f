"""Generate captions for images: a model reads the patches of an image and generates text.

    python examples/captions.py [--train PATH --test PATH] [--epochs 30]

PATH is a JSON file with captions in COCO's format, such as `annotations/captions_train2017.json`.
Without it the images are drawn shapes, with captions such as "a red circle above a blue square".
The following command trains such a model, exports it and writes a model card:
`keras-attention train image_to_sequence --train captions.json --output DIR`.
"""

import argparse

import numpy as np
from PIL import Image, ImageDraw

import keras_attention as ka

COLORS = {"red": (220, 40, 40), "green": (30, 170, 60), "blue": (50, 70, 210)}
SHAPES = {"circle": ImageDraw.ImageDraw.ellipse, "square": ImageDraw.ImageDraw.rectangle}


def draw(count, seed, size=48):
    """Draw images of two shapes, one above the other, with captions."""
    random, examples = np.random.default_rng(seed), []
    for _ in range(count):
        image, names = Image.new("RGB", (size, size), (235, 235, 235)), []
        for top in (2, 2 + size // 2):
            shape, color = random.choice(list(SHAPES)), random.choice(list(COLORS))
            x, width = random.integers(2, size // 2), size // 2 - 6
            box = (int(x), top, int(x) + width, top + width)
            SHAPES[shape](ImageDraw.Draw(image), box, fill=COLORS[color])
            names.append(f"a {color} {shape}")
        examples.append((np.asarray(image), " above ".join(names)))
    return examples


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train")
    parser.add_argument("--test")
    parser.add_argument("--pictures", type=int, default=800, help="number of drawn images")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--attention", default="attention.png", help="figure to write")
    arguments = parser.parse_args()
    if arguments.train is None:
        data = ka.data.CaptionedImage.collect(draw(arguments.pictures, 0), draw(60, 1), draw(60, 2))
        options = dict(image_size=48, embedding={"stem_filters": (32, 64, 128)}, hidden_dim=96)
    else:
        data, options = ka.data.from_captions(train=arguments.train, test=arguments.test), {}
    print("a caption to learn:", data.train[0].texts[0])
    task = ka.tasks.ImageToText.from_data(data, **options)
    task.fit(data, epochs=arguments.epochs)
    for name, score in task.evaluate(data).items():
        print(f"{name}: {score:.3f}")
    example = (data.test or data.dev)[0]
    print("caption:", example.texts[0])
    print("written:", task.predict([example.image])[0])
    task.attention(example.image, path=arguments.attention)
