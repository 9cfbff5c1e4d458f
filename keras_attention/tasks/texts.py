"""Functions for tasks that label whole texts."""

import numpy as np

from keras_attention import data
from keras_attention.core.lazy import models, visualization
from keras_attention.export import inspection
from keras_attention.files.io import number_errors
from keras_attention.tasks.interface import AttentionMaps
from keras_attention.tasks.runners import compute_each

PICTURED = range(7, 15)  # words of a text whose picture is easy to read
EXAMPLE = "A film to remember."


def make_text_parts(data_set, recipe):
    """`Task.make_parts` of a model that labels texts."""
    options = recipe.data
    preprocessor = data.TextPreprocessor.build(
        data_set.train,
        data_set.labels,
        min_count=options.min_count,
        max_size=options.max_size,
        lowercase=options.lowercase,
        maximum_length=options.max_length,
    )
    sizes = len(preprocessor.tokenizer), len(preprocessor.labels)
    return models.text_classifier(*sizes, **recipe.list_keywords()), preprocessor, {}


def find_text(preprocessor, texts):
    """Return the first text of a good length, or of all; None where there is none."""
    fitting = (text for text in texts if len(preprocessor.split(text)) in PICTURED)
    return next(fitting, texts[0] if texts else None)


def compute_text_logits(run, preprocessor, texts):
    """Logits (n, L) of a list of str."""
    lengths = [len(ids) for ids in number_errors("Text", texts, preprocessor.ids)]
    logits = compute_each(run, preprocessor, texts, lengths)
    return np.reshape(logits, (len(texts), len(preprocessor.labels)))


def describe_cut_texts(preprocessor, data_set):
    """Return a sentence about the texts that are too long for the model, if any are, in a tuple."""
    every = [text for examples in data_set.parts.values() for text, _ in examples]
    cut, most = sum(map(preprocessor.is_cut, every)), preprocessor.maximum_length
    unit = preprocessor.unit
    return (f"of {cut:,} longer texts only the first {most} {unit} are used",) if cut else ()


def check_text_runner(preprocessor, run):
    """Refuses a file of other words or labels than those beside it."""
    inspection.check_sizes(
        run.inspection,
        labels=len(preprocessor.labels),
        vocabularies={"token_ids": preprocessor.vocabulary_size},
    )


def draw_text(task, text, describe, path):
    """Draw the `AttentionMaps` of a text; `describe` names logits (L,) for the title."""
    words = task.preprocessor.split(text)
    with visualization.record_attention(task.model) as maps:
        logits = task.model(task.preprocessor([text]))
    layer, weights = next((p, w) for p, w in reversed(maps.items()) if w.shape[2] == w.shape[3])
    tokens = ["<class>"] * (weights.shape[2] - len(words)) + words
    figure = visualization.attention_map(
        weights[:, :, : max(PICTURED), : max(PICTURED)],
        tokens[: max(PICTURED)],
        title=f"{layer}: what each word looked at; the text was taken for "
        f"{describe(np.asarray(logits)[0])}",
        path=path,
    )
    return AttentionMaps(dict(maps), tokens, tokens, figure)
