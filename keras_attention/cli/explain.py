"""The `explain` command, which writes a page about why a model predicted something."""

import numpy as np

from keras_attention.cli.evaluate import add_context
from keras_attention.cli.printing import say, show_table
from keras_attention.export.checks.formatting import format_percent
from keras_attention.tasks import from_preset

SHOWN = 3  # number of tokens that are printed for an output


def explain(preset, text, output, *, target=None, context=None):
    """Write a page that explains the prediction of a preset for one input.

    Args:
        preset: str, the folder or name of a trained model, or a checkpoint.
        text: str, a text, the path of an image, or a question.
        output: path of the HTML file to write.
        target: str, the name or the number of the output to explain. None is the prediction.
        context: path of the file with the context of a question, `-` for standard input, or None.
    """
    if output.is_dir():
        raise ValueError(f"--output {output} is a folder: name a file, such as {output}/page.html.")
    task = from_preset(preset, "keras")
    if task.takes_context or context is not None:
        (text,) = add_context(task, [text], context)
    explanation = task.explain(text, target, output)
    if explanation.tokens is not None:
        rows = []
        for name, scores in zip(explanation.outputs, explanation.relevance, strict=True):
            best = [k for k in np.argsort(-scores, kind="stable")[:SHOWN] if scores[k] > 0]
            tokens = [f"{explanation.tokens[k]} {format_percent(scores[k])}" for k in best]
            rows.append((name, ", ".join(tokens) or "nothing"))
        show_table(("output", "raised most by"), rows)
    say(f"{output} is ready for any browser.")
