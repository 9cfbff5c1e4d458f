"""`read_sound_processing`: what `preprocessor_config.json` says about the sounds of a model."""

from keras_attention.blocks.log_mel_spectrogram import FRAME, STRIDE
from keras_attention.files.io import read_json
from keras_attention.pretrained.checkpoint import CheckpointError
from keras_attention.pretrained.config import read_config

FILE = "preprocessor_config.json"
# Of classes and arrays, and what follows from the other numbers.
IRRELEVANT = (
    *("feature_extractor_type", "processor_class", "return_attention_mask", "padding_side"),
    *("padding_value", "return_tensors", "nb_max_frames", "n_samples", "mel_filters", "padding"),
)


def read_sound_processing(folder, keywords):
    """Keywords of `ka.models.speech_to_text` for waveforms, of a checkpoint's folder.

    Args:
        folder: a pathlib.Path. keywords: dict, those that `config.json` gave.

    Raises:
        CheckpointError: there is no such file, or it describes other spectrograms than ours.
    """
    path = folder / FILE
    if not path.is_file():
        raise CheckpointError(
            f"{folder} holds no {FILE}, which says what spectrograms the model takes: "
            "transformers.AutoFeatureExtractor.from_pretrained(name).save_pretrained(folder) "
            "writes it."
        )
    try:
        config = read_config(read_json(path) | {"model_type": "model of speech"}, path, IRRELEVANT)
        rate = config.whole("sampling_rate", 16000)
        frames = keywords["num_frames"]
        expected = {
            "feature_size": keywords["num_mel_bins"],
            "hop_length": round(STRIDE * rate),
            "n_fft": round(FRAME * rate),
        }
        for name, value in expected.items():
            config.one_of(name, {value: None}, value)
        seconds = config.number("chunk_length", 30)
        config.refuse("dither")
        config.one_of("do_normalize", {False: None}, False)
        config.finish()
    except CheckpointError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged: {error!s:.200}") from error
    if round(seconds / STRIDE) != frames:
        raise CheckpointError(
            f"{path} says chunk_length={seconds}, and the model takes {frames} frames of "
            f"{STRIDE} seconds."
        )
    return {"input": "waveform", "sampling_rate": rate}
