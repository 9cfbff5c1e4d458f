"""`RecurrentDecoder`: runs an `AttentionCell` over the target tokens, and manages its cache."""

import keras
from keras import ops

from keras_attention import masks
from keras_attention.core import checks, scope
from keras_attention.core.part import OwnArguments
from keras_attention.core.recur import recur
from keras_attention.recurrent import cells
from keras_attention.recurrent.attention_cell import AttentionCell, EncodedSource


@keras.saving.register_keras_serializable(package="keras_attention")
class RecurrentDecoder(OwnArguments, keras.layers.Layer):
    """A recurrent decoder with attention to an encoded source (Bahdanau et al., 2015).

    The layer runs an `AttentionCell`, which can also follow Luong et al. (2015), over a target
    sequence, and projects the keys only once for all steps. `ka.visualization.record_attention`
    shows the weights (B, 1, T, S). While a model generates with a cache, a call continues from the
    states of the previous call. Exported files use only built-in operations.

    Args:
        cell: an `AttentionCell`.
        coverage_loss: float, the weight of the coverage loss (See et al., 2017, equation 12). In
            training, the layer adds this loss, the mean over tokens of
            `Σ_s min(weight_s, coverage_s)`. Needs a cell with `coverage=True`.

    Call arguments:
        inputs: (B, T, D), the embedded target tokens.
        encoded: (B, S, E), the encoder's output.
        initial_states: list of tensors (B, size), the initial states of the inner cell. None means
            zeros.
        inputs_mask, encoded_mask: bool (B, T) and (B, S), True = a token. Keras fills both from the
            implicit masks.
        training: bool, whether dropout and the coverage loss are active.

    Masking: padding of the source is not attended to. If a source is only padding, the context is
    zero. At padding of the target, the output is zero and the states do not change. The output
    (B, T, `cell.output_size`) has the target's implicit Keras mask.

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
        inputs_mask = masks.all_of(inputs_mask, scope.is_token(ops.shape(inputs)[1]))

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
        """Return the first states of a call, and the encoded source.

        With a decoding cache, both are read from the cache, except in the first call. Otherwise
        they are computed from the arguments: `encoded`, `initial_states` and `encoded_mask` of the
        layer's call.

        Returns:
            A tuple of three: the `CacheSlot` that reads and writes the layer's cache entries, or
            None without a cache. An `EncodedSource`. A list of states (B, size).
        """
        decoding = scope.current(scope.Decoding)
        slot = None if decoding is None else decoding.slot(self)
        if slot is not None and not (decoding.tracing or decoding.encoding):
            return slot, *read_cache(slot, self.cell)
        source = self.cell.prepare(encoded, encoded_mask)
        states = self.cell.start(encoded, initial_states)
        states = [ops.cast(x, self.compute_dtype) for x in states]
        if slot is not None:
            write_cache(slot, self.cell, source, states)
        return slot, source, states

    def keep_states(self, slot, states):
        """Store the states in the cache for the next call. Without a cache, do nothing.

        `slot` is the first value that `begin_decoding` returned, and `states` a list of tensors.
        """
        decoding = scope.current(scope.Decoding)
        if slot is not None and not (decoding.tracing or decoding.encoding):
            update_states(slot, self.cell, states)

    def observe_step(self, weights, states, training=None):
        """Return a dict of outputs of a step that `record_steps` needs.

        The dict has the attention weights `"weights"` (B, S) if they are recorded, and the coverage
        loss `"covered"` (B, 1) in training if the layer has this loss.

        Args:
            weights: (B, S), the attention weights of the step.
            states: list of the states before the step. The last is the coverage.
            training: bool, as in Keras.
        """
        seen = {}
        if scope.wants_weights(self):
            seen["weights"] = weights  # (B, S)
        if self.coverage_loss and training:
            covered = ops.sum(ops.minimum(weights, states[-1]), axis=1, keepdims=True)
            seen["covered"] = covered  # (B, 1)
        return seen

    def record_steps(self, outputs, mask):
        """Record the attention weights and add the coverage loss of all steps.

        `outputs` is a dict of the outputs of `observe_step`, stacked over time, (B, T, S) and
        (B, T, 1). `mask` is bool (B, T), True = a token, or None.
        """
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


def write_cache(slot, cell, source, states):
    """Store the source and the first states of an `AttentionCell` in the decoding cache.

    While the model is traced to find which entries its layers need, the entries are only declared.

    Args:
        slot: a `CacheSlot`, which reads and writes the entries of one layer by name.
        cell: the `AttentionCell`.
        source: an `EncodedSource`.
        states: list of tensors (B, size), the states of the cell.
    """
    tensors = {**_of_source(source), **_of_states(cell, states)}
    if slot.tracing:
        slot.declare(**{name: _entry(name, x) for name, x in tensors.items()})
    else:
        slot.update(**tensors)


def read_cache(slot, cell):
    """Return the `EncodedSource` and the list of states that `write_cache` stored.

    `slot` and `cell` are the arguments of `write_cache`.
    """
    keys = ops.expand_dims(slot["keys"], axis=2) if "keys" in slot else None
    values = slot["values"]
    states = [
        ops.cast(slot[name], cell.compute_dtype) for name in _of_states(cell, cell.own_state_sizes)
    ]
    return EncodedSource(values, slot["mask"], keys), states


def update_states(slot, cell, states):
    """Replace the states that `write_cache` stored by `states`, cast to the dtypes in the cache.

    `slot` and `cell` are the arguments of `write_cache`, and `states` a list of tensors (B, size).
    """
    named = _of_states(cell, states)
    slot.update(**{name: ops.cast(x, slot[name].dtype) for name, x in named.items()})


def _of_source(source):
    named = {"values": source.values, "mask": source.mask}
    if source.keys is None:
        return named
    width = source.keys.shape[3]
    return {**named, "keys": ops.reshape(source.keys, (-1, ops.shape(source.keys)[1], width))}


def _of_states(cell, states):
    """Return a dict of a cell's states, or of their sizes, keyed by their names in the cache."""
    names = [f"state_{i}" for i in range(len(states))]
    if cell.coverage:
        names[-1] = "coverage"
    return dict(zip(names, states, strict=True))


def _entry(name, x):
    """Return a `CacheEntry`, the shape and dtype of a tensor that the cache calls `name`."""
    dtype = keras.backend.standardize_dtype(x.dtype)
    if name == "coverage":
        return scope.SourceState(tuple(x.shape[2:]), dtype)
    if name in ("values", "mask", "keys"):
        return scope.Source(tuple(x.shape[2:]), dtype)
    return scope.State(tuple(x.shape[1:]), dtype)
