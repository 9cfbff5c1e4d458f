"""Module and script that run TensorFlow's LiteRT converter, with built-in ops only.

For conversions that may crash their process, `convert.py` starts this file as a script with the
path of a folder. From this folder the script reads `job.json` (arguments of `convert_folder`) and
`samples.npz` (keys `sample|name`). The script writes `model.tflite` to the folder, or `error.json`
with the result of `explain_error`.
"""

import json
import pathlib
import sys
import warnings

import numpy as np


def convert_folder(folder, signatures, quantization=None, samples=None, per_channel=True):
    """Convert a SavedModel to a LiteRT file, and return its content as bytes.

    Args:
        folder: path of the SavedModel.
        signatures: list of str, the names of the signatures to convert.
        quantization: None, `"float16"`, `"int8_weights"`, `"int4_weights"` or `"int8"`. For
            `"int4_weights"` the result has int8 weights, because the converter knows no int4.
        samples: list of dicts of input arrays for the first signature, which calibrate an `"int8"`
            file. None for other files.
        per_channel: bool, whether int8 weights of dense layers have a scale for each row.

    Raises:
        ConverterError, RuntimeError: the model has an op that LiteRT lacks, or quantization failed.
    """
    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_saved_model(str(folder), signature_keys=signatures)
    # Without this restriction the converter may write a file that no phone can run.
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    converter.exclude_conversion_metadata = True  # otherwise the converter writes the file twice
    if quantization is not None:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if quantization == "float16":
        converter.target_spec.supported_types = [tf.float16]
    converter._experimental_disable_per_channel_quantization_for_dense_layers = not per_channel
    if quantization == "int8":
        converter.representative_dataset = lambda: ((signatures[0], one) for one in samples)
    with warnings.catch_warnings():
        # Calibration runs TensorFlow's interpreter, which issues a deprecation warning each time.
        warnings.filterwarnings("ignore", message=r"\s*Warning: tf.lite.Interpreter")
        return converter.convert()


def explain_error(error):
    """Convert a ConverterError, or a RuntimeError of the quantizer, to values that JSON can store.

    Returns:
        A dict with `ops`, a list of (op, name of the graph node) for each op that cannot be
        converted, and `reason`, the first line of the error message.
    """
    ops = [
        (entry.operator.name.removeprefix("tf."), entry.location.call[0].name)
        for entry in getattr(error, "errors", None) or []
        if entry.location.call
    ]
    lines = [line for line in str(error).splitlines() if line.strip()]
    return {"ops": ops, "reason": lines[0] if lines else repr(error)}


def main(folder):
    from tensorflow.lite.python.convert_phase import ConverterError

    folder = pathlib.Path(folder)
    job = json.loads((folder / "job.json").read_text("utf-8"))
    samples = {}
    with np.load(folder / "samples.npz") as arrays:
        for key in arrays:
            number, _, name = key.partition("|")
            samples.setdefault(int(number), {})[name] = arrays[key]
    try:
        content = convert_folder(**job, samples=[samples[number] for number in sorted(samples)])
    except (ConverterError, RuntimeError) as error:
        (folder / "error.json").write_text(json.dumps(explain_error(error)), "utf-8")
    else:
        (folder / "model.tflite").write_bytes(content)


if __name__ == "__main__":
    main(sys.argv[1])
