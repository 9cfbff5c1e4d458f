"""The tasks that can be trained: one module for each, under the name of its builder.

A module, or an object in its place, offers:

- `TASK`, the builder's name; `KIND`, the class of its data, and `HOLDS`, a name for it in errors;
  `EXAMPLE`, an input of `predict`, for the card.
- `make_job(loaded, recipe, source, about)`, the `Job`. `source` is a dict of the options that chose
  the data: `dataset`, `label_column` and `text_column`.
- `count_examples(loaded)`, a dict of the sizes of the data.
- `check_manifest(fields)`, refuses a manifest (`Fields`) that lacks what the others read in it.
- `make_batches(folder, manifest, part, where)`, the batches of one part of the data, or None, and
  the metrics, for a trained model.
- `load_runner(path, manifest)`, the function that runs a model file, for the next two.
- `compute_scores(run, folder, manifest, part, where)`, a dict; empty if the part of the data is.
- `print_predictions(run, folder, manifest, inputs, options)`; `OPTIONS`, the names of the options
  of `predict` that it reads.
"""

from keras_attention.cli import (
    causal_language_model,
    seq2seq,
    sequence_labeler,
    text_classifier,
    vision_transformer,
)

TASKS = {
    task.TASK: task
    for task in (
        sequence_labeler,
        text_classifier,
        vision_transformer,
        seq2seq.TRANSFORMER,
        seq2seq.RECURRENT,
        causal_language_model,
    )
}
