"""`write_page`: a folder with a page that runs a task's model in the browser."""

import pathlib
import shutil
import tempfile

import numpy as np

from keras_attention.data.preprocessors.tokenizer_owner import TokenizerOwner
from keras_attention.data.readers.images import encode_png
from keras_attention.data.tokenizers.entries import Characters, Words
from keras_attention.export import to_litert
from keras_attention.files import manifest
from keras_attention.files.io import write_json
from keras_attention.tasks.folders import RunFolder
from keras_attention.tasks.writing import find_last_of_source
from keras_attention.visualization.overlay import infer_patch_grid
from keras_attention.web.attention_outputs import add_attention, find_layer
from keras_attention.web.litert_js import copy_litert_js

STATIC = pathlib.Path(__file__).parent / "static"
MODEL = "model.tflite"
TOKENS = 64  # of a sentence or a text
PAIR_TOKENS = 48  # of a source, and of what is written for it
WINDOW = 128  # tokens that a language model looks back on
PAGE = "page.json"
EXAMPLE = "example.png"  # a picture of the data, in a preset and in the folder of a page
MARK = {"web": "page"}  # the settings of such a run


def write_page(task, output, *, title=None, example=None, quantization="int8_weights"):
    """Writes a page that runs the model of a task in the browser, and shows its attention.

    The folder is served by any web server; nothing is computed there. It holds a LiteRT file of
    fixed shapes with attention among its outputs, the vocabulary, a page in plain HTML and
    JavaScript, and LiteRT.js with its licence.

    Args:
        task: `ka.tasks.Task` with a Keras model: a `SequenceLabeler`, `TextClassifier`,
            `MultiLabelClassifier`, `ImageClassifier`, `Seq2SeqLM` or `CausalLM`.
        output: path of the folder, new or empty.
        title: str; None for what the task does.
        example: str, the first input; None for the example of the task. For an `ImageClassifier` it
            is the path of a picture; None for an empty page.
        quantization: as for `ka.export.to_litert`; None is the most exact, and four times as large.

    Returns:
        The folder, a pathlib.Path.

    Raises:
        ValueError: there is no page for such a task, or the folder holds other files.
    """
    kind = KINDS.get(task.builder)
    if kind is None:
        raise ValueError(
            f"There is no page for tasks of {task.builder}: there is one for {', '.join(KINDS)}."
        )
    if isinstance(task.preprocessor, TokenizerOwner) and task.preprocessor.is_pretrained:
        raise ValueError(
            "There is no page for a task that began as a checkpoint of Hugging Face: the page does "
            "not split texts as its tokenizer does. Export it, and call the file from an app."
        )
    resizing = task.settings.get("resizing", {})
    if resizing.get("size") is not None:
        raise ValueError(
            f"There is no page for resizing={resizing}: the page stretches pictures, and cuts "
            "nothing out."
        )
    folder = RunFolder(output, MARK)
    about, inputs, choose, shapes = kind(task)
    with folder.fill() as result:
        about["example"] = _write_example(task, example, result)
        path, shape = find_layer(task.model, inputs, choose)
        with tempfile.TemporaryDirectory() as temporary:
            file = pathlib.Path(temporary) / MODEL
            model = add_attention(task.model, path)
            to_litert(model, file, quantization=quantization, compatible_with="web", **shapes)
            shutil.copyfile(file, result / MODEL)
        for static in STATIC.iterdir():
            shutil.copyfile(static, result / static.name)
        copy_litert_js(result / "litert")
        write_json(
            result / PAGE,
            {
                "kind": task.builder,
                "title": title or TITLES[task.builder],
                "layer": path,
                "attention": {"queries": shape[2], "keys": shape[3], **_find_grid(task, shape[3])},
                "model": {"file": MODEL, **manifest.measure_file(result / MODEL)},
                **about,
            },
        )
    return folder.path


def _write_example(task, example, folder):
    """Return the first input of the page, and write a picture of it into `folder`."""
    if task.builder != "vision_transformer":
        return example or task.example
    if example is None:
        return ""
    (folder / EXAMPLE).write_bytes(encode_png(task.preprocessor([example])[0]))
    return EXAMPLE


TITLES = {
    "sequence_labeler": "A tag for every word",
    "text_classifier": "A label for a text",
    "multi_label_classifier": "Labels for a text",
    "vision_transformer": "What is in a picture",
    "seq2seq_transformer": "From text to text",
    "seq2seq_recurrent": "From text to text",
    "causal_language_model": "Text that goes on",
}


