"""Export to LiteRT (`.tflite`), the file format for phones and other small devices."""

import contextlib
import functools
import pathlib
import tempfile

from keras_attention.export import backend, convert, endpoint, manifest, memory
from keras_attention.export.checks import compatibility, graph_checks, parity
from keras_attention.export.checks.cases import read_calibration
from keras_attention.export.checks.report import ExportReport
from keras_attention.export.exportable import list_models
from keras_attention.export.generation.drift import measure_drift
from keras_attention.export.generation.exportable import make_exportable
from keras_attention.export.graphs import flatbuffer
from keras_attention.export.graphs.kernel_formats import choose_format
from keras_attention.export.precision import check_no_lookups
from keras_attention.export.quantization import get_quantization
from keras_attention.files.io import make_workplace
from keras_attention.files.manifest import measure_file


def to_litert(
    model,
    path,
    *,
    quantization=None,
    calibration=None,
    batch_size=None,
    sequence_length=None,
    compatible_with="interpreter",
    examples=None,
    metadata=None,
    mask_constant=None,
    per_channel=True,
    generate=None,
):
    """Export a model to a LiteRT file, and check that it gives the same results as the model.

    The file contains only built-in ops. It has one signature, `serving_default`, whose inputs and
    outputs have the same names as with `to_saved_model`. Integers and bools are int32 in the file
    (True is 1). The export runs the file in the standard LiteRT interpreter, with and without the
    XNNPACK delegate, and compares the outputs with the outputs of the model.

    With `generate=`, the file has other signatures, which share the weights. `encode` runs the
    encoder of an encoder-decoder. The inputs of `step` are new tokens, `index` and the key-value
    cache, and its outputs are logits and the new cache. `generate` and `beam` generate whole
    sequences. `LiteRTGenerator` calls these signatures, which `docs/on-device/generating.md`
    specifies.

    Args:
        model: functional `keras.Model` with a single input, or a list or dict of inputs. If it
            computes in a lower precision, it is exported in float32. A dict from names to models
            makes one file with a signature for each model, such as two encoders.
        path: path of the file to write, which ends in `.tflite`. An existing file is only replaced
            after the new one has passed all checks.
        quantization: None for float32, `"float16"` (half the size), `"int8_weights"` (a quarter of
            the size, and usually the fastest on CPUs), `"int4_weights"` (dense kernels in half the
            size of int8, with a scale for every 32 values, embedding tables as int8), or `"int8"`,
            which also quantizes activations and requires `calibration`.
        calibration: iterable of batches of real inputs with finite values, for `"int8"`. All
            batches are run to measure the ranges of activations. This conversion runs in a separate
            process and takes a few seconds longer.
        batch_size: int, a fixed batch size. None keeps the batch axis dynamic.
        sequence_length: int, a fixed size for all other dynamic axes. None keeps them dynamic.
            Dynamic shapes run only in the interpreter. `CompiledModel`, GPU and NPU delegates and
            browsers need fixed shapes. With `generate=` it is the length of sources. For a
            language model it is the number of prompt tokens that one call of `prefill` reads,
            while `step` reads one token.
        compatible_with: `"interpreter"`, `"gpu"` or `"web"`, or a list of them: the runtimes that
            must be able to run the file. The results are in the report's `runtimes`. `"gpu"` and
            `"web"` need fixed shapes, run the file in `CompiledModel`, and store int4 kernels with
            a scale for each row: GPU delegates crash on smaller blocks, and browsers compute them
            8 times slower. `"gpu"` also runs the file on a GPU delegate if a Vulkan driver is
            installed. `"web"` allows only float32, int32 and uint8, at most 4 axes, and no shared
            outputs.
        examples: inputs for comparing the file with the model: one batch, or an iterable of
            batches. A batch is a dict of arrays, or an array if the model has a single input. For
            several models, a batch is a dict with the inputs of all of them. None makes random
            inputs. If an int8 or int4 file disagrees with the model on your examples, an error is
            raised. On random inputs there is only a warning. Class scores must have the
            same argmax, and vectors must have a similar direction (cosine). An output is treated
            as a vector if its name is `embedding`, `hidden_states` or similar, or if it has at
            least 64 entries and no such name. For a model that generates text, examples are whole
            sequences of ids, and the report contains the `Drift`.
        metadata: dict of additional entries for `manifest.json`, which is written to the same
            folder, such as labels, vocabulary and lengths.
        mask_constant: float, the value that masks add to attention scores. None uses -1e9, or -1e4
            for float16 and -100 for int8.
        per_channel: bool, for int8 files. True uses a scale for each row of a dense kernel, which
            requires TensorFlow Lite 2.17 for `"int8_weights"`. False uses one scale for the whole
            kernel, which is less accurate but runs in older versions (see `minimum_runtime`).
        generate: a `Generation`, for a causal language model or an encoder-decoder. A sampler
            stands for a `Generation` with this sampler and the default settings. None exports
            the model without generation.

    Returns:
        An `ExportReport`.

    Raises:
        ExportError: the model needs an op that LiteRT lacks (see its `op` and `layer`), the results
            of the file differ from the results of the model, or a requested runtime cannot run it.
        ValueError: arguments contradict each other, such as dynamic shapes and `"web"`.

    ```python
    import tempfile
    import keras
    import keras_attention as ka

    ids = keras.Input((None,), dtype="int32", name="token_ids")
    x = keras.layers.Embedding(20, 4, mask_zero=True)(ids)
    model = keras.Model(ids, keras.layers.Dense(2, name="logits")(x))
    with tempfile.TemporaryDirectory() as folder:
        report = ka.export.to_litert(model, f"{folder}/model.tflite")
        logits = ka.export.load(f"{folder}/model.tflite")({"token_ids": [[5, 7, 0]]})["logits"]
    assert logits.shape == (1, 3, 2)
    assert report.max_abs_error < 1e-4

    model = ka.models.causal_language_model(20, num_layers=1, num_heads=2, hidden_dim=8)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.tflite"
        ka.export.to_litert(model, path, generate=ka.export.Generation("greedy", 16, 4))
        output = ka.export.load(path, "generate")({"token_ids": [[5, 7, 11]]})
    assert output["generated_ids"].shape == (1, 4)
    ```
    """
    backend.import_tensorflow()
    backend.import_litert()
    quantization = get_quantization(quantization)
    _check_arguments(quantization, calibration, generate, per_channel)
    _check_signatures(quantization, model)
    runtimes = compatibility.parse_runtimes(compatible_with)
    compatibility.check_shapes(model, runtimes, batch_size, sequence_length)
    path = _check_path(path)
    for one in list_models(model):
        check_no_lookups(one)
    manifest.check_metadata(path.parent, metadata)
    exportable = make_exportable(
        model, generate, batch_size=batch_size, sequence_length=sequence_length, examples=examples
    )
    memory.check_file_size(exportable.model, quantization)
    if calibration is not None:
        calibration = read_calibration(exportable.endpoints[0], calibration)
    if mask_constant is None:
        mask_constant = quantization.mask_constant
    with TracedModel(exportable, mask_constant) as traced:
        return traced.write(
            path, quantization, runtimes, metadata, calibration=calibration, per_channel=per_channel
        )


