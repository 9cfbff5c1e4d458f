"""Functions of tasks that read recordings: audio inputs in models, datasets and manifests."""

import numpy as np

from keras_attention.core.lazy import blocks, keras_internals
from keras_attention.tasks.recipes.speech import EMBEDDING

ROWS = 16  # recordings per batch
MOST_RATE, MOST_FEATURES = 1_000_000, 1 << 16


def measure_sounds(data_set):
    """Return `{"sampling_rate": ...}` for a dataset of samples, or `{"num_features": ...}`.

    `data_set` is a `DataSet` of `Recording`. Samples are arrays (n,), and features are
    (frames, num_features).
    """
    shape = data_set.train[0].sound.shape[1:]
    if shape:
        return {"num_features": shape[0]}
    sampling_rate = data_set.about.get("sampling_rate")
    if sampling_rate is None:
        raise ValueError(
            "The recordings are samples without a sampling rate: pass "
            "ka.data.Recording.collect(..., sampling_rate=...)."
        )
    return {"sampling_rate": sampling_rate}


def choose_sounds(preprocessor, recipe):
    """Return a dict, the arguments of `ka.models.SpeechEmbedding` that fit the recordings.

    `preprocessor` makes the model's inputs, and `recipe` is a `Recipe`, the hyperparameters of the
    model.
    """
    sound = {"input": preprocessor.input_name}
    if preprocessor.sampling_rate is not None:
        return sound | {"sampling_rate": preprocessor.sampling_rate}
    sound["num_mel_bins"] = preprocessor.num_features
    embedding = recipe.model.get("embedding")
    if isinstance(embedding, dict) and embedding["filter_augment"] is EMBEDDING["filter_augment"]:
        sound["filter_augment"] = None  # its decibels only make sense for spectrograms
    return sound


def count_vectors(model, length):
    """Return the number of encoder vectors for `length` samples (or frames of features).

    `model` is the recognizer's `keras.Model`.
    """
    for layer in keras_internals.all_layers(model):
        if isinstance(layer, blocks.LogMelSpectrogram):
            length = layer.count_frames(length)
        elif isinstance(layer, blocks.ConvolutionSubsampling):
            length = layer.count_vectors(length)
    return length


def count_inputs(model):
    """Return how many samples, or frames of features, become one encoder vector of `model`."""
    count = 1
    for layer in keras_internals.all_layers(model):
        if isinstance(layer, blocks.LogMelSpectrogram):
            count *= layer.sequence_stride
        elif isinstance(layer, blocks.ConvolutionSubsampling):
            count *= layer.factor
    return count


def check_rate(data_set, preprocessor):
    """Raise a ValueError if the recordings have another sampling rate than the model expects.

    `data_set` is a `DataSet` of `Recording`, and `preprocessor` the preprocessor of the model.
    """
    rate, model_rate = data_set.about.get("sampling_rate"), preprocessor.sampling_rate
    if rate != model_rate and None not in (rate, model_rate):
        raise ValueError(
            f"The recordings have {rate} samples a second, and the model takes {model_rate}: read "
            f"them with from_recordings(..., sampling_rate={model_rate}), which resamples."
        )


def describe_sounds(preprocessor):
    """Return the entries of `manifest.json` that describe the audio inputs, a dict."""
    if preprocessor.sampling_rate is None:
        return {"inputs": "features", "num_features": preprocessor.num_features}
    return {"inputs": "waveform", "sampling_rate": preprocessor.sampling_rate}


def read_sounds(manifest):
    """Return the arguments of a speech preprocessor that `manifest`, a checked dict, contains."""
    name = "sampling_rate" if manifest["inputs"] == "waveform" else "num_features"
    return {name: manifest[name]}


def check_sounds(fields):
    """Check the entries of `manifest.json` (`Fields`) that describe the audio inputs."""
    fields.one_of("inputs", ("features", "waveform"))
    if fields.values["inputs"] == "waveform":
        fields.whole("sampling_rate", most=MOST_RATE)
    else:
        fields.whole("num_features", most=MOST_FEATURES)


def make_noise(preprocessor):
    """Return two arrays of noise, each one second long, or shorter if the model requires this.

    `preprocessor` is the preprocessor of the model. It has the sampling rate and the shape of the
    inputs.
    """
    length = preprocessor.sampling_rate or 100
    length = min(length, round(length * (preprocessor.seconds or 1)))
    shape = (2, length, *preprocessor.sound_shape)
    return list(np.random.default_rng(0).normal(size=shape, scale=0.1))
