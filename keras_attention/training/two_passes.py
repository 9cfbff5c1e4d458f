"""Scheduled sampling in two passes, for models that read the whole target at once."""

import copy

import keras
from keras import ops

from keras_attention.blocks.padding import find_padding
from keras_attention.core import checks, keras_internals
from keras_attention.core.part import OwnArguments
from keras_attention.recurrent.feedback import TeacherForced, predicted_ids


@keras.saving.register_keras_serializable(package="keras_attention")
class TwoPasses(OwnArguments, TeacherForced, keras.layers.Layer):
    """Runs a model on the given target, and again on a mix of it with the predictions.

    (Mihaylova and Martins, 2019, *Scheduled sampling for Transformers*, section 3; Duckworth et
    al., 2019, *Parallel scheduled sampling*, with more passes.) A Transformer decodes all positions
    at once, so it cannot be fed its prediction at the position before. It is fed those of a first
    pass. In training, each token but the first is the given one with probability `teacher_forcing`,
    else the predicted one, without a gradient. Otherwise there is one pass, on the given tokens.
    `with_two_passes` makes a model of it.

    Args:
        model: a functional `keras.Model` whose inputs are a dict with `"target_ids"` int (B, T),
            0 = padding, and whose output is logits (B, T, V), those at t for token t + 1.
        feedback: `"argmax"` to feed the likeliest token, or `"sample"` to draw it. Id 0 is not fed.
        passes: int, how often targets are mixed, each time with the predictions of the last pass.
        seed: int.

    Call arguments:
        inputs: dict, the inputs of the model.

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
            # of a copy: Keras takes the config of a functional model apart
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
        pass  # the model is built

    @property
    def metrics(self):
        """The metrics of the layers, without those of the inner model's `compile`."""
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
        """Return which tokens are the given ones: bool (B, T)."""
        coins = keras.random.uniform(ops.shape(target), seed=self.seed_generator)
        first = ops.cast(ops.arange(ops.shape(target)[1]), "int32") == 0
        stays = ops.logical_or(coins < self.teacher_forcing, ops.expand_dims(first, axis=0))
        if self._padding.id is None:
            return stays
        return ops.logical_or(stays, ops.equal(target, self._padding.id))

    def _after(self, logits, target):
        """Return the predicted tokens at their positions, (B, T), the first one as given."""
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
    """Return the model for training with scheduled sampling in two passes: see `TwoPasses`.

    It shares the weights of `model`, with which you generate and export.

    Args:
        model, feedback, passes, seed: as in `TwoPasses`.

    Returns:
        A functional `keras.Model` with the inputs and the output of `model`.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    ids = keras.Input((None,), dtype="int32", name="target_ids")
    logits = keras.layers.Dense(9)(keras.layers.Embedding(9, 4)(ids))
    model = keras.Model({"target_ids": ids}, logits)
    fitted = ka.training.with_two_passes(model, feedback="sample")
    fitted.compile("adam", ka.training.MaskedSparseCategoricalCrossentropy(ignore_class=0))

    target = np.random.randint(1, 9, size=(4, 6))
    sampling = ka.training.ScheduledSampling(ka.training.InverseSigmoidForcing(10))
    fitted.fit({"target_ids": target[:, :-1]}, target[:, 1:], callbacks=[sampling], verbose=0)
    assert model({"target_ids": target}).shape == (4, 6, 9)
    ```
    """
    layer = TwoPasses(model, feedback, passes, seed, name="two_passes")
    inputs = {
        name: keras.Input(x.shape[1:], dtype=x.dtype, name=name) for name, x in model.input.items()
    }
    return keras.Model(inputs, layer(inputs), name=model.name)
