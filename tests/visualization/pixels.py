"""What colour a picture has at a point of a panel, to see that nothing is upside down."""

import numpy as np


class Pixels:
    """A drawn figure; calling it gives the RGB in 0..1 at the data point (x, y) of a panel."""

    def __init__(self, figure):
        figure.canvas.draw()
        self.values = np.asarray(figure.canvas.buffer_rgba())

    def __call__(self, axis, x, y):
        column, row = axis.transData.transform((x, y))
        return self.values[len(self.values) - 1 - int(row), int(column), :3] / 255.0
