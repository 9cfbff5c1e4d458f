"""Scores of a model file on labelled batches, the same way for every format."""

from keras_attention.cli.runners import by_name


def score(run, batches, metrics):
    """Runs every batch and returns {metric name: score}, which is empty without batches.

    Args:
        run: what `runners.load` gives: dict of arrays -> dict of arrays.
        batches: tf.data.Dataset of (inputs, labels), or None; inputs are a dict, or one array.
        metrics: functions that make Keras metrics of labels and logits.
    """
    if batches is None:
        return {}
    made = [make() for make in metrics]
    for inputs, labels in batches.as_numpy_iterator():
        logits = next(iter(run(by_name(run, inputs)).values()))
        for metric in made:
            metric.update_state(labels, logits)
    return {metric.name: round(float(metric.result()), 6) for metric in made}