def _find_grid(task, keys):
    """Return the rows and columns of a picture's patches."""
    if task.builder != "vision_transformer":
        return {}
    rows, columns = infer_patch_grid(keys, task.preprocessor.image_size)
    return {"rows": rows, "columns": columns}


def _last(maps):
    return list(maps)[-1]


def _square(maps):
    """Return the last map of tokens to tokens; that of a pooling is not."""
    return next(path for path, w in reversed(maps.items()) if w.shape[2] == w.shape[3])


def _describe_labeler(task):
    preprocessor = task.preprocessor
    length = min(TOKENS, task.maximum_length)
    about = {
        "words": list(preprocessor.tokenizer.entries),
        "lowercase": preprocessor.tokenizer.lowercase,
        "characters": preprocessor.characters and list(preprocessor.characters.entries),
        "wordLength": preprocessor.word_length,
        "split": preprocessor.pattern,
        "labels": list(preprocessor.labels.names),
        "length": length,
    }
    shapes = {"batch_size": 1, "sequence_length": length}
    return about, preprocessor([["a"]], length), _last, shapes


def _describe_classifier(task):
    preprocessor = task.preprocessor
    length = min(TOKENS, preprocessor.maximum_length)
    about = {
        "words": list(preprocessor.tokenizer.entries),
        "lowercase": preprocessor.tokenizer.lowercase,
        "split": preprocessor.tokenizer.pattern,
        "labels": list(preprocessor.labels.names),
        "length": length,
    }
    shapes = {"batch_size": 1, "sequence_length": length}
    return about, preprocessor(["a"], length), _square, shapes


def _describe_label_sets(task):
    about, *rest = _describe_classifier(task)
    return about | {"thresholds": list(task.thresholds)}, *rest


def _describe_pictures(task):
    height, width = task.preprocessor.image_size
    about = {
        "labels": list(task.preprocessor.labels.names),
        "imageSize": [height, width],
        "channels": task.preprocessor.channels,
    }
    picture = np.zeros((1, height, width, task.preprocessor.channels), "float32")
    return about, picture, _last, {"batch_size": 1}


def _describe_pairs(task):
    preprocessor = task.preprocessor
    length = min(PAIR_TOKENS, task.writing.max_new_tokens)
    about = {
        "source": _describe_tokenizer(preprocessor.source),
        "target": _describe_tokenizer(preprocessor.target),
        "startTokenId": preprocessor.start_token_id,
        "endTokenId": preprocessor.end_token_id,
        "beam": task.writing.beam,
        "lengthPenalty": task.writing.length_penalty,
        "length": length,
    }
    ids = np.full((task.writing.beam, length), preprocessor.end_token_id, "int32")
    inputs = {"source_ids": ids, "target_ids": ids}
    shapes = {"batch_size": task.writing.beam, "sequence_length": length}
    return about, inputs, lambda maps: find_last_of_source(maps)[0], shapes


def _describe_running_text(task):
    length = min(WINDOW, task.maximum_length)
    about = {
        "tokens": _describe_tokenizer(task.preprocessor.target),
        "endTokenId": task.preprocessor.end_token_id,
        "temperature": task.temperature,
        "length": length,
    }
    shapes = {"batch_size": 1, "sequence_length": length}
    return about, np.full((1, length), 5, "int32"), _last, shapes


KINDS = {
    "sequence_labeler": _describe_labeler,
    "text_classifier": _describe_classifier,
    "multi_label_classifier": _describe_label_sets,
    "vision_transformer": _describe_pictures,
    "seq2seq_transformer": _describe_pairs,
    "seq2seq_recurrent": _describe_pairs,
    "causal_language_model": _describe_running_text,
}


def _describe_tokenizer(tokenizer):
    """Return what the page needs to repeat a tokenizer."""
    if isinstance(tokenizer, Characters):
        return {"kind": "characters", "entries": list(tokenizer.entries)}
    if isinstance(tokenizer, Words):
        raise ValueError("There is no page for tokens that are words: train with subwords.")
    from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.proto)
    if model.trainer_spec.model_type != model.trainer_spec.UNIGRAM:
        raise ValueError(
            "The page repeats SentencePiece's unigram models; this one is of another type. Train "
            "with model_type='unigram', or with characters."
        )
    processor = SentencePieceProcessor(model_proto=tokenizer.proto)
    return {
        "kind": "unigram",
        "pieces": [piece.piece for piece in model.pieces],
        "scores": [piece.score for piece in model.pieces],
        "ordinary": [int(piece.type == piece.NORMAL) for piece in model.pieces],
        "lowercase": model.normalizer_spec.name.endswith("_cf"),
        "unknown": processor.unk_id(),
    }
