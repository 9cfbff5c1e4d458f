"""From a SavedModel to the bytes of a LiteRT file, with built-in ops only."""

from keras_attention.export import backend, batches, errors


def convert(folder, endpoint, model, *, quantization=None, calibration=None):
    """Converts the SavedModel in `folder`.

    Args:
        endpoint: what was saved there.
        model: the Keras model, to name its layers in errors.
        quantization: None, `"float16"`, `"int8_weights"` or `"int8"`.
        calibration: iterable of batches, for `"int8"`.

    Returns:
        bytes. An op that LiteRT's built-in set lacks is an ExportError that names it.
    """
    tf = backend.tensorflow()
    from tensorflow.lite.python.convert_phase import ConverterError

    converter = tf.lite.TFLiteConverter.from_saved_model(
        str(folder), signature_keys=[endpoint.name]
    )
    # Without this restriction a conversion may succeed and give a file that no phone can run.
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    if quantization is not None:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if quantization == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if quantization == "int8":
        converter.representative_dataset = lambda: _samples(calibration, endpoint)
    try:
        with backend.quiet():
            return converter.convert()
    except (ConverterError, RuntimeError) as error:  # RuntimeError: from the quantizer
        raise errors.from_converter(error, model) from error


def _samples(calibration, endpoint):
    """The calibration batches as the converter wants them, cut to the endpoint's shapes."""
    for batch in calibration:
        batch = batches.named(batch, endpoint, "calibration")
        rows = len(next(iter(batch.values())))
        step = endpoint.inputs[0].shape[0] or rows
        for start in range(0, rows, step):
            part = {name: array[start : start + step] for name, array in batch.items()}
            yield endpoint.name, batches.fit(part, endpoint)
