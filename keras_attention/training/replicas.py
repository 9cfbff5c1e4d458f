"""Losses and metrics over all replicas of data-parallel training.

A replica is a copy of the model on one device, which reads some rows of each batch.
"""

import keras
from keras import ops

from keras_attention.core import keras_internals
from keras_attention.core.part import OwnArguments
from keras_attention.training.label_shapes import match_weights, shape_of


def count_replicas():
    """Return the number of replicas that share a batch.

    A replica is a copy of the model on one device. On TensorFlow the result is the number of
    replicas of the active `tf.distribute` strategy. On PyTorch it is the number of
    `torch.distributed` processes while gradients are enabled, and 1 otherwise, because a process
    may evaluate by itself. On JAX it is 1, because arrays span all devices.
    """
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        single = not tf.distribute.has_strategy() or tf.distribute.in_cross_replica_context()
        return 1 if single else tf.distribute.get_strategy().num_replicas_in_sync
    if backend == "torch":
        import torch

        return _count_processes() if torch.is_grad_enabled() else 1
    return 1


def _count_processes():
    import torch

    groups = torch.distributed
    return groups.get_world_size() if groups.is_available() and groups.is_initialized() else 1


def sum_over_replicas(values):
    """Return the sum of `values`, a tensor, over all replicas, without a gradient.

    Every replica must call this function equally often, or the replicas wait for each other.
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
    """Return the mean loss over all replicas, from the sum and the count of this replica.

    Args:
        total: scalar, the sum of the losses on this replica.
        count: scalar, the number of losses on this replica.

    Returns:
        `Σ total / Σ count` over the replicas, or 0 if all counts are 0. On TensorFlow the result is
        divided by the number of replicas, like Keras's losses. The gradient is only for the losses
        of this replica. `tf.distribute` sums the gradients of all replicas, and PyTorch averages
        them, so the training step equals the step of a single device.
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
    """Base class of losses whose mean is over the positions of all replicas, as on one device.

    `reduction`, `name` and `dtype` are the arguments of every Keras loss.

    Keras averages on each replica, so a token weighs more on a replica with more padding. With this
    base class every replica returns the loss of the whole batch, under `tf.distribute` and
    `torch.distributed`. On a single device and on JAX it behaves as `keras.losses.Loss`.

    Sample weights (B,) belong to rows. Keras's losses would broadcast them to the last axis, which
    is wrong for losses (B, T) with B = T.
    """

    default_name = None
    own_arguments = ("dtype",)

    def __init__(self, reduction="sum_over_batch_size", name=None, dtype=None):
        # Stay in float32 even under mixed precision: Keras also casts the labels, and bfloat16
        # would round label 257 to 256.
        name = name or self.default_name
        super().__init__(name=name, reduction=reduction, dtype=dtype or "float32")

    def get_loss_shape(self, y_pred):
        """Return the static shape of the losses that `call` returns, before the reduction.

        `y_pred` is the output of the model.
        """
        return shape_of(y_pred)[:-1]

    def __call__(self, y_true, y_pred, sample_weight=None):
        if sample_weight is not None:
            shape = self.get_loss_shape(y_pred)
            sample_weight = match_weights(type(self).__name__, sample_weight, shape, self.dtype)
            if keras.backend.backend() == "torch":
                # Keras multiplies the weights by the mask in place, but metrics still need them. In
                # place, weights of rows (B, 1) do not grow to the shape of the mask.
                sample_weight = ops.copy(ops.broadcast_to(sample_weight, shape))
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
    """Return the weighted sum of this replica's losses, and the divisor of their mean.

    `losses` is a float tensor, and `sample_weight` its weights, or None. Losses are left out where
    `mask` or the Keras mask of `losses` is False. `reduction` is the argument of the Keras loss,
    and must not be None.
    """
    masks = [each for each in (mask, keras_internals.get_mask(losses)) if each is not None]
    mask = None if not masks else masks[0] if len(masks) == 1 else ops.logical_and(*masks)
    total = keras_internals.sum_losses(losses, sample_weight, mask)
    weight = sample_weight if reduction == "mean_with_sample_weight" else None
    return total, keras_internals.sum_losses(ops.ones_like(losses), weight, mask)


def reduce_sums(total, count, reduction):
    """Return the loss of all replicas, from the sum and the count of losses on this replica.

    `total` and `count` are scalars, the results of `sum_losses`. `reduction` is the argument of the
    Keras loss.
    """
    if reduction != "sum":
        return divide_by_all(total, count)
    return divide_by_all(total, ops.full_like(total, 1.0 / count_replicas()))


def merge_metrics(metrics):
    """Sum the variables of metrics over all processes, so that each process has the total result.

    With `torch.distributed`, the metrics of a process cover only the rows of this process. Call
    this function in every process after a pass over the dataset, and reset the metrics before the
    next pass. With a single process, or on other backends, it does nothing.

    Args:
        metrics: list of Keras metrics whose variables are sums: all metrics of `ka.training`, and
            `keras.metrics.Mean` with its subclasses.

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
