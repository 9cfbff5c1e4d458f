"""Digits that a language model of pixels draws: how likely it finds others, and who reads its own.

Prints bits per dimension on the held-out fifth, beside those of a model that knows how often each
pixel of a class has each level (with the best of five pseudo-counts, chosen on the held-out part,
which favours it); the share of 1,000 drawn digits that a classifier reads as what was asked for;
and the processor's minutes divided by two, which is what the training takes on two cores that do
nothing else.

    python benchmarks/image_generation.py --backup FOLDER [--classifier saved_models/digits-vit]
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
    """Bits per dimension of a model whose pixels hang on the class alone."""
    classes = len(preprocessor.labels)
    counts = np.zeros((classes, preprocessor.count, preprocessor.num_levels))
    places = np.arange(preprocessor.count)
    for number, *levels in train:
        counts[number - preprocessor.num_levels, places, levels] += 1
    found = []
    for pseudo in PSEUDO_COUNTS:
        shares = counts + pseudo
        shares /= shares.sum(axis=-1, keepdims=True)
        bits = [-np.log2(shares[row[0] - preprocessor.num_levels, places, row[1:]]) for row in test]
        found.append(float(np.mean(bits)))
    return min(found)


def score(task, digits, classifier, seed=0):
    """Bits per dimension of the test part, and the share of drawn digits that are recognised."""
    wanted = [digits.labels[k % len(digits.labels)] for k in range(DRAWN)]
    read = ka.tasks.from_preset(classifier).predict(list(task.draw(wanted, seed=seed)))
    right = np.mean([found.label == label for found, label in zip(read, wanted, strict=True)])
    return {**task.evaluate(digits), "recognised": round(float(right), 4)}


if __name__ == "__main__":
    parser = make_parser(__doc__)
    parser.add_argument("--classifier", default=ROOT / "saved_models" / "digits-vit")
    given = parser.parse_args()
    digits, recipe = sources.load_digits(), RECIPES["image_generator/digits"]
    keras.utils.set_random_seed(given.seed)
    options = {**recipe.model, **dataclasses.asdict(recipe.data), "seed": given.seed}
    task = ka.tasks.ImageGenerator.from_data(digits, **options)
    given.epochs = given.epochs or recipe.epochs
    about = train(task, digits, given)
    scores = score(task, digits, given.classifier)
    encode = task.preprocessor
    parts = [encode(part.pixels, part.labels) for part in (digits.train, digits.dev)]
    independent = score_independent(
        encode, np.concatenate(parts), encode(digits.test.pixels, digits.test.labels)
    )
    below = round(1 - scores["bits_per_dimension"] / independent, 4)
    about |= {**scores, "independent_pixels": round(independent, 4), "below": below, **task.scores}
    if given.files:
        about |= score_files(task, lambda task: score(task, digits, given.classifier))
    print(json.dumps(about))
