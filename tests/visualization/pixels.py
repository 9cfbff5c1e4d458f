"""Colors of a picture at points of a panel, to check its orientation."""

import numpy as np


class Pixels:
    """A drawn figure. Calling it returns the RGB, 0 to 1, at the data point (x, y) of a panel."""

    def __init__(self, figure):
        figure.canvas.draw()
        self.values = np.asarray(figure.canvas.buffer_rgba())

    def __call__(self, axis, x, y):
        column, row = axis.transData.transform((x, y))
        return self.values[len(self.values) - 1 - int(row), int(column), :3] / 255.0
