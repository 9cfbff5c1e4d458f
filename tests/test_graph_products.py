"""No layer's graph has a product that is broadcast from a batch of several against a batch of one.

With oneDNN, TensorFlow 2.21 gives other numbers every time for some of those, (2, 1, 16, 4) times
(1, 1, 4, 8) for one, and writes where it should not.
"""

import pytest

from tests.test_contract import CASES, WITH_PARTS, case_with

pytestmark = [pytest.mark.slow, pytest.mark.tensorflow]

SIZES = {"B": 2, "T": 5, "S": 7}


def find_broadcast_products(case):
    """Return the shapes of such products, in the graph of a call and of its gradients."""
    import tensorflow as tf

    model, arrays = case.model(sizes=SIZES), case.arrays(SIZES)
    trained = [v.value for v in model.trainable_variables]

    def call(*inputs):
        return tf.nest.flatten(model(list(inputs), training=False))

    def gradients(*inputs):
        with tf.GradientTape() as tape:
            outputs = tf.nest.flatten(model(list(inputs), training=True))
            loss = sum(tf.reduce_sum(tf.cast(x, "float32")) for x in outputs)
        return [g for g in tape.gradient(loss, trained) if g is not None]

    products = set()
    for function in (call, gradients):
        graph = tf.function(function).get_concrete_function(*map(tf.constant, arrays)).graph
        for operation in graph.get_operations():
            if operation.type.startswith("BatchMatMul"):
                left, right = (tuple(x.shape) for x in operation.inputs)
                # a matrix in front of a batch was tried in 648 sizes, and is right
                if len(left) > 2 and left[:-2] != right[:-2]:
                    products.add((left, right))
    return products


@pytest.mark.sweep
@pytest.mark.parametrize("start", range(0, len(CASES), 12))
def test_layers(start):
    names = list(CASES)[start : start + 12]
    products = {name: find_broadcast_products(CASES[name]) for name in names}
    assert not {name: shapes for name, shapes in products.items() if shapes}


@pytest.mark.parametrize("start", range(0, len(WITH_PARTS), 20))
def test_parts(start):
    for family, part in WITH_PARTS[start : start + 20]:
        assert not find_broadcast_products(case_with(family, part)), (family, part)
