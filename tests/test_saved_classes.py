"""Every class that can end up in a saved file is found by its name when the file is opened."""

import importlib
import inspect
import pkgutil

import keras

import keras_attention as ka

KINDS = (
    keras.constraints.Constraint,
    keras.initializers.Initializer,
    keras.layers.Layer,
    keras.losses.Loss,
    keras.metrics.Metric,
    keras.optimizers.Optimizer,
    keras.optimizers.schedules.LearningRateSchedule,
    keras.regularizers.Regularizer,
)
# Base classes, parts that a layer makes from its own arguments, and models that refuse to be saved
# or are only exported.
NEVER_SAVED = {
    "AttentionOutputs",
    "HeadStructures",
    "MemorySlots",
    "Sink",
    "TalkingHeads",
    "AttachmentScore",
    "ChunkedLogits",
    "EntityMetric",
    "GlobalMeanLoss",
    "IntegerInputs",
    "MaskedMean",
}


def list_classes():
    for module in pkgutil.walk_packages(ka.__path__, "keras_attention."):
        if module.name.endswith("__main__") or ".device" in module.name:
            continue
        try:
            names = vars(importlib.import_module(module.name))
        except ImportError:  # of another backend
            continue
        for name, cls in names.items():
            if inspect.isclass(cls) and cls.__module__ == module.name and name[0] != "_":
                if issubclass(cls, KINDS):
                    yield cls


def test_they_are_registered():
    classes = {cls for cls in list_classes() if cls.__name__ not in NEVER_SAVED}
    bases = {base for cls in classes for base in cls.__mro__[1:]}
    missing = {cls for cls in classes if keras.saving.get_registered_name(cls) == cls.__name__}
    missing = {cls.__name__ for cls in missing if cls not in bases}
    assert len(classes) > 100 and not missing
