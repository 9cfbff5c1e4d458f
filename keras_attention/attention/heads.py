"""Queries, keys and values in heads: the arguments, weights and config of multi-head attention."""

import keras

from keras_attention import checks, masks
from keras_attention.attention import arguments, axes, parts
from keras_attention.attention.head_norm import QK_NORMS
from keras_attention.attention.head_structures import HeadStructures
from keras_attention.attention.project import copy_of, project
from keras_attention.sharing import config_of_shared


class Heads(keras.layers.Layer):
    """What `MultiHeadAttention` is, without what it does: its arguments are described there."""

    _dense_only = False  # whether a subclass needs what only the dense kernel does

    def __init__(
        self,
        num_heads,
        key_dim,
        value_dim=None,
        dropout=0.0,
        use_bias=True,
        output_shape=None,
        attention_axes=None,
        sliding_window=None,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        bias_regularizer=None,
        activity_regularizer=None,
        kernel_constraint=None,
        bias_constraint=None,
        use_gate=False,
        seed=None,
        *,
        num_key_value_heads=None,
        score="scaled_dot",
        normalizer="softmax",
        mask=None,
        position=None,
        qk_norm=None,
        sink=False,
        num_memory_slots=0,
        talking_heads=False,
        kernel=None,
        **kwargs,
    ):
        arguments.check_positive(num_heads=num_heads, key_dim=key_dim)
        arguments.check_positive_or_none(
            value_dim=value_dim,
            sliding_window=sliding_window,
            num_key_value_heads=num_key_value_heads,
        )
        arguments.check_groups(num_heads, num_key_value_heads)
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self.supports_masking = True
        self.num_heads, self.key_dim, self.value_dim = num_heads, key_dim, value_dim or key_dim
        self.num_key_value_heads = num_key_value_heads or num_heads
        self.dropout, self.seed = dropout, seed
        self.use_bias, self.use_gate = use_bias, use_gate
        self._output_shape = arguments.as_shape(output_shape)
        self.attention_axes = arguments.as_axes(attention_axes)
        self._sliding_window = sliding_window
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)
        self.score = parts.score(score, self.dtype_policy)
        self.normalizer = parts.normalizer(normalizer, self.dtype_policy)
        self.mask = masks.get(mask)
        self.position = parts.position(position, self.dtype_policy)
        self.qk_norm, self.sink = qk_norm, sink
        self.num_memory_slots, self.talking_heads = num_memory_slots, talking_heads
        checks.one_of(self, "qk_norm", QK_NORMS)
        checks.one_of(self, "sink", (True, False))
        checks.one_of(self, "talking_heads", (True, False))
        checks.whole(self, "num_memory_slots", least=0)
        if sink:
            arguments.check_sink(self.normalizer)
        self.kernel = arguments.kernel(kernel, self._dense_only or num_memory_slots)

    def build(self, query_shape, value_shape, key_shape=None):
        query_shape, value_shape = tuple(query_shape), tuple(value_shape)
        key_shape = tuple(key_shape or value_shape)
        arguments.check_same_keys(value_shape, key_shape)
        self._axes = axes.resolve(self.attention_axes, len(query_shape))
        query_heads = (self.num_heads, self.key_dim)
        key_heads = (self.num_key_value_heads, self.key_dim)
        value_heads = (self.num_key_value_heads, self.value_dim)
        output_heads = (self.num_heads, self.value_dim)
        self._query_dense = self._projection(query_heads, query_shape[-1:], "query")
        self._key_dense = self._projection(key_heads, key_shape[-1:], "key")
        if self.use_gate:  # between key and value, where Keras's layer has its weights
            self._gate_dense = self._projection(
                output_heads, query_shape[-1:], "gate", activation="sigmoid"
            )
        self._value_dense = self._projection(value_heads, value_shape[-1:], "value")
        self._output_dense = self._projection(
            self._output_shape or query_shape[-1:], output_heads, "attention_output"
        )
        self._dropout_layer = None
        if self.dropout:
            self._dropout_layer = keras.layers.Dropout(
                self.dropout, seed=self.seed, dtype=self.dtype_policy
            )
        self._structures = None  # after the weights that Keras's layer has too
        if self.qk_norm or self.sink or self.num_memory_slots or self.talking_heads:
            self._structures = HeadStructures(
                query_heads,
                value_heads,
                self.qk_norm,
                self.sink,
                self.num_memory_slots,
                self.talking_heads,
                dtype=self.dtype_policy,
                name="structures",
            )
            self._structures.build()
        batch = query_shape[0]
        if isinstance(self.score, keras.layers.Layer) and not self.score.built:
            heads = ((batch, None, *query_heads), (batch, None, *query_heads))
            self.score.build(*heads)
        if isinstance(self.position, keras.layers.Layer) and not self.position.built:
            self.position.build((batch, None, *query_heads))

    def _projection(self, output_shape, input_shape, name, **kwargs):
        """Makes and builds a projection from the axes `input_shape` to the axes `output_shape`."""
        return project(
            self,
            name,
            input_shape,
            output_shape,
            self.use_bias,
            bias_initializer=copy_of(self.bias_initializer),
            kernel_regularizer=self.kernel_regularizer,
            bias_regularizer=self.bias_regularizer,
            activity_regularizer=self.activity_regularizer,
            kernel_constraint=self.kernel_constraint,
            bias_constraint=self.bias_constraint,
            **kwargs,
        )

    def _key_value_heads(self, keys, values):
        """(B, S, K, H) and (B, S, K, Hv), not rotated."""
        key_heads = self._key_dense(keys)
        if self._structures:
            key_heads = self._structures.normalize_key(key_heads)
        return key_heads, self._value_dense(values)

    @property
    def _kept(self):
        """What a cache keeps of a token: name -> shape."""
        heads = self.num_key_value_heads
        return {"key": (heads, self.key_dim), "value": (heads, self.value_dim)}

    def compute_output_shape(self, query_shape, value_shape, key_shape=None):
        arguments.check_same_keys(tuple(value_shape), tuple(key_shape or value_shape))
        query_shape = tuple(query_shape)
        return (*query_shape[:-1], *(self._output_shape or query_shape[-1:]))

    def compute_output_spec(
        self, query, value, key=None, *args, return_attention_scores=False, **kwargs
    ):
        key_shape = None if key is None else key.shape
        output = keras.KerasTensor(
            self.compute_output_shape(query.shape, value.shape, key_shape), self.compute_dtype
        )
        if not return_attention_scores:
            return output
        attended = axes.resolve(self.attention_axes, len(query.shape))
        shape = axes.weights_shape(
            self.num_heads, query.shape, value.shape, attended, self.num_memory_slots
        )
        return output, keras.KerasTensor(shape, self.compute_dtype)

    @property
    def query_dense(self):
        return self._query_dense

    @property
    def key_dense(self):
        return self._key_dense

    @property
    def value_dense(self):
        return self._value_dense

    @property
    def output_dense(self):
        return self._output_dense

    def get_config(self):
        plain = (
            "num_heads key_dim value_dim dropout use_bias attention_axes use_gate seed "
            "num_key_value_heads qk_norm sink num_memory_slots talking_heads kernel"
        )
        objects = (
            "kernel_initializer bias_initializer kernel_regularizer bias_regularizer "
            "kernel_constraint bias_constraint score normalizer mask"
        )
        return {
            **super().get_config(),
            **{name: getattr(self, name) for name in plain.split()},
            "activity_regularizer": keras.regularizers.serialize(self.activity_regularizer),
            "output_shape": self._output_shape,
            "sliding_window": self._sliding_window,
            **{
                name: keras.saving.serialize_keras_object(getattr(self, name))
                for name in objects.split()
            },
            "position": config_of_shared(self.position),
        }
