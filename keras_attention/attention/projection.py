"""Projections of attention layers, and the layer that owns them: quantizable, adaptable by LoRA."""

import math

import keras
from keras import ops

from keras_attention.core import keras_internals
from keras_attention.core.shapes import merges_tokens, prepend_batch
from keras_attention.core.token_layout import pin_tokens
from keras_attention.core.weight_axes import find_axes, name_axes


@keras.saving.register_keras_serializable(package="keras_attention")
class HeadProjection(keras.layers.EinsumDense):
    """Maps the last axes of (B, T, ...) to new ones, as `keras.layers.EinsumDense` does.

    Weights, their shapes, LoRA and quantization are Keras's. Only TensorFlow's forward pass
    differs: on a CPU its einsum over three axes takes twice the time of the same product of two
    matrices, whose bias fuses with it.

    Args:
        output_shape: int or tuple, the axes that replace those summed over, (N, H) or (D,).
        input_axes: int, how many trailing axes of the input are summed over.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    to_heads = ka.attention.HeadProjection((3, 8))
    assert to_heads(np.ones((2, 5, 24))).shape == (2, 5, 3, 8)
    assert to_heads.kernel.shape == (24, 3, 8)
    ```
    """

    def __init__(self, output_shape, input_axes=1, use_bias=True, **kwargs):
        output_shape = (output_shape,) if isinstance(output_shape, int) else tuple(output_shape)
        summed = "cdefgh"[:input_axes]
        made = "uvwxyz"[: len(output_shape)]
        super().__init__(
            f"ab{summed},{summed}{made}->ab{made}",
            output_shape=(None, *output_shape),
            bias_axes=made if use_bias else None,
            **kwargs,
        )
        self.supports_masking = True
        self.input_axes, self.use_bias = input_axes, use_bias
        self.head_shape = output_shape

    def call(self, inputs, training=None):
        if not merges_tokens():
            x = ops.einsum(self.equation, inputs, self.kernel)
            x = x if self.bias is None else ops.add(x, self.bias)
            x = x if self.activation is None else self.activation(x)
            axes = find_axes(self, "kernel", self.kernel.shape) or ()
            return pin_tokens(x, *axes[self.input_axes :])
        fan_in, fan_out = math.prod(inputs.shape[2:]), math.prod(self.head_shape)
        x = ops.reshape(inputs, (-1, fan_in))
        x = ops.matmul(x, ops.reshape(self.kernel, (fan_in, fan_out)))
        if self.bias is not None:
            x = ops.add(x, ops.reshape(self.bias, (fan_out,)))
        if self.activation is not None:
            x = self.activation(x)
        return ops.reshape(x, prepend_batch(inputs, ops.shape(inputs)[1], *self.head_shape))

    def compute_output_shape(self, input_shape):
        return (*input_shape[:2], *self.head_shape)

    def quantize(self, mode=None, type_check=True, config=None):
        """As `EinsumDense.quantize`, which would refuse this class as a subclass of its own."""
        if type_check and type(self) is not HeadProjection:
            raise NotImplementedError(
                f"{type(self).__name__} may compute something else than HeadProjection, which is "
                "what would be quantized. Call quantize with type_check=False if it does not."
            )
        return super().quantize(mode, type_check=False, config=config)

    def load_own_variables(self, store):
        """As `EinsumDense`, which makes both LoRA matrices zero, so that neither could learn."""
        super().load_own_variables(store)
        if self.lora_enabled:
            matrix = self.lora_kernel_a
            matrix.assign(keras.initializers.HeUniform()(matrix.shape, matrix.dtype))

    def get_config(self):
        config = super().get_config()
        for derived in ("equation", "bias_axes"):
            config.pop(derived)
        return {
            **config,
            "output_shape": self.head_shape,
            "input_axes": self.input_axes,
            "use_bias": self.use_bias,
        }


