"""If each token sees only a window of the others, attention to long sequences becomes affordable.

    python examples/lecture/truncated.py [--quick] [--output FOLDER]

One-layer models read 32 tokens. At even positions they predict the token before (near), at odd ones
the first token (far). Speed (1 for full attention) and memory (largest tensor): with 4096 tokens.

Equation: Window(w): i sees j if |i - j| < w. Longformer and BigBird add global and random keys.

Refuted if: the window saved no time on long sequences, or lost accuracy on the token before.

Classes: `ka.masks.Window`, `ka.masks.Longformer`, `ka.masks.BigBird`, `ka.recurrent.LocalWindow`

Papers: [Beltagy](https://arxiv.org/abs/2004.05150), [Zaheer](https://arxiv.org/abs/2007.14062)

Caption: Keys j (blue) that query i sees, or step i of a decoder for `LocalWindow`. Time.

Try this: set `WINDOW = 8`. The narrow window then finds the first token from 4 of 16 odd positions.
"""

import functools

import lesson
import numpy as np
import tensorflow as tf

import keras_attention as ka

LENGTH, WINDOW, LENGTHS = 32, 4, (256, 1024, 4096)
SIZE = dict(num_layers=1, num_heads=4, hidden_dim=32, intermediate_dim=64, dropout=0)


def make_masks(length):
    masks = {f"Window({size})": ka.masks.Window(size) for size in (WINDOW, 4 * WINDOW)}
    masks["Longformer"] = ka.masks.Longformer(2 * WINDOW - 2)
    return {"full": ka.masks.Full()} | masks | {"BigBird": ka.masks.BigBird(length, 2, 3, 1, 1)}


def run(quick):
    def measure(model):
        right = 100 * np.mean(np.argmax(model(x[:512]), -1) == y[:512], axis=0)
        return right[2::2].mean(), right[1::2].mean()

    x, i = np.random.default_rng(0).integers(8, size=(3072, LENGTH)) + 1, np.arange(LENGTH)
    y = np.where(i % 2, x[:, :1], np.roll(x, 1, axis=1)) - 1
    x[:, 0], x[:, 1::2] = x[:, 0] + 8, x[:, 1::2] + 16  # different ids look far
    labeler = functools.partial(ka.models.sequence_labeler, 25, 8, **SIZE)
    builds = {n: functools.partial(labeler, mask=m) for n, m in make_masks(LENGTH).items()}
    results = lesson.compare(builds, measure, x[512:], y[512:], quick, epochs=3, learning_rate=5e-3)
    rows, times = lesson.tabulate("mask", results, {0: "near (%)", 1: "far (%)"}), []
    for length in LENGTHS[: 1 if quick else None]:
        heads, graphs = [tf.ones((1, length, 4, 16))] * 3, []
        for n, m in zip(results, make_masks(length).values(), strict=False):
            attend = functools.partial(ka.attention.attend, mask=m, return_weights=n == "full")
            graphs.append(tf.function(attend, autograph=False).get_concrete_function(*heads))
        times.append(lesson.clock([functools.partial(graph, *heads) for graph in graphs], 3))
    speeds = times[-1][:, :1] / times[-1]  # (rounds, masks)
    for row, speed, graph in zip(rows, speeds.T, graphs, strict=True):
        sizes = [x.shape.num_elements() for op in graph.graph.get_operations() for x in op.outputs]
        row |= {"speed": lesson.format_spread(speed), "memory (MB)": round(4e-6 * max(sizes), 1)}

    def draw(figure):
        panels = figure.subplot_mosaic("ABTT;CDTT")
        panels["T"].set(xlabel="length T", ylabel="time (ms)", xticks=range(3), xticklabels=LENGTHS)
        seen = {n: mask.allows(i[:, None], i) for n, mask in make_masks(LENGTH).items()}
        seen["LocalWindow"] = ka.recurrent.LocalWindow(WINDOW)(x[:LENGTH] % 4.0, seen["full"])[0]
        for panel, name in zip("ABCD", [f"Window({WINDOW})", *list(seen)[-3:]], strict=True):
            panels[panel].imshow(seen[name], vmax=1.4)
            panels[panel].set(title=name, xlabel="key j", ylabel="query i")
        panels["T"].semilogy(np.median(times, axis=1), label=list(results))
        panels["T"].legend()

    speed, (near, far) = speeds[:, 1].mean(), results[f"Window({WINDOW})"].mean(axis=0)
    finding = f"At T = {length}, Window({WINDOW}) is {speed:.0f} times as fast as full attention. "
    finding += f"It is right in {near:.0f} % of cases (near), but only in {far:.0f} % (far)."
    return lesson.Result(rows, draw, finding, lesson.judge(speed > 1.5, near > 95))


if __name__ == "__main__":
    lesson.main(run)
