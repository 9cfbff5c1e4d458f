"""`with_two_passes`: scheduled sampling for decoders that read all target tokens at once."""

import copy

import keras
from keras import ops

from keras_attention.blocks.token_embedding import find_padding
from keras_attention.core import checks, keras_internals
from keras_attention.core.part import OwnArguments
from keras_attention.recurrent.feedback import TeacherForced, predicted_ids


@keras.saving.register_keras_serializable(package="keras_attention")
class TwoPasses(OwnArguments, TeacherForced, keras.layers.Layer):
    """Runs a model on the true target, and again on a mix of the target and the predictions.

    The method (Mihaylova and Martins, 2019, *Scheduled sampling for Transformers*) trains a decoder
    on its own predictions. A Transformer reads all target tokens at once, so it needs a first pass
    to make the predictions. In the second pass, each token but the first is the true token with
    probability `teacher_forcing`, and otherwise the predicted token, without a gradient. Outside
    training there is only one pass, on the true target. `with_two_passes` builds a `keras.Model`
    from this layer.

    Args:
        model: functional `keras.Model` whose inputs are a dict with `"target_ids"`, int (B, T),
            padded with 0. Its output is logits (B, T, V) of V ids, where position t predicts token
            t + 1.
        feedback: `"argmax"` predicts the likeliest token, `"sample"` chooses a random token from
            the predicted distribution. The padding id 0 is never predicted.
        passes: int, how often the target is mixed, each time with the predictions of the previous
            pass (Duckworth et al., 2019). The model runs `passes` + 1 times.
        seed: int, seed of the random choices. None uses a random seed.

    Call arguments:
        inputs: dict, the inputs of `model`.

    Attributes:
        teacher_forcing: a non-trainable weight, 1.0 at first, which the callback
            `ScheduledSampling` sets.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    ids = keras.Input((None,), dtype="int32", name="target_ids")
    model = keras.Model({"target_ids": ids}, keras.layers.Embedding(9, 9)(ids))
    layer = ka.training.TwoPasses(model)
    target = {"target_ids": np.array([[1, 7, 5], [1, 2, 0]])}
    assert np.allclose(layer(target, training=True), model(target))  # all tokens are given
    layer.teacher_forcing.assign(0.0)
    assert not np.allclose(layer(target, training=True), model(target))
    ```
    """

    own_arguments = ("model", "feedback", "passes", "seed")

    def __init__(self, model, feedback="argmax", passes=1, seed=None, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        if isinstance(model, dict):
            # a copy, because Keras changes the config
            model = keras.saving.deserialize_keras_object(copy.deepcopy(model))
        inputs = model.input if keras_internals.is_functional(model) else None
        if not isinstance(inputs, dict) or "target_ids" not in inputs:
            raise ValueError(
                f"model={model!r}, whose inputs are "
                f"{sorted(inputs) if isinstance(inputs, dict) else inputs}: expected a functional "
                "keras.Model whose inputs are a dict with 'target_ids', such as "
                "ka.models.seq2seq_transformer(...)."
            )
        self.model, self.feedback, self.passes, self.seed = model, feedback, passes, seed
        checks.check_choice(self, "feedback", ("argmax", "sample"))
        checks.check_whole_numbers(self, "passes")
        readers = keras_internals.find_readers(inputs["target_ids"])
        self._padding = find_padding(readers)
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.teacher_forcing = self.add_weight(
            name="teacher_forcing", shape=(), initializer="ones", trainable=False, autocast=False
        )

    def build(self, input_shape):
        pass  # `model` is already built

    @property
    def metrics(self):
        """Return the metrics of the inner model's layers, but not the metrics of its `compile`."""
        return [metric for layer in self.model.layers for metric in layer.metrics]

    def call(self, inputs, training=None):
        if not training:
            return self.model(inputs, training=training)
        target = ops.cast(inputs["target_ids"], "int32")
        stays = self._given(target)
        mixed = target
        for _ in range(self.passes):
            logits = self.model({**inputs, "target_ids": mixed}, training=True)
            mixed = ops.where(stays, target, self._after(logits, target))
        return self.model({**inputs, "target_ids": mixed}, training=True)

    def _given(self, target):
        """Sample which tokens of the true target are kept, bool (B, T). The first always is."""
        coins = keras.random.uniform(ops.shape(target), seed=self.seed_generator)
        first = ops.cast(ops.arange(ops.shape(target)[1]), "int32") == 0
        stays = ops.logical_or(coins < self.teacher_forcing, ops.expand_dims(first, axis=0))
        if self._padding.id is None:
            return stays
        return ops.logical_or(stays, ops.equal(target, self._padding.id))

    def _after(self, logits, target):
        """Return the predicted token for each position, int (B, T).

        Logits at position t predict the token at t + 1, so the first token is that of `target`.
        """
        uniform = None
        if self.feedback == "sample":
            uniform = keras.random.uniform(ops.shape(target), seed=self.seed_generator)
        predicted = predicted_ids(logits, uniform, self._padding.id)
        return ops.concatenate([target[:, :1], predicted[:, :-1]], axis=1)

    def compute_mask(self, inputs, previous_mask=None):
        return None  # the output carries the mask of the inner model

    def compute_output_spec(self, inputs, training=None):
        return self.model.compute_output_spec(inputs)


def with_two_passes(model, feedback="argmax", passes=1, seed=None):
    """Wrap a sequence-to-sequence model, so that training also feeds it its own predictions.

    Train the wrapper with the callback `ScheduledSampling`. `TwoPasses` explains the method. The
    wrapper shares the weights of `model`. Use `model` itself to generate and to export.

    Args:
        model: functional `keras.Model` with the input `"target_ids"`, explained in `TwoPasses`.
        feedback: `"argmax"` predicts the likeliest token, `"sample"` a random one.
        passes: int, how often the target is mixed with predictions.
        seed: int, seed of the random choices. None uses a random seed.

    Returns:
        A functional `keras.Model` with the inputs and the output of `model`. See
        `ScheduledSampling` for an example.
    """
    layer = TwoPasses(model, feedback, passes, seed, name="two_passes")
    inputs = {
        name: keras.Input(x.shape[1:], dtype=x.dtype, name=name) for name, x in model.input.items()
    }
    return keras.Model(inputs, layer(inputs), name=model.name)
