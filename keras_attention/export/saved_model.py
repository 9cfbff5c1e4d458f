"""Export to SavedModel, the format of TensorFlow Serving, and read signatures of SavedModels."""

import collections
import math
import pathlib
import tempfile

import numpy as np

from keras_attention.core.scope import MASK_CONSTANT
from keras_attention.export import backend, manifest
from keras_attention.export.checks.parity import SAVED_MODEL_TOLERANCE, check_parity, measure_parity
from keras_attention.export.checks.report import ExportReport, Signature, Tensor
from keras_attention.export.endpoint import save_endpoints
from keras_attention.export.errors import ExportError
from keras_attention.export.generation.exportable import make_exportable
from keras_attention.export.memory import count_weight_bytes
from keras_attention.files.io import make_workplace
from keras_attention.files.manifest import measure_file

_SCRIPT = pathlib.Path(__file__).with_name("saved_model_process.py")
_TIMEOUT = 600  # seconds


def to_saved_model(
    model,
    path,
    *,
    batch_size=None,
    sequence_length=None,
    examples=None,
    metadata=None,
    generate=None,
):
    """Export a model to a SavedModel that runs without Keras, and check its results.

    The SavedModel has one signature, `serving_default`, with named inputs and outputs. The names
    are the keys if the model has a dict of inputs or outputs, and otherwise the names of the input
    tensors and output layers. Integers and bools are int32 in the file (True is 1). The export
    loads the SavedModel in a new process without Keras, which takes a few seconds, and compares the
    outputs with the outputs of the model.

    Args:
        model: functional `keras.Model` with a single input, or a list or dict of inputs. If it
            computes in a lower precision, it is exported in float32. A dict from names to models
            makes one SavedModel with a signature for each model.
        path: path of the folder to write. An existing SavedModel is only replaced after the new one
            has passed all checks.
        batch_size: int, a fixed batch size. None keeps the batch axis dynamic.
        sequence_length: int, a fixed size for all other dynamic axes. None keeps them dynamic.
        examples: inputs for comparing the file with the model: one batch, or an iterable of
            batches. A batch is a dict of arrays, or an array if the model has a single input. None
            makes random inputs.
        metadata: dict of additional entries for `manifest.json`, which is written to the parent
            folder of `path`, such as labels, vocabulary and lengths.
        generate: a `Generation` or its sampler, for a model that generates text, or None. The
            signatures of such models are specified in `docs/on-device/generating.md`.

    Returns:
        An `ExportReport`.

    Raises:
        ExportError: the model cannot be exported, or the results of the file differ.

    ```python
    import tempfile
    import keras
    import keras_attention as ka

    inputs = keras.Input((4,), name="features")
    model = keras.Model(inputs, keras.layers.Dense(2, name="logits")(inputs))
    with tempfile.TemporaryDirectory() as folder:
        metadata = {"labels": ["cat", "dog"]}
        report = ka.export.to_saved_model(model, f"{folder}/saved_model", metadata=metadata)
    assert report.signatures[0].inputs[0].name == "features"
    assert report.max_abs_error < 1e-5
    ```
    """
    backend.import_tensorflow()
    path = _check_path(path)
    manifest.check_metadata(path.parent, metadata)
    exportable = make_exportable(
        model, generate, batch_size=batch_size, sequence_length=sequence_length, examples=examples
    )
    with make_workplace(path) as new:
        owned = save_endpoints(exportable.model, exportable.endpoints, new, MASK_CONSTANT)
        report = _check_folder(exportable, new, path, owned)
        manifest.publish_export(new, report, metadata)
    return report


def _check_path(path):
    path = pathlib.Path(path)
    manifest.check_target(path)
    if path.suffix == ".tflite":
        raise ValueError(
            f"path={str(path)!r} names a LiteRT file. A SavedModel is a folder. Leave .tflite out."
        )
    occupied = path.is_file() or (path.is_dir() and any(path.iterdir()))
    if occupied and not (path / "saved_model.pb").is_file():
        raise ValueError(
            f"path={str(path)!r} exists and is not a SavedModel. Nothing was changed. Use another "
            "path, or remove the file or folder."
        )
    return path


