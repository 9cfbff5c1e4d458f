"""Export to LiteRT (`.tflite`), the format of phones and other small devices."""

import contextlib
import functools
import pathlib
import tempfile

from keras_attention.export import backend, convert, endpoint, manifest, memory
from keras_attention.export.checks import compatibility, graph_checks, parity
from keras_attention.export.checks.cases import read_calibration
from keras_attention.export.checks.report import ExportReport
from keras_attention.export.generation.drift import measure_drift
from keras_attention.export.generation.exportable import make_exportable
from keras_attention.export.graphs import flatbuffer
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
    """Writes `model` as a LiteRT file of built-in ops only, and proves that it runs.

    The file has one signature, `serving_default`, which takes the model's inputs by name and
    returns its outputs by name, as `to_saved_model` does. Integers are int32 there, and so are
    bool inputs and outputs (1 and 0), which not every runtime takes. The file's ops are counted,
    and the stock runtime runs it with and without XNNPACK; what it computes is compared with the
    model.

    With `generate=` a model that generates has others in its place, over one copy of the weights:
    `encode` reads a source (of an encoder-decoder), `step` takes any number of new tokens, `index`
    and the cache, and gives logits and the cache; `generate` and `beam` are whole loops. They are
    written down for callers in `docs/on-device.md`, and `LiteRTGenerator` is one.

    Args:
        model: a functional `keras.Model` with one input, a list or a dict of them. One that
            computes in reduced precision is exported in float32.
        path: the file to write, ending in `.tflite`. A file that is there already is replaced
            when the new one has passed all checks, not before.
        quantization: None, `"float16"` (half the size), `"int8_weights"` (a quarter, and usually
            the fastest on CPUs) or `"int8"` (activations, too; needs `calibration`).
        calibration: iterable of batches of real inputs, as `examples`, all of which are run. They
            must be finite, and inputs that the model itself can run. (Full int8 is converted in a
            process of its own, some seconds more: what overflows there would end this one.)
        batch_size, sequence_length: int fixes the batch axis, or every other free axis; None
            leaves it free. Free shapes are for the interpreter only; `CompiledModel`, GPU and NPU
            delegates and browsers want both fixed. With `generate=` the length is
            that of a source, or of a language model's prompts, which `prefill` then takes in
            pieces of that length, and `step` takes one token.
        compatible_with: `"interpreter"`, `"gpu"`, `"web"`, or several of them: what must hold, is
            checked, and is said in the report's `runtimes`. All files run in the interpreter. For
            `"gpu"` and `"web"` shapes must be fixed, and `CompiledModel` is to compute the same.
            `"gpu"` runs the file on a GPU delegate where there is a driver of Vulkan, and compares
            the numbers, too; `"web"` wants the dtypes float32, int32 and uint8, at most 4 axes, and
            outputs of their own.
        examples: inputs to check with, a batch or an iterable of batches (dicts of arrays, or
            an array where there is one input). Made up from the embeddings' sizes if None. Int8
            files must agree with the model on given examples; made-up ones only warn. Outputs that
            are scores of classes must have the same largest entries; vectors (outputs called
            `embedding`, `hidden_states` and the like, or of 64 entries and more without a telling
            name) the same directions. Of a model that generates examples are whole texts, and the
            report has the file's `Drift` on them.
        metadata: dict for `manifest.json` beside the file: labels, vocabulary, lengths.
        mask_constant: float, what masks add to scores; by default -1e9, or -1e4 for float16 and
            -100 for int8.
        per_channel: bool, of int8 files. False gives the weights of a dense layer one scale in
            place of one for each row, which TensorFlow Lite knows since 2.17 in `int8_weights`:
            less exact, and for older runtimes. The report's `minimum_runtime` tells the oldest.
        generate: for a causal language model or an encoder-decoder: a `Generation`, or its sampler
            where the rest is left to it.

    Returns:
        `ExportReport`.

    Raises:
        ExportError: if the model needs an op that LiteRT lacks (its `op` and `layer` name it),
            the file computes something else than the model, or does not run where it was asked to.
        ValueError: if arguments do not go together, such as free shapes and `"web"`.

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
    runtimes = compatibility.parse_runtimes(compatible_with)
    compatibility.check_shapes(model, runtimes, batch_size, sequence_length)
    path = _check_path(path)
    check_no_lookups(model)
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
    """A model whose functions are traced once, for one LiteRT file or several.

    Within `with` they are a SavedModel in a temporary folder.

    Args:
        exportable: `Exportable`.
        mask_constant: float, as for `to_litert`.
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
        """Write one file, after the checks that `to_litert` promises. Return its `ExportReport`."""
        with make_workplace(path) as new:
            content = convert.convert_saved_model(
                self._folder.name,
                self.exportable.endpoints,
                self.exportable.model,
                quantization=quantization,
                calibration=calibration,
                per_channel=per_channel,
            )
            new.write_bytes(content)
            report = _check_file(
                self.exportable, new, path, quantization, self.mask_constant, runtimes
            )
            manifest.publish_export(new, report, metadata)
        return report


@contextlib.contextmanager
def trace_once(model, *, examples=None, metadata=None, generate=None):
    """Trace a model once for several LiteRT files of free shapes.

    Args:
        model, examples, metadata, generate: as for `to_litert`.

    Yields:
        Function of a path and of None or `"int8_weights"`, that writes one file and returns its
        `ExportReport`. The first call traces the model.
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
            memory.check_file_size(model, quantization)
            return trace().write(path, quantization, runtimes, metadata)

        yield write


def _check_arguments(quantization, calibration, generate, per_channel):
    if not per_channel and not quantization.has_scales:
        raise ValueError(
            f"per_channel={per_channel!r} is about the scales of int8 weights; received "
            f'quantization={quantization.name!r}. Choose "int8_weights" or "int8", or leave it out.'
        )
    measures = quantization.quantizes_activations
    if measures and generate is not None:
        raise ValueError(
            'quantization="int8" also rounds what a decoder keeps, and the rounding adds up token '
            'by token: use "int8_weights" for models that generate.'
        )
    if measures != (calibration is not None):
        raise ValueError(
            'quantization="int8" measures its activations on real inputs: pass calibration=, an '
            "iterable of batches."
            if measures
            else f'calibration= is for quantization="int8"; received {quantization.name!r}.'
        )


def _check_path(path):
    path = pathlib.Path(path)
    manifest.check_target(path)
    if path.suffix != ".tflite" or path.is_dir():
        raise ValueError(f"path={str(path)!r} must name a file that ends in .tflite.")
    return path


def _check_file(exportable, new, path, quantization, mask_constant, runtimes):
    """The `ExportReport` of the file at `new`, which goes to `path`; ExportError where it fails."""
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
    others = compatibility.RuntimeCheck(
        new, graph, exportable, runtimes, quantization, tuple(measured)
    )
    known_runtimes, elsewhere, notes = others.try_runtimes()
    return ExportReport(
        path=str(path),
        format="litert",
        model=model.name,
        signatures=signatures,
        ops=graph.ops,
        weights_bytes=memory.count_weight_bytes(model),
        parity=(*measured, *elsewhere),
        checks=(
            "built-in ops only, no variables, at most 4 axes",
            "the shapes are those asked for",
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
        runtimes=tuple(known_runtimes),
        minimum_runtime=graph_checks.find_minimum_runtime(graph),
        **measure_file(new),
    )
