"""A feed-forward network of experts, a few of which compute each token."""

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
    """Each token is the gated sum of its `top_k` experts (Shazeer et al., 2017, section 2).

    `Σ gate_e · expert_e(x)` over the `top_k` experts whose probability, `softmax(x W)`, is highest.
    With one expert its gate is that probability (Fedus et al., 2021, *Switch*, equation 2); with
    more, the probabilities are divided by their sum (Lepikhin et al., 2020, *GShard*, algorithm 1).
    Routing is computed in float32 and draws no random numbers; of equal experts the first is taken.

    Without `capacity_factor` no token is dropped, and every expert computes every token: exact, at
    the cost of all experts. With it, each expert has `⌈capacity_factor · top_k · B·T / E⌉` slots
    and computes no more. Slots go to first choices before second ones, and to earlier tokens
    before later ones; a token that finds no slot gets nothing from that expert, and lives on in
    the residual stream. `capacity_factor = E / top_k` has slots for all.

    Args:
        experts: list of E layers called on one tensor, such as `FeedForward`; each has weights of
            its own.
        top_k: int, how many experts each token is routed to.
        capacity_factor: float, or None.
        load_balance: float, the weight of the loss that is least when experts get equal shares,
            `E · Σ share_e · probability_e` (*Switch*, equation 4), which then is 1.
        router_z_loss: float, the weight of the mean squared log-sum-exp of the router's logits
            (Zoph et al., 2022, equation 5).

    Both losses are added with `add_loss`, in training. `fit` shows the first, not yet multiplied by
    `load_balance`, among its logs and in its history, as `"<name of the layer>_load_balance"`; but
    on JAX, where a layer cannot add to a metric while it runs.

    Call arguments:
        inputs: (B, T, D), or any shape that ends with D.
        mask: bool (B, T), True = a token; filled by Keras from the implicit mask.

    Padding is not routed, takes no slot, counts in no loss, and gives zeros. Returns the shape of
    the inputs; the mask passes through.

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
            raise ValueError(f"experts={experts!r}: expected a list of one layer or more.")
        super().__init__(**kwargs)
        self.supports_masking = True
        self.experts = [revive_layer(f"experts[{i}]", layer) for i, layer in enumerate(experts)]
        if len({id(expert) for expert in self.experts}) < len(self.experts):
            raise ValueError("experts: one layer is in the list twice. Make a new one for each.")
        self.top_k, self.capacity_factor = top_k, capacity_factor
        self.load_balance, self.router_z_loss = load_balance, router_z_loss
        checks.check_whole_numbers(self, "top_k")
        if top_k > len(self.experts):
            raise ValueError(
                f"top_k={top_k} is more than the {len(self.experts)} experts there are."
            )
        if capacity_factor is not None:
            checks.check_number(self, "capacity_factor", above=0)
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
        merged = merges_tokens() or self.capacity_factor is not None  # of all tokens together
        rows = (-1,) if merged else shape[:-1]
        x = ops.reshape(inputs, (*rows, inputs.shape[-1]))  # (B·T, D) or (B, T, D), as all below
        tokens = None if mask is None else ops.reshape(ops.cast(mask, "float32"), (*rows, 1))
        logits = self._router(x)
        probabilities = ops.softmax(logits)  # (B·T, E)
        gates, chosen = self._choose(probabilities, tokens)
        # (B·T, k, E), as by `ops.one_hot`, which goes through int64
        experts = ops.arange(len(self.experts), dtype="int32")
        experts = ops.reshape(experts, (*[1] * len(chosen.shape), -1))
        asked = ops.cast(ops.equal(ops.expand_dims(chosen, axis=-1), experts), "float32")
        if training:
            self._add_losses(logits, probabilities, asked, tokens)
        if self.capacity_factor is not None:
            scope.refuse_decoding(
                f"{self.name} has a capacity for all tokens together. Use capacity_factor=None."
            )
        if self.capacity_factor is None:
            output = self._all(x, gates, asked, training)
        else:
            output = self._within_capacity(x, gates, chosen, asked, tokens, training)
        return ops.reshape(output, prepend_batch(inputs, *shape[1:]))

    def _choose(self, probabilities, tokens):
        """The gates of each token's experts, and which they are: both (B·T, k)."""
        gates, chosen = ops.top_k(probabilities, self.top_k)
        if self.top_k > 1:
            gates = ops.divide(gates, ops.sum(gates, axis=-1, keepdims=True))
        if tokens is not None:
            gates = ops.multiply(gates, tokens)
        return gates, chosen

    def _add_losses(self, logits, probabilities, asked, tokens):
        asked = ops.sum(asked, axis=-2)  # (B·T, E)
        share = _mean(ops.divide(asked, self.top_k), tokens)
        balance = ops.sum(ops.multiply(share, _mean(probabilities, tokens))) * len(self.experts)
        if keras.backend.backend() != "jax":
            self._balance.update_state(ops.stop_gradient(balance))
        loss = ops.multiply(balance, self.load_balance)
        if self.router_z_loss:
            z = ops.square(ops.logsumexp(logits, axis=-1, keepdims=True))
            loss = ops.add(loss, ops.multiply(ops.sum(_mean(z, tokens)), self.router_z_loss))
        self.add_loss(loss)

    def _all(self, x, gates, asked, training):
        """Every expert on every token, multiplied by a gate that is 0 for experts not chosen."""
        weights = ops.sum(ops.multiply(asked, ops.expand_dims(gates, axis=-1)), axis=-2)  # (B·T, E)
        weights = ops.split(ops.cast(weights, x.dtype), len(self.experts), axis=-1)
        return sum(
            ops.multiply(expert(x, training=training), weight)
            for expert, weight in zip(self.experts, weights, strict=True)
        )

    def _within_capacity(self, x, gates, chosen, asked, tokens, training):
        """Every expert on the tokens that have one of its C slots."""
        count, experts = ops.shape(x)[0], len(self.experts)
        # how many tokens an expert takes; in fractions, as a product of floats may round up
        share = fractions.Fraction(self.capacity_factor).limit_denominator(1000)
        share *= fractions.Fraction(self.top_k, experts)
        capacity = (count * share.numerator + share.denominator - 1) // share.denominator
        slots = self._assign_slots(chosen, asked, tokens, capacity)  # (k·B·T,)
        token = shapes.tile(ops.arange(1, count + 1, dtype="int32"), (self.top_k,))
        filled = ops.scatter(ops.expand_dims(slots, axis=1), token, (experts * capacity + 1,))
        zeros = ops.zeros_like(x[:1])
        x = ops.take(ops.concatenate([zeros, x]), filled[:-1], axis=0)  # (E·C, D)
        x = ops.split(x, experts, axis=0)
        x = [expert(each, training=training) for expert, each in zip(self.experts, x, strict=True)]
        x = ops.take(ops.concatenate([*x, zeros]), slots, axis=0)  # (k·B·T, D)
        x = ops.multiply(x, ops.cast(ops.reshape(ops.transpose(gates), (-1, 1)), x.dtype))
        return ops.sum(ops.reshape(x, (self.top_k, -1, x.shape[-1])), axis=0)

    def _assign_slots(self, chosen, asked, tokens, capacity):
        """The slot of each choice, `expert · C + rank`, or E·C for none; first choices first."""
        experts = len(self.experts)
        if tokens is not None:
            asked = ops.multiply(asked, ops.expand_dims(tokens, axis=2))
        asked = ops.cast(ops.transpose(asked, (1, 0, 2)), "int32")
        asked = ops.reshape(asked, (-1, experts))  # (k·B·T, E)
        rank = ops.sum(ops.multiply(ops.cumsum(asked, axis=0), asked), axis=1) - 1
        slot = ops.reshape(ops.transpose(chosen), (-1,)) * capacity + rank
        fits = ops.logical_and(rank >= 0, rank < capacity)
        return ops.where(fits, slot, experts * capacity)

    def compute_output_shape(self, input_shape):
        return input_shape

    def compute_output_spec(self, inputs, mask=None, training=None):
        return keras.KerasTensor(inputs.shape, self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "experts": [serialize_inner(expert) for expert in self.experts],
        }


class _MeanOfTraining(keras.metrics.Mean):
    """A mean that a step reports if it has added to it: training does, evaluation does not."""

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
    """The mean of (B·T, F) over the tokens: (F,)."""
    axes = tuple(range(len(values.shape) - 1))
    axes = axes[0] if len(axes) == 1 else axes
    if tokens is None:
        return ops.mean(values, axis=axes)
    total = ops.sum(ops.multiply(values, tokens), axis=axes)
    return ops.divide(total, ops.maximum(ops.sum(tokens), 1.0))
