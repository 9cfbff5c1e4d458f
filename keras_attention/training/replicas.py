"""Sums over the replicas that share a batch, and losses and metrics that use them."""

import keras
from keras import ops

from keras_attention.core import keras_internals
from keras_attention.core.part import OwnArguments
from keras_attention.training.label_shapes import match_weights, shape_of


def count_replicas():
    """Return how many replicas compute a batch together, each with its own rows: 1 on one device.

    On TensorFlow these are the replicas of the `tf.distribute` strategy in whose `run` this is
    called. On PyTorch these are the processes of `torch.distributed` while gradients are computed.
    Otherwise 1, since a process may evaluate by itself. On JAX it is 1: its arrays span all
    devices.
    """
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        alone = not tf.distribute.has_strategy() or tf.distribute.in_cross_replica_context()
        return 1 if alone else tf.distribute.get_strategy().num_replicas_in_sync
    if backend == "torch":
        import torch

        return _count_processes() if torch.is_grad_enabled() else 1
    return 1


def _count_processes():
    import torch

    groups = torch.distributed
    return groups.get_world_size() if groups.is_available() and groups.is_initialized() else 1


def sum_over_replicas(values):
    """Sum a tensor over all replicas, without a gradient.

    Every replica must call it equally often.
    """
    if count_replicas() == 1:
        return values
    values = ops.stop_gradient(values)
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, values)
    return _sum_over_processes(values)


def _sum_over_processes(values):
    import torch

    values = values.detach().clone()
    torch.distributed.all_reduce(values)
    return values


def divide_by_all(total, count):
    """Divide the sum of losses over all replicas by the sum of counts.

    Args:
        total: float scalar, the sum of this replica's losses.
        count: float scalar, what to divide it by. 0 if nothing counts.

    Returns:
        `Σ total / Σ count` over the replicas, 0 if nothing counts. The gradient is this replica's
        share, so that the step equals that of one device where `tf.distribute` sums the gradients
        of all replicas and PyTorch averages them. On TensorFlow the value is divided by the number
        of replicas, like Keras's losses.
    """
    replicas = count_replicas()
    if replicas == 1:
        return ops.divide_no_nan(total, count)
    count = ops.cast(count, total.dtype)
    all_total, all_count = ops.unstack(sum_over_replicas(ops.stack([total, count])), 2)
    share = 1.0 / replicas if keras.backend.backend() == "tensorflow" else 1.0
    mine = ops.divide_no_nan(total * (share * replicas), all_count)
    mean = ops.divide_no_nan(all_total * share, all_count)
    return mine + ops.stop_gradient(mean - mine)


class GlobalMeanLoss(OwnArguments, keras.losses.Loss):
    """A Keras loss whose mean is over what counts on all replicas, as on one device.

    Keras takes the mean of each replica. If one has more padding, its tokens weigh more, and
    gradients differ from those of one device. Here every replica returns the loss of the whole
    batch, whatever rows it has. This works under `tf.distribute` and `torch.distributed`. On one
    device, and on JAX, it is Keras's loss.

    Weights (B,) are weights of rows. Keras's losses broadcast them to the last axis: for losses (B,
    T) with B = T they would be weights of positions.
    """

    default_name = None
    own_arguments = ("dtype",)

    def __init__(self, reduction="sum_over_batch_size", name=None, dtype=None):
        # float32 even where floatx is a half: Keras casts the labels as well, and bfloat16
        # cannot tell 256 from 257.
        name = name or self.default_name
        super().__init__(name=name, reduction=reduction, dtype=dtype or "float32")

    def get_loss_shape(self, y_pred):
        """Return the shape of what `call` returns, as far as it is known."""
        return shape_of(y_pred)[:-1]

    def __call__(self, y_true, y_pred, sample_weight=None):
        if sample_weight is not None:
            shape = self.get_loss_shape(y_pred)
            sample_weight = match_weights(type(self).__name__, sample_weight, shape, self.dtype)
            if keras.backend.backend() == "torch":
                # Keras multiplies it by the mask in place, and metrics use it afterwards.
                sample_weight = ops.copy(sample_weight)
        if count_replicas() == 1 or self.reduction in (None, "none"):
            return super().__call__(y_true, y_pred, sample_weight)
        mask = keras_internals.get_mask(y_pred)
        y_true, y_pred = (
            keras.tree.map_structure(lambda x: ops.convert_to_tensor(x, dtype=self.dtype), y)
            for y in (y_true, y_pred)
        )
        losses = self.call(y_true, y_pred)
        sums = sum_losses(losses, sample_weight, mask, self.reduction)
        return reduce_sums(*sums, self.reduction)


def sum_losses(losses, sample_weight, mask, reduction):
    """Return the sum of one replica's losses, and the divisor of their mean.

    Args:
        losses: floats, of any shape. Their implicit mask takes positions out, too.
        sample_weight: broadcast to them, or None.
        mask: bool in their shape, or None.
        reduction: as in every Keras loss, but not None.
    """
    masks = [each for each in (mask, keras_internals.get_mask(losses)) if each is not None]
    mask = None if not masks else masks[0] if len(masks) == 1 else ops.logical_and(*masks)
    total = keras_internals.sum_losses(losses, sample_weight, mask)
    weight = sample_weight if reduction == "mean_with_sample_weight" else None
    return total, keras_internals.sum_losses(ops.ones_like(losses), weight, mask)


def reduce_sums(total, count, reduction):
    """Reduce the `sum_losses` of each replica to the loss of all replicas."""
    if reduction != "sum":
        return divide_by_all(total, count)
    return divide_by_all(total, ops.full_like(total, 1.0 / count_replicas()))


def merge_metrics(metrics):
    """Add up what the metrics of all processes counted, so that each has the result of all.

    Each process of PyTorch (`torch.distributed`) counts its own rows. Call this in every process
    after a data set, and reset metrics that go on counting first. With one process, and on other
    backends, nothing happens.

    Args:
        metrics: list of Keras metrics whose variables are sums: all of `ka.training`, and Keras's
            means.

    ```python
    import numpy as np
    import keras_attention as ka

    accuracy = ka.training.MaskedSparseCategoricalAccuracy()
    accuracy.update_state(np.array([[1, 0, -1]]), np.eye(2)[[[1, 1, 1]]])
    ka.training.merge_metrics([accuracy])
    assert float(accuracy.result()) == 0.5
    ```
    """
    if keras.backend.backend() != "torch" or _count_processes() == 1:
        return
    for metric in metrics:
        for variable in metric.variables:
            variable.assign(_sum_over_processes(ops.convert_to_tensor(variable)))
