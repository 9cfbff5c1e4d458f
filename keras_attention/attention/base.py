"""`AttentionLayer`: masks, positions, cache, recording and dropout around `attend`, once."""

import dataclasses
import inspect

import keras

from keras_attention import masks
from keras_attention.attention import arguments, axes, kv_cache, segment_memory
from keras_attention.attention.attend import AttendArguments, attend_in_layer
from keras_attention.attention.inputs import AttentionInputs, join_masks
from keras_attention.core import checks, keras_internals, scope, token_layout
from keras_attention.core.integer_inputs import IntegerInputs
from keras_attention.core.sharing import serialize_shared


class AttentionLayer(IntegerInputs, keras.layers.Layer):
    """What all attention layers share; a layer states its projections and its equation.

    A layer has `num_heads`, and says what each step of `call` is:

    1. `project_query`: by default `_query_dense`, which its `build` makes.
    2. `project_key_value`: a dict of all that later queries need, such as key and value.
    3. `attend_heads`: its equation, which calls `self.attend`, with `bias=` if it adds to scores.
    4. `project_output`: by default `_output_dense`.

    `cache_shapes` states what a cache keeps of a token, by the names of `project_key_value`;
    without it a layer cannot decode. `build` also calls `build_parts`. `project` of
    `attention/projection.py` makes a projection that quantization and LoRA reach, for a layer that
    is a `ProjectionOwner` too.

    Args:
        score: a part of `keras_attention.scores`, its name or its config.
        normalizer: a part of `keras_attention.normalizers`, its name or its config.
        mask: a part of `keras_attention.masks`, its name, its config or None.
        position: a part of `keras_attention.positions` that rotates queries and keys or biases
            scores, its name, its config, a list of them, or None.
        dropout: float, the share of attention weights dropped in training. The others grow by
            1 / (1 - dropout), so that rows sum to one on average; what is masked stays zero.
        seed: int, for dropout.
        implementation: name of a kernel: `"dense"`, `"fused"`, `"banded"`, `"chunked"` or `"ring"`,
            all equal; None picks one by the rule of `keras_attention.attention.choose`. The one
            that is named computes the output of every call, or an error says why it cannot; weights
            that are asked for are computed by `"dense"` beside it, and so is attention to a cache.
        padding: `"right"`, a promise that padding comes after the tokens in every row: attention of
            GPUs then takes lengths in place of masks. Nothing checks it, and what a call in which
            padding comes first gives is wrong there. None promises nothing.

    Call arguments:
        query: (B, T, D), or (B, dims..., D) with `attention_axes`.
        value: (B, S, D). key: (B, S, D), default `value`.
        query_mask: bool (B, T). value_mask, key_mask: bool (B, S). Filled by Keras from the
            implicit masks of the tensors; True = a token, False = padding.
        attention_mask: bool, True = may attend: (B, T, S), or anything that broadcasts to
            (B, N, T, S) with missing axes in front of T. Of floats all must be 0 or 1, and known
            when the layer is called: what is added to scores (0 and -1e9) means the opposite.
        return_attention_scores: bool, whether to return the weights (B, N, T, S) too, as they are
            before dropout.
        training: bool, whether dropout is active.
        use_causal_mask: bool, whether key j is hidden from query i when j > i.
        segment_ids: int (B, T), value_segment_ids: int (B, S), for packed documents: tokens see
            tokens of their own segment, and segment 0 is padding. The second defaults to the first,
            and means nothing without it.
        query_positions: int (T,) or (B, T), value_positions: int (S,) or (B, S): where the tokens
            are, for `mask` and `position`. Default: 0, 1, 2, ...; where query and value are one
            tensor, positions given for one hold for both.
        score: a part that scores in the place of the layer's in this call; for subclasses.

    Masks that are given together must all allow a pair. A query that may attend to nothing gives
    exact zeros before the output projection, and the output carries the query's mask.

    Example:

    ```python
    import keras
    import numpy as np
    import keras_attention as ka


    class OneHead(ka.attention.AttentionLayer):
        num_heads = 1

        def project_query(self, query):
            return keras.ops.expand_dims(query, axis=2)  # (B, T, 1, D)

        def project_key_value(self, inputs):
            heads = keras.ops.expand_dims(inputs.value_sequence, axis=2)
            return {"key": heads, "value": heads}

        def project_output(self, output, query):
            return keras.ops.squeeze(output, axis=2)


    x = np.random.rand(2, 5, 8).astype("float32")
    output, weights = OneHead(mask="causal")(x, x, return_attention_scores=True)
    assert output.shape == (2, 5, 8) and weights.shape == (2, 1, 5, 5)
    ```
    """

    attention_axes = None  # all but batch and features
    num_memory_slots = 0
    remembers_segments = False  # whether it attends to the hidden states of earlier segments
    _parts = ("score", "normalizer", "mask", "position")  # those that are arguments
    _flash_attention = None

    def __init__(
        self,
        *,
        score="scaled_dot",
        normalizer="softmax",
        mask=None,
        position=None,
        dropout=0.0,
        seed=None,
        implementation=None,
        padding=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.score = arguments.get_score(score, self.dtype_policy)
        self.normalizer = arguments.get_normalizer(normalizer, self.dtype_policy)
        self.mask = masks.get(mask)
        self.position = arguments.get_position(position, self.dtype_policy)
        self.dropout, self.seed = dropout, seed
        self.implementation = arguments.get_implementation(implementation)
        self.padding = padding
        checks.check_choice(self, "padding", (None, "right"))
        self._dropout_layer = None

    def build_parts(self, query_shape, key_shape=None):
        """Builds what scores, positions and dropout need, for heads (B, T, N, H) and (B, S, K, H).

        A part that other layers hold as well is built once.
        """
        if self.dropout:
            self._dropout_layer = keras.layers.Dropout(
                self.dropout, seed=self.seed, dtype=self.dtype_policy
            )
        if isinstance(self.score, keras.layers.Layer) and not self.score.built:
            self.score.build(query_shape, key_shape or query_shape)
        if isinstance(self.position, keras.layers.Layer) and not self.position.built:
            self.position.build(query_shape)

    def __call__(self, *args, **kwargs):
        """Makes one tensor of an array that is given both as query and as value.

        Keras makes a tensor of each argument, and casts each, so that in `call` they would be two.
        """
        query = kwargs.get("query", args[0] if args else None)
        value = kwargs.get("value", args[1] if len(args) > 1 else None)
        if query is not None and value is query:
            tensor = self.dtype_policy.convert_input(query, self.autocast, self.input_dtype)
            mask = keras_internals.get_mask(query)
            if tensor is not query and mask is not None:
                keras_internals.set_mask(tensor, mask)
            args = tuple(tensor if x is query else x for x in args)
            kwargs = {name: tensor if x is query else x for name, x in kwargs.items()}
        return super().__call__(*args, **kwargs)

    def call(
        self,
        query,
        value,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
        segment_ids=None,
        value_segment_ids=None,
        query_positions=None,
        value_positions=None,
        score=None,
    ):
        given = inputs = AttentionInputs(
            query=query,
            value=value,
            key=value if key is None else key,
            query_mask=query_mask,
            value_mask=value_mask,
            key_mask=key_mask,
            attention_mask=attention_mask,
            segment_ids=segment_ids,
            value_segment_ids=value_segment_ids,
            query_positions=query_positions,
            value_positions=value_positions,
            attended=self.attended_axes(query),
        )
        inputs.check(self.name, self.num_heads)
        if self.remembers_segments:
            inputs = segment_memory.join_past(self, inputs)
        mask = self.mask_part(use_causal_mask)
        cached = self._extend_cache(inputs, mask)
        if cached is None:
            heads, inputs = self.project_key_value(inputs), inputs.with_shared_positions()
        else:
            heads, inputs = cached.heads, inputs.in_cache(cached)
        apart = cached is None and token_layout.count_sequence_devices() is not None
        mask_tensor = inputs.mask_tensor(segments=not apart)
        told = self.padding == "right" and cached is None and inputs.value is given.value
        output, weights = self.attend_heads(
            self.project_query(inputs.query_sequence),
            heads,
            AttendArguments(
                mask=mask,
                attention_mask=mask_tensor,
                segments=inputs.segment_pair() if apart else None,
                query_mask=inputs.query_padding,
                query_positions=inputs.query_positions,
                key_positions=inputs.value_positions,
                lengths=inputs.padding_lengths(mask_tensor) if told else None,
                cached=cached is not None,
                training=training,
                return_weights=return_attention_scores,
                implementation=self.implementation if cached is None else None,
                score=score,
                inputs=given,
            ),
        )
        scope.record_weights(self, weights)
        output = self.project_output(output, inputs.query_sequence)
        output = axes.from_sequences(output, query, inputs.attended)
        if not return_attention_scores:
            return output
        return output, axes.weights_from_sequences(
            weights, query, inputs.value, inputs.attended, self.num_memory_slots
        )

    def project_query(self, query):
        """Queries (B, T, D) in heads, (B, T, N, H)."""
        return self._query_dense(query)

    def project_key_value(self, inputs):
        """What is attended to, as `attend_heads` takes it: a dict, name -> (B, S, ...)."""
        raise NotImplementedError(
            f"{type(self).__name__} has no project_key_value, which gives what is attended to: a "
            'dict such as {"key": (B, S, K, H), "value": (B, S, K, H)}.'
        )

    def project_for_cache(self, inputs, positions):
        """`project_key_value` as a cache keeps it: name -> (B, ..., S, H), with keys rotated.

        (B, S, K, H) becomes (B, K, S, H), and (B, S, C) stays.
        """
        heads = self.project_key_value(inputs)
        return kv_cache.rotate_and_transpose(self.position, heads, positions)

    @property
    def cache_shapes(self):
        """What a cache keeps of one token: name -> shape, (K, H) of heads (B, S, K, H)."""
        raise NotImplementedError(
            f"{type(self).__name__} has no cache_shapes and so cannot decode with a cache. Add the "
            "property: the names that project_key_value gives, each with its shape for one token, "
            'such as {"key": (num_heads, key_dim), "value": (num_heads, key_dim)}.'
        )

    def attend_heads(self, query, heads, call, **parts):
        """The layer's equation: output (B, T, N, Hv), and weights or None, which `attend` gives.

        Args:
            query: from `project_query`.
            heads: from `project_key_value`, or, `call.cached`, from a cache.
            call: `AttendArguments`.
            parts: from a subclass, such as `bias`; go to `attend`.
        """
        return self.attend(query, heads["key"], heads["value"], call, **parts)

    def project_output(self, output, query):
        """Heads (B, T, N, Hv) back to (B, T, D); `query` (B, T, D) is what the layer was given."""
        return self._output_dense(output)

    attend = attend_in_layer  # attend(query, key, value, call, **parts)

    def mask_part(self, use_causal_mask=False):
        """The mask part that a call attends with, or None."""
        return join_masks(self.mask, masks.Causal() if use_causal_mask else None)

    def attended_axes(self, query):
        """Which axes of `query` are attended over, sorted."""
        return axes.resolve_axes(self.attention_axes, len(query.shape))

    def _extend_cache(self, inputs, mask):
        """What a cache holds of the tokens so far, these included, or None without a cache."""
        if scope.current(scope.Decoding) is None or 1 not in inputs.attended:
            return None
        return kv_cache.extend_cache(
            self,
            lambda positions: self.project_for_cache(inputs, positions),
            self.cache_shapes,
            inputs.query,
            inputs.value_sequence,
            mask=mask,
            value_mask=inputs.key_padding,
            query_positions=inputs.query_positions,
            attention_mask=inputs.attention_mask,
            value_positions=inputs.value_positions,
            segment_ids=inputs.segment_ids,
            value_segment_ids=inputs.value_segment_ids,
        )

    def compute_output_shape(self, query_shape, value_shape, key_shape=None):
        return tuple(query_shape)

    def compute_output_spec(
        self,
        query,
        value,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        **kwargs,
    ):
        names = {field.name for field in dataclasses.fields(AttentionInputs)}
        given = {name: x for name, x in kwargs.items() if name in names}
        attended = self.attended_axes(query)
        padding = (query_mask, value_mask, key_mask)
        inputs = AttentionInputs(
            query, value, key, *padding, attention_mask, attended=attended, **given
        )
        inputs.check(self.name, self.num_heads)
        key_shape = value.shape if key is None else key.shape
        output = keras.KerasTensor(
            self.compute_output_shape(query.shape, value.shape, key_shape), self.compute_dtype
        )
        if not return_attention_scores:
            return output
        shape = axes.weights_shape(
            self.num_heads, query.shape, value.shape, attended, self.num_memory_slots
        )
        return output, keras.KerasTensor(shape, self.compute_dtype)

    def get_config(self):
        parts = {
            name: (serialize_shared if name == "position" else keras.saving.serialize_keras_object)(
                getattr(self, name)
            )
            for name in self._parts
        }
        return {
            **super().get_config(),
            **parts,
            "dropout": self.dropout,
            "seed": self.seed,
            "implementation": self.implementation,
            "padding": self.padding,
        }


def extends_call(call):
    """Decorates a `call` that takes the arguments of another `call` too, as **kwargs.

    The signature then names the arguments of both, for Keras, which fills in a mask where the
    signature names it, and for `help`. What `call` does, does not depend on it.
    """
    inherited = inspect.signature(call).parameters

    def decorate(extended):
        own = inspect.signature(extended).parameters.values()
        own = [p for p in own if p.kind is p.KEYWORD_ONLY and p.name not in inherited]
        extended.__signature__ = inspect.Signature([*inherited.values(), *own])
        return extended

    return decorate
