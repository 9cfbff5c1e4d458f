"""`AttentionLayer`: masks, positions, cache, recording and dropout around `attend`, once."""

import dataclasses
import functools
import operator

import keras

from keras_attention import masks, normalizers, scores
from keras_attention.attention import arguments, axes, inputs, kernels, kv_cache, segment_memory
from keras_attention.attention.attend import Equation, compute_attention
from keras_attention.attention.raw_scores import RawScores, check_previous
from keras_attention.attention.visibility import Visibility
from keras_attention.core import checks, keras_internals, scope
from keras_attention.core.integer_inputs import IntegerInputs
from keras_attention.core.part import OwnArguments
from keras_attention.core.sharing import serialize_shared


class AttentionLayer(OwnArguments, IntegerInputs, keras.layers.Layer):
    """The base of attention layers: masks, positions, cache, recording and dropout.

    `call` makes two records and hands them on unchanged: `Equation` says what is computed,
    `Visibility` who sees whom. A layer states `num_heads` and these steps of `call`:

    1. `project_query`: by default `_query_dense`, which its `build` makes.
    2. `project_key_value`: a dict of all that later queries need, such as key and value.
    3. `attend_heads`: its equation. It calls `self.attend`, with an `Equation` of its own, such as
       one with a bias.
    4. `project_output`: by default `_output_dense`.

    `build` also calls `build_parts`. With `cache_shapes` a layer decodes: it names the entries of
    `project_key_value` that a cache keeps. Quantization and LoRA reach projections made by
    `project` of `attention/projection.py`, in a layer that is a `ProjectionOwner` too.

    Args:
        score: a part of `keras_attention.scores`, its name or its config.
        normalizer: a part of `keras_attention.normalizers`, its name or its config.
        mask: a part of `keras_attention.masks`, its name, its config or None.
        position: a part of `keras_attention.positions` that rotates queries and keys or biases
            scores, its name, its config, a list of them, or None.
        dropout: float, the share of attention weights dropped in training. The others grow by
            1 / (1 - dropout), so that rows sum to one on average.
        seed: int, for dropout.
        implementation: `"dense"`, `"fused"`, `"banded"`, `"chunked"` or `"ring"`, or None to pick
            one by the rule of `keras_attention.attention.choose`. The named kernel computes every
            output, or an error says why it cannot. `"dense"` computes weights that are asked for,
            and attention to a cache.
        padding: `"right"` where padding comes after the tokens in every row, or None. Attention on
            GPUs then takes lengths in place of masks. This is not checked: with padding in front
            the result is wrong.

    Call arguments:
        query: (B, T, D), or (B, dims..., D) with `attention_axes`.
        value: (B, S, D). key: (B, S, D), default `value`.
        query_mask: bool (B, T). value_mask, key_mask: bool (B, S). True = a token, False = padding.
            Keras fills them from the implicit masks of the tensors.
        attention_mask: bool, True = may attend: (B, T, S), or anything that broadcasts to
            (B, N, T, S), with missing axes in front of T. Floats must be known and 0 or 1.
        return_attention_scores: bool, whether to return the weights (B, N, T, S) too, as they are
            before dropout.
        training: bool, whether dropout is active.
        use_causal_mask: bool, whether key j is hidden from query i when j > i.
        segment_ids, value_segment_ids: int (B, T) and (B, S), the documents of a packed row. A
            token sees its own document. 0 is padding. The second defaults to the first.
        query_positions: int (T,) or (B, T), value_positions: int (S,) or (B, S): where the tokens
            are, for `mask` and `position`. Default: 0, 1, 2, ... Where query and value are one
            tensor, positions given for one hold for both.
        previous_scores, return_raw_scores: only for `ResidualAttention`.

    All masks that are given must allow a pair. A query that may attend to nothing gives exact zeros
    before the output projection. The output carries the query's mask.

    Example:

    ```python
    import keras
    import numpy as np
    import keras_attention as ka


    class OneHead(ka.attention.AttentionLayer):
        num_heads = 1

        def project_query(self, query):
            return keras.ops.expand_dims(query, axis=2)  # (B, T, 1, D)

        def project_key_value(self, value, key, visibility):
            heads = keras.ops.expand_dims(value, axis=2)
            return {"key": heads, "value": heads}

        def project_output(self, output, query):
            return keras.ops.squeeze(output, axis=2)


    x = np.random.rand(2, 5, 8).astype("float32")
    output, weights = OneHead(mask="causal")(x, x, return_attention_scores=True)
    assert output.shape == (2, 5, 8) and weights.shape == (2, 1, 5, 5)
    ```
    """

    num_heads, key_dim, num_memory_slots = 1, None, 0
    attention_axes = None  # all but batch and features
    remembers_segments = False  # whether it attends to the hidden states of earlier segments
    hands_on_scores = False  # whether it adds the scores of the layer below to its own
    _parts = ("score", "normalizer", "mask")  # those that are arguments, beside the position
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
        dtype = self.dtype_policy
        self.score = arguments.require_part("score", scores.get(score, dtype))
        self.normalizer = arguments.require_part("normalizer", normalizers.get(normalizer, dtype))
        self.mask = masks.get(mask)
        self.position = arguments.get_position(position, dtype)
        self.dropout, self.seed = dropout, seed
        if implementation is not None:
            kernels.get_kernel(implementation)  # or an error
        self.implementation, self.padding = implementation, padding
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
        arguments = self.name_arguments(args, kwargs)
        query, value = arguments.get("query"), arguments.get("value")
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
        previous_scores=None,
        return_raw_scores=False,
    ):
        key = value if key is None else key
        attended = self.attended_axes(query)
        self._check_call(
            query,
            value,
            {
                "query_mask": query_mask,
                "value_mask": value_mask,
                "key_mask": key_mask,
                "attention_mask": attention_mask,
                "segment_ids": segment_ids,
                "value_segment_ids": value_segment_ids,
                "query_positions": query_positions,
                "value_positions": value_positions,
                "previous_scores": previous_scores,
                "return_raw_scores": return_raw_scores,
            },
        )
        if self._flash_attention and return_attention_scores:
            raise ValueError(
                "Returning attention scores is not supported when flash attention is enabled. "
                "Please disable flash attention to access attention scores."
            )
        if key_mask is not None and key_mask is not value_mask:
            value_mask = masks.all_of(value_mask, key_mask)
        value_segment_ids = segment_ids if value_segment_ids is None else value_segment_ids
        if value is query and key is value:  # positions of either are of both
            query_positions = value_positions if query_positions is None else query_positions
            value_positions = query_positions if value_positions is None else value_positions
        visibility = Visibility(
            mask=self.mask_part(use_causal_mask),
            attention_mask=axes.mask_to_sequences(attention_mask, query, attended),
            query_mask=axes.rows_to_sequences(query_mask, attended),
            key_mask=axes.rows_to_sequences(value_mask, attended),
            query_positions=query_positions,
            key_positions=value_positions,
            segments=None if segment_ids is None else (segment_ids, value_segment_ids),
        )
        heads, visibility, cached = self._project(query, value, key, visibility, attended)
        equation = self.make_equation(training)
        if self.hands_on_scores:
            previous = axes.weights_to_sequences(previous_scores, query, value, attended)
            equation = dataclasses.replace(equation, score=RawScores(equation.score, previous))
        sequence = axes.to_sequences(query, attended)
        output, weights = self.attend_heads(
            self.project_query(sequence),
            heads,
            equation,
            visibility,
            return_attention_scores or scope.wants_weights(self),
            kernels.CACHED if cached else self.implementation,
        )
        scope.record_weights(self, weights)
        output = self.project_output(output, sequence)
        outputs = [axes.from_sequences(output, query, attended)]
        if return_attention_scores:
            slots = self.num_memory_slots
            outputs.append(axes.weights_from_sequences(weights, query, value, attended, slots))
        if return_raw_scores:
            raw = equation.score.raw
            outputs.append(axes.weights_from_sequences(raw, query, value, attended))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _project(self, query, value, key, visibility, attended):
        """Return the heads to attend to, their `Visibility`, and whether a cache keeps them."""
        values = axes.to_sequences(value, attended)
        keys = values if key is value else axes.to_sequences(key, attended)
        if self.remembers_segments:
            past = segment_memory.join_past(self, query, values, keys, visibility)
            values, keys, visibility = past
        if 1 in attended:
            if cached := kv_cache.extend_cache(self, query, values, keys, visibility):
                return *cached, True
        if self.padding == "right" and values is value:
            visibility = visibility.with_lengths_of_masks()
        return self.project_key_value(values, keys, visibility), visibility, False

    def _check_call(self, query, value, arguments):
        """Refuses arguments of a call, by name, that do not fit queries and values."""
        attended, sizes = self.attended_axes(query), (query.shape, value.shape)
        inputs.check_call(self.name, *sizes, arguments, attended, self.num_heads)
        previous_scores = arguments.get("previous_scores")
        if previous_scores is None and not arguments.get("return_raw_scores"):
            return
        if not self.hands_on_scores:
            raise ValueError(
                f"{self.name} was given previous_scores or return_raw_scores=True, which only "
                "ResidualAttention takes. Leave them out, or use ResidualAttention."
            )
        if scope.current(scope.Decoding) is None:  # a cache makes scores of all tokens so far
            shape = axes.weights_shape(self.num_heads, *sizes, attended)
            check_previous(previous_scores, shape)

    def make_equation(self, training=False):
        """Return the `Equation` of a call: the parts, and the dropout of weights in training."""
        dropout = self.drop_weights if training and self.dropout else None
        return Equation(self.score, self.normalizer, self.position, dropout=dropout)

    def drop_weights(self, weights):
        """Drop some of the weights, as in training."""
        drop = self._dropout_layer
        return weights if drop is None else drop(weights, training=True)

    def project_query(self, query):
        """Return queries (B, T, D) in heads, (B, T, N, H)."""
        return self._query_dense(query)

    def project_key_value(self, value, key, visibility):
        """Return what `attend_heads` attends to: a dict, name -> (B, S, ...).

        Args:
            value, key: (B, S, D). visibility: `Visibility`, with the positions of keys for a layer
                that rotates them itself.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no project_key_value, which gives what is attended to: a "
            'dict such as {"key": (B, S, K, H), "value": (B, S, K, H)}.'
        )

    def project_for_cache(self, value, key, visibility):
        """Return `project_key_value` as a cache keeps it: name -> (B, ..., S, H), keys rotated.

        (B, S, K, H) becomes (B, K, S, H), and (B, S, C) stays.
        """
        heads = self.project_key_value(value, key, visibility)
        return kv_cache.rotate_and_transpose(self.position, heads, visibility.key_positions)

    @property
    def cache_shapes(self):
        """Return what a cache keeps of one token: name -> shape, (K, H) of heads (B, S, K, H)."""
        raise NotImplementedError(
            f"{type(self).__name__} has no cache_shapes and so cannot decode with a cache. Add the "
            "property: the names that project_key_value gives, each with its shape for one token, "
            'such as {"key": (num_heads, key_dim), "value": (num_heads, key_dim)}.'
        )

    def attend_heads(self, query, heads, equation, visibility, return_weights, implementation):
        """Compute the layer's equation: output (B, T, N, Hv), and weights or None.

        Args:
            query: from `project_query`. heads: from `project_key_value`, or from a cache.
            equation: from `make_equation`. visibility: `Visibility`, to hand on unchanged.
            return_weights: bool, whether anybody wants the weights.
            implementation: that of the layer, or `kernels.CACHED` for heads from a cache.
        """
        how = equation, visibility, return_weights, implementation
        return self.attend(query, heads["key"], heads["value"], *how)

    def attend(self, query, key, value, equation, visibility, return_weights, implementation):
        """Return the output (B, T, N, Hv), and the weights (B, N, T, S) if they are wanted.

        Where another kernel than `dense` is named, it computes the output, and `dense` the weights.
        """
        arguments, flash = (query, key, value, equation, visibility), self._flash_attention
        if not (return_weights and self.names_kernel(implementation)):
            return compute_attention(*arguments, return_weights, implementation, flash)
        _, weights = compute_attention(*arguments, return_weights=True)
        return compute_attention(*arguments, False, implementation, flash)[0], weights

    def names_kernel(self, implementation):
        """Return whether a kernel is asked for that gives no weights."""
        return implementation not in (None, "dense", kernels.CACHED) or bool(self._flash_attention)

    def project_output(self, output, query):
        """Map heads (B, T, N, Hv) back to (B, T, D). `query` (B, T, D) is the layer's input."""
        return self._output_dense(output)

    def mask_part(self, use_causal_mask=False):
        """Return the mask part of a call, or None."""
        return join_masks(self.mask, masks.Causal() if use_causal_mask else None)

    def attended_axes(self, query):
        """Return which axes of `query` are attended over, sorted."""
        return axes.resolve_axes(self.attention_axes, len(query.shape))

    def compute_output_shape(self, query_shape, value_shape, key_shape=None):
        return tuple(query_shape)

    def compute_output_spec(self, *args, **kwargs):
        arguments = self.name_arguments(args, kwargs)
        query, value, key = (arguments.get(name) for name in ("query", "value", "key"))
        self._check_call(query, value, arguments)
        key_shape = value.shape if key is None else key.shape
        shapes = [self.compute_output_shape(query.shape, value.shape, key_shape)]
        sizes = self.num_heads, query.shape, value.shape, self.attended_axes(query)
        if arguments.get("return_attention_scores"):
            shapes.append(axes.weights_shape(*sizes, self.num_memory_slots))
        if arguments.get("return_raw_scores"):
            shapes.append(axes.weights_shape(*sizes))
        outputs = [keras.KerasTensor(shape, self.compute_dtype) for shape in shapes]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def get_config(self):
        serialize = keras.saving.serialize_keras_object
        parts = {name: serialize(getattr(self, name)) for name in self._parts}
        return {
            **super().get_config(),
            **parts,
            "position": serialize_shared(self.position),
            "dropout": self.dropout,
            "seed": self.seed,
            "implementation": self.implementation,
            "padding": self.padding,
        }


def join_masks(*parts):
    """Return the mask part that allows what all of `parts` allow. None allows everything."""
    parts = [part for part in parts if part is not None]
    return functools.reduce(operator.and_, parts) if parts else None
