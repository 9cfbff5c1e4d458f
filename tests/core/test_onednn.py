"""What is known of oneDNN agrees with TensorFlow and its environment variable."""

import os
import platform
import subprocess
import sys

import pytest

SCRIPT = (
    "from keras_attention.core.onednn import tensorflow_lacks_onednn; "
    "print(tensorflow_lacks_onednn())"
)


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="TensorFlow has oneDNN on x86-64")
@pytest.mark.parametrize("setting, lacks", [("0", "True"), ("1", "False")])
def test_the_environment_variable_decides(setting, lacks):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "TF_ENABLE_ONEDNN_OPTS": setting},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [lacks]


def test_other_backends_do_not_ask_tensorflow(monkeypatch):
    from keras_attention.core import onednn

    monkeypatch.setattr(onednn.keras.backend, "backend", lambda: "jax")
    assert not onednn.tensorflow_lacks_onednn()


@pytest.mark.tensorflow
def test_the_softmax_of_bfloat16_is_tried_once_and_eagerly():
    import tensorflow as tf

    from keras_attention.core import onednn

    expected = onednn.normalizes_bfloat16()
    assert not (expected and onednn.tensorflow_lacks_onednn())
    seen = []
    tf.function(lambda: seen.append(onednn.normalizes_bfloat16()), autograph=False)()
    assert seen == [expected]
    with tf.Graph().as_default():  # a graph of TensorFlow 1 computes later
        assert onednn.normalizes_bfloat16() is False
