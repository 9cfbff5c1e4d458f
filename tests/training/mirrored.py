"""Train on two replicas and on one device, and print the differences. Run it as a program."""

import json
import sys

import numpy as np
import tensorflow as tf

from tests.training import shared_batches


def train(name, strategy):
    """Return the logs and the weights after training on 15 rows and then on 13.

    The last batches of 4 then have 3 rows and 1 row, so that one replica has none.
    """
    with strategy.scope():
        model, arrays = shared_batches.compile_model(name)
    logged = []
    for rows in (15, 13):
        x, y, *weights = tf.nest.map_structure(lambda array, n=rows: array[:n], arrays)
        options = dict(batch_size=4, verbose=0, sample_weight=weights[0] if weights else None)
        history = model.fit(x, y, shuffle=False, **options).history
        logged += [history, model.evaluate(x, y, return_dict=True, **options)]
    return logged, model.get_weights()


def compare(name, strategy):
    logged, weights = train(name, strategy)
    expected, right = train(name, tf.distribute.get_strategy())
    worst = {}
    for scores, expected_scores in zip(logged, expected, strict=True):
        for key in scores.keys() | expected_scores.keys():
            difference = np.abs(np.subtract(scores[key], expected_scores[key]))
            difference = float(np.max(difference / np.maximum(1.0, np.abs(expected_scores[key]))))
            worst[key] = max(worst.get(key, 0.0), difference)
    pairs = zip(weights, right, strict=True)
    return worst | {"weights": max(float(np.max(np.abs(a - b))) for a, b in pairs)}


if __name__ == "__main__":
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    # On CPUs TensorFlow mixes up the gradients of embeddings under a second strategy.
    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    print(json.dumps({name: compare(name, strategy) for name in sys.argv[1:]}))
