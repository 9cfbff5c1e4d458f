"""`.keras` files: loading them with one clear sentence when that fails."""

import keras


def load(path):
    """The model in a `.keras` file, for inference."""
    try:
        return keras.saving.load_model(path, compile=False)
    except Exception as error:
        reason = str(error).strip().splitlines()
        raise ValueError(
            f"{path} could not be loaded as a Keras model: {reason[0] if reason else error!r}"
        ) from error
