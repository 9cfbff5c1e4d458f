"""Projections (dense layers) of attention layers, and the base class of layers that own them."""

import math

import keras
from keras import ops

from keras_attention.core import keras_internals
from keras_attention.core.shapes import merges_tokens, prepend_batch
from keras_attention.core.token_layout import pin_tokens
from keras_attention.core.weight_axes import find_axes, name_axes


@keras.saving.register_keras_serializable(package="keras_attention")
class HeadProjection(keras.layers.EinsumDense):
    """A dense layer that maps the trailing axes of (B, T, ...) to new axes.

    The layer is a `keras.layers.EinsumDense`, with the same weights, LoRA and quantization. Only
    the forward pass on TensorFlow differs: it is one product of two matrices, which on a CPU is
    twice as fast as an einsum over three axes.

    Args:
        output_shape: int or tuple, the sizes of the new axes, such as (N, H) or (D,).
        input_axes: int, the number of trailing axes of the input to sum over.
        use_bias: bool, whether to add a bias.
        kwargs: other arguments of `keras.layers.EinsumDense`.

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
        old_axes = "cdefgh"[:input_axes]
        new_axes = "uvwxyz"[: len(output_shape)]
        super().__init__(
            f"ab{old_axes},{old_axes}{new_axes}->ab{new_axes}",
            output_shape=(None, *output_shape),
            bias_axes=new_axes if use_bias else None,
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
        """Quantize like `EinsumDense.quantize`, which itself does not quantize subclasses.

        The arguments are the same as in Keras.
        """
        if type_check and type(self) is not HeadProjection:
            raise NotImplementedError(
                f"{type(self).__name__} may compute something else than HeadProjection, but would "
                "be quantized like it. Call quantize with type_check=False if that is right."
            )
        return super().quantize(mode, type_check=False, config=config)

    def load_own_variables(self, store):
        """Load weights as `EinsumDense` does, but initialize the first LoRA matrix randomly.

        `store` is a dict of arrays from a file. Keras sets both LoRA matrices to zero, so that
        neither would get a gradient.
        """
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
    """Build and return a `HeadProjection` that belongs to a layer.

    Args:
        owner: the layer, a `ProjectionOwner`. It determines the dtype policy, the
            `kernel_initializer`, and changes by quantization and LoRA that were saved.
        name: str, the name of the projection.
        inputs: tuple of ints, the sizes of the trailing axes of the input.
        outputs: tuple of ints, the sizes of the axes that replace them.
        use_bias: bool, whether to add a bias.
        axes: tuple of str, the roles of the kernel's axes (see `weight_axes.py`). None looks `name`
            up in `PROJECTION_AXES`.
        kwargs: other arguments of `HeadProjection`.
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


# The roles of the axes of kernels, keyed by the name of the projection.
PROJECTION_AXES = {
    "query": ("embed", "heads", "head_dim"),
    "key": ("embed", "key_value_heads", "head_dim"),
    "gate": ("embed", "heads", "head_dim"),
    "value": ("embed", "key_value_heads", "head_dim"),
    "attention_output": ("heads", "head_dim", "embed", ...),
}


def copy_initializer(initializer):
    """Copy an initializer, because one initializer object returns the same values every time."""
    return type(initializer).from_config(initializer.get_config())


class ProjectionOwner(keras.layers.Layer):
    """Base class of layers that contain projections (dense layers or embedding tables).

    `model.quantize(...)` and `enable_lora` change the projections in place. So that a saved layer
    can be restored, `get_config` returns these changes under the key `projections`.
    """

    def __init__(self, **kwargs):
        saved = dict(kwargs.pop("projections", None) or {})  # only set by `from_config`
        super().__init__(**kwargs)
        self._owned = ()  # names of the projections
        self._saved_projections = saved

    def _projection_arguments(self, name, dtype=None):
        """Return constructor arguments for a new projection: name, dtype, and saved changes."""
        if name not in self._owned:
            self._owned = (*self._owned, name)
        saved = dict(self._saved_projections.get(name, {}))
        dtype = keras.dtype_policies.get(saved.pop("dtype", dtype or self.dtype_policy))
        if "quantization_config" in saved:
            config = saved["quantization_config"]
            saved["quantization_config"] = keras.saving.deserialize_keras_object(config)
        return {**saved, "name": name, "dtype": dtype}

    def _projections(self):
        """Return a dict of the projections created so far, keyed by name."""
        inner = keras_internals.direct_layers(self)
        return {layer.name: layer for layer in inner if layer.name in self._owned}

    def enable_lora(
        self, rank, targets=None, lora_alpha=None, a_initializer="he_uniform", b_initializer="zeros"
    ):
        """Add a trainable product of two narrow matrices to kernels (Hu et al., 2021).

        This calls `keras.layers.EinsumDense.enable_lora` for several projections. Their kernels are
        frozen, but all other weights remain trainable. When the layer is saved, the product is
        added to the kernel, and a loaded layer starts with new matrices.

        Args:
            rank: int, the number of columns of the first matrix.
            targets: list of names of projections, such as `["query", "value"]`, the paper's choice.
                None means all projections.
            lora_alpha: float. The product is multiplied by lora_alpha / rank. None means `rank`.
            a_initializer: initializer of the first matrix.
            b_initializer: initializer of the second matrix.

        Raises:
            ValueError: the layer is not built, or has no projection of a name in `targets`.
        """
        if not self.built:
            raise ValueError(f"{self.name} has no weights yet. Call it once before enable_lora.")
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
        changes = {name: _changes(layer) for name, layer in self._projections().items()}
        changes = {**self._saved_projections, **changes}
        if changes := {name: change for name, change in changes.items() if change}:
            config["projections"] = changes
        return config


def _changes(projection):
    """Return the entries of a projection's config that quantization or LoRA changed."""
    config = projection.get_config()
    keys = ["lora_rank", "lora_alpha"] if projection.lora_rank else []
    if projection.quantization_mode is not None:
        keys += ["dtype", "quantization_config"]
    return {key: config[key] for key in keys if config.get(key) is not None}
