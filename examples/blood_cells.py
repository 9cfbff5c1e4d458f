"""Detect and count blood cells in microscope images, and draw the attention of each query.

    python examples/blood_cells.py [--train PATH --test PATH] [--made-up]

The images are TFDS's `bccd`, which is downloaded once, or those in PATH, a JSON file in COCO's
format. With `--made-up` the images are drawn discs, which do not need a download. Training a good
model takes ten minutes on two cores, and the best one half an hour. The following command trains
the same model, exports it and writes a model card:
`keras-attention train object_detector --dataset bccd --output DIR`.
"""

import argparse
import collections

import numpy as np

import keras_attention as ka


def draw(count, seed, size=64):
    """Draw images with one to three discs, large and dark or small and light."""
    random = np.random.default_rng(seed)
    rows, columns = np.mgrid[:size, :size]
    examples = []
    for _ in range(count):
        image, boxes, labels = np.full((size, size, 3), 200, "uint8"), [], []
        for _ in range(random.integers(1, 4)):
            kind = int(random.integers(2))
            radius = (12, 6)[kind]
            x, y = random.integers(radius, size - radius, 2)
            image[(rows - y) ** 2 + (columns - x) ** 2 < radius**2] = (
                (90, 40, 120),
                (220, 90, 90),
            )[kind]
            boxes.append((x - radius, y - radius, x + radius, y + radius))
            labels.append(("large", "small")[kind])
        examples.append(ka.data.BoxedImage(image, boxes, labels))
    return examples


def read(arguments):
    if arguments.made_up:
        return ka.data.BoxedImage.collect(draw(300, 0), draw(50, 1), draw(50, 2))
    if arguments.train is not None:
        return ka.data.from_coco(train=arguments.train, test=arguments.test)
    return ka.data.from_tfds_boxes("bccd")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train")
    parser.add_argument("--test")
    parser.add_argument("--made-up", action="store_true")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--minutes", type=float, help="limit of the training time")
    parser.add_argument("--image-size", type=int, default=320, help="size of the longer side")
    parser.add_argument("--attention", default="attention.png", help="figure to write")
    arguments = parser.parse_args()
    data = read(arguments)
    task = ka.tasks.ObjectDetector.from_data(data, image_size=arguments.image_size)
    task.fit(data, epochs=arguments.epochs, minutes=arguments.minutes)
    for name, score in task.evaluate(data).items():
        print(f"{name}: {100 * score:.1f} %")
    example = (data.test or data.dev)[0]
    (detections,) = task.predict([example])
    for label, count in collections.Counter(box.label for box in detections).items():
        print(f"{label}: {count} detected, {example.labels.count(label)} annotated")
    task.attention(example, path=arguments.attention)
