"""One training, whatever the task: a model, its data, and what to keep of it."""

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass
class Job:
    """What a task (`tagging`, `images`) hands to `fit` and `finish`.

    Attributes:
        task: str, the builder's name.
        model: the keras.Model to train.
        train, dev: tf.data.Datasets of (inputs, labels) batches; `train` is shuffled. Labels of
            padding are -1.
        test: the test part of the data, as the task's `scores` takes it; it may be empty.
        metrics: functions that make the Keras metrics; the first one's score on `dev` chooses the
            weights that are kept.
        metadata: dict, what the manifest says beside the files: labels, lengths, data set, ...
        sidecars: function (folder), writes vocabularies and the like.
        picture: function (model, folder) -> list of file names, draws what the model looked at.
        about: dict, what the card says about the data: `name`, `counts`, `licence`.
        lower_is_better: bool, whether the lowest score chooses, and not the highest.
    """

    task: str
    model: object
    train: object
    dev: object
    test: object
    metrics: list[Callable]
    metadata: dict
    sidecars: Callable
    picture: Callable
    about: dict
    lower_is_better: bool = False

    @property
    def monitor(self):
        """The name of the metric that chooses."""
        return self.metrics[0]().name
