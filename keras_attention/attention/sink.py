"""A learned sink: attention that goes to no key."""

import keras
from keras import ops

from keras_attention.normalizers.base import Normalizer
from keras_attention.normalizers.softmax import softmax_with_sink


class Sink(keras.layers.Layer):
    """A learned score for each head, which is in the softmax's denominator and nowhere else.

    `weights = exp(s) / (exp(sink) + sum exp(s))`: the softmax over scores and sink, without the
    sink's column (gpt-oss model card, OpenAI, 2025). It starts at 0, as `Softmax(plus_one=True)`.

    Args:
        num_heads: int, N.
    """

    def __init__(self, num_heads, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads

    def build(self, input_shape=None):
        self.logits = self.add_weight(
            name="logits",
            shape=(self.num_heads,),
            initializer="zeros",
            dtype="float32",
            autocast=False,
        )

    def around(self, softmax):
        """`softmax`, with the sink in its denominator, after its temperature and soft cap."""
        return _SoftmaxWithSink(softmax, self.logits)


class _SoftmaxWithSink(Normalizer):
    def __init__(self, softmax, logits):
        self.softmax, self.logits = softmax, logits
        self.temperature = softmax.temperature

    def prepare(self, scores):
        return self.softmax.prepare(scores)

    def normalize(self, scores, allowed):
        scores = scores / self.temperature
        return softmax_with_sink(scores, ops.reshape(self.logits, (1, -1, 1, 1)))
