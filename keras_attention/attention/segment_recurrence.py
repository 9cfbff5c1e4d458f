"""Segment-level recurrence: a model over the segments of a text, with a memory of earlier ones."""

import copy

import keras
from keras import ops

from keras_attention.core import checks, keras_internals, scope
from keras_attention.core.cache_spec import CacheSpec, trace_cache
from keras_attention.core.paths import paths_in, unique_names
from keras_attention.core.weight_axes import name_axes


@keras.saving.register_keras_serializable(package="keras_attention")
class SegmentRecurrence(keras.layers.Layer):
    """Runs a model over a text segment by segment, with a memory (Dai et al., 2019, section 3.2).

    Every self-attention in the model (a `MultiHeadAttention` called with one tensor as query and
    value) then attends to the hidden states it was given in earlier segments, too: the newest
    `memory_length` of them stand before those of the segment. No gradient flows into the memory.
    The memory of `MemorizingAttention` is carried the same way. The model itself does not change;
    its weights are shared.

    In a memory, tokens are told apart by relative positions only: use a position that works inside
    attention (`rotary`, `alibi`, `relative_bias`, ...). One that is added to tokens begins
    anew in each segment, and remembered tokens keep the positions of their own segment (section
    3.3). Positions count from the oldest slice of the memory, and so do masks that ask for
    positions and not for distances (`Global`, `Prefix`, `Chunked`).

    Args:
        model: a functional `keras.Model` with one input or a list or dict of them, all of which
            have the batch as first axis.
        memory_length: int M, how many tokens each self-attention remembers; 0 for none, which
            leaves only the memory of `MemorizingAttention`.
        batch_size: None for a memory that the caller carries, or int B: the layer keeps the memory
            of B streams in its own (not trainable) weights, as `fit` needs, until `reset_state()`.

    Call arguments:
        inputs: those of the model.
        memory: dict of tensors, the memory before this segment, from `initial_memory` or an
            earlier call. None is an empty one. Not with `batch_size`.

    Returns the model's output and the memory after the segment; with `batch_size` the output alone.

    A memory holds, for each layer, tensors that are filled from the end, and `num_...` (B,), how
    many tokens they hold. Where a new text begins in one row of a batch, set that to 0.

    Masking: padding (False in the `value_mask` that attention sees) is not remembered, so a row
    whose segment is short goes on with its next segment where it stopped.

    Example:

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
        # The model casts its own inputs, and a memory has the dtypes of the layers it belongs to.
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        if isinstance(model, dict):
            # of a copy: Keras takes the config of a functional model apart
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
        """{name in the memory: `scope.State`} of what the layers of the model keep."""
        memory = scope.SegmentMemory(length=self.memory_length, paths=self._paths, spec=CacheSpec())
        inputs = keras.tree.map_structure(_input_like, self.model.input)
        entries = trace_cache(self.model, memory, inputs).named()
        if not entries:
            raise ValueError(
                f"Nothing in {self.model.name} remembers with memory_length={self.memory_length}: "
                "what does is MultiHeadAttention over one tensor, as query and value, and "
                "MemorizingAttention."
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
        """Whether the layer keeps the memory itself."""
        return self.batch_size is not None

    @property
    def without_state(self):
        """What to use in place of a layer with a state, for errors of the exports."""
        return (
            "export with_memory(model, memory_length) of the model inside, without batch_size, "
            "which shares its weights and has the memory among its inputs and outputs"
        )

    @property
    def metrics(self):
        """Those of the model's layers, without the metrics that the model was compiled with."""
        return [metric for layer in self.model.layers for metric in layer.metrics]

    def call(self, inputs, memory=None, training=None):
        scope.refuse_decoding(
            f"{self.name} keeps a memory of its own. Decode with the model inside, "
            "and its memory as ka.generation.initial_cache(model, ..., memory_length=...)."
        )
        if self.batch_size is not None:
            return self._call_and_keep(inputs, memory, training)
        if memory is None:
            memory = self.initial_memory(ops.shape(keras.tree.flatten(inputs)[0])[0])
        self._check_memory(memory)
        return self._run_model(inputs, memory, training)

    def _call_and_keep(self, inputs, memory, training):
        rows = keras.tree.flatten(inputs)[0].shape[0]
        if rows not in (None, self.batch_size) or memory is not None:
            raise ValueError(
                f"SegmentRecurrence(batch_size={self.batch_size}) keeps the memory of "
                f"{self.batch_size} streams itself; received "
                + ("a memory." if memory is not None else f"a batch of {rows}.")
                + " Leave batch_size out to carry the memory yourself, for any batch."
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

    def _check_memory(self, memory):
        if set(memory) != set(self._entries):
            raise ValueError(
                f"The memory of {self.model.name} has the keys {', '.join(self._entries)}; "
                f"received {', '.join(memory) or 'none'}. Begin with initial_memory(batch_size)."
            )

    def compute_mask(self, inputs, previous_mask=None):
        return None  # the model's output carries its own mask

    def initial_memory(self, batch_size):
        """Return an empty memory for `batch_size` streams: a flat dict of zeros."""
        return {
            key: ops.zeros((batch_size, *entry.shape), dtype=entry.dtype)
            for key, entry in self._entries.items()
        }

    def memory_inputs(self, batch_size=None):
        """Return `keras.Input`s for a memory, to build a functional model of this layer."""
        return {
            key: keras.Input(batch_shape=(batch_size, *entry.shape), dtype=entry.dtype, name=key)
            for key, entry in self._entries.items()
        }

    def reset_state(self):
        """Forgets everything: the next segments begin new texts. For layers with `batch_size`."""
        if self.batch_size is None:
            raise ValueError(
                f"{self.name} keeps no memory itself: begin with initial_memory(batch_size), or "
                "make the layer with batch_size=."
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
    """Return the same model, over segments of a text, with a memory of those before.

    Without `batch_size` the memory is explicit: the model returned takes it with its inputs and
    gives it back with its outputs, under the same names. It holds no state, and can be exported.
    With `batch_size` it has the inputs and outputs of `model`, keeps the memory of that many
    streams itself, and cannot be exported: `fit` it on segments in order
    (`keras_attention.data.contiguous_segments`, and `shuffle=False` for arrays), with
    `keras_attention.training.ResetMemory()` among the callbacks. Both share `model`'s weights.

    Args:
        model, memory_length, batch_size: as in `SegmentRecurrence`.

    Returns:
        A functional `keras.Model`. Without `batch_size` its inputs and outputs are flat dicts: the
        model's, by the names of its inputs and output layers, and the memory.

    Example:

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
    if taken := sorted((set(named) | set(outputs)) & set(memory)):
        raise ValueError(f"The model and its memory both have the name {', '.join(taken)}.")
    return keras.Model({**named, **memory}, {**outputs, **after}, name=model.name)


def _input_like(tensor, batch_size=None):
    """Make a `keras.Input` like `tensor`, but for the batch size if it is given."""
    shape = (tensor.shape[0] if batch_size is None else batch_size, *tensor.shape[1:])
    return keras.Input(batch_shape=shape, dtype=tensor.dtype, name=tensor.name)