def project(owner, name, inputs, outputs, use_bias=False, axes=None, **kwargs):
    """Build a `HeadProjection` called `name`, from the last axes `inputs` to the axes `outputs`.

    It takes the dtype policy and the `kernel_initializer` of its `owner`, a `ProjectionOwner`, and
    its saved changes by quantization and LoRA; `kwargs` go to it. `axes` are the roles of the axes
    of its kernel, inputs and outputs (`weight_axes.py`). None is as `PROJECTION_AXES` has them.
    """
    projection = HeadProjection(
        outputs,
        input_axes=len(inputs),
        use_bias=use_bias,
        kernel_initializer=copy_initializer(owner.kernel_initializer),
        **owner._projection_arguments(name),
        **kwargs,
    )
    axes = PROJECTION_AXES.get(name) if axes is None else axes
    if axes is not None:
        name_axes(projection, kernel=axes)
    projection.build((None, None, *inputs))
    return projection


# Of the usual projections of an attention layer, the roles of their kernels' axes.
PROJECTION_AXES = {
    "query": ("embed", "heads", "head_dim"),
    "key": ("embed", "key_value_heads", "head_dim"),
    "gate": ("embed", "heads", "head_dim"),
    "value": ("embed", "key_value_heads", "head_dim"),
    "attention_output": ("heads", "head_dim", "embed", ...),
}


def copy_initializer(initializer):
    """Copy an initializer: one object draws the same values every time."""
    return type(initializer).from_config(initializer.get_config())


class ProjectionOwner(keras.layers.Layer):
    """A layer that makes its own dense layers and tables.

    `model.quantize(...)` and `enable_lora` change these in place. `get_config` writes the changes,
    if there are any, under `projections`, so that a saved layer comes back with the same weights.
    """

    def __init__(self, **kwargs):
        saved = dict(kwargs.pop("projections", None) or {})  # from a config only
        super().__init__(**kwargs)
        self._owned = ()  # names
        self._saved_projections = saved

    def _projection_arguments(self, name, dtype=None):
        """Return name, dtype policy and saved changes of a projection that is being made."""
        if name not in self._owned:
            self._owned = (*self._owned, name)
        saved = dict(self._saved_projections.get(name, {}))
        dtype = keras.dtype_policies.get(saved.pop("dtype", dtype or self.dtype_policy))
        if "quantization_config" in saved:
            config = saved["quantization_config"]
            saved["quantization_config"] = keras.saving.deserialize_keras_object(config)
        return {**saved, "name": name, "dtype": dtype}

    def _projections(self):
        """Return the projections that are made by now: name -> layer."""
        inner = keras_internals.direct_layers(self)
        return {layer.name: layer for layer in inner if layer.name in self._owned}

    def enable_lora(
        self, rank, targets=None, lora_alpha=None, a_initializer="he_uniform", b_initializer="zeros"
    ):
        """Trains a product of two narrow matrices in place of each kernel (Hu et al., 2021).

        As `keras.layers.EinsumDense.enable_lora`, on several projections: their kernels are frozen,
        biases and all other weights are left as they are. A saved layer comes back with what was
        learned added to its kernels, and with new narrow matrices.

        Args:
            rank: int, how many columns the first matrix has.
            targets: list of names of projections, such as `["query", "value"]`, the paper's choice;
                None is all.
            lora_alpha: float, the product is multiplied by lora_alpha / rank. None is rank.
            a_initializer, b_initializer: of the two matrices.
        """
        if not self.built:
            raise ValueError(
                f"{self.name} has no weights yet, which LoRA is to adapt. Call it once first."
            )
        projections = self._projections()
        targets = list(projections) if targets is None else list(targets)
        if unknown := [name for name in targets if name not in projections]:
            raise ValueError(
                f"targets={targets!r}: {self.name} has no projection {unknown[0]!r}. "
                f"It has {', '.join(projections)}."
            )
        for name in targets:
            projections[name].enable_lora(
                rank, lora_alpha, a_initializer=a_initializer, b_initializer=b_initializer
            )

    def get_config(self):
        config = super().get_config()
        changed = {name: _changes(layer) for name, layer in self._projections().items()}
        changed = {**self._saved_projections, **changed}
        if changed := {name: what for name, what in changed.items() if what}:
            config["projections"] = changed
        return config


def _changes(projection):
    """Return the entries of a projection's config that quantization and LoRA changed."""
    config = projection.get_config()
    keys = ["lora_rank", "lora_alpha"] if projection.lora_rank else []
    if projection.quantization_mode is not None:
        keys += ["dtype", "quantization_config"]
    return {key: config[key] for key in keys if config.get(key) is not None}
