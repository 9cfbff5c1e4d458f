"""Generation of digits with a language model over pixels: likelihood and recognizability.

    python benchmarks/image_generation.py --backup FOLDER [--classifier saved_models/digits-vit]

Prints bits per dimension on the held-out fifth, and the same for a model of independent pixels per
class (with the best of five pseudo-counts). Also prints the share of 1,000 generated digits that a
classifier recognizes, and the CPU minutes of training divided by two.
"""

import dataclasses
import json
import pathlib

import keras
import numpy as np
from training_runs import make_parser, score_files, train

import keras_attention as ka
from keras_attention.cli import sources
from keras_attention.tasks.recipes import RECIPES

ROOT = pathlib.Path(__file__).parents[1]
PSEUDO_COUNTS = (0.01, 0.03, 0.1, 0.3, 1.0)
DRAWN = 1000


def score_independent(preprocessor, train, test):
    """Compute bits per dimension of a model where each pixel only depends on the class."""
    classes = len(preprocessor.labels)
    counts = np.zeros((classes, preprocessor.count, preprocessor.num_levels))
    positions = np.arange(preprocessor.count)
    for number, *levels in train:
        counts[number - preprocessor.num_levels, positions, levels] += 1
    means = []
    for pseudo in PSEUDO_COUNTS:
        shares = counts + pseudo
        shares /= shares.sum(axis=-1, keepdims=True)
        bits = [
            -np.log2(shares[row[0] - preprocessor.num_levels, positions, row[1:]]) for row in test
        ]
        means.append(float(np.mean(bits)))
    return min(means)


def score(task, digits, classifier, seed=0):
    """Compute bits per dimension on the test split, and the share of recognized digits."""
    expected = [digits.labels[k % len(digits.labels)] for k in range(DRAWN)]
    read = ka.tasks.from_preset(classifier).predict(list(task.draw(expected, seed=seed)))
    right = np.mean([result.label == label for result, label in zip(read, expected, strict=True)])
    return {**task.evaluate(digits), "recognised": round(float(right), 4)}


if __name__ == "__main__":
    parser = make_parser(__doc__)
    parser.add_argument("--classifier", default=ROOT / "saved_models" / "digits-vit")
    arguments = parser.parse_args()
    digits, recipe = sources.load_digits(), RECIPES["image_generator/digits"]
    keras.utils.set_random_seed(arguments.seed)
    options = {**recipe.model, **dataclasses.asdict(recipe.data), "seed": arguments.seed}
    task = ka.tasks.ImageGenerator.from_data(digits, **options)
    arguments.epochs = arguments.epochs or recipe.epochs
    report = train(task, digits, arguments)
    scores = score(task, digits, arguments.classifier)
    encode = task.preprocessor
    parts = [encode(part.pixels, part.labels) for part in (digits.train, digits.dev)]
    independent = score_independent(
        encode, np.concatenate(parts), encode(digits.test.pixels, digits.test.labels)
    )
    below = round(1 - scores["bits_per_dimension"] / independent, 4)
    report |= {**scores, "independent_pixels": round(independent, 4), "below": below, **task.scores}
    if arguments.files:
        report |= score_files(task, lambda task: score(task, digits, arguments.classifier))
    print(json.dumps(report))
