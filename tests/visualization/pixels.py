"""What colour a picture has at a point of a panel, to see that nothing is upside down."""

import numpy as np


def colour_at(axis, x, y):
    """RGB in 0..1 of the drawn figure at the data point (x, y) of `axis`."""
    figure = axis.figure
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())
    column, row = axis.transData.transform((x, y))
    return pixels[pixels.shape[0] - 1 - int(row), int(column), :3] / 255.0
