"""`JointModel`: trains a model with several outputs with a loss that reads all of them."""

import keras


@keras.saving.register_keras_serializable(package="keras_attention")
class JointModel(keras.Model):
    """Trains a model that has several outputs with one loss and with metrics that read all outputs.

    Keras computes losses and metrics for each output separately. But some outputs are only right
    together, such as the start and end of an answer, or the head of a word and its relation.

    Args:
        model: functional `keras.Model`. The layers are shared, so training the `JointModel` trains
            `model`.

    Arguments of `compile`:
        loss: a Keras loss. Its `y_pred` is the whole output of the model, such as a dict, and its
            `y_true` is the target from the dataset.
        metrics: list of Keras metrics, with the same `y_true` and `y_pred`.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka


    class Distance(keras.losses.Loss):
        def call(self, y_true, y_pred):
            return keras.ops.abs(y_pred["begin"] + y_pred["end"] - y_true)


    x = keras.Input((3,))
    ends = {name: keras.layers.Dense(1, name=name)(x) for name in ("begin", "end")}
    model = ka.training.JointModel(keras.Model(x, ends))
    model.compile("sgd", loss=Distance())
    model.fit(np.ones((4, 3)), np.ones((4, 1)), verbose=0)
    ```
    """

    def __init__(self, model):
        super().__init__(model.input, model.output, name=model.name)

    def compile(self, optimizer, loss, metrics=(), **options):
        """Compile like `keras.Model`, with one loss and metrics that each read all outputs.

        `options` are the other arguments of `keras.Model.compile`.
        """
        super().compile(optimizer, **options)
        self.joint_loss, self.joint_metrics = loss, list(metrics)
        self._joint_options = options

    def get_config(self):
        model = keras.Model(self.input, self.output, name=self.name)
        return {"model": keras.saving.serialize_keras_object(model)}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(keras.saving.deserialize_keras_object(config["model"], custom_objects))

    def get_compile_config(self):
        if not self.compiled:
            return None
        parts = {"loss": self.joint_loss, "metrics": self.joint_metrics}
        parts |= {"optimizer": self.optimizer, **self._joint_options}
        return {name: keras.saving.serialize_keras_object(part) for name, part in parts.items()}

    def compile_from_config(self, config):
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        loss = self.joint_loss(y, y_pred, sample_weight)
        if self.losses:  # from layers and regularizers
            loss = loss + super().compute_loss(x, y, y_pred, sample_weight, training)
        return loss

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        for metric in self.joint_metrics:
            metric.update_state(y, y_pred, sample_weight)
        return self.get_metrics_result()
