"""`Scan`: a stack of equal blocks, which JAX compiles only once."""

import functools

import keras
from keras import ops

from keras_attention.blocks.encoder import EncoderBlock
from keras_attention.blocks.inner_layers import find_mask, revive_layer
from keras_attention.blocks.rematerialization import (
    Rematerialized,
    call_stateless,
    find_state,
    read_state,
    runs_plainly,
)
from keras_attention.core import keras_internals
from keras_attention.core.integer_inputs import IntegerInputs

OF_EACH = ("name", "seed", "build_config", "shared_object_id")  # config keys that may differ


@keras.saving.register_keras_serializable(package="keras_attention")
class Scan(IntegerInputs, keras.layers.Layer):
    """Runs equal blocks one after another, on JAX as a loop whose body is compiled once.

    Each block keeps its own weights, dropouts and state, under its own path. When JAX traces a
    function, the weights of all blocks are stacked, and `jax.lax.scan` runs the first block with
    the weights of each block in turn. So program size and compile time do not grow with the number
    of blocks. The results are the same as without the loop, even with dropout. During a step, the
    stack needs memory for a copy of all weights and a copy of all gradients.

    The blocks run one by one outside of traced functions, on other backends, and while attention is
    recorded, text is generated with a cache, or a model is exported.

    Args:
        blocks: list of `EncoderBlock`s, `DecoderBlock`s or subclasses that differ only in names and
            weights. Parts that all blocks share, such as a position, stay shared.
        each_layer: bool, whether to return a list with the output of each block.

    Call arguments:
        inputs: (B, T, D), or with `norm="resi_dual"` a pair of such tensors.
        encoded: (B, S, E), the source of `DecoderBlock`s, else None.
        mask, encoded_mask, ...: the other call arguments of a block, passed to every block.

    Returns the output of the last block, of the shape of `inputs`, with their implicit Keras mask.
    With `each_layer`, a list of the outputs of all blocks.

    Raises:
        ValueError: the blocks differ in a setting, or in the number or the shapes of their weights.

    ```python
    import numpy as np
    import keras_attention as ka

    blocks = [
        ka.blocks.EncoderBlock(
            ka.attention.MultiHeadAttention(2, 4), ka.blocks.FeedForward(16), name=f"block_{i}"
        )
        for i in range(3)
    ]
    x = np.random.rand(2, 5, 8).astype("float32")
    output = ka.blocks.Scan(blocks)(x)
    for block in blocks:
        x = block(x)
    assert np.allclose(output, x, atol=1e-5)
    ```
    """

    def __init__(self, blocks, each_layer=False, **kwargs):
        if not isinstance(blocks, (list, tuple)) or not blocks:
            raise ValueError(f"blocks={blocks!r}: expected a list of one or more blocks.")
        blocks = [revive_layer(f"blocks[{i}]", block) for i, block in enumerate(blocks)]
        check_alike(blocks)
        super().__init__(**{"dtype": blocks[0].dtype_policy, **kwargs})
        self.blocks, self.each_layer = blocks, each_layer

    def build(self, inputs_shape, encoded_shape=None):
        for block in self.blocks:
            if not block.built:
                block.build(*(shape for shape in (inputs_shape, encoded_shape) if shape))

    def call(
        self,
        inputs,
        encoded=None,
        mask=None,
        encoded_mask=None,
        attention_mask=None,
        cross_attention_mask=None,
        segment_ids=None,
        encoded_segment_ids=None,
        positions=None,
        encoded_positions=None,
        training=None,
    ):
        arguments = dict(
            encoded=encoded,
            mask=find_mask(inputs, mask),
            encoded_mask=None if encoded is None else find_mask(encoded, encoded_mask),
            attention_mask=attention_mask,
            cross_attention_mask=cross_attention_mask,
            segment_ids=segment_ids,
            encoded_segment_ids=encoded_segment_ids,
            positions=positions,
            encoded_positions=encoded_positions,
        )
        arguments = {name: value for name, value in arguments.items() if value is not None}
        x = self.blocks[0].norm.start(inputs)
        if is_traced(inputs) and not runs_plainly():
            outputs = self._run_scanned(x, arguments, training)
        else:
            outputs = []
            for block in self.blocks:
                x = block(x, training=training, **arguments)
                outputs.append(x)
        return outputs if self.each_layer else outputs[-1]

    def _run_scanned(self, x, arguments, training):
        """Run the blocks as one JAX loop, and return a list of outputs.

        The list has the output of each block if `each_layer` is set, else only that of the last.

        Args:
            x: the input of the first block, a tensor or a pair of tensors.
            arguments: dict of further call arguments of every block.
            training: bool, as in Keras.
        """
        first, states = self.blocks[0], [find_state(block) for block in self.blocks]
        shared = self._find_shared(states)
        values = [
            read_state(block, state) for block, state in zip(self.blocks, states, strict=True)
        ]
        stacked = {
            i: _stack(variables, [of_block[i] for of_block in values])
            for i, variables in enumerate(zip(*states, strict=True))
            if i not in shared
        }

        def run(x, slices):
            of_layer = [slices.get(i, value) for i, value in enumerate(values[0])]
            with Rematerialized():
                x, changed, losses = call_stateless(
                    first, states[0], of_layer, x, training=training, **arguments
                )
            return x, (x if self.each_layer else None, changed, losses)

        if first.remat and training:
            import jax

            run = jax.checkpoint(run, prevent_cse=False)  # not needed inside a loop
        x, (outputs, changed, losses) = ops.scan(run, x, stacked)
        for i, after in changed.items():
            for state, value in zip(states, _unstack(after), strict=True):
                state[i].assign(value)
        for loss in losses:
            self.add_loss(ops.sum(loss))
        if not self.each_layer:
            return [x]
        outputs = keras.tree.map_structure(_unstack, outputs)
        if first.norm.num_streams == 1:
            return list(outputs)
        return [tuple(pair) for pair in zip(*outputs, strict=True)]

    def _find_shared(self, states):
        """Return the set of indices of variables that all blocks share, such as shared positions.

        `states` is a list with a list of variables for each block. Raise a ValueError if these
        lists differ in number, shape or dtype, or if the blocks share a variable that they change,
        such as a seed.
        """
        kinds = [[(tuple(v.shape), v.dtype) for v in state] for state in states]
        for block, of_block in zip(self.blocks, kinds, strict=True):
            if of_block != kinds[0]:
                raise ValueError(
                    f"{self.name} runs its blocks as one loop, but the weights of {block.name} and "
                    f"{self.blocks[0].name} differ in number, shape or dtype. Adapt or quantize "
                    "all blocks alike, or build the model with scan_layers=False."
                )
        trained = {
            id(variable)
            for layer in keras_internals.all_layers(self.blocks[0])
            for variable in keras_internals.trained_variables(layer)
        }
        shared = {
            i
            for i, variables in enumerate(zip(*states, strict=True))
            if len({id(variable) for variable in variables}) == 1 < len(states)
        }
        if moving := [states[0][i].path for i in shared if id(states[0][i]) not in trained]:
            raise ValueError(
                f"{self.name} runs its blocks as one loop, but all blocks share and change "
                f"{moving[0]}. Give each block its own, or build the model with scan_layers=False."
            )
        return shared

    def compute_mask(self, inputs, previous=None):
        mask = self.blocks[0].compute_mask(inputs, previous)
        return [mask] * len(self.blocks) if self.each_layer else mask

    def compute_output_shape(self, inputs_shape, encoded_shape=None):
        shapes = (shape for shape in (inputs_shape, encoded_shape) if shape)
        shape = self.blocks[0].compute_output_shape(*shapes)
        return [shape] * len(self.blocks) if self.each_layer else shape

    def get_config(self):
        # Keep `build_config`: a loaded model then builds the blocks first, so their paths are kept.
        blocks = [keras.saving.serialize_keras_object(block) for block in self.blocks]
        return {**super().get_config(), "blocks": blocks, "each_layer": self.each_layer}


