"""`MixtureOfExperts`: several feed-forward networks, of which each token uses only a few."""

import fractions

import keras
from keras import ops

from keras_attention.attention.projection import ProjectionOwner
from keras_attention.blocks.inner_layers import revive_layer, serialize_inner
from keras_attention.core import checks, scope, shapes
from keras_attention.core.part import OwnArguments
from keras_attention.core.shapes import merges_tokens, prepend_batch
from keras_attention.core.weight_axes import name_axes


@keras.saving.register_keras_serializable(package="keras_attention")
class MixtureOfExperts(OwnArguments, ProjectionOwner):
    """Several feed-forward networks (experts), of which each token uses only `top_k`.

    A router chooses the experts for each token. The layer computes `Σ gate_e · expert_e(x)` over
    the `top_k` experts with the highest probabilities in `softmax(x W)` (Shazeer et al., 2017,
    section 2). With `top_k=1` the gate is this probability (Fedus et al., 2021, *Switch*,
    equation 2). Otherwise the `top_k` probabilities are divided by their sum (Lepikhin et al.,
    2020, *GShard*, algorithm 1). The router computes in float32 and is deterministic. Between
    experts with equal probabilities it chooses the first.

    Without `capacity_factor` every expert processes every token. This is exact, but slow. With
    `capacity_factor`, each of the E experts processes at most
    `⌈capacity_factor · top_k · B·T / E⌉` tokens. The first choices of all tokens have priority over
    second choices, and earlier tokens over later ones. If an expert is full, its output for any
    other token is zeros. `capacity_factor = E / top_k` leaves room for all tokens.

    Args:
        experts: list of E layers called on one tensor, such as `FeedForward`, each with its own
            weights.
        top_k: int, the number of experts for each token.
        capacity_factor: float, limits the number of tokens of each expert. None for no limit.
        load_balance: float, the weight of the loss `E · Σ share_e · probability_e` (*Switch*,
            equation 4), where share_e is the fraction of tokens that choose expert e, and
            probability_e its mean probability. The loss is 1 if all experts are used equally.
        router_z_loss: float, the weight of the mean squared log-sum-exp of the router's logits
            (Zoph et al., 2022, equation 5).

    In training both losses are added with `add_loss`. `fit` also logs the load balance loss,
    without its weight, as `"<name of the layer>_load_balance"`, but not on JAX, where a layer
    cannot update a metric.

    Call arguments:
        inputs: (B, T, D), or any shape that ends with D.
        mask: bool (B, T), True = a token. Keras fills it from the implicit mask.

    Returns a tensor with the shape and the mask of the inputs. The output for padding is zeros.
    Padding does not use the capacity of an expert and does not count in the losses.

    ```python
    import numpy as np
    import keras_attention as ka

    layer = ka.blocks.MixtureOfExperts(
        experts=[ka.blocks.FeedForward(64, activation="swiglu") for _ in range(4)], top_k=2
    )
    assert layer(np.ones((2, 5, 16)), training=True).shape == (2, 5, 16)
    assert len(layer.losses) == 1
    ```
    """

    own_arguments = ("top_k", "capacity_factor", "load_balance", "router_z_loss")

    def __init__(
        self, experts, top_k=2, capacity_factor=None, load_balance=0.01, router_z_loss=0.0, **kwargs
    ):
        if not isinstance(experts, (list, tuple)) or not experts:
            raise ValueError(f"experts={experts!r}: expected a list of one or more layers.")
        super().__init__(**kwargs)
        self.supports_masking = True
        self.experts = [revive_layer(f"experts[{i}]", layer) for i, layer in enumerate(experts)]
        if len({id(expert) for expert in self.experts}) < len(self.experts):
            raise ValueError("experts has the same layer twice. Make a new layer for each expert.")
        self.top_k, self.capacity_factor = top_k, capacity_factor
        self.load_balance, self.router_z_loss = load_balance, router_z_loss
        checks.check_whole_numbers(self, "top_k")
        if top_k > len(self.experts):
            raise ValueError(
                f"top_k={top_k} is more than {len(self.experts)}, the number of experts. Give "
                "more experts, or a smaller top_k."
            )
        checks.check_number(self, "capacity_factor", above=0, optional=True)
        self._balance = _MeanOfTraining(name=f"{self.name}_load_balance")
        self._router = keras.layers.Dense(
            len(self.experts), use_bias=False, **self._projection_arguments("router", "float32")
        )
        name_axes(self._router, kernel=("embed", "experts"))

    def build(self, input_shape):
        shape = (None, input_shape[-1])
        self._router.build(shape)
        for expert in self.experts:
            if not expert.built:
                expert.build(shape)

    def call(self, inputs, mask=None, training=None):
        shape = ops.shape(inputs)
        merged = merges_tokens() or self.capacity_factor is not None
        rows = (-1,) if merged else shape[:-1]
        x = ops.reshape(inputs, (*rows, inputs.shape[-1]))  # (B·T, D) if merged, or (B, T, D)
        tokens = None if mask is None else ops.reshape(ops.cast(mask, "float32"), (*rows, 1))
        logits = self._router(x)
        probabilities = ops.softmax(logits)  # (B·T, E)
        gates, chosen = self._choose(probabilities, tokens)
        # (B·T, k, E), like `ops.one_hot`, which uses int64
        experts = ops.arange(len(self.experts), dtype="int32")
        experts = ops.reshape(experts, (*[1] * len(chosen.shape), -1))
        routes = ops.cast(ops.equal(ops.expand_dims(chosen, axis=-1), experts), "float32")
        if training:
            self._add_losses(logits, probabilities, routes, tokens)
        if self.capacity_factor is None:
            output = self._run_all(x, gates, routes, training)
        else:
            scope.refuse_decoding(
                f"{self.name} has a capacity for all tokens together. Use capacity_factor=None."
            )
            output = self._run_limited(x, gates, chosen, routes, tokens, training)
        return ops.reshape(output, prepend_batch(inputs, *shape[1:]))

    def _choose(self, probabilities, tokens):
        """Return the gates (weights) and the indices of each token's experts, both (B·T, k).

        `probabilities` is (B·T, E), and `tokens` float (B·T, 1), 0 for padding, else 1, or None.
        """
        gates, chosen = ops.top_k(probabilities, self.top_k)
        if self.top_k > 1:
            gates = ops.divide(gates, ops.sum(gates, axis=-1, keepdims=True))
        if tokens is not None:
            gates = ops.multiply(gates, tokens)
        return gates, chosen

    def _add_losses(self, logits, probabilities, routes, tokens):
        share = _mean(ops.divide(ops.sum(routes, axis=-2), self.top_k), tokens)  # (E,)
        balance = ops.sum(ops.multiply(share, _mean(probabilities, tokens))) * len(self.experts)
        if keras.backend.backend() != "jax":
            self._balance.update_state(ops.stop_gradient(balance))
        loss = ops.multiply(balance, self.load_balance)
        if self.router_z_loss:
            z = ops.square(ops.logsumexp(logits, axis=-1, keepdims=True))
            loss = ops.add(loss, ops.multiply(ops.sum(_mean(z, tokens)), self.router_z_loss))
        self.add_loss(loss)

    def _run_all(self, x, gates, routes, training):
        """Run every expert on every token, with a gate of 0 for experts that were not chosen.

        `x` is (B·T, D), `gates` (B·T, k), and `routes` (B·T, k, E), the chosen experts as one-hot
        vectors.
        """
        weights = ops.multiply(routes, ops.expand_dims(gates, axis=-1))
        weights = ops.sum(weights, axis=-2)  # (B·T, E)
        weights = ops.split(ops.cast(weights, x.dtype), len(self.experts), axis=-1)
        return sum(
            ops.multiply(expert(x, training=training), weight)
            for expert, weight in zip(self.experts, weights, strict=True)
        )

    def _run_limited(self, x, gates, chosen, routes, tokens, training):
        """Run every expert on at most C tokens, where C is the capacity, and return the gated sum.

        Args:
            x: (B·T, D).
            gates, chosen: (B·T, k), the weights and the indices of each token's experts.
            routes: float (B·T, k, E), `chosen` as one-hot vectors.
            tokens: float (B·T, 1), 0 for padding, else 1, or None.
            training: bool, passed to the experts.
        """
        count, experts = ops.shape(x)[0], len(self.experts)
        # C is computed with fractions, because a product of floats may be slightly too large
        share = fractions.Fraction(self.capacity_factor).limit_denominator(1000)
        share *= fractions.Fraction(self.top_k, experts)
        capacity = (count * share.numerator + share.denominator - 1) // share.denominator
        places = self._place_choices(chosen, routes, tokens, capacity)  # (k·B·T,)
        token = shapes.tile(ops.arange(1, count + 1, dtype="int32"), (self.top_k,))
        filled = ops.scatter(ops.expand_dims(places, axis=1), token, (experts * capacity + 1,))
        zeros = ops.zeros_like(x[:1])
        x = ops.take(ops.concatenate([zeros, x]), filled[:-1], axis=0)  # (E·C, D)
        x = ops.split(x, experts, axis=0)
        x = [expert(each, training=training) for expert, each in zip(self.experts, x, strict=True)]
        x = ops.take(ops.concatenate([*x, zeros]), places, axis=0)  # (k·B·T, D)
        x = ops.multiply(x, ops.cast(ops.reshape(ops.transpose(gates), (-1, 1)), x.dtype))
        return ops.sum(ops.reshape(x, (self.top_k, -1, x.shape[-1])), axis=0)

    def _place_choices(self, chosen, routes, tokens, capacity):
        """Return the index at which the inputs of the experts have each chosen token: int (k·B·T,).

        The inputs of all experts are one matrix (E · C, D) with C = `capacity` rows for each
        expert. The index is `expert · C + rank`, where `rank` counts the earlier tokens that chose
        this expert. It is E · C if the expert is full. The result has the first choices of all
        tokens, then all second choices, etc.
        """
        experts = len(self.experts)
        if tokens is not None:
            routes = ops.multiply(routes, ops.expand_dims(tokens, axis=2))
        routes = ops.cast(ops.transpose(routes, (1, 0, 2)), "int32")
        routes = ops.reshape(routes, (-1, experts))  # (k·B·T, E)
        rank = ops.sum(ops.multiply(ops.cumsum(routes, axis=0), routes), axis=1) - 1
        index = ops.reshape(ops.transpose(chosen), (-1,)) * capacity + rank
        fits = ops.logical_and(rank >= 0, rank < capacity)
        return ops.where(fits, index, experts * capacity)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        experts = [serialize_inner(expert) for expert in self.experts]
        return {**super().get_config(), "experts": experts}


class _MeanOfTraining(keras.metrics.Mean):
    """A mean that Keras logs only in training, because evaluation does not update its value."""

    def __init__(self, name):
        super().__init__(name=name)
        self._in_this_step = False

    def update_state(self, values, sample_weight=None):
        self._in_this_step = True
        return super().update_state(values, sample_weight)

    def result(self):
        if not self._in_this_step:
            return {}
        self._in_this_step = False
        return {self.name: super().result()}


def _mean(values, tokens):
    """Return the mean (F,) of `values` (B·T, F) over all tokens, without padding.

    `tokens` is float (B·T, 1), 0 for padding, else 1, or None.
    """
    axes = tuple(range(len(values.shape) - 1))
    axes = axes[0] if len(axes) == 1 else axes
    if tokens is None:
        return ops.mean(values, axis=axes)
    total = ops.sum(ops.multiply(values, tokens), axis=axes)
    return ops.divide(total, ops.maximum(ops.sum(tokens), 1.0))
