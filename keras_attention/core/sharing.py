"""Configs and copies of models that share a layer between several layers."""

import keras

from keras_attention.core import keras_internals


def serialize_shared(layer):
    """Return the config of a layer that several layers hold, so that a loaded model has it once.

    Keras marks an object as shared when it is serialized for the second time, and the first config
    stays without the mark: this one is always the second. It holds no shapes, as the holders build
    the layer. Objects that are no layers, and None, are serialized as they are.
    """
    if not isinstance(layer, keras.layers.Layer):
        return keras.saving.serialize_keras_object(layer)
    keras.saving.serialize_keras_object(layer)
    config = keras.saving.serialize_keras_object(layer)
    config.pop("build_config", None)
    return config


def copy_model(model, change=lambda config: config, copy_weights=None):
    """Copy a model with its weights, not compiled. Shared layers stay shared.

    `clone_model` and `from_config` copy a shared layer once for each holder.

    Args:
        change: function from the model's config to the copy's.
        copy_weights: function of the model and the copy that copies the weights. The default sets
            those of the model, so pass one if `change` changes shapes.
    """
    with keras_internals.share_objects():
        config = keras.saving.serialize_keras_object(model)
    config.pop("compile_config", None)
    with keras_internals.share_objects():
        copy = keras.saving.deserialize_keras_object(change(config))
    if copy_weights is None:
        copy.set_weights(model.get_weights())
    else:
        copy_weights(model, copy)
    return copy
