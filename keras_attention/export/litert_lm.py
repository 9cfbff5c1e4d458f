"""Export of language models to `.litertlm`, the file format of the engine LiteRT-LM."""

import dataclasses
import importlib
import pathlib
import tempfile

from keras_attention.core import checks
from keras_attention.export import backend, manifest, memory
from keras_attention.export.checks.compatibility import parse_runtimes
from keras_attention.export.errors import ExportError
from keras_attention.export.generation.engine_endpoints import make_engine_exportable
from keras_attention.export.generation.tokenizer_file import make_tokenizer_file
from keras_attention.export.litert import TracedModel
from keras_attention.export.precision import check_no_lookups
from keras_attention.export.quantization import get_quantization
from keras_attention.files.io import make_workplace, move_into_place
from keras_attention.files.manifest import measure_file


def to_litert_lm(
    task,
    path,
    *,
    max_length=None,
    prefill_length=None,
    quantization=None,
    chat_template=None,
    mask_constant=None,
):
    """Export a language model with its tokenizer to one file for the engine LiteRT-LM.

    LiteRT-LM is Google's engine for language models on phones and computers. A file holds the
    model, its tokenizer and its special tokens, so that an app needs nothing else. The model has
    the signatures `prefill_N`, which reads N tokens of a prompt, and `decode`, which reads one
    token and returns logits. The export runs both in LiteRT's interpreter, as the engine calls
    them, and compares the results with those of the model. The engine runs the file on the CPU.

    The function needs `pip install 'keras-attention-zoo[litert-lm]'`. See
    `docs/on-device/litert-lm.md` for the code that runs the file.

    Args:
        task: a `ka.tasks.CausalLM`. To export a model of your own, make one:
            `ka.tasks.CausalLM(model, ka.data.SequencePreprocessor(tokenizer))`. Its tokenizer is
            `Characters`, `Words`, `Subwords`, or a checkpoint's `tokenizer.json` or SentencePiece
            model.
        path: path of the file to write, which ends in `.litertlm`. An existing file is only
            replaced after the new one has passed all checks.
        max_length: int, the maximum number of tokens, prompt and new tokens. None uses the number
            of positions of the model, but at most 1,024.
        prefill_length: int N, the number of prompt tokens that one call reads. None uses 128, or
            `max_length` if that is smaller.
        quantization: None for float32, `"float16"` or `"int8_weights"`.
        chat_template: str, a Jinja template that the engine's conversations apply to messages, such
            as that of a checkpoint. None does not change the text of messages.
        mask_constant: float, the value that masks add to attention scores. None uses -1e9, or -1e4
            for float16.

    Returns:
        An `ExportReport`.

    Raises:
        ValueError: the task is not a language model that the engine can run.
        ExportError: the file's results differ from the model's, or a package is missing.

    ```python
    import importlib.util
    import tempfile
    import keras_attention as ka

    tokenizer = ka.data.Characters.build(["a small text"])
    model = ka.models.causal_language_model(
        len(tokenizer), num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8
    )
    task = ka.tasks.CausalLM(model, ka.data.SequencePreprocessor(tokenizer))
    if importlib.util.find_spec("litert_lm_builder"):  # the extra litert-lm is installed
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/model.litertlm"
            report = ka.export.to_litert_lm(task, path, max_length=16, prefill_length=4)
        assert [signature.name for signature in report.signatures] == ["prefill_4", "decode"]
    ```
    """
    model, tokenizer, end_token_ids = _read_task(task)
    suffix, rules = make_tokenizer_file(tokenizer)
    quantization = get_quantization(quantization)
    _check_arguments(max_length, prefill_length, quantization)
    path = _check_path(path)
    builder = _import_builder()
    backend.import_tensorflow()
    backend.import_litert()
    check_no_lookups(model)
    exportable, reader = make_engine_exportable(model, max_length, prefill_length)
    memory.check_file_size(exportable.model, quantization)
    if mask_constant is None:
        mask_constant = quantization.mask_constant
    with tempfile.TemporaryDirectory() as folder, make_workplace(path) as new:
        folder = pathlib.Path(folder)
        with TracedModel(exportable, mask_constant) as traced:
            report = traced.write(
                folder / "model.tflite", quantization, parse_runtimes("interpreter"), None
            )
        described = _describe(reader, tokenizer, end_token_ids, chat_template)
        (folder / "metadata.pb").write_bytes(described.SerializeToString())
        (folder / f"tokenizer{suffix}").write_bytes(rules)
        _pack(builder, folder, suffix, new)
        measured = measure_file(new)
        move_into_place(new, path)
    return dataclasses.replace(report, path=str(path), format="litert_lm", **measured)


