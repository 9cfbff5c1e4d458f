"""`Scan`: blocks that are alike, compiled once for all layers of a stack."""

import functools

import keras
from keras import ops

from keras_attention.blocks.encoder import EncoderBlock
from keras_attention.blocks.inner_layers import revive_layer
from keras_attention.blocks.rematerialization import (
    Rematerialized,
    call_stateless,
    find_state,
    read_state,
    runs_plainly,
)
from keras_attention.core import keras_internals
from keras_attention.core.integer_inputs import IntegerInputs

OF_EACH = ("name", "seed", "build_config", "shared_object_id")  # what blocks need not share


@keras.saving.register_keras_serializable(package="keras_attention")
class Scan(IntegerInputs, keras.layers.Layer):
    """Runs blocks one after another, on JAX as a loop whose body is compiled once.

    Each block keeps weights, dropouts and state of its own, under its own path; while JAX traces a
    function, they are stacked, and `jax.lax.scan` runs the first block on one slice after another.
    So the program, and the time to compile it, do not grow with the number of blocks, and its
    numbers are those of the blocks in a row, dropout included. The stacked weights, and their
    gradients, take the memory of a second copy for the time of a step.

    Blocks run one by one, as without this layer, outside of a traced function, on the other
    backends, and where layers are watched: while attention is recorded, text is generated with a
    cache, or a model is exported.

    Args:
        blocks: list of `EncoderBlock`s, `DecoderBlock`s or others of their kind that differ in
            names and weights alone. Parts that all of them hold, such as a shared position, stay
            shared.
        each_layer: bool, whether to return a list with the output of each block.

    Call arguments:
        inputs: (B, T, D); with `norm="resi_dual"` also a pair of them.
        encoded, mask, ...: as the blocks take them, the same for all.

    Returns what the last block returns, (B, T, D), with the mask of the inputs.

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
            raise ValueError(f"blocks={blocks!r}: expected a list of one block or more.")
        blocks = [revive_layer(f"blocks[{i}]", block) for i, block in enumerate(blocks)]
        check_alike(blocks)
        super().__init__(**{"dtype": blocks[0].dtype_policy, **kwargs})
        self.supports_masking = True
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
        if encoded is not None and encoded_mask is None:
            encoded_mask = keras_internals.get_mask(encoded)
        given = dict(
            encoded=encoded,
            mask=EncoderBlock._padding_mask(inputs, mask),
            encoded_mask=encoded_mask,
            attention_mask=attention_mask,
            cross_attention_mask=cross_attention_mask,
            segment_ids=segment_ids,
            encoded_segment_ids=encoded_segment_ids,
            positions=positions,
            encoded_positions=encoded_positions,
        )
        given = {name: value for name, value in given.items() if value is not None}
        run = self._run_scanned if is_traced(inputs) and not runs_plainly() else self._run_in_a_row
        outputs = run(self.blocks[0].norm.start(inputs), given, training)
        return outputs if self.each_layer else outputs[-1]

    def _run_in_a_row(self, x, given, training):
        outputs = []
        for block in self.blocks:
            x = block(x, training=training, **given)
            outputs.append(x)
        return outputs

    def _run_scanned(self, x, given, training):
        """As `_run_in_a_row`; without `each_layer`, a list of the last output alone."""
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
                    first, states[0], of_layer, x, training=training, **given
                )
            return x, (x if self.each_layer else None, changed, losses)

        if first.remat and training:
            import jax

            run = jax.checkpoint(run, prevent_cse=False)  # in a loop nothing is computed once
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
        """The places of variables that all blocks hold; refuses blocks whose weights differ."""
        kinds = [[(tuple(v.shape), v.dtype) for v in state] for state in states]
        for block, of_block in zip(self.blocks, kinds, strict=True):
            if of_block != kinds[0]:
                raise ValueError(
                    f"{self.name} runs its blocks as one, and {block.name} has other weights than "
                    f"{self.blocks[0].name}, in number, shape or dtype. Adapt or quantize all "
                    "blocks alike, or build the model with scan_layers=False."
                )
        trained = {
            id(variable)
            for layer in keras_internals.all_layers(self.blocks[0])
            for variable in keras_internals.trained_variables(layer)
        }
        shared = set()
        for i, variables in enumerate(zip(*states, strict=True)):
            if len({id(variable) for variable in variables}) == 1 < len(states):
                shared.add(i)
        if moving := [states[0][i].path for i in shared if id(states[0][i]) not in trained]:
            raise ValueError(
                f"{self.name} runs its blocks at once, and they share {moving[0]}, which each of "
                "them changes. Give each block its own, or build with scan_layers=False."
            )
        return shared

    def compute_mask(self, inputs, previous=None):
        mask = self.blocks[0].compute_mask(inputs, previous)
        return [mask] * len(self.blocks) if self.each_layer else mask

    def compute_output_shape(self, inputs_shape, encoded_shape=None):
        shapes = (shape for shape in (inputs_shape, encoded_shape) if shape)
        shape = self.blocks[0].compute_output_shape(*shapes)
        return [shape] * len(self.blocks) if self.each_layer else shape

    def compute_output_spec(self, inputs, *args, **kwargs):
        specs = [self.blocks[0].compute_output_spec(inputs) for _ in self.blocks]
        return specs if self.each_layer else specs[-1]

    def get_config(self):
        # with the shapes of the blocks: so they are built alone, and their paths stay
        blocks = [keras.saving.serialize_keras_object(block) for block in self.blocks]
        return {**super().get_config(), "blocks": blocks, "each_layer": self.each_layer}


def check_alike(blocks):
    """Refuses blocks that differ in more than names, and says in what."""
    for i, block in enumerate(blocks):
        if not isinstance(block, EncoderBlock):
            raise ValueError(
                f"blocks[{i}]={block!r}: expected an EncoderBlock, a DecoderBlock or another "
                "block of their kind."
            )
    settings = [_find_settings(keras.saving.serialize_keras_object(block)) for block in blocks]
    first = settings[0]
    for block, of_block in zip(blocks, settings, strict=True):
        if of_block == first:
            continue
        key = min(k for k in {*first, *of_block} if first.get(k) != of_block.get(k))
        raise ValueError(
            f"{blocks[0].name} and {block.name} differ in {key}: {first.get(key)!r} and "
            f"{of_block.get(key)!r}. Layers run as one loop only if they are alike: give all the "
            "same, or build with scan_layers=False."
        )


def _find_settings(config, path=""):
    """{path: value} of a nested config without what blocks need not share."""
    if isinstance(config, dict):
        pairs = [(key, value) for key, value in config.items() if key not in OF_EACH]
    elif isinstance(config, (list, tuple)):
        pairs = [(str(i), value) for i, value in enumerate(config)]
    else:
        return {path: config}
    found = {path: type(config).__name__}
    for key, value in pairs:
        inner = path if key == "config" else f"{path}.{key}" if path else key
        found |= _find_settings(value, inner)
    return found


def is_traced(inputs):
    """Whether JAX is tracing a function whose values `inputs` are."""
    if keras.backend.backend() != "jax":
        return False
    import jax

    return any(isinstance(x, jax.core.Tracer) for x in keras.tree.flatten(inputs))


def _stack(variables, values):
    """The values of one variable of each block along a new axis, split as each of them is."""
    stacked = _compiled_once("stack")(values)
    layout = keras_internals.layout_of(variables[0])
    if layout is None or keras.distribution.distribution() is None:
        return stacked
    layout = keras.distribution.TensorLayout((None, *layout.axes), layout.device_mesh)
    return keras.distribution.distribute_tensor(stacked, layout)


def _unstack(stacked):
    """The slices of a tensor along its first axis, as a list."""
    return _compiled_once("unstack")(stacked)


@functools.cache
def _compiled_once(name):
    """`ops.stack` or `ops.unstack` as a function that a traced program has once for each shape.

    Otherwise these few operations for each weight would be what grows with the number of blocks.
    """
    import jax

    return jax.jit(getattr(ops, name))
