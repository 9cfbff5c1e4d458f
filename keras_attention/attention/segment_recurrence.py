"""Segment recurrence: a model processes text in segments, with a memory of earlier segments."""

import copy

import keras
from keras import ops

from keras_attention.core import checks, keras_internals, scope
from keras_attention.core.cache_spec import CacheSpec, trace_cache
from keras_attention.core.paths import paths_in, unique_names
from keras_attention.core.weight_axes import name_axes


@keras.saving.register_keras_serializable(package="keras_attention")
class SegmentRecurrence(keras.layers.Layer):
    """Runs a model over text segment by segment, with a memory (Dai et al., 2019, section 3.2).

    Each self-attention layer in the model (a `MultiHeadAttention` with the same tensor as query and
    value) also attends to the newest `memory_length` of its inputs from earlier segments. No
    gradient flows into them. `MemorizingAttention` layers keep their own memory in the same way.
    This layer shares the weights of the model, and does not change the model.

    Use a position encoding that works inside attention (`rotary`, `alibi`, `relative_bias`, ...).
    An encoding that is added to tokens starts from 0 in each segment (section 3.3), so it cannot
    distinguish segments. Positions, and masks such as `Global`, `Prefix` and `Chunked`, count from
    the oldest entry of the memory.

    Args:
        model: a functional `keras.Model` with one input, or a list or dict of inputs. The first
            axis of each input must be the batch.
        memory_length: int M, the number of tokens in the memory of each self-attention layer. With
            0, only `MemorizingAttention` layers have a memory.
        batch_size: int B. If given, this layer stores the memory of B streams of text in its own
            non-trainable weights until `reset_state()` is called, as `fit` requires. With None, the
            caller passes the memory from call to call.

    Call arguments:
        inputs: the inputs of the model.
        memory: dict of tensors, the memory before this segment, which `initial_memory` or an
            earlier call returned. None means an empty memory. It must be None if `batch_size` is
            given.

    A call returns the model's output and the memory after the segment, or only the output if
    `batch_size` is given.

    For each layer with a memory, the dict has tensors that are filled from the end, and a count
    `num_...` (B,) of the tokens in them. To start a new text in one row of the batch, set the
    counts of this row to 0.

    Masking: padding (False in the `value_mask` of attention) is not stored.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    x = keras.Input((None, 8))
    attention = ka.attention.MultiHeadAttention(2, 4, mask="causal", position="rotary")
    recurrent = ka.attention.SegmentRecurrence(keras.Model(x, attention(x, x)), memory_length=6)

    text = np.random.rand(1, 9, 8).astype("float32")
    memory = recurrent.initial_memory(batch_size=1)
    outputs = []
    for segment in np.split(text, 3, axis=1):
        output, memory = recurrent(segment, memory)
        outputs.append(output)
    assert np.allclose(np.concatenate(outputs, axis=1), attention(text, text), atol=1e-5)
    ```
    """

    def __init__(self, model, memory_length, batch_size=None, **kwargs):
        # No autocast: the model casts its inputs, and a memory has the dtypes of its layers.
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        if isinstance(model, dict):
            # a copy, because Keras changes the config of a functional model
            model = keras.saving.deserialize_keras_object(copy.deepcopy(model))
        if not keras_internals.is_functional(model):
            raise ValueError(
                f"model={model!r}: expected a functional keras.Model, made with "
                "keras.Model(inputs, outputs)."
            )
        self.model, self.memory_length, self.batch_size = model, memory_length, batch_size
        checks.check_whole_numbers(self, "memory_length", least=0)
        self._paths = paths_in(model)
        self._entries = self._trace_memory()
        self._state = {}
        if batch_size is not None:
            checks.check_whole_numbers(self, "batch_size")
            self._state = {key: self._variable(key, x) for key, x in self._entries.items()}

    def _trace_memory(self):
        """Trace the model and return {name: `scope.State`}: shape and dtype of each tensor."""
        memory = scope.SegmentMemory(length=self.memory_length, paths=self._paths, spec=CacheSpec())
        inputs = keras.tree.map_structure(_input_like, self.model.input)
        entries = trace_cache(self.model, memory, inputs).named()
        if not entries:
            raise ValueError(
                f"No layer of {self.model.name} has a memory with memory_length="
                f"{self.memory_length}. Use MultiHeadAttention with one tensor as query and value, "
                "or MemorizingAttention."
            )
        return entries

    def _variable(self, key, entry):
        name_axes(self, **{key: ("batch", "inner", ...)})
        return self.add_weight(
            name=key,
            shape=(self.batch_size, *entry.shape),
            dtype=entry.dtype,
            initializer="zeros",
            trainable=False,
            autocast=False,
        )

    @property
    def stateful(self):
        """Return whether the layer stores the memory of earlier segments in its own weights."""
        return self.batch_size is not None

    @property
    def without_state(self):
        """Return the part of export errors that says how to export the model without state."""
        return (
            "export with_memory(model, memory_length) without batch_size, for the model inside. It "
            "shares the weights, and the memory is among its inputs and outputs"
        )

    @property
    def metrics(self):
        """Return the metrics of the model's layers, without the metrics of `compile`."""
        return [metric for layer in self.model.layers for metric in layer.metrics]

    def call(self, inputs, memory=None, training=None):
        scope.refuse_decoding(
            f"{self.name} has a memory of its own. Decode with the model inside, and get its "
            "memory by ka.generation.initial_cache(model, ..., memory_length=...)."
        )
        if self.batch_size is not None:
            return self._call_and_keep(inputs, memory, training)
        if memory is None:
            memory = self.initial_memory(ops.shape(keras.tree.flatten(inputs)[0])[0])
        if set(memory) != set(self._entries):
            raise ValueError(
                f"The memory of {self.model.name} has the keys {', '.join(self._entries)}, but "
                f"received {', '.join(memory) or 'none'}. Begin with initial_memory(batch_size)."
            )
        return self._run_model(inputs, memory, training)

    def _call_and_keep(self, inputs, memory, training):
        rows = keras.tree.flatten(inputs)[0].shape[0]
        if rows not in (None, self.batch_size) or memory is not None:
            raise ValueError(
                f"SegmentRecurrence(batch_size={self.batch_size}) stores the memory of "
                f"{self.batch_size} streams itself, but received "
                + ("a memory." if memory is not None else f"a batch of {rows}.")
                + " Leave batch_size out to pass the memory yourself, for any batch."
            )
        before = {key: ops.convert_to_tensor(x) for key, x in self._state.items()}
        outputs, after = self._run_model(inputs, before, training)
        for key, variable in self._state.items():
            variable.assign(after[key])
        return outputs

    def _run_model(self, inputs, memory, training):
        with scope.SegmentMemory(memory, length=self.memory_length, paths=self._paths) as carried:
            outputs = self.model(inputs, training=training)
        return outputs, carried.cache

    def compute_mask(self, inputs, previous_mask=None):
        return None  # the model's output carries its own mask

    def initial_memory(self, batch_size):
        """Return an empty memory for `batch_size` streams: a flat dict of zeros."""
        return {
            key: ops.zeros((batch_size, *entry.shape), dtype=entry.dtype)
            for key, entry in self._entries.items()
        }

    def memory_inputs(self, batch_size=None):
        """Return a dict of `keras.Input`s for a memory, to build a functional model with it.

        `batch_size` is an int for a fixed batch size, or None for any.
        """
        return {
            key: keras.Input(batch_shape=(batch_size, *entry.shape), dtype=entry.dtype, name=key)
            for key, entry in self._entries.items()
        }

    def reset_state(self):
        """Clear the memory that a layer with `batch_size` stores. Call it before new text.

        Raise a ValueError if the layer has no `batch_size`.
        """
        if self.batch_size is None:
            raise ValueError(
                f"{self.name} stores no memory. Begin with initial_memory(batch_size), or make the "
                "layer with batch_size=."
            )
        for variable in self._state.values():
            variable.assign(ops.zeros(variable.shape, dtype=variable.dtype))

    def get_config(self):
        return {
            **super().get_config(),
            "model": keras.saving.serialize_keras_object(self.model),
            "memory_length": self.memory_length,
            "batch_size": self.batch_size,
        }


