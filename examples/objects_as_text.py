"""Detect objects by generating them as text (Pix2Seq, Chen et al., 2022).

    python examples/objects_as_text.py [--train PATH --test PATH] [--epochs 20]

Each object is written as five words: the four sides of its box and its class. PATH is a JSON file
in COCO's format. Without it, the images are drawn rectangles. The following command trains such a
model, exports it and writes a model card. If its file contains captions, the model generates
captions: `keras-attention train image_to_sequence --train annotations.json --output DIR`.
"""

import argparse

import numpy as np

import keras_attention as ka

COLORS = {"red": (220, 40, 40), "green": (30, 170, 60), "blue": (50, 70, 210)}


def draw(count, seed, size=64):
    """Draw images with one or two rectangles."""
    random, examples = np.random.default_rng(seed), []
    for _ in range(count):
        image, boxes, labels = np.full((size, size, 3), 235, "uint8"), [], []
        for half in range(random.integers(1, 3)):
            width, height = random.integers(12, 28, 2)
            x = half * size // 2 + random.integers(0, size // 2 - width)
            y = random.integers(0, size - height)
            label = random.choice(list(COLORS))
            image[y : y + height, x : x + width] = COLORS[label]
            boxes.append((x, y, x + width, y + height))
            labels.append(str(label))
        examples.append(ka.data.BoxedImage(image, boxes, labels))
    return examples


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train")
    parser.add_argument("--test")
    parser.add_argument("--pictures", type=int, default=4000, help="number of drawn images")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--attention", default="attention.png", help="figure to write")
    arguments = parser.parse_args()
    if arguments.train is None:
        drawn = draw(arguments.pictures, 0), draw(60, 1), draw(60, 2)
        boxes = ka.data.BoxedImage.collect(*drawn, image_size=64)
    else:
        boxes = ka.data.from_coco(train=arguments.train, test=arguments.test, image_size=192)
    data = ka.data.caption_objects(boxes)
    print("a text to learn:", data.train[0].texts[0])
    task = ka.tasks.ImageToText.from_data(
        data, embedding={"stem_filters": (32, 64, 128)}, hidden_dim=128, beam=1
    )
    task.fit(data, epochs=arguments.epochs)
    for name, score in task.evaluate(data).items():
        print(f"{name}: {100 * score:.1f} %")
    example = (data.test or data.dev)[0]
    (text,) = task.predict([example.image])
    print("written: ", text)
    for label, _, box in ka.data.find_objects(text, example.size, task.labels):
        print(f"{label} at", *(round(x) for x in box))
    task.attention(example.image, path=arguments.attention)