def _check_folder(exportable, new, path, owned):
    """Check a new SavedModel, and return its `ExportReport`.

    The SavedModel is still at the temporary path `new`. The report has the final path, `path`.
    `exportable` is the `Exportable`, and `owned` the number of values in the variables of the
    model.
    """
    signatures, ops = read_saved_model(new)
    signatures = exportable.order_signatures(signatures)
    stored = count_values(new)
    if not owned <= stored <= owned + 1:  # the index of the checkpoint may count as one value
        raise ExportError(f"The checkpoint holds {stored} values for {owned} of the model.")
    return ExportReport(
        path=str(path),
        format="saved_model",
        model=exportable.model.name,
        signatures=signatures,
        ops=ops,
        weights_bytes=count_weight_bytes(exportable.model),
        parity=tuple(_measure(exportable, new)),
        checks=(
            "the file has the requested shapes",
            "every variable is stored once",
            "runs in a new process without Keras, called by name",
            f"equals the model in {exportable.num_batches} batches",
        ),
        quantization=None,
        mask_constant=MASK_CONSTANT,
        gpu=(),
        warnings=tuple(exportable.warnings),
        versions=backend.find_versions("tensorflow"),
        generation=exportable.describe_generation(),
        **measure_file(new),
    )


def _measure(exportable, folder):
    cases = [(one.endpoint.name, case) for one in exportable.checked for case in one.cases]
    results = run_without_keras(folder, [(name, case.inputs) for name, case in cases])
    measured = []
    for (name, case), outputs in zip(cases, results, strict=True):
        parity = measure_parity(case, outputs, signature=name, runtime="TensorFlow")
        check_parity(case, parity, tolerance=SAVED_MODEL_TOLERANCE)
        measured += parity
    return measured


def run_without_keras(folder, calls):
    """Run signatures of a SavedModel in a new process that cannot import Keras.

    Args:
        folder: path of the SavedModel.
        calls: list of tuples (name of a signature, dict of input arrays).

    Returns:
        A list with a dict of output arrays for each call.
    """
    with tempfile.TemporaryDirectory() as workplace:
        inputs, outputs = (str(pathlib.Path(workplace) / f"{n}.npz") for n in ("in", "out"))
        arrays = {
            f"{signature}|{i}|{name}": array
            for i, (signature, batch) in enumerate(calls)
            for name, array in batch.items()
        }
        np.savez(inputs, **arrays)
        done = backend.run_script(_SCRIPT, folder, inputs, outputs, timeout=_TIMEOUT)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            raise ExportError(f"The SavedModel does not run without Keras: {lines[-1]}")
        results = [{} for _ in calls]
        with np.load(outputs) as arrays:
            for key in arrays:
                _, i, name = key.split("|")
                results[int(i)][name] = arrays[key]
    return results


def read_saved_model(folder):
    """Return the signatures of a SavedModel, and a dict {type of an op: count}.

    `folder` is the path of the SavedModel. Signatures are a tuple of `Signature`, the functions in
    the file.
    """
    backend.import_tensorflow()
    from tensorflow.core.protobuf import saved_model_pb2

    path = pathlib.Path(folder) / "saved_model.pb"
    message = saved_model_pb2.SavedModel()
    try:
        message.ParseFromString(path.read_bytes())
        graph = message.meta_graphs[0]
    except Exception as error:  # the class of protobuf's DecodeError depends on its version
        raise ValueError(f"{path} is damaged and cannot be read. Export it again.") from error
    signatures = tuple(
        Signature(name, _tensors(entry.inputs), _tensors(entry.outputs))
        for name, entry in graph.signature_def.items()
        if not name.startswith("__")  # TensorFlow's own signatures, such as __saved_model_init_op
    )
    return signatures, _ops(graph.graph_def.library.function)


def count_values(folder):
    """Return the total number of values in the checkpoint of a SavedModel."""
    tf = backend.import_tensorflow()
    shapes = tf.train.load_checkpoint(f"{folder}/variables/variables").get_variable_to_shape_map()
    return sum(math.prod(shape) for shape in shapes.values())


def _tensors(entries):
    tf = backend.import_tensorflow()
    return tuple(
        Tensor(name, tuple(tf.TensorShape(entry.tensor_shape)), tf.as_dtype(entry.dtype).name)
        for name, entry in sorted(entries.items())
    )


def _ops(functions):
    saving = ("__inference__traced_save", "__inference__traced_restore")
    return dict(
        collections.Counter(
            node.op
            for function in functions
            if not function.signature.name.startswith(saving)
            for node in function.node_def
        )
    )