class TracedModel:
    """Context manager that traces a model once, and writes it to one or more LiteRT files.

    Inside the `with` block, a temporary folder contains the traced functions as a SavedModel.

    Args:
        exportable: `Exportable`, the model with its signatures and test cases.
        mask_constant: float, the value that masks add to attention scores.
    """

    def __init__(self, exportable, mask_constant):
        memory.check_free_memory(exportable.model)
        self.exportable, self.mask_constant = exportable, mask_constant

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        try:
            endpoint.save_endpoints(
                self.exportable.model,
                self.exportable.endpoints,
                self._folder.name,
                self.mask_constant,
            )
        except BaseException:
            self._folder.cleanup()
            raise
        return self

    def __exit__(self, *error):
        self._folder.cleanup()

    def write(self, path, quantization, runtimes, metadata, *, calibration=None, per_channel=True):
        """Write one LiteRT file, check it, and return its `ExportReport`.

        `quantization` is a `Quantization`, and `runtimes` is a tuple of the names of runtimes that
        must run the file. `to_litert` explains the other arguments.
        """
        with make_workplace(path) as new:
            content = convert.convert_saved_model(
                self._folder.name,
                self.exportable.endpoints,
                self.exportable.model,
                quantization=quantization,
                calibration=calibration,
                per_channel=per_channel,
                kernel_format=choose_format(quantization, runtimes),
            )
            new.write_bytes(content)
            report = _check_file(
                self.exportable, new, path, quantization, self.mask_constant, runtimes
            )
            manifest.publish_export(new, report, metadata)
        return report


