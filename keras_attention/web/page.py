"""`write_page`: writes a web page that runs the model of a task in the browser."""

import pathlib
import shutil
import tempfile

import keras
import numpy as np

from keras_attention.data.preprocessors.tokenizer_owner import TokenizerOwner
from keras_attention.data.readers.images import encode_png
from keras_attention.data.tokenizers.entries import Characters, Words
from keras_attention.export import to_litert
from keras_attention.files import manifest
from keras_attention.files.io import write_json
from keras_attention.tasks.folders import RunFolder
from keras_attention.tasks.writing_task import find_last_of_source
from keras_attention.visualization import record
from keras_attention.visualization.overlay import infer_patch_grid
from keras_attention.web.litert_js import copy_litert_js

STATIC = pathlib.Path(__file__).parent / "static"
MODEL = "model.tflite"
TOKENS = 64  # maximum number of tokens in a sentence or a text
PAIR_TOKENS = 48  # maximum number of tokens in a source, and in a target
WINDOW = 128  # number of tokens that a language model reads
PAGE = "page.json"
EXAMPLE = "example.png"  # an image from the data, in a preset and in the folder of a page
SETTINGS = {"web": "page"}  # the settings of the `RunFolder`


def write_page(task, output, *, title=None, example=None, quantization="int8_weights"):
    """Write a web page that runs the model of a task in the browser, and shows its attention.

    Any static web server can serve the folder, because all computation happens in the browser. The
    folder contains a LiteRT file of fixed shapes that also returns attention weights, the
    vocabulary, a page in plain HTML and JavaScript, and LiteRT.js with its license.

    Args:
        task: `ka.tasks.Task` with a Keras model: a `SequenceLabeler`, `TextClassifier`,
            `MultiLabelClassifier`, `ImageClassifier`, `Seq2SeqLM` or `CausalLM`.
        output: path of a new or empty folder.
        title: str, the title of the page. None uses a title that describes the task.
        example: str, the input that the page starts with. None uses the example of the task. For an
            `ImageClassifier` it is the path of an image, and None starts with an empty page.
        quantization: how the file stores weights: None for float32, `"float16"` or
            `"int8_weights"`. None is the most accurate, and makes a file four times as large as
            `"int8_weights"`.

    Returns:
        pathlib.Path of the folder.

    Raises:
        ValueError: this kind of task is not supported, or the folder contains other files.
    """
    if task.builder not in KINDS:
        raise ValueError(
            f"No page exists for tasks of {task.builder}: expected one of {', '.join(KINDS)}."
        )
    if isinstance(task.preprocessor, TokenizerOwner) and task.preprocessor.is_pretrained:
        raise ValueError(
            "No page exists for a task that was fine-tuned from a Hugging Face checkpoint, because "
            "the page cannot split text like its tokenizer: export it, and run the file in an app."
        )
    resizing = task.settings.get("resizing", {})
    if resizing.get("size") is not None:
        raise ValueError(
            f"No page exists for resizing={resizing}, because the page stretches images and "
            "does not crop them: train on stretched images."
        )
    describe, default_title = KINDS[task.builder]
    folder = RunFolder(output, SETTINGS)
    entries, inputs, choose, shapes = describe(task)
    with folder.fill() as result:
        entries["example"] = _write_example(task, example, result)
        path, shape = find_layer(task.model, inputs, choose)
        attention = {"queries": shape[2], "keys": shape[3]}
        if task.builder == "vision_transformer":
            rows, columns = infer_patch_grid(shape[3], task.preprocessor.image_size)
            attention |= {"rows": rows, "columns": columns}
        with tempfile.TemporaryDirectory() as temporary:
            file = pathlib.Path(temporary) / MODEL
            model = add_attention(task.model, path)
            to_litert(model, file, quantization=quantization, compatible_with="web", **shapes)
            shutil.copyfile(file, result / MODEL)
        for static in STATIC.iterdir():
            shutil.copyfile(static, result / static.name)
        copy_litert_js(result / "litert")
        page = {
            "kind": task.builder,
            "title": title or default_title,
            "layer": path,
            "attention": attention,
            "model": {"file": MODEL, **manifest.measure_file(result / MODEL)},
            **entries,
        }
        write_json(result / PAGE, page)
    return folder.path


def _write_example(task, example, folder):
    """Return the input of the page: `example`, or the task's own. Write an image to `folder`."""
    if task.builder != "vision_transformer":
        return example or task.example
    if example is None:
        return ""
    (folder / EXAMPLE).write_bytes(encode_png(task.preprocessor([example])[0]))
    return EXAMPLE


