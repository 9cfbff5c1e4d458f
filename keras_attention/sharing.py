"""Layers that several others hold: one in memory, one in a saved model."""

import keras


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
