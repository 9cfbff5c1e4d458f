"""From a SavedModel to the bytes of a LiteRT file, with built-in ops only."""

import warnings

from keras_attention.export import backend, batches, errors


def convert(folder, endpoints, model, *, quantization=None, calibration=None):
    """Converts the SavedModel in `folder`.

    Args:
        endpoints: what was saved there; each becomes a signature.
        model: the Keras model, to name its layers in errors.
        quantization: None, `"float16"`, `"int8_weights"` or `"int8"`.
        calibration: list of batches, dicts of arrays for the first endpoint, for `"int8"`.

    Returns:
        bytes. An op that LiteRT's built-in set lacks is an ExportError that names it.
    """
    tf = backend.tensorflow()
    from tensorflow.lite.python.convert_phase import ConverterError

    converter = tf.lite.TFLiteConverter.from_saved_model(
        str(folder), signature_keys=[endpoint.name for endpoint in endpoints]
    )
    # Without this restriction a conversion may succeed and give a file that no phone can run.
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    converter.exclude_conversion_metadata = True  # costs a rewrite of the file; see the manifest
    if quantization is not None:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if quantization == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if quantization == "int8":
        converter.representative_dataset = lambda: _samples(calibration, endpoints[0])
    try:
        with backend.quiet(), warnings.catch_warnings():
            # Calibration runs TensorFlow's own interpreter, which announces its end each time.
            warnings.filterwarnings("ignore", message=r"\s*Warning: tf.lite.Interpreter")
            return converter.convert()
    except (ConverterError, RuntimeError) as error:  # RuntimeError: from the quantizer
        raise errors.from_converter(error, model) from error


def _samples(calibration, endpoint):
    """The calibration batches as the converter wants them, cut to the endpoint's shapes."""
    for batch in calibration:
        rows = len(next(iter(batch.values())))
        step = endpoint.inputs[0].shape[0] or rows
        for start in range(0, rows, step):
            part = {name: array[start : start + step] for name, array in batch.items()}
            yield endpoint.name, batches.fit(part, endpoint)
