"""The weights in a LiteRT file: once each, and as small as the quantization promises."""

import math

from keras_attention.export import text
from keras_attention.export.errors import ExportError

# Bytes per weight, relative to float32. int8 keeps biases and norms in float.
_RATIO = {None: 1.0, "float16": 0.5, "int8_weights": 0.3, "int8": 0.3}
_MARGIN = 1.1
_SLACK = 64 * 1024  # bytes; in tiny models the parts that stay in float weigh more than 10 %


def bytes_of(model):
    """Bytes of the weights of `model` as float32."""
    return 4 * sum(math.prod(weight.shape) for weight in model.weights)


def check(graph, model, quantization):
    """Raises ExportError when weights are stored more than once; returns warnings.

    Constants with as many elements as a weight count as weights. Other constants are tables that
    the converter computed in advance (positions, masks); they are legitimate and not counted.
    """
    sizes = {math.prod(weight.shape) for weight in model.weights}
    stored = sum(t.constant for t in graph.constants if t.elements in sizes)
    whole = bytes_of(model)
    if stored > _MARGIN * whole + _SLACK:
        raise ExportError(
            f"The file holds {text.size(stored)} of weights, and the model has "
            f"{text.size(whole)}: some are stored more than once."
        )
    if stored > _MARGIN * _RATIO[quantization] * whole + _SLACK:
        return [f"quantized in part only: {text.size(stored)} of {text.size(whole)} are left"]
    return []
