"""`OrbaxBackup` and `load_orbax`: checkpoints that several processes write together."""

import pathlib
import re

import keras
import numpy as np

from keras_attention.core import keras_internals
from keras_attention.core.versions import parse_version, require_keras
from keras_attention.files.extras import import_extra

NEEDED = "3.14"  # the first version with `keras.callbacks.OrbaxCheckpoint`
if parse_version(keras.__version__) >= parse_version(NEEDED):
    OrbaxCheckpoint = keras.callbacks.OrbaxCheckpoint
else:
    OrbaxCheckpoint = keras.callbacks.Callback


class OrbaxBackup(OrbaxCheckpoint):
    """Saves the training state after every epoch, so that `fit` can resume after an interruption.

    This callback is like `keras.callbacks.BackupAndRestore`, but for several processes that train
    one model. No process holds all weights, so each process writes the part that is on its devices.
    If one process ends, the others stop, too. Start the same program again in all processes, and
    `fit` resumes after the last epoch that was saved completely.

    The state consists of the weights, the optimizer's variables and the seeds of dropout, but not
    the position in the dataset. It may be loaded on another number of devices.

    Args:
        folder: path of a folder that all processes can access.
        max_to_keep: int, how many of the latest epochs to keep. None keeps all.
        **options: options of `keras.callbacks.OrbaxCheckpoint`, such as `save_on_background=False`.

    The callback requires the extra `jax` of this package, and Keras 3.14 or newer.

    ```python
    import tempfile
    import keras
    import numpy as np
    import keras_attention as ka

    if keras.backend.backend() == "jax":
        x, y = np.ones((4, 3)), np.ones((4, 1))
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        with tempfile.TemporaryDirectory() as folder:
            for epochs in (1, 3):
                backup = ka.distribution.OrbaxBackup(folder)
                history = model.fit(x, y, epochs=epochs, callbacks=[backup], verbose=0)
            assert history.epoch == [1, 2]
            loaded = ka.distribution.load_orbax(folder)
            assert np.array_equal(loaded.predict(x, verbose=0), model.predict(x, verbose=0))
    ```
    """

    def __init__(self, folder, max_to_keep=1, **options):
        require_keras(NEEDED, "ka.distribution.OrbaxBackup")
        import_orbax("ka.distribution.OrbaxBackup")
        folder = str(pathlib.Path(folder).absolute())
        super().__init__(folder, max_to_keep=max_to_keep, **options)

    def on_train_begin(self, logs=None):
        latest = self.checkpointer.latest
        if latest is not None:
            self.model.optimizer.build(self.model.trainable_variables)
            _load_state(self.checkpointer, latest.step, self.model)
            keras_internals.set_first_epoch(self.model, latest.step + 1)


def load_orbax(folder, model=None, *, step=None, compile=True):
    """Load a model from a checkpoint of `OrbaxBackup` or `keras.callbacks.OrbaxCheckpoint`.

    The active distribution of Keras determines how the weights are split. Without a distribution
    they are loaded to a single device, where the model can be saved, evaluated and exported as
    usual. (Keras's own `load_model` needs the same devices that wrote the checkpoint.) All backends
    can load the checkpoint, so a model that was trained on JAX can be exported with TensorFlow.

    Args:
        folder: path of the folder with the checkpoints.
        model: a built model to load the state into. None builds the saved model.
        step: int, the number of the checkpoint. `OrbaxBackup` numbers epochs from 0. None loads the
            latest checkpoint.
        compile: bool, whether to compile the new model like the saved model. Not used with `model`.

    Returns:
        A `keras.Model`. If it is compiled, the state of its optimizer is loaded, too.

    Raises:
        ValueError: the checkpoint does not exist, or its variables do not match the model.
    """
    ocp = import_orbax("ka.distribution.load_orbax")
    folder = pathlib.Path(folder).absolute()
    if not folder.is_dir():
        raise ValueError(f"There is no folder {folder}: expected a folder that OrbaxBackup wrote.")
    with ocp.training.Checkpointer(str(folder)) as checkpointer:
        steps = [checkpoint.step for checkpoint in checkpointer.checkpoints]
        if step is None and steps:
            step = max(steps)
        if step not in steps:
            available = f"expected one of {sorted(steps)}" if steps else "no checkpoint is complete"
            asked = "" if step is None else f" of step={step}"
            raise ValueError(f"{folder} has no checkpoint{asked}: {available}.")
        if model is None:
            config = checkpointer.load_checkpointables(step, {"model_config": None})
            json = config["model_config"]["config"]
            model = keras_internals.read_model_config(json, compile=compile)
        if model.compiled:
            model.optimizer.build(model.trainable_variables)
        _load_state(checkpointer, step, model)
    return model