def with_memory(model, memory_length, batch_size=None):
    """Return a model that processes text in segments, with a memory of earlier segments.

    Without `batch_size`, the memory is among the inputs and outputs of the new model, under the
    same names. The model has no state and can be exported.

    With `batch_size`, the new model has the same inputs and outputs as `model`, stores the memory
    of that many streams of text, and cannot be exported. Train it by `fit` with the callback
    `keras_attention.training.ResetMemory()`. The segments must be in order: use
    `keras_attention.data.contiguous_segments`, and `shuffle=False` for arrays.

    Args:
        model: a functional `keras.Model` with one input, or a list or dict of inputs.
        memory_length: int, the number of earlier tokens that each self-attention layer keeps.
        batch_size: int, the number of streams whose memory the model stores, or None.

    Returns:
        A functional `keras.Model` that shares the weights of `model`. Without `batch_size`, its
        inputs and outputs are flat dicts, which contain the memory, and the inputs and outputs of
        `model`, keyed by the names of inputs and of output layers.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    labeler = ka.models.sequence_labeler(
        30, 4, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8, mask="causal"
    )
    segmented = ka.attention.with_memory(labeler, memory_length=6)
    memory = segmented.get_layer("recurrence").initial_memory(batch_size=2)
    for tokens in np.ones((3, 2, 5), "int32"):
        outputs = segmented({"token_ids": keras.ops.convert_to_tensor(tokens), **memory})
        memory = {key: outputs[key] for key in memory}
    assert outputs["logits"].shape == (2, 5, 4)
    assert np.array_equal(memory["block_0_attention_num_hidden"], [6, 6])
    ```
    """
    layer = SegmentRecurrence(model, memory_length, batch_size, name="recurrence")
    inputs = keras.tree.map_structure(lambda x: _input_like(x, batch_size), model.input)
    if batch_size is not None:
        return keras.Model(inputs, layer(inputs), name=model.name)
    named = inputs if isinstance(inputs, dict) else {x.name: x for x in keras.tree.flatten(inputs)}
    memory = layer.memory_inputs(keras.tree.flatten(inputs)[0].shape[0])
    outputs, after = layer(inputs, memory)
    if not isinstance(outputs, dict):
        names = unique_names(model.output_names)
        outputs = dict(zip(names, keras.tree.flatten(outputs), strict=True))
    if names := sorted((set(named) | set(outputs)) & set(memory)):
        raise ValueError(
            f"The model and its memory both have the name {', '.join(names)}. Rename the layer."
        )
    return keras.Model({**named, **memory}, {**outputs, **after}, name=model.name)


def _input_like(tensor, batch_size=None):
    """Return a `keras.Input` like `tensor`, with a new `batch_size` unless that is None."""
    shape = (tensor.shape[0] if batch_size is None else batch_size, *tensor.shape[1:])
    return keras.Input(batch_shape=shape, dtype=tensor.dtype, name=tensor.name)
