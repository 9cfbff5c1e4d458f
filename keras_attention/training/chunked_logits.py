"""`ChunkedLogits`: trains a language model without holding the logits of all tokens in memory."""

import keras
from keras import ops

from keras_attention.blocks import TokenEmbedding
from keras_attention.core import checks, keras_internals
from keras_attention.training.label_shapes import match_labels, match_weights, shape_of
from keras_attention.training.metrics import MaskedPerplexity, MaskedSparseCategoricalAccuracy
from keras_attention.training.replicas import reduce_sums, sum_losses
from keras_attention.training.sum_over_chunks import sum_over_chunks

METRICS = (MaskedSparseCategoricalAccuracy, MaskedPerplexity)


class ChunkedLogits(checks.TrainsAnother, keras.Model):
    """Trains a model with logits for every token in less memory.

    The logits (B, T, V) over a vocabulary of size V, and their gradients, are often the largest
    tensors of a training step. This wrapper runs the last layer, the loss and the metrics on
    `chunk_size` tokens at a time. It computes the gradient of a chunk together with its loss (Hsu
    et al., 2024, *Liger kernel*), so nothing is computed twice. The result is the same as without
    chunks.

    The wrapper shares its layers with `model`. Use `model` to generate, save and export, because
    the output of the wrapper is the input of the last layer, not logits.

    Args:
        model: functional `keras.Model` with one output: logits (B, T, V) from a
            `keras.layers.Dense` or from `TokenEmbedding(...)(x, reverse=True)`. Examples are
            `causal_language_model`, `masked_language_model`, `seq2seq_transformer` and
            `encoder_decoder`.
        chunk_size: int, number of tokens in a chunk. The B · T tokens of a batch are cut into
            chunks without regard to rows. A larger chunk needs more memory, a smaller chunk more
            time.

    Arguments of `compile`:
        loss: a Keras loss that computes one value per token from logits, such as
            `MaskedSparseCategoricalCrossentropy`. Padding and ignored labels do not count. On
            several devices the mean is over the tokens of all devices.
        metrics, weighted_metrics: lists of `MaskedSparseCategoricalAccuracy` and
            `MaskedPerplexity`, no other metrics. For a metric that needs whole rows or all logits,
            compile and evaluate `model`.

    ```python
    import numpy as np
    import keras_attention as ka

    size = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    model = ka.models.causal_language_model(1000, **size)
    fitted = ka.training.ChunkedLogits(model, chunk_size=8)
    loss = ka.training.MaskedSparseCategoricalCrossentropy(ignore_class=0)
    fitted.compile("adam", loss, metrics=[ka.training.MaskedPerplexity(ignore_class=0)])
    tokens = np.random.default_rng(0).integers(1, 1000, size=(4, 13))
    fitted.fit(tokens[:, :-1], tokens[:, 1:], verbose=0)
    assert ka.generation.generate(model, [[5, 7]], max_new_tokens=3) is not None
    ```
    """

    def __init__(self, model, chunk_size=128):
        checks.check_whole_number("ChunkedLogits", "chunk_size", chunk_size)
        hidden, head = split_logits(model)
        super().__init__(model.input, hidden, name=model.name)
        self.head, self.chunk_size = head, chunk_size

    def compile(self, optimizer, loss, metrics=(), weighted_metrics=(), **options):
        """Compile like `keras.Model`, with one loss and only metrics that count tokens.

        `loss` is a `keras.losses.Loss` of logits that is reduced to one number. `options` are the
        other arguments of `keras.Model.compile`, except `loss_weights`. Raise a ValueError if the
        loss or a metric cannot be computed chunk by chunk.
        """
        if not isinstance(loss, keras.losses.Loss) or loss.reduction in (None, "none"):
            raise ValueError(
                f"ChunkedLogits.compile(loss={loss!r}): expected a Keras loss of logits that is "
                "reduced to one number, such as "
                "ka.training.MaskedSparseCategoricalCrossentropy()."
            )
        if options.pop("loss_weights", None) is not None:
            raise ValueError(
                "ChunkedLogits.compile has one loss: expected no loss_weights=. Leave it out."
            )
        for metric in (*(metrics or ()), *(weighted_metrics or ())):
            if type(metric) not in METRICS:
                raise ValueError(
                    f"ChunkedLogits.compile: {metric!r} cannot be computed chunk by chunk: "
                    f"expected {' or '.join(each.__name__ for each in METRICS)}. For other metrics "
                    "compile and evaluate the original model."
                )
        super().compile(optimizer, **options)
        self.chunked_loss = loss
        self.chunked_metrics = [*(metrics or ()), *(weighted_metrics or ())]
        self._number_unweighted = len(metrics or ())

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        labels = match_labels("ChunkedLogits", y, y_pred)
        chunks, data = self._cut(y_pred, labels, sample_weight)
        states = [metric.variables for metric in self.chunked_metrics]
        state = [ops.convert_to_tensor(each) for variables in states for each in variables]
        weights = [ops.convert_to_tensor(each) for each in self.head.trainable_variables]
        total, (count, *state) = sum_over_chunks(
            self._compute_chunk,
            chunks,
            weights,
            data,
            [ops.zeros((), "float32"), *state],
            differentiable=training,
        )
        for variable, value in zip((v for each in states for v in each), state, strict=True):
            variable.assign(value)
        loss = reduce_sums(total, ops.stop_gradient(count), self.chunked_loss.reduction)
        if self.losses:
            loss = loss + super().compute_loss(x, y, y_pred, sample_weight, training)
        return loss

    def save(self, *args, **kwargs):
        """Raise an error, because only the wrapped `model` can be saved."""
        checks.check_gives_logits(self)

    def get_config(self):
        """Raise an error, because only the wrapped `model` can be saved."""
        checks.check_gives_logits(self)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        return self.get_metrics_result()  # they were updated with the loss

    def _cut(self, hidden, labels, sample_weight):
        """Cut a batch into K chunks of C tokens per row, and pad the last chunk.

        Returns:
            Hidden vectors (K, B, C, D), and a list of tensors (K, B, C): the labels, a bool mask of
            the tokens that count, and the sample weights if there are any.
        """
        batch, length = ops.shape(labels)[0], ops.shape(labels)[1]
        mask = keras_internals.get_mask(hidden)
        counts = ops.ones_like(labels, dtype="bool") if mask is None else ops.cast(mask, "bool")
        data = [labels, counts]
        if sample_weight is not None:
            shape = shape_of(labels)
            weights = match_weights("ChunkedLogits", sample_weight, shape, "float32")
            data.append(ops.broadcast_to(weights, (batch, length)))
        at_once = ops.maximum(self.chunk_size // ops.maximum(batch, 1), 1)
        if isinstance(batch, int) and isinstance(length, int):
            at_once = max(self.chunk_size // max(batch, 1), 1)
            number = max(-(-length // at_once), 1)
        else:
            number = ops.maximum(-(-length // at_once), 1)
        size = -(-length // number)  # tokens per row and chunk, so that chunks are equally long

        def cut(x):
            sizes = tuple(x.shape[2:])
            x = ops.pad(x, ((0, 0), (0, number * size - length), *((0, 0) for _ in sizes)))
            x = ops.reshape(x, (batch, number, size, *sizes))
            return ops.transpose(x, (1, 0, *range(2, len(sizes) + 3)))

        return cut(ops.convert_to_tensor(hidden)), [cut(each) for each in data]

    def _compute_chunk(self, hidden, weights, data, state):
        """Return the sum of the losses of a chunk, and the new state.

        Args:
            hidden: (B, C, D), the inputs of the last layer.
            weights: list of the trainable weights of the last layer.
            data: list of tensors (B, C): labels, the mask of tokens that count, and any sample
                weights.
            state: list with the divisor of the mean loss, then the variables of all metrics.
        """
        labels, counts, *sample_weight = data
        sample_weight = sample_weight[0] if sample_weight else None
        frozen = [ops.convert_to_tensor(each) for each in self.head.non_trainable_variables]
        logits, _ = self.head.stateless_call(weights, frozen, hidden)
        loss = self.chunked_loss
        values = loss.call(labels, ops.cast(logits, loss.dtype))
        if len(values.shape) != 2:
            raise ValueError(
                f"ChunkedLogits: the loss {loss.name} has {len(values.shape)} axes: expected a "
                "value for each token (B, T). Choose a loss of logits and int labels."
            )
        total, count = sum_losses(values, sample_weight, counts, loss.reduction)
        logits = ops.stop_gradient(logits)
        added, states = [state[0] + ops.cast(count, "float32")], list(state[1:])
        for k, metric in enumerate(self.chunked_metrics):
            of_metric = ops.cast(counts, "float32")
            if sample_weight is not None and k >= self._number_unweighted:
                of_metric = of_metric * sample_weight
            own, states = states[: len(metric.variables)], states[len(metric.variables) :]
            added += metric.stateless_update_state(own, labels, logits, sample_weight=of_metric)
        return ops.cast(total, "float32"), added


def split_logits(model):
    """Split a model with logits (B, T, vocabulary_size) before its last layer.

    Returns:
        A tuple: the symbolic input (B, T, D) of the last layer, and the last layer as a functional
        `keras.Model` from this input to the logits.
    """
    if not keras_internals.is_functional(model) or len(model.outputs) != 1:
        raise ValueError(
            f"ChunkedLogits(model={model!r}): expected a functional keras.Model with one output. "
            "First make such a model: keras.Model(model.input, model.outputs[0])."
        )
    tensor = model.outputs[0]
    while isinstance(keras_internals.producer(tensor), keras.layers.Identity):
        (tensor,) = keras_internals.inputs_of(tensor)
    layer = keras_internals.producer(tensor)
    if isinstance(layer, keras.Model):  # such as the decoder of `ka.models.seq2seq_transformer`
        hidden, head = split_logits(layer)
        body = keras.Model(layer.input, hidden, name=layer.name)
        body.supports_masking = layer.supports_masking
        args, kwargs = keras_internals.call_arguments(tensor)
        return body(*args, **kwargs), head
    if not isinstance(layer, (keras.layers.Dense, TokenEmbedding)) or len(tensor.shape) != 3:
        raise ValueError(
            f"ChunkedLogits: the output of {model.name}, of shape {tensor.shape}, comes from "
            f"{layer.name}, of class {type(layer).__name__}: expected logits (B, T, V) from a "
            "keras.layers.Dense, or from a TokenEmbedding with reverse=True."
        )
    (hidden,) = keras_internals.inputs_of(tensor)
    return hidden, keras.Model(hidden, model.outputs[0], name="head")