def import_orbax(feature):
    """Import and return `orbax.checkpoint.v1`. If it is missing, the error names `feature`."""
    return import_extra("orbax.checkpoint", feature, "Orbax", "jax").v1


def _load_state(checkpointer, step, model):
    """Assign the values in checkpoint `step` to the variables of a model.

    How a variable is split over devices does not change.
    """
    saved = checkpointer.checkpointables_metadata(step).metadata["pytree"]
    groups = {
        "trainable_variables": model.trainable_variables,
        "non_trainable_variables": model.non_trainable_variables,
        "optimizer_variables": model.optimizer.variables if model.compiled else [],
    }
    matched, forms = {}, {}
    for name in saved:
        paths = [*_paths(saved[name])]
        wants = groups.get(name)
        pairs = _match(paths, wants, model, checkpointer.directory) if wants else {}
        matched[name] = pairs
        # Orbax can only load a whole tree.
        forms[name] = _map(saved[name], lambda path, _, pairs=pairs: _abstract(pairs.get(path)))
    loaded = checkpointer.load_checkpointables(step, {"pytree": forms})["pytree"]
    for name, pairs in matched.items():
        values = dict(_paths(loaded[name], leaves=True))
        for path, variable in pairs.items():
            variable.assign(values[path])


def _abstract(variable):
    """Return an object that tells Orbax how to load the saved array for a variable.

    With an active distribution, the array gets the sharding of `variable`. Without a distribution,
    or if `variable` is None, it becomes a NumPy array.
    """
    if variable is None or keras.distribution.distribution() is None:
        return np.ndarray
    import jax

    value = variable.value
    return jax.ShapeDtypeStruct(value.shape, value.dtype, sharding=value.sharding)


def _map(tree, function, prefix=""):
    """Return a copy of a nested dict with each leaf replaced by `function(path, leaf)`.

    `tree` is the dict. A path is the keys of a leaf, joined by `/`, after `prefix`.
    """
    if not isinstance(tree, dict):
        return function(prefix, tree)
    prefix = f"{prefix}/" if prefix else ""
    return {name: _map(inside, function, prefix + name) for name, inside in tree.items()}


def _paths(tree, leaves=False):
    """Return a list of the paths of all leaves of a nested dict.

    With `leaves` the list has pairs (path, leaf).
    """
    paths = []
    _map(tree, lambda path, leaf: paths.append((path, leaf) if leaves else path))
    return paths


def _match(paths, variables, model, folder):
    """Return which variable of a model belongs to each path in a checkpoint, {path: variable}.

    The numbers in Keras's automatic names differ between sessions, and some paths begin with the
    name of the model. If paths differ only in these respects, variables are matched in the order of
    their numbers. `folder` is named in errors.
    """
    by_path = {variable.path: variable for variable in variables}
    if set(paths) == set(by_path):
        return by_path
    ours, theirs = ({_order(path, model.name): path for path in side} for side in (by_path, paths))
    names = [sorted(name for name, _ in side) for side in (ours, theirs)]
    if names[0] != names[1] or (len(ours), len(theirs)) != (len(by_path), len(paths)):
        other = sorted(set(names[0]) ^ set(names[1])) or sorted(names[0])
        raise ValueError(
            f"The checkpoint in {folder} has {len(paths)} variables, but the model has "
            f"{len(by_path)}. They differ in {other[0]}. Build and compile the model like the "
            "saved model."
        )
    pairs = zip(sorted(theirs), sorted(ours), strict=True)
    return {theirs[their]: by_path[ours[our]] for their, our in pairs}


def _order(path, model_name):
    """Return a sort key for a path: the path without numbers and model name, and the numbers."""
    numbered = r"_(\d+)(?=_|$)"
    model_name = re.sub(numbered, "", model_name)
    parts = path.split("/")
    numbers = [tuple(map(int, re.findall(numbered, part))) for part in parts]
    names = [re.sub(numbered, "", part).removeprefix(f"{model_name}_") for part in parts]
    if names[0] == model_name:
        names, numbers = names[1:], numbers[1:]
    return "/".join(names), tuple(numbers)
