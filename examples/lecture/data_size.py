"""With little data a CNN is better than attention, with much data attention catches up.

    python examples/lecture/data_size.py [--quick] [--output FOLDER]

A vision transformer (21,000 parameters) and a CNN (24,000) learn to classify 300 to 20,000
images of Fashion-MNIST with 14 × 14 pixels, always in 600 steps of 32 images. The transformer reads
16 patches. Without the data folder `$KERAS_ATTENTION_DATA`, both learn digits of scikit-learn.

Equation: yᵢ = Σⱼ wᵢⱼ vⱼ. In a convolution, w is 0 far from i, and does not depend on the input.

Refuted if: the CNN was not better with the fewest images, or stayed as far ahead with the most.

Classes: `ka.models.vision_transformer`

Papers: [Dosovitskiy 2021](https://arxiv.org/abs/2010.11929)

Caption: Test accuracy against the number of training images, mean and range of 3 seeds.

Try this: set `STEPS = 1250` and `num_layers=2, hidden_dim=32, intermediate_dim=64`. The transformer
then learns more: one run reached 83 % with 20,000 images.
"""

import functools

import keras
import lesson
import numpy as np

import keras_attention as ka

SIZES, STEPS = (300, 2500, 20000), 600
VIT = dict(num_layers=1, num_heads=4, hidden_dim=48, intermediate_dim=96, num_channels=1)


def build_cnn(size):
    layers = [keras.Input((size, size, 1))]
    for filters, stride in ((24, 2), (40, 1), (40, 2)):
        layers.append(keras.layers.Conv2D(filters, 3, stride, padding="same", use_bias=False))
        layers += [keras.layers.BatchNormalization(momentum=0.9), keras.layers.ReLU()]
    layers += [keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(10)]
    return keras.Sequential(layers)


def run(quick):
    (images, labels), (tests, answers), data = lesson.read_images()
    tests, answers = (array[: 50 if quick else 2000] for array in (tests, answers))
    pad = (0, -images.shape[1] % 4)  # to 16 patches of the same size
    images, tests = (np.pad(array, ((0, 0), pad, pad, (0, 0))) for array in (images, tests))
    sizes, size = [n for n in SIZES[: 1 if quick else None] if n <= len(images)], images.shape[1]
    vit = functools.partial(ka.models.vision_transformer, size, 10, patch_size=size // 4, **VIT)
    builds = {"vision transformer": vit, "CNN": functools.partial(build_cnn, size)}

    def measure(model):
        return 100 * np.mean(np.argmax(model(tests), axis=-1) == answers)

    results, rows = {}, []
    settings = dict(epochs=1, batch_size=32, learning_rate=5e-3, decay=True)
    for n in sizes:
        part = np.resize(np.arange(n), 32 * STEPS)  # repeats the images
        results[n] = lesson.compare(builds, measure, images[part], labels[part], quick, **settings)
        scores = {name: lesson.format_spread(values) for name, values in results[n].items()}
        rows.append({"images": n} | scores)

    def draw(figure):
        axes = figure.subplots()
        for name in builds:
            values = np.array([results[n][name] for n in sizes])
            middle, low, high = (f(values, axis=1) for f in (np.mean, np.min, np.max))
            axes.errorbar(sizes, middle, (middle - low, high - middle), label=name, capsize=4)
        axes.set(xscale="log", xlabel="number of training images", ylabel="test accuracy (%)")
        axes.legend()

    gaps = [np.mean(results[n]["CNN"] - results[n]["vision transformer"]) for n in sizes]
    points = " and ".join(f"{gaps[i]:.1f} points with {sizes[i]:,} images" for i in (0, -1))
    verdict = lesson.judge(gaps[0] > 0, gaps[-1] < min(1, gaps[0]))
    return lesson.Result(rows, draw, f"The CNN leads by {points}.", verdict, data)


if __name__ == "__main__":
    lesson.main(run)