@contextlib.contextmanager
def trace_once(model, *, examples=None, metadata=None, generate=None):
    """Context manager that traces a model once for several LiteRT files with dynamic shapes.

    Args:
        model: functional `keras.Model`, or a dict from the names of signatures to such models.
        examples: batches for comparing the file with the model. None makes random inputs.
        metadata: dict of additional entries for `manifest.json`, or None.
        generate: a `Generation` for a model that generates text, or None.

    Yields:
        A function that writes one file and returns its `ExportReport`. Its arguments are a path and
        a quantization (None, `"int8_weights"` or `"int4_weights"`). The first call traces the
        model.
    """
    backend.import_tensorflow()
    backend.import_litert()
    runtimes = compatibility.parse_runtimes("interpreter")
    with contextlib.ExitStack() as stack:

        @functools.cache
        def trace():
            exportable = make_exportable(model, generate, examples=examples)
            constant = get_quantization(None).mask_constant
            return stack.enter_context(TracedModel(exportable, constant))

        def write(path, quantization=None):
            path, quantization = _check_path(path), get_quantization(quantization)
            manifest.check_metadata(path.parent, metadata)
            exportable = trace().exportable
            memory.check_file_size(exportable.model, quantization)
            return trace().write(path, quantization, runtimes, metadata)

        yield write


def _check_arguments(quantization, calibration, generate, per_channel):
    if not per_channel and quantization.weight_dtype != "int8":
        raise ValueError(
            f"per_channel={per_channel!r} needs int8 weights, but quantization is "
            f'{quantization.name!r}. Use "int8_weights" or "int8", or leave per_channel out.'
        )
    measures = quantization.quantizes_activations
    if measures and generate is not None:
        raise ValueError(
            'quantization="int8" also rounds a decoder\'s cache, and the errors add up over the '
            'tokens. Use "int8_weights" for models that generate.'
        )
    if measures != (calibration is not None):
        raise ValueError(
            'quantization="int8" measures activations on real inputs. Pass calibration=, an '
            "iterable of batches."
            if measures
            else f"calibration= is only used by int8, but quantization is {quantization.name!r}. "
            'Use quantization="int8", or leave calibration out.'
        )


def _check_signatures(quantization, model):
    if quantization.quantizes_activations and isinstance(model, dict):
        raise ValueError(
            f"quantization={quantization.name!r} is for a file with one signature, but this "
            f'one has {", ".join(model)}. Export each model alone, or use "int8_weights".'
        )


def _check_path(path):
    path = pathlib.Path(path)
    manifest.check_target(path)
    if path.suffix != ".tflite" or path.is_dir():
        raise ValueError(f"path={str(path)!r} is not a file name that ends in .tflite. Rename it.")
    return path


def _check_file(exportable, new, path, quantization, mask_constant, runtimes):
    """Check a new LiteRT file, and return its `ExportReport`.

    The file is still at the temporary path `new`. The report has the final path, `path`.
    `exportable` is the `Exportable`, `quantization` a `Quantization`, and `runtimes` are the names
    of runtimes that must run the file.
    """
    model, graph = exportable.model, flatbuffer.read_graph(new)
    warnings = [*exportable.warnings, *graph_checks.check_ops(graph, model)]
    signatures = exportable.order_signatures(graph.signatures)
    graph_checks.check_static(graph, exportable.endpoints, model)
    warnings += graph_checks.check_weights(graph, model, quantization)
    if quantization.quantizes_activations:
        warnings += graph_checks.check_int8(graph, model)
    measured = []
    for one in exportable.checked:
        measured += parity.measure_litert(new, one.endpoint, one.cases, quantization)
    drift = measure_drift(new, exportable.plan, quantization)
    if drift is None:
        warnings += parity.list_warnings(measured, quantization, exportable.has_examples)
    check = compatibility.RuntimeCheck(
        new, graph, exportable, runtimes, quantization, tuple(measured)
    )
    results, more_parity, notes = check.try_runtimes()
    return ExportReport(
        path=str(path),
        format="litert",
        model=model.name,
        signatures=signatures,
        ops=graph.ops,
        weights_bytes=memory.count_weight_bytes(model),
        parity=(*measured, *more_parity),
        checks=(
            "built-in ops only, no variables, at most 4 axes",
            "the file has the requested shapes",
            "every weight is stored once",
            "runs in the stock runtime with and without XNNPACK, called by name",
            f"compared with the model in {exportable.num_batches} batches",
        ),
        quantization=quantization.name,
        mask_constant=mask_constant,
        gpu=graph_checks.list_gpu_objections(graph),
        warnings=(*warnings, *notes),
        versions=backend.find_versions("tensorflow", "ai_edge_litert"),
        generation=exportable.describe_generation(),
        drift=drift,
        compatible_with=runtimes,
        runtimes=tuple(results),
        minimum_runtime=graph_checks.find_minimum_runtime(graph),
        **measure_file(new),
    )
