"""Tells whether TensorFlow computes with oneDNN, Intel's library of fast operations for CPUs."""

import keras


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
