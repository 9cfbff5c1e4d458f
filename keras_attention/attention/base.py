"""`AttentionLayer`: the base class of attention layers."""

import dataclasses
import functools
import operator

import keras

from keras_attention import masks, normalizers, scores
from keras_attention.attention import arguments, axes, inputs, kernels, kv_cache, segment_memory
from keras_attention.attention.attend import Equation, RawScores, compute_attention
from keras_attention.attention.visibility import Visibility
from keras_attention.core import checks, keras_internals, scope
from keras_attention.core.integer_inputs import IntegerInputs
from keras_attention.core.part import OwnArguments
from keras_attention.core.sharing import serialize_shared


class AttentionLayer(OwnArguments, IntegerInputs, keras.layers.Layer):
    """Base class of attention layers, with masks, positions, a cache, recorded weights and dropout.

    The layer computes `weights = normalize(score(q, k) + bias, mask)` and `output = weights · v`,
    where a subclass projects its inputs to the heads q, k and v. A subclass sets `num_heads` and
    defines these steps of `call`:

    1. `project_query` returns the query heads. By default it applies `_query_dense`.
    2. `project_key_value` returns a dict with the key and value heads.
    3. `attend_heads` computes the attention of the heads. Most subclasses keep it.
    4. `project_output` maps the heads to the output. By default it applies `_output_dense`.

    The heads of queries are (B, T, N, H), those of keys and values (B, S, K, H), where K is a
    divisor of N. The second and third method get an argument `visibility`, a record of the masks
    and positions of the call. A subclass with weights creates them in `build` and then calls
    `build_parts` with the shape (B, T, N, H). For decoding with a cache, the property
    `cache_shapes` returns a dict with the shape of each key and value head for one token, such as
    `{"key": (K, H), "value": (K, H)}`. The guide *Write your own* explains more.

    Args:
        score: a score of `keras_attention.scores`, its name or its config.
        normalizer: a normalizer of `keras_attention.normalizers`, its name or its config.
        mask: a mask of `keras_attention.masks`, its name, its config, or None.
        position: an encoding of `keras_attention.positions` that rotates queries and keys or biases
            scores, its name, its config, a list of these, or None.
        dropout: float, the fraction of attention weights set to 0 in training. The others are
            multiplied by 1 / (1 - dropout).
        seed: int, the seed of dropout, or None.
        implementation: name of a kernel, `"dense"`, `"fused"`, `"banded"`, `"chunked"` or `"ring"`.
            None applies the rule of `keras_attention.attention.choose`, which describes them. If
            the named kernel cannot compute a call, the call raises an error with the reason. There
            are two exceptions, which `"dense"` always computes: calls that also return the
            weights, and attention to a cache.
        padding: `"right"` if in every row padding comes after the tokens, or None. With `"right"`,
            attention on GPUs uses lengths instead of mask tensors. This is not checked: with
            left-padded input the result is wrong.

    Call arguments:
        query: (B, T, D), or (B, dims..., D) for layers that attend over several axes.
        value: (B, S, D).
        key: (B, S, D). Defaults to `value`.
        query_mask: bool (B, T), True = a token, False = padding. Keras fills this mask and the next
            two from the implicit masks of the tensors.
        value_mask, key_mask: bool (B, S), the same for values and keys.
        attention_mask: bool, True = may attend, of shape (B, T, S), or broadcastable to (B, N, T,
            S). A mask (B, T, S) is used for all heads, and a mask (T, S) also for all rows. A float
            mask must be a constant of zeros and ones.
        return_attention_scores: bool, whether to also return the weights (B, N, T, S), before
            dropout.
        training: bool, whether dropout is active.
        use_causal_mask: bool, whether a key is hidden from a query if its position is larger. It
            is the same as `mask="causal"`, for one call.
        segment_ids: int (B, T), the number (1, 2, ...) of each token's document, if several
            documents are packed in one row. A token sees only its own document. Padding has 0.
        value_segment_ids: int (B, S), the same for values. Defaults to `segment_ids`.
        query_positions: int (T,) or (B, T), the positions of the queries for `mask` and `position`.
            None means 0, 1, 2, ... If query and value are the same tensor, it is enough to pass the
            positions of one of them.
        value_positions: int (S,) or (B, S), the same for keys and values.
        previous_scores, return_raw_scores: only for `ResidualAttention`, which adds the scores of
            the layer below.

    A query sees a key if every mask allows it. For a query that sees no key, the output is exactly
    zero before the output projection. The output has the query's implicit Keras mask.

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
    attention_axes = None  # None is all axes but the batch and the features
    joins_segments = False  # whether it attends to the hidden states of earlier segments
    adds_previous_scores = False  # whether it adds the scores of the layer below to its own
    _parts = ("score", "normalizer", "mask")  # constructor arguments, in addition to the position
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
        """Build the score, the position encoding and the dropout of weights.

        A part that several layers share is built only once.

        Args:
            query_shape: (B, T, N, H), the shape of the query heads.
            key_shape: (B, S, K, H), the shape of the key heads. Defaults to `query_shape`.
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
        """Call the layer, after converting an array that is both query and value to one tensor.

        Keras would convert each argument separately, and `call` could not recognize
        self-attention.
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
        if value is query and key is value:
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
        if self.adds_previous_scores:
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
        """Project value and key to heads, and add earlier tokens from a cache or a memory.

        `attended` is the tuple of axes to attend over. Return a dict of key and value heads, a
        `Visibility` for them, and a bool, whether the heads come from a cache.
        """
        values = axes.to_sequences(value, attended)
        keys = values if key is value else axes.to_sequences(key, attended)
        if self.joins_segments:
            joined = segment_memory.join_past(self, query, values, keys, visibility)
            values, keys, visibility = joined
        if 1 in attended:
            if cached := kv_cache.extend_cache(self, query, values, keys, visibility):
                return *cached, True
        if self.padding == "right" and values is value:
            visibility = visibility.with_lengths_of_masks()
        return self.project_key_value(values, keys, visibility), visibility, False

    def _check_call(self, query, value, arguments):
        """Raise a ValueError for call arguments that do not fit queries and values.

        `arguments` is a dict of call arguments, keyed by name.
        """
        attended, sizes = self.attended_axes(query), (query.shape, value.shape)
        inputs.check_call(self.name, *sizes, arguments, attended, self.num_heads)
        previous_scores = arguments.get("previous_scores")
        if previous_scores is None and not arguments.get("return_raw_scores"):
            return
        if not self.adds_previous_scores:
            raise ValueError(
                f"{self.name} was given previous_scores or return_raw_scores=True, which only "
                "ResidualAttention takes. Leave them out, or use ResidualAttention."
            )
        if scope.current(scope.Decoding) is None:  # with a cache there are more keys
            shape = axes.weights_shape(self.num_heads, *sizes, attended)
            inputs.check_previous_scores(previous_scores, shape)

    def make_equation(self, training=False):
        """Return the `Equation` of a call: its parts and, in training, the dropout of weights."""
        drops = training and self.dropout
        change = self.drop_weights if drops else scope.change_of_weights(self)
        return Equation(self.score, self.normalizer, self.position, dropout=change)

    def drop_weights(self, weights):
        """Return attention weights (B, N, T, S) with some set to 0 at random, in training."""
        drop = self._dropout_layer
        return weights if drop is None else drop(weights, training=True)

    def project_query(self, query):
        """Project queries (B, T, D) to heads (B, T, N, H)."""
        return self._query_dense(query)

    def project_key_value(self, value, key, visibility):
        """Return the key and value heads as a dict of tensors (B, S, ...) for `attend_heads`.

        Args:
            value: (B, S, D), the tokens to attend to.
            key: (B, S, D). In most calls it is the same tensor as `value`.
            visibility: the call's `Visibility`, which has the positions of the keys.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not define project_key_value. Return a dict of heads, "
            'such as {"key": (B, S, K, H), "value": (B, S, K, H)}.'
        )

    def project_for_cache(self, value, key, visibility):
        """Return the dict of `project_key_value` in the layout in which a cache stores it.

        Keys are rotated. Tensors (B, S, K, H) are transposed to (B, K, S, H), and tensors (B, S,
        features) are unchanged. `value` and `key` are (B, S, D), and `visibility` has the positions
        of the keys.
        """
        heads = self.project_key_value(value, key, visibility)
        return kv_cache.rotate_and_transpose(self.position, heads, visibility.key_positions)

    @property
    def cache_shapes(self):
        """Return {name: shape} of the heads that a decoding cache stores for one token.

        The names are the keys of the dict that `project_key_value` returns. For heads (B, S, K, H)
        the shape is (K, H).
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no cache_shapes, so it cannot decode with a cache. Add the "
            "property: each name that project_key_value returns, with its shape for one token, "
            'such as {"key": (num_heads, key_dim), "value": (num_heads, key_dim)}.'
        )

    @property
    def head_size(self):
        """Return the size of a query or key head."""
        return self.key_dim

    def attend_heads(self, query, heads, equation, visibility, return_weights, implementation):
        """Compute the attention output (B, T, N, Hv), and the weights (B, N, T, S) or None.

        Args:
            query: the result of `project_query`.
            heads: the result of `project_key_value`, or the heads in a cache.
            equation: the result of `make_equation`.
            visibility: the call's `Visibility`.
            return_weights: bool, whether the call needs weights, to return or record them.
            implementation: name of a kernel, `kernels.CACHED` for heads from a cache, or None.
        """
        how = equation, visibility, return_weights, implementation
        return self.attend(query, heads["key"], heads["value"], *how)

    def attend(self, query, key, value, equation, visibility, return_weights, implementation):
        """Compute the output (B, T, N, Hv), and the weights (B, N, T, S) or None.

        Query, key and value are heads, `equation` is an `Equation` and `visibility` a `Visibility`,
        as in `attend_heads`. `implementation` is the name of a kernel, or None to choose one. If a
        kernel other than `dense` is named and `return_weights` is True, this kernel computes the
        output, and `dense` computes the weights.
        """
        arguments, flash = (query, key, value, equation, visibility), self._flash_attention
        if not (return_weights and self.names_kernel(implementation)):
            return compute_attention(*arguments, return_weights, implementation, flash)
        _, weights = compute_attention(*arguments, return_weights=True)
        return compute_attention(*arguments, False, implementation, flash)[0], weights

    def names_kernel(self, implementation):
        """Return whether a kernel that returns no weights must run.

        This is the case if `implementation`, a str or None, names one, or if the layer requires
        flash attention.
        """
        return implementation not in (None, "dense", kernels.CACHED) or bool(self._flash_attention)

    def project_output(self, output, query):
        """Map the heads `output` (B, T, N, Hv) to (B, T, D).

        `query` (B, T, D) is the layer's input, for subclasses that gate the output with it.
        """
        return self._output_dense(output)

    def mask_part(self, use_causal_mask=False):
        """Return the `Mask` of the layer, or None if it has none.

        With `use_causal_mask=True`, the argument of the call, it is combined with a causal mask.
        """
        return join_masks(self.mask, masks.Causal() if use_causal_mask else None)

    def attended_axes(self, query):
        """Return the axes of `query` to attend over, as a sorted tuple of positive ints."""
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
    """Combine `parts`, masks or None, with `&`. None allows everything."""
    parts = [part for part in parts if part is not None]
    return functools.reduce(operator.and_, parts) if parts else None
