"""Plain layers and norms whose results a test can compute by hand."""

import keras
import numpy as np


@keras.saving.register_keras_serializable(package="tests")
class Plus(keras.layers.Layer):
    """Stands in for attention or feed-forward: adds a constant."""

    def __init__(self, amount, **kwargs):
        super().__init__(**kwargs)
        self.amount = amount

    def build(self, *shapes):
        pass

    def call(self, x, *args, **kwargs):
        return x + self.amount


def layer_norm(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6)


def rms_norm(x):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
