"""Tells whether TensorFlow computes with oneDNN, Intel's library of fast operations for CPUs."""

import functools

import keras
import numpy as np


def tensorflow_lacks_onednn():
    """Return whether the backend is TensorFlow and computes without oneDNN.

    TensorFlow decides when it is imported: it uses oneDNN if the environment variable
    `TF_ENABLE_ONEDNN_OPTS` is 1. If the variable is not set, it does so on processors with
    AVX512-VNNI, AVX-VNNI, AVX512-BF16 or AMX.
    """
    if keras.backend.backend() != "tensorflow":
        return False
    from tensorflow.python.util import _pywrap_util_port  # no public function says it

    return not _pywrap_util_port.IsMklEnabled()


def normalizes_bfloat16():
    """Return whether TensorFlow's softmax of bfloat16 scores is as exact as one in float32.

    With oneDNN, on processors that it supports, the sum is computed in float32. Otherwise
    TensorFlow adds up rounded numbers, and weights of 512 keys are wrong by 6 %. The function tries
    it once, and returns False where it cannot, inside a graph of TensorFlow 1.
    """
    import tensorflow as tf

    with tf.init_scope():
        return tf.executing_eagerly() and _try_softmax()


@functools.cache
def _try_softmax():
    import tensorflow as tf

    with tf.device("CPU"):
        scores = tf.cast(tf.random.stateless_normal((8, 512), (0, 0), stddev=2.0), "bfloat16")
        exact = tf.nn.softmax(tf.cast(scores, "float32")).numpy()
        found = tf.cast(tf.function(tf.nn.softmax, autograph=False)(scores), "float32").numpy()
    return bool(np.abs(found / exact - 1).max() < 1e-2)
