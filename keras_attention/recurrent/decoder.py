"""The recurrent decoder: an attention cell over the target tokens."""

import keras
from keras import ops

from keras_attention.core import checks, scope
from keras_attention.core.part import OwnArguments
from keras_attention.recurrent import cache, cells
from keras_attention.recurrent.attention_cell import AttentionCell
from keras_attention.recurrent.loop import recur


@keras.saving.register_keras_serializable(package="keras_attention")
class RecurrentDecoder(OwnArguments, keras.layers.Layer):
    """Runs an `AttentionCell` over a target, with attention to an encoded source.

    (Bahdanau et al., 2015; Luong et al., 2015.) The keys are projected once for all steps. The
    weights (B, 1, T, S) can be seen with `record_attention`. In a decoding scope a call continues
    from the states of the last call. An exported file only needs built-in ops.

    Args:
        cell: an `AttentionCell`.
        coverage_loss: float, the weight of the coverage loss (See et al., 2017, equation 12), which
            `add_loss` adds in training: the mean over tokens of `Σ_s min(weight_s, coverage_s)`.
            For cells with coverage.

    Call arguments:
        inputs: (B, T, D), the target tokens so far as vectors.
        encoded: (B, S, E), the encoder's output.
        initial_states: list of tensors (B, size), the states of the inner cell. None is zeros.
        inputs_mask: bool (B, T). encoded_mask: bool (B, S). True = a token. Filled by Keras from
            the implicit masks.

    Masking: padding of the source is not attended to, and a source of only padding gives a context
    of zeros. At padding of the target the output is zero and the states stay. The output (B, T,
    `cell.output_size`) carries the target's mask.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    cell = ka.recurrent.AttentionCell(keras.layers.GRUCell(8), score="dot", attention="luong")
    decoder = ka.recurrent.RecurrentDecoder(cell)
    targets, encoded = np.random.rand(2, 5, 4), np.random.rand(2, 7, 8)
    with ka.visualization.record_attention(decoder) as maps:
        assert decoder(targets, encoded, encoded_mask=np.arange(7) < [[7], [3]]).shape == (2, 5, 8)
    (weights,) = maps.values()
    assert weights.shape == (2, 1, 5, 7) and np.all(weights[1, :, :, 3:] == 0)
    ```
    """

    own_arguments = ("cell", "coverage_loss")

    def __init__(self, cell, coverage_loss=0.0, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        cell = keras.saving.deserialize_keras_object(cell) if isinstance(cell, dict) else cell
        if not isinstance(cell, AttentionCell):
            raise ValueError(
                f"cell={cell!r}: expected a keras_attention.recurrent.AttentionCell, such as "
                "AttentionCell(keras.layers.GRUCell(64))."
            )
        self.cell, self.coverage_loss = cell, coverage_loss
        checks.check_number(self, "coverage_loss")
        if coverage_loss and not cell.coverage:
            raise ValueError(
                f"coverage_loss={coverage_loss} with a cell that has no coverage: make it with "
                "AttentionCell(..., coverage=True)."
            )

    def build(self, inputs_shape, encoded_shape, initial_states_shape=None):
        if not self.cell.built:
            self.cell.build((inputs_shape[0], inputs_shape[-1]), encoded_shape)

    def call(
        self,
        inputs,
        encoded,
        initial_states=None,
        inputs_mask=None,
        encoded_mask=None,
        training=None,
    ):
        slot, source, states = self.begin_decoding(encoded, initial_states, encoded_mask)
        inputs_mask = cache.with_start(inputs, inputs_mask)

        def step(x, states):
            output, new, weights = self.cell.step(x, states, source, training)
            return {"output": output, **self.observe_step(weights, states, training)}, new

        batch, _, width = ops.shape(inputs)
        with cells.hold_dropout(self.cell, batch, width, training):
            outputs, states = recur(step, inputs, states, inputs_mask)
        self.keep_states(slot, states)
        self.record_steps(outputs, inputs_mask)
        return outputs["output"]

    def begin_decoding(self, encoded, initial_states=None, encoded_mask=None):
        """Return the `CacheSlot` or None, the `EncodedSource`, and the initial states."""
        decoding = scope.current(scope.Decoding)
        slot = None if decoding is None else decoding.slot(self)
        if slot is not None and not (decoding.tracing or decoding.encoding):
            return slot, *cache.read_slot(slot, self.cell)
        source = self.cell.prepare(encoded, encoded_mask)
        states = self.cell.start(encoded, initial_states)
        states = [ops.cast(x, self.compute_dtype) for x in states]
        if slot is not None:
            cache.fill_slot(slot, self.cell, source, states)
        return slot, source, states

    def keep_states(self, slot, states):
        """Store the states for the next call."""
        decoding = scope.current(scope.Decoding)
        if slot is not None and not (decoding.tracing or decoding.encoding):
            cache.update_states(slot, self.cell, states)

    def observe_step(self, weights, states, training=None):
        """Return further outputs of a step: weights to record, and the coverage loss."""
        seen = {}
        if scope.wants_weights(self):
            seen["weights"] = weights  # (B, S)
        if self.coverage_loss and training:
            covered = ops.sum(ops.minimum(weights, states[-1]), axis=1, keepdims=True)
            seen["covered"] = covered  # (B, 1)
        return seen

    def record_steps(self, outputs, mask):
        """Record the weights and add the loss, from the outputs of all steps."""
        if "weights" in outputs:
            scope.record_weights(self, ops.expand_dims(outputs["weights"], axis=1))
        if "covered" in outputs:
            covered = ops.cast(ops.squeeze(outputs["covered"], axis=2), "float32")
            tokens = ops.ones_like(covered) if mask is None else ops.cast(mask, "float32")
            mean = ops.sum(covered * tokens) / ops.maximum(ops.sum(tokens), 1.0)
            self.add_loss(self.coverage_loss * mean)

    def compute_mask(self, inputs, previous=None):
        return previous[0] if isinstance(previous, (list, tuple)) else previous

    def compute_output_shape(self, inputs_shape, encoded_shape, initial_states_shape=None):
        return (*inputs_shape[:2], self.cell.output_size)
