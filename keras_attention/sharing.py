"""Layers that several others hold: one in memory, one in a saved model."""

import keras

# Keras writes and reads `.keras` files in this scope; it has no public name for it.
from keras.src.saving.serialization_lib import ObjectSharingScope


def config_of_shared(layer):
    """The config of a layer that others may hold as well; a loaded model then has it once again.

    Keras gives an object the mark of a shared one with its second config, and by then the first is
    a copy without the mark: so this one is always the second. It comes back without weights, for
    its holders to build. What is no layer has its config, None has none.
    """
    if not isinstance(layer, keras.layers.Layer):
        return keras.saving.serialize_keras_object(layer)
    keras.saving.serialize_keras_object(layer)
    config = keras.saving.serialize_keras_object(layer)
    config.pop("build_config", None)
    return config


def copy_of(model, change=lambda config: config):
    """A copy of a model with its weights, not compiled; layers that are shared in it stay so.

    `clone_model` and `from_config` make as many of a shared layer as hold it.

    Args:
        change: function from the model's config to the copy's.
    """
    with ObjectSharingScope():
        config = keras.saving.serialize_keras_object(model)
    config.pop("compile_config", None)
    with ObjectSharingScope():
        copy = keras.saving.deserialize_keras_object(change(config))
    copy.set_weights(model.get_weights())
    return copy
