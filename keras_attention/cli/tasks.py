"""The tasks that can be trained: one module for each, under the name of its builder.

A module, or an object in its place, offers:

- `TASK`, the builder's name; `KIND`, the class of its data, and `HOLDS`, what to call that;
  `EXAMPLE`, what one may predict, for the card.
- `job(loaded, recipe, source, about)`, the `Job`. `source` says how the data was asked for: a dict
  of `dataset`, `label_column` and `text_column`.
- `counts(loaded)`, a dict of what the data holds.
- `prepare(folder, manifest, part, where)`, the batches of one part of the data, or None, and the
  metrics, for a trained model.
- `load(path, manifest)`, what runs a model file, for the next two.
- `scores(run, folder, manifest, part, where)`, a dict, empty where the part of the data is.
- `show(run, folder, manifest, inputs, options)`, prints what a model says; `OPTIONS`, the names of
  the options of `predict` that it heeds.
"""

from keras_attention.cli import classifying, continuing, images, tagging, translating

TASKS = {
    task.TASK: task
    for task in (
        tagging,
        classifying,
        images,
        translating.TRANSFORMER,
        translating.RECURRENT,
        continuing,
    )
}
