"""A convolution is a special case of self-attention: each head looks at one pixel of the kernel.

    python examples/lecture/cnn_is_attention.py [--quick] [--output FOLDER]

A k × k convolution becomes attention with k² heads. The score of a head is a bias: -α times the
squared distance to its own pixel (`SwinBias`). Values are the pixels, and the dense layer after the
heads holds the convolution's kernel. Compared with `keras.layers.Conv2D` for random images.

Equation: bias[n, i, j] = -α ‖δ - Δₙ‖², with the shifts δ from pixel i to pixel j, and Δₙ of head n

Refuted if: for some kernel and padding, the largest difference stayed above 1e-5 for every α.

Classes: `ka.attention.MultiHeadAttention`, `ka.positions.SwinBias`

Papers: [Cordonnier 2020](https://arxiv.org/abs/1911.03584)

Caption: Left: largest weight of 25 heads (a 5 × 5 kernel) for the query in the square. Numbers
are heads. Right: largest difference from the convolution with padding "same", against α.

Try this: set `ALPHAS = (1, 2, 4)`. The heads also see neighboring pixels, as in a blurred image.
"""

import keras
import lesson
import numpy as np

import keras_attention as ka

KERNELS, PADDINGS, ALPHAS, SIZE = (1, 3, 5), ("same", "valid"), (1, 2, 4, 8, 16, 32), 11


def compare(images, kernel, padding, alpha):
    """Return the largest difference from the convolution, and the weights (N, T, S)."""
    expected = (convolution := keras.layers.Conv2D(4, kernel, padding=padding))(images)
    border = kernel // 2
    images = keras.layers.ZeroPadding2D(border if padding == "same" else 0)(images)
    batch, width, _, channels = images.shape
    pixels, swin = np.reshape(images, (batch, -1, channels)), ka.positions.SwinBias((width, width))
    layer = ka.attention.MultiHeadAttention(
        kernel**2, 1, channels, output_shape=4, kernel_initializer="zeros", position=swin
    )  # zeros for queries and keys: the scores are the bias
    layer.build(pixels.shape, pixels.shape)
    shifts = np.indices((2 * width - 1,) * 2).reshape(2, -1, 1) - (width - 1)  # i - j
    shifts = shifts + np.indices((kernel, kernel)).reshape(2, 1, -1) - border
    swin.table.assign(-alpha * np.sum(shifts**2, axis=0))
    layer.value_dense.kernel.assign(np.eye(channels)[:, None].repeat(kernel**2, axis=1))
    layer.output_dense.kernel.assign(np.reshape(convolution.kernel, (-1, channels, 4)))
    output, weights = layer(pixels, pixels, return_attention_scores=True)
    output = keras.layers.Cropping2D(border)(np.reshape(output, (batch, width, width, 4)))
    return np.abs(output - expected).max(), np.asarray(weights)[0]


def run(quick):
    keras.utils.set_random_seed(0)
    images = np.random.normal(size=(2, SIZE, SIZE, 3)).astype("float32")
    alphas, cases = ALPHAS[-1:] if quick else ALPHAS, [(k, p) for k in KERNELS for p in PADDINGS]
    measured = {case: [compare(images, *case, alpha) for alpha in alphas] for case in cases}
    rows = [dict(kernel=k, padding=p, error=f"{v[-1][0]:.1g}") for (k, p), v in measured.items()]

    def draw(figure):
        left = figure.add_subplot(121, xlabel="column", ylabel="row")
        right = figure.add_subplot(122, xscale="log", xlabel="α", ylabel="largest difference")
        weights = measured[5, "valid"][-1][1][:, SIZE * SIZE // 2]  # (N, S)
        image = left.imshow(weights.max(axis=0).reshape(SIZE, SIZE), vmin=0, vmax=1)
        figure.colorbar(image, label="weight")
        for head, pixel in enumerate(weights.argmax(axis=1)):
            left.text(pixel % SIZE, pixel // SIZE, head + 1, ha="center", va="center", color="w")
        left.plot(SIZE // 2, SIZE // 2, "s", ms=16, mfc="none", mec="#D55E00")
        for k in KERNELS:
            right.plot(alphas, [v[0] for v in measured[k, "same"]], label=f"{k} × {k}")
        right.set_yscale("symlog", linthresh=1e-8)
        right.legend(title="kernel")

    worst = max(values[-1][0] for values in measured.values())
    finding = f"With α = {alphas[-1]}, the largest difference from the convolution is {worst:.1g}."
    return lesson.Result(rows, draw, finding, lesson.VERDICTS[0 if worst < 1e-5 else 2])


if __name__ == "__main__":
    lesson.main(run)
