"""Runs TensorFlow's LiteRT converter, with built-in ops only: a module, and a script.

The script is started by `convert.py` with the path of a folder, for conversions that may crash
their process. It reads `job.json` there, arguments of `convert_folder`, and `samples.npz`,
with keys `sample|name`. It writes `model.tflite`, or `error.json`, the result of `explain_error`.
"""

import json
import pathlib
import sys
import warnings

import numpy as np


def convert_folder(folder, signatures, quantization=None, samples=None, per_channel=True):
    """Return the bytes of the LiteRT file of a SavedModel.

    Args:
        folder: path of the SavedModel.
        signatures: list of names of signatures.
        quantization: None, `"float16"`, `"int8_weights"` or `"int8"`.
        samples: list of dicts of arrays for the first signature, for `"int8"`.
        per_channel: bool, whether the int8 weights of dense layers have a scale for each row.

    Raises:
        ConverterError, RuntimeError: see `explain_error`.
    """
    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_saved_model(str(folder), signature_keys=signatures)
    # Without this restriction a conversion may succeed and give a file that no phone can run.
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    converter.exclude_conversion_metadata = True  # costs a rewrite of the file; see the manifest
    if quantization is not None:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if quantization == "float16":
        converter.target_spec.supported_types = [tf.float16]
    converter._experimental_disable_per_channel_quantization_for_dense_layers = not per_channel
    if quantization == "int8":
        converter.representative_dataset = lambda: ((signatures[0], one) for one in samples)
    with warnings.catch_warnings():
        # Calibration runs TensorFlow's own interpreter, which announces its end each time.
        warnings.filterwarnings("ignore", message=r"\s*Warning: tf.lite.Interpreter")
        return converter.convert()


def explain_error(error):
    """Return a ConverterError, or a RuntimeError of the quantizer, as plain values.

    Returns:
        dict: `ops`, a list of (op, name of a node) that cannot be converted, and `reason`, a str.
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
