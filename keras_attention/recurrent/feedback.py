"""`FeedbackDecoder`: a decoder that can use its own predictions in training."""

import keras
from keras import ops

from keras_attention import masks
from keras_attention.blocks.inner_layers import revive_layer
from keras_attention.blocks.token_embedding import find_padding
from keras_attention.core import checks
from keras_attention.core.integer_inputs import IntegerInputs
from keras_attention.core.part import OwnArguments
from keras_attention.core.recur import recur
from keras_attention.recurrent import cells
from keras_attention.recurrent.decoder import RecurrentDecoder

FEEDBACK = (None, "argmax", "sample")
IMPOSSIBLE = -1e9  # the logit of padding


class TeacherForced:
    """Base class of decoders that can read their own predictions in training instead of targets."""

    teacher_forcing = None  # weight, the probability that an input is the target token


@keras.saving.register_keras_serializable(package="keras_attention")
class FeedbackDecoder(OwnArguments, TeacherForced, IntegerInputs, keras.layers.Layer):
    """A recurrent decoder that can read its own predictions in training: scheduled sampling.

    It consists of an embedding, a `RecurrentDecoder` and an output layer. In training, each input
    token is the target token with probability `teacher_forcing`, and otherwise the prediction of
    the previous step, at random for each token (Bengio et al., 2015, section 2.4). At inference, or
    with `feedback=None`, all inputs are target tokens, and the embedding and the output layer are
    applied outside the loop over time.

    Args:
        embedding: a layer that maps ids (B, T) to vectors (B, T, D) with a mask, such as
            `keras_attention.blocks.TokenEmbedding`. It must not depend on positions.
        decoder: a `RecurrentDecoder`.
        output: a layer that maps (B, T, any width) to logits (B, T, vocabulary_size), such as
            `keras.layers.Dense`.
        feedback: how a prediction is chosen: `"argmax"` for the most likely token, or `"sample"` to
            sample one. Padding is never chosen. None disables scheduled sampling.
        dropout: float, the dropout rate for the embedded tokens and for the decoder's outputs.
        seed: int, the seed of all random choices, or None.

    Call arguments:
        target_ids: int (B, T), beginning with a start id. The logits at index t predict the token
            at t + 1.
        encoded: (B, S, E), the encoder's output.
        initial_states: list of tensors (B, size), the initial states of the decoder's inner cell.
            None means zeros.
        encoded_mask: bool (B, S), True = a token. Keras fills it from the implicit mask.
        training: bool, whether dropout and scheduled sampling are active.

    A call returns logits (B, T, vocabulary_size).

    Masking: padding (the `padding_id` of the embedding, or 0 if it has none) is never replaced by a
    prediction.

    Attributes:
        teacher_forcing: a non-trainable weight that starts at 1.0. The callback
            `keras_attention.training.ScheduledSampling` changes it. None if `feedback` is None.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    decoder = ka.recurrent.FeedbackDecoder(
        ka.blocks.TokenEmbedding(20, 4),
        ka.recurrent.RecurrentDecoder(ka.recurrent.AttentionCell(keras.layers.GRUCell(8))),
        keras.layers.Dense(20),
        feedback="argmax",
    )
    target_ids, encoded = np.array([[1, 7, 5]]), np.random.rand(1, 6, 4)
    logits = decoder(target_ids, encoded)
    decoder.teacher_forcing.assign(0.0)
    sampled = decoder(target_ids, encoded, training=True)
    assert logits.shape == (1, 3, 20) and np.allclose(logits[:, 0], sampled[:, 0], atol=1e-5)
    ```
    """

    own_arguments = ("embedding", "decoder", "feedback", "dropout", "seed")

    def __init__(self, embedding, decoder, output, feedback=None, dropout=0.0, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.embedding = revive_layer("embedding", embedding)
        self.decoder = revive_layer("decoder", decoder)
        self.output_layer = revive_layer("output", output)
        if not isinstance(self.decoder, RecurrentDecoder):
            raise ValueError(
                f"decoder={decoder!r}: expected a keras_attention.recurrent.RecurrentDecoder."
            )
        self.feedback, self.dropout, self.seed = feedback, dropout, seed
        checks.check_choice(self, "feedback", FEEDBACK)
        self._dropout_layer = keras.layers.Dropout(dropout, seed=seed, dtype=self.dtype_policy)
        self.seed_generator = keras.random.SeedGenerator(seed) if feedback else None

    def build(self, target_ids_shape, encoded_shape, initial_states_shape=None):
        if not self.embedding.built:
            self.embedding.build(target_ids_shape)
        embedded = self.embedding.compute_output_shape(target_ids_shape)
        if not self.decoder.built:
            self.decoder.build(embedded, encoded_shape)
        if not self.output_layer.built:
            shape = self.decoder.compute_output_shape(embedded, encoded_shape)
            self.output_layer.build(shape)
        if self.feedback is not None:
            self.teacher_forcing = self.add_weight(
                name="teacher_forcing", shape=(), initializer="ones", trainable=False
            )

    def call(self, target_ids, encoded, initial_states=None, encoded_mask=None, training=None):
        if training and self.feedback is not None:
            return self._with_feedback(target_ids, encoded, initial_states, encoded_mask)
        x = self._dropout_layer(self.embedding(target_ids), training=training)
        x = self.decoder(
            x,
            encoded,
            initial_states=initial_states,
            inputs_mask=self.compute_mask(target_ids),
            encoded_mask=encoded_mask,
            training=training,
        )
        return self.output_layer(self._dropout_layer(x, training=training))

    def _with_feedback(self, target_ids, encoded, initial_states, encoded_mask):
        decoder, mask = self.decoder, self.compute_mask(target_ids)
        padding = find_padding([self.embedding])
        _, source, states = decoder.begin_decoding(encoded, initial_states, encoded_mask)

        def step(inputs, states):
            *states, predicted = states
            ids = ops.where(inputs["teach"], inputs["ids"], predicted)  # (B, 1)
            x = self.embedding(ids)[:, 0]
            x = x * inputs["keep_input"] if self.dropout else x
            output, new, weights = decoder.cell.step(x, states, source, training=True)
            seen = decoder.observe_step(weights, states, training=True)
            output = output * inputs["keep_output"] if self.dropout else output
            logits = self.output_layer(ops.expand_dims(output, axis=1))  # (B, 1, V)
            predicted = predicted_ids(logits, inputs.get("uniform"), padding.id)  # (B, 1)
            return {"logits": logits[:, 0], **seen}, [*new, predicted]

        inputs = self._make_inputs(target_ids)
        states = [*states, ops.zeros_like(inputs["ids"][:, 0])]
        with cells.hold_dropout(decoder.cell, ops.shape(encoded)[0], self._width, training=True):
            outputs, _ = recur(step, inputs, states, mask)
        decoder.record_steps(outputs, mask)
        return outputs["logits"]

    def _make_inputs(self, target_ids):
        """Return a dict of inputs (B, T, ...) of the loop over time, including all random tensors.

        It has the target ids (B, T, 1), whether each input is the target, random numbers to sample
        with, and dropout masks. Random numbers and masks are left out if they are not needed.
        """
        ids = ops.expand_dims(ops.cast(target_ids, "int32"), axis=2)  # (B, T, 1)
        coins = keras.random.uniform(ops.shape(ids), seed=self.seed_generator)
        first = ops.cast(ops.arange(ops.shape(ids)[1]), "int32") == 0
        teach = coins < ops.cast(self.teacher_forcing, coins.dtype)
        drawn = {"ids": ids, "teach": ops.logical_or(teach, ops.reshape(first, (1, -1, 1)))}
        if self.feedback == "sample":
            drawn["uniform"] = keras.random.uniform(ops.shape(ids), seed=self.seed_generator)
        if self.dropout:
            sizes = {"keep_input": self._width, "keep_output": self.decoder.cell.output_size}
            for name, size in sizes.items():
                ones = ops.ones((*ops.shape(ids)[:2], size), dtype=self.compute_dtype)
                drawn[name] = self._dropout_layer(ones, training=True)
        return drawn

    @property
    def _width(self):
        return self.embedding.compute_output_shape((None, None))[-1]

    def compute_mask(self, target_ids, previous=None):
        return masks.token_mask(target_ids, find_padding([self.embedding]).id)

    def compute_output_shape(self, target_ids_shape, encoded_shape, initial_states_shape=None):
        embedded = self.embedding.compute_output_shape(target_ids_shape)
        decoded = self.decoder.compute_output_shape(embedded, encoded_shape)
        return self.output_layer.compute_output_shape(decoded)

    def compute_output_spec(self, target_ids, encoded, *args, **kwargs):
        shape = self.compute_output_shape(target_ids.shape, encoded.shape)
        return keras.KerasTensor(shape, self.output_layer.compute_dtype)

    def get_config(self):
        output = keras.saving.serialize_keras_object(self.output_layer)
        return {**super().get_config(), "output": output}


def predicted_ids(logits, uniform=None, padding_id=0):
    """Return the id of the most likely token for each vector of logits, or of a sampled token.

    Args:
        logits: (..., vocabulary_size), a logit for each token of the vocabulary.
        uniform: float (...), random numbers in [0, 1) to sample with. None chooses the most likely
            token.
        padding_id: int, the id that is never chosen, or None.

    Returns:
        The ids, int32 (...), without a gradient.
    """
    logits = ops.cast(logits, "float32")
    if padding_id is not None:
        tokens = ops.arange(logits.shape[-1]) != padding_id
        logits = ops.where(tokens, logits, IMPOSSIBLE)
    if uniform is None:
        ids = ops.argmax(logits, axis=-1)
    else:  # the first token with a cumulative probability above the random number
        shares = ops.cumsum(ops.softmax(logits, axis=-1), axis=-1)
        below = ops.cast(shares <= ops.expand_dims(uniform, axis=-1), "int32")
        ids = ops.minimum(ops.sum(below, axis=-1), logits.shape[-1] - 1)
    return ops.stop_gradient(ops.cast(ids, "int32"))
