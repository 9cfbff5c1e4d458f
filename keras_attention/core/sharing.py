"""Serialize and copy models where several layers share one layer."""

import keras

from keras_attention.core import keras_internals


def serialize_shared(layer):
    """Return the config of a layer that several layers share, so that loading keeps it shared.

    Keras marks an object as shared only when it serializes the object for the second time, so this
    function serializes twice and returns the second config. The build config is removed, because
    the layers that share the layer build it. Other objects and None are serialized as usual.
    """
    if not isinstance(layer, keras.layers.Layer):
        return keras.saving.serialize_keras_object(layer)
    keras.saving.serialize_keras_object(layer)
    config = keras.saving.serialize_keras_object(layer)
    config.pop("build_config", None)
    return config


def copy_model(model, change=lambda config: config, copy_weights=None):
    """Copy a model with its weights. Shared layers stay shared, and the copy is not compiled.

    `clone_model` and `from_config` would copy a shared layer once for each layer that holds it.

    Args:
        model: the `keras.Model` to copy.
        change: function from the serialized config of the model to the config of the copy.
        copy_weights: function `(model, copy)` that sets the weights of the copy. It is needed if
            `change` changes shapes. None copies all weights.
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
