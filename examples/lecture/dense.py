"""Attention is not a dense layer: its weights depend on the input, and their number not on length.

    python examples/lecture/dense.py [--quick] [--output FOLDER]

Each of 8 tokens has one of 8 values. Every position must output the value of one marked token. An
attention layer and a dense layer over all positions (`Dense` sees one token) learn it.

Equation: attention: yᵢ = Σⱼ softmaxⱼ(qᵢ · kⱼ / √H) vⱼ, dense layer: yᵢ = Σⱼ Wᵢⱼ xⱼ + bᵢ

Refuted if: the attention weights of two inputs were equal, or the dense layer solved the task.

Classes: `ka.attention.MultiHeadAttention`

Papers: [Vaswani 2017](https://arxiv.org/abs/1706.03762)

Caption: Attention weights for two inputs A and B, norms of the matrices Wᵢⱼ (the same for all
inputs), and number of parameters against length.

Try this: set `MARKABLE = 1`. Then the first token is always marked, and the dense layer is right.
"""

import keras
import lesson
import numpy as np

import keras_attention as ka

KINDS, LENGTH, VALUES, MARKABLE, LENGTHS = ("attention", "dense"), 8, 8, 8, (8, 32, 128, 512)


def make_data(size, seed):
    draw = np.random.default_rng(seed)
    values, marked = draw.integers(VALUES, size=(size, LENGTH)), draw.integers(MARKABLE, size=size)
    inputs = np.concatenate([np.eye(VALUES)[values], np.eye(LENGTH)[marked][..., None]], axis=2)
    return inputs, np.tile(values[np.arange(size), marked, None], LENGTH)


def build(kind, length=LENGTH):
    layer = keras.layers.EinsumDense("bjf,jfiv->biv", (length, VALUES), bias_axes="iv")
    if kind == "attention":
        layer = ka.attention.MultiHeadAttention(1, 16, output_shape=VALUES)
    inputs = keras.Input((length, VALUES + 1))
    return keras.Model(inputs, layer(inputs, inputs) if kind == "attention" else layer(inputs))


def run(quick):
    layers, (inputs, targets) = {}, make_data(16 if quick else 2048, seed=1)

    def measure(kind):
        model = build(kind)
        layers[kind] = model.layers[-1]
        lesson.fit(model, *make_data(4096, seed=0), quick, epochs=10, learning_rate=1e-2)
        return 100 * np.mean(np.argmax(model(inputs), axis=-1) == targets)

    right = {k: lesson.over_seeds(lambda k=k: measure(k), quick) for k in KINDS}
    sizes = {k: [build(k, length).count_params() for length in LENGTHS] for k in KINDS}
    rows = [{"layer": k, "accuracy (%)": lesson.format_spread(right[k])} for k in KINDS]
    one, other = layers[KINDS[0]](*[inputs[:2]] * 2, return_attention_scores=True)[1][:, 0]
    maps = one, other, np.linalg.norm(layers["dense"].kernel, axis=(1, 3)).T

    def draw(figure):
        *panels, last = figure.subplots(1, 4, width_ratios=(1, 1, 1, 1.5))
        for axes, weights, title in zip(panels, maps, ("A", "B", "dense"), strict=True):
            image = axes.imshow(weights, vmin=0, aspect="auto")
            figure.colorbar(image, ax=axes, location="bottom", label="weight")
            axes.set(xlabel="position j", ylabel="position i", title=title)
        for kind in KINDS:
            last.plot(LENGTHS, sizes[kind], label=kind)
        last.set(xscale="log", yscale="log", xlabel="length T", ylabel="parameters")
        last.legend()

    moved = 50 * np.abs(one - other).sum(axis=1).mean()
    finding = f"For another input, {moved:.0f} % of the weight moves. For {LENGTHS[-1]} tokens, "
    finding += "attention has {:,} parameters, dense {:,}.".format(*map(max, sizes.values()))
    holds = moved > 50 and np.mean(right["attention"]) > np.mean(right["dense"]) + 20
    return lesson.Result(rows, draw, finding, lesson.judge(holds))


if __name__ == "__main__":
    lesson.main(run)
