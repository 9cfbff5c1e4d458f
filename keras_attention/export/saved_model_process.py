"""Runs a SavedModel in a process that can import neither Keras nor this package.

A script, started by `saved_model.py` with three paths: the SavedModel, the inputs (.npz with keys
`signature|case|name`) and where to write the outputs, in the same form.
"""

import sys

BLOCKED = ("keras", "keras_attention", "keras_hub", "keras_nlp", "tf_keras")


def main(folder, inputs, outputs):
    sys.modules.update(dict.fromkeys(BLOCKED))  # importing a None fails, as if not installed
    import numpy as np
    import tensorflow as tf

    signatures = tf.saved_model.load(folder).signatures
    calls, results = {}, {}
    with np.load(inputs) as arrays:
        for key in arrays:
            signature, case, name = key.split("|")
            calls.setdefault((signature, case), {})[name] = tf.constant(arrays[key])
    for (signature, case), tensors in calls.items():
        for name, value in signatures[signature](**tensors).items():
            results[f"{signature}|{case}|{name}"] = value.numpy()
    np.savez(outputs, **results)


if __name__ == "__main__":
    main(*sys.argv[1:])
