"""Projections as the layers of this folder make them."""

from keras_attention.attention.projection import HeadProjection


def project(owner, name, inputs, outputs, use_bias=False, **kwargs):
    """A built `HeadProjection` called `name`, from the last axes `inputs` to the axes `outputs`.

    It takes the dtype policy and the `kernel_initializer` of the layer `owner`; `kwargs` go to it.
    """
    projection = HeadProjection(
        outputs,
        input_axes=len(inputs),
        use_bias=use_bias,
        kernel_initializer=copy_of(owner.kernel_initializer),
        dtype=owner.dtype_policy,
        name=name,
        **kwargs,
    )
    projection.build((None, None, *inputs))
    return projection


def copy_of(initializer):
    """The same initializer as another object: one draws the same values every time."""
    return type(initializer).from_config(initializer.get_config())
