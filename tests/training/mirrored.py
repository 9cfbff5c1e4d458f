"""Trains on two replicas and on one device; run as a program, prints how far they are apart."""

import json
import sys

import numpy as np
import tensorflow as tf

from tests.training import shared_batches


def train(name, strategy):
    """What is logged, and the weights, after a part of 15 rows and one of 13.

    Of the first one the last batch of 4 has 3 rows, of the second one 1: a replica has none.
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
    for scores, others in zip(logged, expected, strict=True):
        for key in scores.keys() | others.keys():
            apart = np.abs(np.subtract(scores[key], others[key]))
            apart = float(np.max(apart / np.maximum(1.0, np.abs(others[key]))))
            worst[key] = max(worst.get(key, 0.0), apart)
    pairs = zip(weights, right, strict=True)
    return worst | {"weights": max(float(np.max(np.abs(a - b))) for a, b in pairs)}


if __name__ == "__main__":
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    # One strategy: TensorFlow mixes up the gradients of embeddings of a second one on CPUs.
    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    print(json.dumps({name: compare(name, strategy) for name in sys.argv[1:]}))