def check_alike(blocks):
    """Raise a ValueError unless the configs of all blocks are equal, except for names and seeds.

    The message names the first setting that differs.
    """
    for i, block in enumerate(blocks):
        if not isinstance(block, EncoderBlock):
            raise ValueError(
                f"blocks[{i}]={block!r}: expected an EncoderBlock, a DecoderBlock or another "
                "subclass of EncoderBlock."
            )
    settings = [_find_settings(keras.saving.serialize_keras_object(block)) for block in blocks]
    first = settings[0]
    for block, of_block in zip(blocks, settings, strict=True):
        if of_block == first:
            continue
        key = min(k for k in {*first, *of_block} if first.get(k) != of_block.get(k))
        raise ValueError(
            f"{blocks[0].name} and {block.name} differ in {key}: {first.get(key)!r} and "
            f"{of_block.get(key)!r}. Only equal layers run as one loop. Give all the same, or "
            "build with scan_layers=False."
        )


def _find_settings(config, path=""):
    """Flatten a nested config to {path: value}, without settings that may differ between blocks.

    `path` is the path of `config` in the whole config, such as `"attention.score"`.
    """
    if isinstance(config, dict):
        pairs = [(key, value) for key, value in config.items() if key not in OF_EACH]
    elif isinstance(config, (list, tuple)):
        pairs = [(str(i), value) for i, value in enumerate(config)]
    else:
        return {path: config}
    settings = {path: type(config).__name__}
    for key, value in pairs:
        inner = path if key == "config" else f"{path}.{key}" if path else key
        settings |= _find_settings(value, inner)
    return settings


def is_traced(inputs):
    """Return whether JAX is tracing the current function, so that `inputs` contains tracers."""
    if keras.backend.backend() != "jax":
        return False
    import jax

    return any(isinstance(x, jax.core.Tracer) for x in keras.tree.flatten(inputs))


def _stack(variables, values):
    """Stack the values of one variable from all blocks on a new first axis.

    `variables` is a list of Keras variables, one of each block, and `values` a list of their
    values. The result is split over devices like the variables.
    """
    stacked = _compiled_once("stack")(values)
    layout = keras_internals.layout_of(variables[0])
    if layout is None or keras.distribution.distribution() is None:
        return stacked
    layout = keras.distribution.TensorLayout((None, *layout.axes), layout.device_mesh)
    return keras.distribution.distribute_tensor(stacked, layout)


def _unstack(stacked):
    """Split a tensor along its first axis into a list."""
    return _compiled_once("unstack")(stacked)


@functools.cache
def _compiled_once(name):
    """Return `ops.stack` or `ops.unstack` as a function that JAX compiles once for each shape.

    Otherwise a compiled program would contain one such operation for each weight of each block.
    """
    import jax

    return jax.jit(getattr(ops, name))
