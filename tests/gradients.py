"""Gradients by whichever backend Keras runs on, so that one test holds for all of them."""

import contextlib

import keras


def enabled():
    """Return a context for `fit`, with PyTorch's gradients, which `conftest` turns off."""
    if keras.backend.backend() != "torch":
        return contextlib.nullcontext()
    import torch

    return torch.enable_grad()


def value_and_gradients(compute, tensors=(), variables=()):
    """Return the scalar `compute(*tensors)` and its gradients to `tensors` and `variables`.

    A gradient is zero or None where nothing depends.
    """
    tensors = [keras.ops.convert_to_tensor(x) for x in tensors]
    return _BY_BACKEND[keras.backend.backend()](compute, tensors, list(variables))


def _tensorflow(compute, tensors, variables):
    import tensorflow as tf

    sources = [*tensors, *(variable.value for variable in variables)]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        value = compute(*tensors)
    values = tape.gradient(value, sources)
    return value, [None if x is None else tf.convert_to_tensor(x) for x in values]


def _jax(compute, tensors, variables):
    import jax

    def stateless(tensors, values):
        with keras.StatelessScope(zip(variables, values, strict=True)):
            return compute(*tensors)

    values = [variable.value for variable in variables]
    value, gradients = jax.value_and_grad(stateless, argnums=(0, 1))(tensors, values)
    return value, [*gradients[0], *gradients[1]]


def _torch(compute, tensors, variables):
    import torch

    tensors = [x.detach().requires_grad_() for x in tensors]
    with enabled():
        value = compute(*tensors)
    sources = [*tensors, *(variable.value for variable in variables)]
    values = torch.autograd.grad(value, sources, allow_unused=True) if sources else []
    return value.detach(), values


_BY_BACKEND = {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}
