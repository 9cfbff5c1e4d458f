"""`sum_over_chunks`: sums a function over chunks of its input in the memory of one chunk.

An ordinary backward pass would need the intermediate results of all chunks. But the result
`Σ_k f(x_k, w)` is a scalar. So the forward pass can already compute the gradient of each chunk x_k
and the sum of the gradients of w, and the backward pass only multiplies them by the upstream
gradient.
"""

import keras


def sum_over_chunks(compute, chunks, weights, data, state, differentiable=True):
    """Return `Σ_k compute(chunks[k], weights, data[k], state)`, with gradients, in little memory.

    Args:
        compute: function `(chunk, weights, data, state) -> (float scalar, next state)`. `weights`
            must be the only trainable variables that it reads.
        chunks: float tensor (K, ...), the K chunks, with a gradient.
        weights: list of float tensors, with gradients.
        data: list of tensors (K, ...), without gradients.
        state: list of tensors that `compute` updates, without gradients.
        differentiable: bool, whether to compute gradients on TensorFlow. Other backends ignore it,
            and compute gradients only if they are needed.

    Returns:
        A tuple: the sum, and the last state.
    """
    run = {"tensorflow": _with_tensorflow, "jax": _with_jax, "torch": _with_torch}
    backend = keras.backend.backend()
    if backend not in run:
        raise ValueError(f"ChunkedLogits runs on {', '.join(run)}, but the backend is {backend}.")
    return run[backend](compute, chunks, list(weights), list(data), list(state), differentiable)


def _with_tensorflow(compute, chunks, weights, data, state, differentiable):
    import tensorflow as tf

    number = tf.shape(chunks)[0]

    def loop(chunks, weights, with_gradients):
        parts = tf.TensorArray(chunks.dtype, number, element_shape=chunks.shape[1:])
        sums = [tf.zeros_like(weight) for weight in weights] if with_gradients else []

        def body(k, total, state, sums, parts):
            x, own = chunks[k], [tf.identity(weight) for weight in weights]
            rows = [each[k] for each in data]
            if not with_gradients:
                value, state = compute(x, own, rows, state)
                return k + 1, total + value, state, sums, parts
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch([x, *own])
                value, state = compute(x, own, rows, state)
            # The gradients of unused weights are 0.
            zero = tf.UnconnectedGradients.ZERO
            part, *of_weights = tape.gradient(value, [x, *own], unconnected_gradients=zero)
            sums = [a + tf.convert_to_tensor(b) for a, b in zip(sums, of_weights, strict=True)]
            return k + 1, total + value, state, sums, parts.write(k, part)

        start = (tf.constant(0), tf.constant(0.0), state, sums, parts)
        # Parallel iterations would hold several chunks in memory.
        _, total, last, sums, parts = tf.while_loop(
            lambda k, *_: k < number, body, start, parallel_iterations=1
        )
        return total, last, sums, parts

    if not differentiable:
        total, last, _, _ = loop(chunks, weights, False)
        return total, last

    @tf.custom_gradient
    def run(chunks, *weights):
        total, last, sums, parts = loop(chunks, weights, True)
        parts = parts.stack()

        @tf.custom_gradient
        def scale(upstream, *inputs):
            return [_scale(upstream, each) for each in (parts, *sums)], _refuse_second_order

        return (total, *last), lambda upstream, *_: scale(upstream, chunks, *weights)

    total, *last = run(chunks, *(tf.convert_to_tensor(weight) for weight in weights))
    return total, last


def _refuse_second_order(*upstream):
    raise NotImplementedError(
        "The gradient of ChunkedLogits was differentiated: only first-order gradients are "
        "supported. For second-order gradients, train the model that ChunkedLogits was made from."
    )


def _scale(upstream, gradient):
    """Return `gradient * upstream`, multiplied in float32, in the dtype of `gradient`.

    The upstream gradient of a mean over all tokens can be too small for float16.
    """
    scaled = keras.ops.cast(gradient, "float32") * keras.ops.cast(upstream, "float32")
    return keras.ops.cast(scaled, gradient.dtype)


def _with_jax(compute, chunks, weights, data, state, differentiable):
    import jax
    import jax.numpy as jnp

    def start(state):
        return jnp.zeros((), "float32"), state

    @jax.custom_vjp
    def run(chunks, weights, data, state):
        def step(carry, rows):
            total, state = carry
            value, state = compute(rows[0], weights, rows[1], state)
            return (total + value, state), None

        return jax.lax.scan(step, start(state), (chunks, data))[0]

    def forward(chunks, weights, data, state):
        of_chunk = jax.value_and_grad(compute, argnums=(0, 1), has_aux=True)

        def step(carry, rows):
            total, state, sums = carry
            (value, state), (part, of_weights) = of_chunk(rows[0], weights, rows[1], state)
            return (total + value, state, jax.tree.map(jnp.add, sums, of_weights)), part

        carry = (*start(state), [jnp.zeros_like(weight) for weight in weights])
        (total, state, sums), parts = jax.lax.scan(step, carry, (chunks, data))
        return (total, state), (parts, sums)

    def backward(gradients, upstream):
        parts, sums = gradients
        scaled = [_scale(upstream[0], each) for each in (parts, *sums)]
        return scaled[0], scaled[1:], None, None

    run.defvjp(forward, backward)
    return run(chunks, weights, data, state)


def _with_torch(compute, chunks, weights, data, state, differentiable):
    import torch

    def loop(chunks, weights, take_gradients):
        total, last = 0.0, state
        for k, x in enumerate(chunks):
            value, last = compute(x, weights, [each[k] for each in data], last)
            total = total + (take_gradients(k, value, x) if take_gradients else value)
        return total, last

    if not torch.is_grad_enabled():
        return loop(chunks, weights, None)

    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(ctx, chunks, *weights):
            leaves = [weight.detach().requires_grad_() for weight in weights]
            chunks = chunks.detach().requires_grad_()
            parts = torch.zeros_like(chunks)
            sums = [torch.zeros_like(weight) for weight in weights]

            def take_gradients(k, value, x):
                gradients = torch.autograd.grad(value, [x, *leaves], allow_unused=True)
                for total_gradient, gradient in zip([parts[k], *sums], gradients, strict=True):
                    if gradient is not None:
                        total_gradient.add_(gradient)
                return value.detach()

            with torch.enable_grad():
                total, last = loop(chunks, leaves, take_gradients)
            last = [each.detach() for each in last]
            ctx.save_for_backward(parts, *sums)
            ctx.mark_non_differentiable(*last)
            return (total, *last)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, upstream, *_):
            return tuple(_scale(upstream, each) for each in ctx.saved_tensors)

    total, *last = Sum.apply(chunks, *weights)
    return total, last
