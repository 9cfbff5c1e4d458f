"""Export to a SavedModel, the format of TensorFlow Serving, and reading one."""

import collections
import math
import os
import pathlib
import subprocess
import sys
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
_SECONDS = 600


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
    """Writes `model` as a SavedModel that runs with TensorFlow alone, and proves that it does.

    The folder has one signature, `serving_default`. It takes the model's inputs by name and
    returns its outputs by name: the keys of a dict, or the names of the output layers. Integers
    are int32 there, and so are bool inputs and outputs (1 and 0). The folder is read back in a
    new process without Keras (a few seconds), and what it computes there is compared with the
    model.

    Args:
        model: a functional `keras.Model` with one input, a list or a dict of them. One that
            computes in reduced precision is exported in float32.
        path: the folder to write. A SavedModel that is there already is replaced when the new one
            has passed all checks, not before.
        batch_size, sequence_length: int fixes the batch axis, or every other free axis; None
            leaves it free.
        examples: inputs to check with, a batch or an iterable of batches (dicts of arrays, or
            an array where there is one input). Made up from the embeddings' sizes if None.
        metadata: dict for `manifest.json` beside the folder: labels, vocabulary, lengths.
        generate: for models that generate, as in `to_litert`; the signatures are then those of
            `docs/on-device.md`.

    Returns:
        `ExportReport`.

    Raises:
        ExportError: if the model cannot be exported, or the file computes something else.

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
        raise ValueError(f"path={str(path)!r} names a LiteRT file: a SavedModel is a folder.")
    occupied = path.is_file() or (path.is_dir() and any(path.iterdir()))
    if occupied and not (path / "saved_model.pb").is_file():
        raise ValueError(f"path={str(path)!r} exists and is no SavedModel; it is left as it is.")
    return path


def _check_folder(exportable, new, path, owned):
    """The `ExportReport` of the folder `new`, which goes to `path`; ExportError where it fails."""
    signatures, ops = read_saved_model(new)
    signatures = exportable.order_signatures(signatures)
    stored = count_values(new)
    if not owned <= stored <= owned + 1:  # the checkpoint's own index may count as one value
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
            "the shapes are those asked for",
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
        found = measure_parity(case, outputs, signature=name, runtime="TensorFlow")
        check_parity(case, found, tolerance=SAVED_MODEL_TOLERANCE)
        measured += found
    return measured


def run_without_keras(folder, calls):
    """Runs signatures of the SavedModel in `folder` in a new process that cannot import Keras.

    Args:
        calls: list of (name of a signature, its inputs: dict of arrays).

    Returns:
        The outputs, a dict of arrays for each call.
    """
    with tempfile.TemporaryDirectory() as workplace:
        inputs, outputs = (str(pathlib.Path(workplace) / f"{n}.npz") for n in ("in", "out"))
        arrays = {
            f"{signature}|{i}|{name}": array
            for i, (signature, batch) in enumerate(calls)
            for name, array in batch.items()
        }
        np.savez(inputs, **arrays)
        _start([str(folder), inputs, outputs])
        results = [{} for _ in calls]
        with np.load(outputs) as found:
            for key in found:
                _, i, name = key.split("|")
                results[int(i)][name] = found[key]
    return results


def _start(arguments):
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    # -P: the script's own folder must not come first on the path of the new process.
    done = subprocess.run(
        [sys.executable, "-P", str(_SCRIPT), *arguments],
        env=os.environ | quiet,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise ExportError(f"The SavedModel does not run without Keras: {lines[-1]}")


def read_saved_model(folder):
    """Return the signatures of a SavedModel, and its ops by kind."""
    backend.import_tensorflow()
    from tensorflow.core.protobuf import saved_model_pb2

    path = pathlib.Path(folder) / "saved_model.pb"
    message = saved_model_pb2.SavedModel()
    try:
        message.ParseFromString(path.read_bytes())
        graph = message.meta_graphs[0]
    except Exception as error:  # protobuf's DecodeError has moved between its versions
        raise ValueError(f"{path} is damaged: it cannot be parsed.") from error
    signatures = tuple(
        Signature(name, _tensors(entry.inputs), _tensors(entry.outputs))
        for name, entry in graph.signature_def.items()
        if not name.startswith("__")  # TensorFlow's own, such as __saved_model_init_op
    )
    return signatures, _ops(graph.graph_def.library.function)


def count_values(folder):
    """How many numbers the checkpoint of a SavedModel holds."""
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
