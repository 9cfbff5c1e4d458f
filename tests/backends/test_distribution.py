"""Training on eight devices has the losses of training on one. JAX runs in a new process."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.backends import gathers, sharded
from tests.conftest import ROOT
from tests.tables import assert_lists

# How many weights no device holds whole, in the order of `sharded.LAYOUTS`. In a block, "model"
# splits 4 kernels and 3 biases of attention, 2 kernels and a bias of the feed-forward network;
# fully sharded are the 6 kernels.
SPLIT = {
    "labeler": (0, 8, 14, 14, 14, 0),  # with the table, the logits, and a bias for each head
    "classifier": (0, 8, 13, 13, 13, 0),
    "vision": (0, 9, 12, 12, 14, 0),  # with patches and positions, which "model" does not split
    "causal": (0, 8, 9, 13, 11, 0),  # two key heads are not split among four devices
    "masked": (0, 9, 12, 12, 14, 0),  # with segments, which "model" does not split
    "translator": (0, 18, 29, 29, 29, 0),
    "recurrent": (0, 13, 6, 6, 15, 0),  # one head, and cells that "model" does not split
    "experts": (
        0,
        40,
        51,
        51,
        57,
        0,
    ),  # two blocks with 4 experts each, without the projections to latents
}


def run_on_eight(module, *arguments):
    """Return the output of `python -m module`, with eight devices for JAX on this CPU."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_builder_is_tried():
    assert_lists("SPLIT", SPLIT, sharded.BUILDERS)


@pytest.mark.parametrize("name", SPLIT)
def test_losses_are_those_of_one_device(name):
    results = json.loads(run_on_eight("tests.backends.sharded", name))
    expected = results.pop("one device")["losses"]
    assert len(expected) == 4 and expected[3] < expected[0]  # of the first batch
    assert_lists("the layouts", results, sharded.LAYOUTS)
    for layout, of_layout in results.items():
        losses, report = of_layout["losses"], of_layout["report"]
        np.testing.assert_allclose(losses, expected, rtol=1e-5, err_msg=f"{layout}\n{report}")
    split = {layout: (each["weights"], each["slots"]) for layout, each in results.items()}
    counts = dict(zip(sharded.LAYOUTS, SPLIT[name], strict=True))
    # of each weight Adam keeps two numbers, which are split as it is
    assert split == {layout: (count, 2 * count) for layout, count in counts.items()}


@pytest.mark.parametrize("name", gathers.BUILDERS)
def test_no_device_gathers_a_batch_or_scores(name):
    """Nor, where the sequence is split and attention goes in a ring, anything of tokens at all."""
    gathered = json.loads(run_on_eight("tests.backends.gathers", name))
    assert_lists("the layouts", gathered, gathers.list_layouts(name))
    assert {layout: of_tokens for layout, (_, of_tokens) in gathered.items() if of_tokens} == {}
    assert gathered["fully sharded"][0]  # weights are, which is seen
    assert not gathered.get("sequence 2x4", [()])[0]


def test_attention_in_a_ring_is_dense():
    run_on_eight("tests.backends.ring_checks")


def test_models_made_in_other_ways():
    run_on_eight("tests.backends.sharded_checks")


def test_recipes_on_a_mesh():
    run_on_eight("tests.backends.sharded_tasks")
