"""Files with fixed shapes take smaller inputs."""

import numpy as np
import pytest

from keras_attention.tasks.runners import PaddedRunner, compute_each


class Doubler:
    """A file of fixed shapes (2, 5) that returns two numbers for the id of each token."""

    path, inputs = "fixed.tflite", {"token_ids": "int32"}

    def __call__(self, inputs):
        ids = inputs["token_ids"]
        assert ids.shape == (2, 5)
        return {"logits": np.stack([ids, 2 * ids], axis=-1)}


def test_rows_and_lengths_are_padded_and_cut_back():
    run = PaddedRunner(Doubler(), {"token_ids": (2, 5)})
    ids = np.arange(1, 10).reshape(3, 3)
    logits = run({"token_ids": ids})["logits"]
    np.testing.assert_array_equal(logits, np.stack([ids, 2 * ids], axis=-1))


def test_padded_runner_refuses_inputs_longer_than_its_shape():
    run = PaddedRunner(Doubler(), {"token_ids": (2, 5)})
    with pytest.raises(ValueError, match="fixed.tflite takes token_ids of at most 5 .*has 6"):
        run({"token_ids": np.ones((1, 6), "int32")})


def test_inputs_with_free_shapes_and_images_are_not_padded():
    seen = []

    class Mean:
        path, inputs = "free", {"images": "float32"}

        def __call__(self, inputs):
            seen.append(inputs["images"].shape)
            return {"logits": inputs["images"].mean(axis=(1, 2))}

    run = PaddedRunner(Mean(), {"images": (None, 4, 4, 3)})
    assert run({"images": np.ones((7, 4, 4, 3), "float32")})["logits"].shape == (7, 3)
    assert seen == [(7, 4, 4, 3)]


def test_examples_of_similar_length_share_a_batch_and_each_gets_its_own_logits():
    batches, lengths = [], [3, 1, 2] * 50

    class Run:
        inputs = {"ids": "int32"}

        def __call__(self, inputs):
            batches.append(inputs["ids"].shape)
            return {"logits": inputs["ids"][:, :1] * [[1, 10]]}

    def pad(examples):
        width = max(map(len, examples))
        return np.array([[*one, *[0] * (width - len(one))] for one in examples])

    examples = [[k + 1] * length for k, length in enumerate(lengths)]
    rows = compute_each(Run(), pad, examples, lengths)
    assert [row.tolist() for row in rows] == [[k + 1, 10 * k + 10] for k in range(150)]
    assert batches == [(64, 2), (64, 3), (22, 3)]
    assert compute_each(Run(), pad, [], []) == []
