"""Finds and counts blood cells under the microscope, and shows what each query looked at.

    python examples/blood_cells.py [--train PATH --test PATH] [--made-up]

The pictures are TFDS's `bccd`, fetched once; PATH is COCO's JSON, and --made-up draws discs
in place of cells, for a try without network. The best takes half an hour on two cores, a good one
ten minutes; the way with exports and a model card is
`keras-attention train object_detector --dataset bccd --output DIR`.
"""

import argparse
import collections

import numpy as np

import keras_attention as ka


def draw(count, seed, size=64):
    """Pictures with one to three discs, large and dark or small and light."""
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


def read(given):
    if given.made_up:
        return ka.data.BoxedImage.collect(draw(300, 0), draw(50, 1), draw(50, 2))
    if given.train is not None:
        return ka.data.from_coco(train=given.train, test=given.test)
    return ka.data.from_tfds_boxes("bccd")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train")
    parser.add_argument("--test")
    parser.add_argument("--made-up", action="store_true")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--minutes", type=float, help="of training, in which the rate falls")
    parser.add_argument("--image-size", type=int, default=320, help="of the longer side")
    parser.add_argument("--attention", default="attention.png", help="picture to write")
    given = parser.parse_args()
    data = read(given)
    task = ka.tasks.ObjectDetector.from_data(data, image_size=given.image_size)
    task.fit(data, epochs=given.epochs, minutes=given.minutes)
    for name, score in task.evaluate(data).items():
        print(f"{name}: {100 * score:.1f} %")
    picture = (data.test or data.dev)[0]
    (found,) = task.predict([picture])
    for label, count in collections.Counter(thing.label for thing in found).items():
        print(f"{label}: {count} found, {picture.labels.count(label)} marked by people")
    task.attention(picture, path=given.attention)
