"""`AttentionCell`: a recurrent cell that attends to an encoded source at every step."""

import dataclasses

import keras
from keras import ops

from keras_attention import normalizers, scores
from keras_attention.attention import arguments
from keras_attention.attention.projection import ProjectionOwner
from keras_attention.core import checks, keras_internals, shapes
from keras_attention.core.part import OwnArguments
from keras_attention.core.weight_axes import name_axes
from keras_attention.recurrent import cells
from keras_attention.recurrent.local_window import LocalWindow


@dataclasses.dataclass(frozen=True)
class EncodedSource:
    """An encoded source sequence, prepared for attention of a recurrent decoder.

    Attributes:
        values: (B, S, E), the encoder's output.
        mask: bool (B, S), True = a token.
        keys: (B, S, 1, any width), the keys that the score computes from the values once for all
            steps. None if the values are the keys.
    """

    values: object
    mask: object
    keys: object = None


DEFAULT_SCORES = {"bahdanau": "additive", "luong": "bilinear"}


@keras.saving.register_keras_serializable(package="keras_attention")
class AttentionCell(OwnArguments, ProjectionOwner, keras_internals.CellWithDropout):
    """A recurrent cell that attends to an encoded source at every step, around a Keras cell.

    With `attention="bahdanau"` (Bahdanau et al., 2015, section 3.1), the cell attends with its
    previous state, and then makes a step: `c_t = attend(s_{t-1})`,
    `s_t = cell([x_t, c_t], s_{t-1})`. With `"luong"` (Luong et al., 2015, section 3), it makes a
    step, and then attends with its new state: `h_t = cell([x_t, a_{t-1}], h_{t-1})`,
    `c_t = attend(h_t)`, `a_t = tanh(W_c [c_t, h_t])` (h̃_t, the attentional vector, in the paper).

    Args:
        cell: a Keras cell, such as `keras.layers.GRUCell(64)`. In a `StackedRNNCells`, the last
            cell attends.
        attention: `"bahdanau"` or `"luong"`.
        score: a score of `keras_attention.scores`, its name or its config. None means the paper's
            score: `"additive"` for Bahdanau, `"bilinear"` (*general*) for Luong.
        normalizer: a normalizer of `keras_attention.normalizers`, its name or its config.
        attention_dim: int, the size of the output `tanh(W_c [c_t, h_t])`. With `"luong"`, None
            means the cell's size. With `"bahdanau"`, None omits this layer, and the output is
            `[h_t, c_t]`.
        input_feeding: bool, whether a_{t-1} is an input of Luong's cell in addition to x_t (section
            3.3). With `"bahdanau"` it must be True, because c_t is always an input.
        local: a `LocalWindow`, which predicts at each step which part of the source to attend to
            (Luong et al., 2015, section 3.2, *local-p*). None attends to the whole source.
        coverage: bool, whether to use coverage (Tu et al., 2016, and See et al., 2017, equation
            11). The coverage of a key is the sum of its weights in earlier steps. It is multiplied
            by a learned vector and added to the key before scores are computed.
        encoded_dim: int, E, the width of the source. None determines it from the first source.

    Call arguments:
        inputs: (B, D), the inputs of one time step.
        states: list of tensors, which `initial_states` creates. It holds the states of the inner
            cell, a_{t-1} if it is fed to the cell, the coverage (B, S) if the cell has one, the
            source (B, S, E), and its mask (B, S).

    A call returns the output (B, `output_size`) and the list of new states.

    Usually, pass the cell to a `RecurrentDecoder`, which projects the keys only once, records its
    attention weights, and can be exported. `keras.layers.RNN` projects the keys at each step, and
    cannot use `return_state=True` in a functional model.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    cell = ka.recurrent.AttentionCell(keras.layers.LSTMCell(8), "luong")
    targets, encoded = np.random.rand(2, 5, 4), np.random.rand(2, 7, 6)
    mask = np.arange(7) < [[7], [3]]
    rnn = keras.layers.RNN(cell, return_sequences=True)
    assert rnn(targets, initial_state=cell.initial_states(encoded, mask)).shape == (2, 5, 8)
    ```
    """

    own_arguments = (
        *("cell", "attention", "score", "normalizer", "attention_dim", "input_feeding"),
        *("local", "coverage", "encoded_dim"),
    )

    def __init__(
        self,
        cell,
        attention="bahdanau",
        score=None,
        normalizer="softmax",
        attention_dim=None,
        input_feeding=True,
        local=None,
        coverage=False,
        encoded_dim=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.cell, self.attention = cells.check_cell(cell), attention
        checks.check_choice(self, "attention", DEFAULT_SCORES)
        score = DEFAULT_SCORES[attention] if score is None else score
        dtype = self.dtype_policy
        self.score = arguments.require_part("score", scores.get(score, dtype))
        self.normalizer = arguments.require_part("normalizer", normalizers.get(normalizer, dtype))
        self.attention_dim, self.input_feeding = attention_dim, input_feeding
        self.local = (
            keras.saving.deserialize_keras_object(local) if isinstance(local, dict) else local
        )
        if not isinstance(self.local, LocalWindow | None):
            raise ValueError(f"local={local!r}: expected a keras_attention.recurrent.LocalWindow.")
        self.coverage, self.encoded_dim = coverage, encoded_dim
        checks.check_whole_numbers(self, "attention_dim", "encoded_dim", optional=True)
        if attention == "bahdanau" and not input_feeding:
            raise ValueError(
                "input_feeding=False with attention='bahdanau': the input of Bahdanau's cell "
                "always includes the attention. Use attention='luong', or leave input_feeding out."
            )
        self._combine = None
        if self._attention_size is not None:
            self._combine = keras.layers.Dense(
                self._attention_size,
                activation="tanh",
                use_bias=False,
                **self._projection_arguments("combine"),
            )
            name_axes(self._combine, kernel=("units", "inner"))

    @property
    def _attention_size(self):
        """Return the size of the output `tanh(W_c [c_t, h_t])`, or None if it is `[h_t, c_t]`."""
        if self.attention == "luong" and self.attention_dim is None:
            return cells.output_size(self.cell)
        return self.attention_dim

    @property
    def output_size(self):
        if self._attention_size is not None:
            return self._attention_size
        if self.encoded_dim is None:
            raise ValueError(f"{self.name}: {_NO_WIDTH}")
        return cells.output_size(self.cell) + self.encoded_dim

    @property
    def own_state_sizes(self):
        """Return a list of the sizes of all states except the source.

        The coverage (B, S) has the size None, because S is the length of the source.
        """
        sizes = cells.state_sizes(self.cell)
        if self._feeds:
            sizes = [*sizes, self._attention_size]
        return [*sizes, None] if self.coverage else sizes

    @property
    def state_size(self):
        return [*self.own_state_sizes, None, None]

    @property
    def _feeds(self):
        return self.attention == "luong" and self.input_feeding

    def build(self, inputs_shape, encoded_shape=None):
        self._set_width(encoded_shape)
        units, width = cells.output_size(self.cell), self.encoded_dim
        fed = width if self.attention == "bahdanau" else self._feeds * (self._attention_size or 0)
        if not self.cell.built:
            self.cell.build((inputs_shape[0], inputs_shape[-1] + fed))
        if isinstance(self.score, keras.layers.Layer) and not self.score.built:
            self.score.build((None, 1, 1, units), (None, None, 1, width))
        if self.local is not None and not self.local.built:
            self.local.build((None, units))
        if self._combine is not None and not self._combine.built:
            self._combine.build((None, width + units))
        if self.coverage:
            keys = ops.zeros((1, 1, 1, width), dtype=self.compute_dtype)
            size = self.score.prepare(keys).shape[-1]
            self.coverage_kernel = self.add_weight(
                name="coverage_kernel", shape=(size,), initializer="glorot_uniform"
            )

    def _set_width(self, encoded_shape):
        width = self.encoded_dim if encoded_shape is None else encoded_shape[-1]
        if width is None:
            raise ValueError(f"{self.name}: {_NO_WIDTH}")
        if self.encoded_dim not in (None, width):
            raise ValueError(
                f"{self.name} has encoded_dim={self.encoded_dim}, but the source is of shape "
                f"{tuple(encoded_shape)}. Leave encoded_dim out, or make it {width}."
            )
        self.encoded_dim = width

    def prepare(self, encoded, mask=None):
        """Compute the keys once for all steps, and return the `EncodedSource` that `step` needs.

        Args:
            encoded: (B, S, E), an encoder's output.
            mask: bool (B, S), True = a token. None means that all are tokens.
        """
        values = ops.expand_dims(encoded, axis=2)
        keys = self.score.prepare(values)
        if keys is values:  # so that a cache stores them only once
            keys = None
        if mask is None:
            mask = ops.ones(ops.shape(encoded)[:2], dtype="bool")
        return EncodedSource(encoded, ops.cast(mask, "bool"), keys)

    def step(self, inputs, states, source, training=None):
        """Run one time step of the cell.

        Args:
            inputs: (B, D), the inputs of one time step.
            states: list of the cell's states (B, size) without the source, as `start` returns it.
            source: the `EncodedSource` from `prepare`.
            training: bool, as in Keras.

        Returns:
            The output (B, `output_size`), the list of new states, and the weights (B, S).
        """
        inner = len(cells.state_sizes(self.cell))
        hidden, own_states = list(states[:inner]), list(states[inner:])
        coverage = own_states[-1] if self.coverage else None
        if self.attention == "bahdanau":
            context, weights = self._attend(hidden, source, coverage)
            inputs = ops.concatenate([inputs, context], axis=-1)
        elif self._feeds:
            inputs = ops.concatenate([inputs, own_states[0]], axis=-1)
        output, hidden = cells.step_cell(self.cell, inputs, hidden, training)
        if self.attention == "luong":
            context, weights = self._attend(hidden, source, coverage)
        if self._combine is None:
            output = ops.concatenate([output, context], axis=-1)
        else:
            output = self._combine(ops.concatenate([context, output], axis=-1))
        fed = [output] if self._feeds else []
        covered = [coverage + weights] if self.coverage else []
        return output, [*hidden, *fed, *covered], weights

    def _attend(self, hidden, source, coverage):
        """Attend to the source with a state: return the context (B, E) and the weights (B, S).

        Args:
            hidden: list of the states of the inner cell. The hidden state is the query.
            source: the `EncodedSource` from `prepare`.
            coverage: (B, S), the sums of the weights in earlier steps, or None.
        """
        query = hidden[cells.query_index(self.cell)]
        keys = source.keys  # (B, S, 1, width)
        if keys is None:
            keys = ops.expand_dims(source.values, axis=2)
        if coverage is not None:
            kernel = ops.reshape(ops.cast(self.coverage_kernel, keys.dtype), (1, 1, 1, -1))
            covered = ops.expand_dims(ops.expand_dims(coverage, axis=2), axis=3)
            # Setting padding to zero does not change the result. Without it, LiteRT's converter
            # distributes the product over the sum, and produces an incorrect graph.
            tokens = ops.expand_dims(ops.expand_dims(source.mask, axis=2), axis=3)
            keys = (keys + covered * kernel) * ops.cast(tokens, keys.dtype)
        scored = self.score.match(ops.expand_dims(ops.expand_dims(query, axis=1), axis=1), keys)
        length = ops.shape(source.values)[1]
        scored, mask = ops.reshape(scored, (-1, length)), source.mask  # (B, S)
        if self.local is None:
            weights = self.normalizer(scored, mask)
        else:
            near, focus = self.local(query, mask)
            weights = self.normalizer(scored, ops.logical_and(mask, near))
            weights = weights * ops.cast(focus, weights.dtype)
        weights = ops.cast(weights, source.values.dtype)
        context = ops.matmul(ops.expand_dims(weights, axis=1), source.values)  # (B, 1, E)
        return ops.reshape(context, (-1, source.values.shape[-1])), weights

    def call(self, inputs, states, training=None):
        *states, encoded, mask = states
        source = self.prepare(encoded, ops.greater(mask, 0))
        output, states, _ = self.step(inputs, states, source, training)
        return output, [*states, encoded, mask]

    def initial_states(self, encoded, mask=None, states=None):
        """Return the initial states for `keras.layers.RNN(cell)(x, initial_state=...)`.

        Args:
            encoded: (B, S, E), the encoded source.
            mask: bool (B, S), True = a token. None means that all are tokens.
            states: list of the initial states of the inner cell. None means zeros.
        """
        encoded = ops.convert_to_tensor(encoded, dtype=self.compute_dtype)
        self._set_width(encoded.shape)
        ones = ops.ones_like(encoded[:, :, 0])
        mask = ones if mask is None else ops.cast(mask, encoded.dtype)
        return [*self.start(encoded, states), encoded, mask]

    def start(self, encoded, states=None):
        """Return a list of the initial states for `step`, without the encoded source.

        The list has the states of the inner cell, then zeros for a_{t-1} (the previous output) and
        the coverage, if the cell has them.

        Args:
            encoded: (B, S, E), the encoded source.
            states: list of the initial states of the inner cell. States that are not in the list
                begin with zeros. None means an empty list.
        """
        first = list(states or [])
        zero = ops.zeros_like(encoded[:, 0, :1])  # (B, 1)
        sizes = self.own_state_sizes[len(first) :]
        return first + [
            ops.zeros_like(encoded[:, :, 0]) if size is None else shapes.tile(zero, (1, size))
            for size in sizes
        ]

    def get_initial_state(self, batch_size=None):
        """Raise a ValueError, because initial states must include a source.

        Keras calls this method with its `batch_size` if an RNN gets no `initial_state`.
        """
        raise ValueError(
            f"{self.name} needs a source among its initial states. Call "
            "keras.layers.RNN(cell)(x, initial_state=cell.initial_states(encoded, mask))."
        )

    # `keras.layers.RNN` samples a cell's dropout masks before its loop, and resets them after it.

    def get_dropout_mask(self, step_input):
        fed = self.encoded_dim if self.attention == "bahdanau" else self._attention_size
        width = step_input.shape[-1] + (fed if self.attention == "bahdanau" or self._feeds else 0)
        cells.sample_dropout(self.cell, ops.shape(step_input)[0], width)

    def get_recurrent_dropout_mask(self, step_input):
        pass  # `get_dropout_mask` samples it too

    def reset_dropout_mask(self):
        cells.forget_dropout(self.cell)

    def reset_recurrent_dropout_mask(self):
        pass


_NO_WIDTH = (
    "the width of the source is unknown. Make the initial states by "
    "cell.initial_states(encoded, mask), pass encoded_dim=, or use a RecurrentDecoder."
)
