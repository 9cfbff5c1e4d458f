"""Sums over the replicas that share a batch, the losses that divide by them, and their metrics."""

import keras
from keras import ops

from keras_attention.core import keras_internals
from keras_attention.training.label_shapes import match_weights, shape_of


def count_replicas():
    """How many replicas compute a batch together, each with rows of its own: 1 for one device.

    On TensorFlow those of the `tf.distribute` strategy in whose `run` this is called; on PyTorch
    the processes of `torch.distributed`, as far as gradients are computed: without them, a process
    may evaluate alone. On JAX there is one: its arrays are those of all devices.
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
    """The sum of a tensor over all replicas, without a gradient; of one replica the tensor itself.

    Every replica has to call it, as often as the others.
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
    """A loss of one device from each replica's sum of losses and the number it is divided by.

    Args:
        total: float scalar, the sum of this replica's losses.
        count: float scalar, by how much it is divided; 0 where nothing counts.

    Returns:
        `Σ total / Σ count`, sums over the replicas, with the gradient of this replica's share: such
        that the step is that of one device where `tf.distribute` sums the gradients of all
        replicas, and PyTorch averages them. On TensorFlow it is divided by the number of replicas,
        as the losses of Keras are. 0 where nothing counts.
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


class GlobalMeanLoss(keras.losses.Loss):
    """A Keras loss whose mean is over what counts on all replicas together, as on one device.

    Keras's own mean is that of each replica: where one has more padding than another, its tokens
    weigh more, and the gradients are not those of one device. What the replicas return is the loss
    of the whole batch, whatever rows each has, or none. It holds under `tf.distribute` and
    `torch.distributed`; on one device, and on JAX, it is Keras's loss as it is.

    Weights (B,) are those of rows. Keras's own losses broadcast them to the last axis: of losses
    (B, T) with B = T, they would be weights of positions.
    """

    default_name, own_arguments = None, ()

    def __init__(self, reduction="sum_over_batch_size", name=None, dtype=None):
        # float32 even where floatx is a half: Keras casts the labels as well, and bfloat16
        # cannot tell 256 from 257.
        name = name or self.default_name
        super().__init__(name=name, reduction=reduction, dtype=dtype or "float32")

    def get_config(self):
        names = (*self.own_arguments, "dtype")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}

    def get_loss_shape(self, y_pred):
        """The shape of what `call` returns, as far as it is known."""
        return shape_of(y_pred)[:-1]

    def __call__(self, y_true, y_pred, sample_weight=None):
        if sample_weight is not None:
            shape = self.get_loss_shape(y_pred)
            sample_weight = match_weights(type(self).__name__, sample_weight, shape, self.dtype)
            if keras.backend.backend() == "torch":
                # Keras multiplies it by the mask in place, and metrics would take what is left.
                sample_weight = ops.copy(sample_weight)
        if count_replicas() == 1 or self.reduction in (None, "none"):
            return super().__call__(y_true, y_pred, sample_weight)
        mask = keras_internals.get_mask(y_pred)
        y_true, y_pred = (
            keras.tree.map_structure(lambda x: ops.convert_to_tensor(x, dtype=self.dtype), y)
            for y in (y_true, y_pred)
        )
        losses = self.call(y_true, y_pred)
        return reduce_losses(losses, sample_weight, mask, self.reduction)


def reduce_losses(losses, sample_weight, mask, reduction):
    """The loss of all replicas from the losses of the positions of each.

    Args:
        losses: floats, of any shape; their own implicit mask takes positions out, too.
        sample_weight: broadcast to them, or None.
        mask: bool in their shape, or None.
        reduction: as in every Keras loss, but not None.
    """
    return reduce_sums(*sum_losses(losses, sample_weight, mask, reduction), reduction)


def sum_losses(losses, sample_weight, mask, reduction):
    """(their sum, what a mean divides it by), of one replica; arguments as in `reduce_losses`."""
    masks = [each for each in (mask, keras_internals.get_mask(losses)) if each is not None]
    mask = None if not masks else masks[0] if len(masks) == 1 else ops.logical_and(*masks)
    total = keras_internals.sum_losses(losses, sample_weight, mask)
    weight = sample_weight if reduction == "mean_with_sample_weight" else None
    return total, keras_internals.sum_losses(ops.ones_like(losses), weight, mask)


def reduce_sums(total, count, reduction):
    """The loss of all replicas from each one's `sum_losses`."""
    if reduction != "sum":
        return divide_by_all(total, count)
    return divide_by_all(total, ops.full_like(total, 1.0 / count_replicas()))


def merge_metrics(metrics):
    """Adds up what the metrics of all processes have counted, so that each has the result of all.

    PyTorch's processes (`torch.distributed`) each count their own rows. Call it in every process
    when a data set is through; a metric that goes on counting is to be reset first. With one
    process, and on other backends, whose metrics are those of all devices, nothing happens.

    Args:
        metrics: list of Keras metrics whose variables are sums, as all of `ka.training` and the
            means of Keras have them.

    Example:

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
