"""A model whose outputs are its logits and the attention of one of its layers."""

import keras

from keras_attention.visualization import record


class AttentionOutputs(keras.layers.Layer):
    """Runs a model, and gives what it gives and the weights of one layer.

    It exists for the length of an export: it is not to be saved.

    Args:
        model: functional `keras.Model` with one output.
        path: str, the layer's path as `ka.visualization.record_attention` gives it.

    Calling it gives a dict: `logits`, and `attention` (B, N, T, S).
    """

    def __init__(self, model, path):
        super().__init__(name="attention_outputs")
        self.model, self.path_of_layer = model, path
        self.built = True

    def call(self, inputs):
        recording = record.RecordEvery(self.model)
        with recording:
            logits = self.model(inputs, training=False)
        return {"logits": logits, "attention": recording.maps[self.path_of_layer]}


def add_attention(model, path):
    """Make a model with the inputs of `model`, and the outputs `logits` and `attention`."""
    return keras.Model(model.input, AttentionOutputs(model, path)(model.input), name=model.name)


def find_layer(model, inputs, choose):
    """Return the layer that `choose`, a function of the recorded maps, picks.

    Args:
        inputs: arrays to run the model on.

    Returns:
        Its path, and the shape of its weights, (B, N, T, S).
    """
    with record.record_attention(model) as maps:
        model(inputs)
    path = choose(maps)
    return path, tuple(maps[path].shape)