class AttentionOutputs(keras.layers.Layer):
    """Layer that runs a model, and also returns the attention weights of one of its layers.

    The outputs are a dict: `logits`, and `attention` (B, N, T, S). This layer is only for exports,
    and cannot be saved.

    Args:
        model: functional `keras.Model` with one output.
        path: str, the path of the attention layer in `ka.visualization.record_attention`.
    """

    def __init__(self, model, path):
        super().__init__(name="attention_outputs")
        self.model, self.path_of_layer = model, path
        self.built = True

    def call(self, inputs):
        recording = record.RecordEvery(self.model)
        with recording:
            logits = self.model(inputs, training=False)
        return {"logits": logits, "attention": recording.maps[self.path_of_layer]}


def add_attention(model, path):
    """Return a model with the same inputs and the outputs `logits` and `attention`.

    `path` is a str, the path of the attention layer whose weights are `attention`.
    """
    return keras.Model(model.input, AttentionOutputs(model, path)(model.input), name=model.name)


def find_layer(model, inputs, choose):
    """Find the attention layer whose weights the page shows.

    Args:
        model: `keras.Model` with attention layers of this package.
        inputs: an example input of the model, an array or a dict of arrays.
        choose: function from the recorded attention maps (a dict) to the path of a layer.

    Returns:
        A tuple of the path of the layer, and the shape (B, N, T, S) of its weights.
    """
    with record.record_attention(model) as maps:
        model(inputs)
    path = choose(maps)
    return path, tuple(maps[path].shape)


# Each of these `_describe_...` functions of a task returns the entries in page.json, inputs for the
# model, the function that chooses a layer, and the fixed shapes of the export.


def _choose_last(maps):
    return list(maps)[-1]


def _describe_words(preprocessor, length):
    tokenizer = preprocessor.tokenizer
    return {
        "words": list(tokenizer.entries),
        "lowercase": tokenizer.lowercase,
        "labels": list(preprocessor.labels.names),
        "length": length,
    }


def _describe_labeler(task):
    preprocessor, length = task.preprocessor, min(TOKENS, task.maximum_length)
    characters = preprocessor.characters
    entries = _describe_words(preprocessor, length) | {
        "characters": characters and list(characters.entries),
        "wordLength": preprocessor.word_length,
        "split": preprocessor.pattern,
    }
    shapes = {"batch_size": 1, "sequence_length": length}
    return entries, preprocessor([["a"]], length), _choose_last, shapes


def _describe_classifier(task):
    preprocessor = task.preprocessor
    length = min(TOKENS, preprocessor.maximum_length)
    entries = _describe_words(preprocessor, length) | {"split": preprocessor.tokenizer.pattern}
    if task.builder == "multi_label_classifier":
        entries["thresholds"] = list(task.thresholds)

    def choose(maps):  # the last self-attention, because the last layer may be a pooling
        return next(path for path, w in reversed(maps.items()) if w.shape[2] == w.shape[3])

    shapes = {"batch_size": 1, "sequence_length": length}
    return entries, preprocessor(["a"], length), choose, shapes


def _describe_images(task):
    height, width = task.preprocessor.image_size
    entries = {
        "labels": list(task.preprocessor.labels.names),
        "imageSize": [height, width],
        "channels": task.preprocessor.channels,
    }
    image = np.zeros((1, height, width, task.preprocessor.channels), "float32")
    return entries, image, _choose_last, {"batch_size": 1}


def _describe_pairs(task):
    preprocessor = task.preprocessor
    length = min(PAIR_TOKENS, task.writing.max_new_tokens)
    entries = {
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
    return entries, inputs, find_last_of_source, shapes


def _describe_running_text(task):
    length = min(WINDOW, task.maximum_length)
    entries = {
        "tokens": _describe_tokenizer(task.preprocessor.target),
        "endTokenId": task.preprocessor.end_token_id,
        "temperature": task.temperature,
        "length": length,
    }
    shapes = {"batch_size": 1, "sequence_length": length}
    return entries, np.full((1, length), 5, "int32"), _choose_last, shapes


# Name of a task -> (its function, the default title).
KINDS = {
    "sequence_labeler": (_describe_labeler, "A tag for every word"),
    "text_classifier": (_describe_classifier, "A label for a text"),
    "multi_label_classifier": (_describe_classifier, "Labels for a text"),
    "vision_transformer": (_describe_images, "What is in an image"),
    "seq2seq_transformer": (_describe_pairs, "From text to text"),
    "seq2seq_recurrent": (_describe_pairs, "From text to text"),
    "causal_language_model": (_describe_running_text, "The continuation of a text"),
}


def _describe_tokenizer(tokenizer):
    """Return the entries of page.json that let the page tokenize text like `tokenizer`."""
    if isinstance(tokenizer, Characters):
        return {"kind": "characters", "entries": list(tokenizer.entries)}
    if isinstance(tokenizer, Words):
        raise ValueError("No page exists for tokens that are words: train with subwords.")
    from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.proto)
    if model.trainer_spec.model_type != model.trainer_spec.UNIGRAM:
        raise ValueError(
            "The page needs a unigram model of SentencePiece, and this model has another type: "
            "train with model_type='unigram', or with characters."
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
