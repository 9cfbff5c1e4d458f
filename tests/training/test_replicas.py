"""Two replicas with unevenly padded rows train like one device."""

import json
import subprocess
import sys

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.training import losses, replicas
from tests.conftest import ROOT
from tests.grids import sampled
from tests.training import shared_batches

pytestmark = pytest.mark.tensorflow


def compare_with_one_device(name):
    """Run `mirrored.py`, and return the largest differences of logs and weights."""
    command = [sys.executable, "-m", "tests.training.mirrored", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])[name]


OTHERS = [name for name in shared_batches.CASES if name != "span"]


@pytest.mark.slow
@pytest.mark.parametrize("name", sampled(["span", *OTHERS]))
def test_mirrored_replicas_train_like_one_device(name):
    differences = compare_with_one_device(name)
    assert {"loss", "weights"} <= differences.keys()
    assert differences.pop("weights") < 1e-6
    assert max(differences.values()) < 2e-6, differences  # relative for values above 1


def test_every_mean_is_over_all_replicas():
    """Check that `CASES` of shared_batches.py holds every loss over several rows."""
    import keras

    actual = {
        value
        for value in (getattr(ka.training, name) for name in ka.training.__all__)
        if isinstance(value, type) and issubclass(value, keras.losses.Loss)
    }
    assert losses.MaskedSparseCategoricalCrossentropy in actual
    assert not [each for each in actual if not issubclass(each, replicas.GlobalMeanLoss)]
    tried = {type(make()[1]) for make in shared_batches.CASES.values()}
    # The negatives of InfoNCE are those of the same device, so its mean depends on the devices.
    assert actual - {ka.training.InfoNCE} == tried


def test_one_device_computes_the_loss_of_keras():
    labels = np.array([[1, 0, -1], [2, -1, -1]])
    logits = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    weights = np.array([[0.5], [2.0]])
    for reduction in ("sum_over_batch_size", "sum", "mean_with_sample_weight"):
        loss = ka.training.MaskedSparseCategoricalCrossentropy(reduction=reduction)
        expected = loss(labels, logits, weights)
        values = loss.call(labels, logits)
        sums = replicas.sum_losses(values, weights.astype("float32"), None, reduction)
        actual = replicas.reduce_sums(*sums, reduction)
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_merging_with_one_process_changes_nothing():
    metric = ka.training.MaskedPerplexity()
    metric.update_state(np.array([[3, 1, -1]]), np.zeros((1, 3, 5)))
    ka.training.merge_metrics([metric])
    np.testing.assert_allclose(metric.result(), 5.0, rtol=1e-6)
