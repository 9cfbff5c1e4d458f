"""Script that runs a SavedModel in a process that can import neither Keras nor this package.

`saved_model.py` starts this script with three paths: the SavedModel, a file with the inputs (.npz
with keys `signature|case|name`), and a file that the script writes the outputs to (in the same
form).
"""

import sys

BLOCKED = ("keras", "keras_attention", "keras_hub", "keras_nlp", "tf_keras")


def main(folder, inputs, outputs):
    sys.modules.update(dict.fromkeys(BLOCKED))  # makes their import fail
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