def _read_task(task):
    """Return the model, the tokenizer and the end ids of a task. Raise a ValueError for others."""
    preprocessor = getattr(task, "preprocessor", None)
    tokenizer = getattr(preprocessor, "target", None)
    if tokenizer is None or not hasattr(preprocessor, "end_token_ids"):
        raise ValueError(
            f"{type(task).__name__} is not a task that writes text. Expected a ka.tasks.CausalLM, "
            "which has a language model and a tokenizer. Make one with ka.tasks.CausalLM(model, "
            "ka.data.SequencePreprocessor(tokenizer))."
        )
    return task.model, tokenizer, preprocessor.end_token_ids


def _check_arguments(max_length, prefill_length, quantization):
    for name, value in (("max_length", max_length), ("prefill_length", prefill_length)):
        if value is not None:
            checks.check_whole_number("to_litert_lm", name, value, least=2)
    if quantization.quantizes_activations:
        raise ValueError(
            'quantization="int8" also rounds a decoder\'s cache, and the errors add up over the '
            'tokens. Use "int8_weights" for models that generate.'
        )


def _check_path(path):
    path = pathlib.Path(path)
    manifest.check_target(path)
    if path.suffix != ".litertlm" or path.is_dir():
        raise ValueError(
            f"path={str(path)!r} is not a file name that ends in .litertlm. Rename it."
        )
    return path


def _import_builder():
    try:
        return importlib.import_module("litert_lm_builder")
    except ImportError as error:
        raise ExportError(
            "litert_lm_builder is not installed. It packs the model and its tokenizer into a file. "
            "Run pip install 'keras-attention-zoo[litert-lm]'"
        ) from error


def _describe(reader, tokenizer, end_token_ids, chat_template):
    """Return the message `LlmMetadata`: special tokens, lengths and templates of a file.

    `reader` is the `EngineReader`, and `end_token_ids` are the ids that end a text.
    """
    messages = importlib.import_module("litert_lm_builder.runtime.proto.llm_metadata_pb2")
    described = messages.LlmMetadata(max_num_tokens=reader.max_length)
    described.supports_thinking = described.supports_function_calling = False
    described.llm_model_type.generic_model.SetInParent()
    before, _ = tokenizer.around
    if before:
        described.start_token.token_ids.ids.extend(before)
    for i in end_token_ids:
        described.stop_tokens.add().token_ids.ids.append(i)
    if reader.decoder.padding.id is not None:  # generation in Keras never returns padding
        described.suppress_tokens.ids.append(reader.decoder.padding.id)
    if chat_template is not None:
        described.jinja_prompt_template = chat_template
    return described


def _pack(builder, folder, suffix, new):
    """Write the parts of a file, which are in `folder`, to the path `new`."""
    name = builder.Metadata(key="Authors", value="keras_attention", dtype=builder.DType.STRING)
    parts = builder.LitertLmFileBuilder().add_system_metadata(name)
    parts.add_llm_metadata(str(folder / "metadata.pb"))
    tokenizer = str(folder / f"tokenizer{suffix}")
    if suffix == ".json":
        parts.add_hf_tokenizer(tokenizer)
    else:
        parts.add_sentencepiece_tokenizer(tokenizer)
    kind = builder.TfLiteModelType.PREFILL_DECODE
    parts.add_tflite_model(str(folder / "model.tflite"), kind, backend_constraint="cpu")
    with open(new, "wb") as stream:
        parts.build(stream, validate_metadata=True)
