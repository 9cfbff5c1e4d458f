"""Checkpoints that several processes write together, with Orbax: `OrbaxBackup` and `load_orbax`."""

import pathlib
import re

import keras
import numpy as np

from keras_attention.core import keras_internals
from keras_attention.core.versions import require_keras
from keras_attention.files.extras import import_extra

NEEDED = "3.14"  # the first version with `keras.callbacks.OrbaxCheckpoint`
OrbaxCheckpoint = getattr(keras.callbacks, "OrbaxCheckpoint", keras.callbacks.Callback)


class OrbaxBackup(OrbaxCheckpoint):
    """Saves the state after every epoch, from which `fit` continues after a stop.

    It is `keras.callbacks.BackupAndRestore` for several processes that train a model together: none
    of them holds all weights, and files of Keras cannot be written. Here each process writes what
    its devices hold. A process that ends stops the others. Start all of them again with the same
    program, and `fit` begins with the epoch after the last one that is whole on disk.

    The state is that of weights, optimizer and dropout, not of the data. It is laid out again when
    it is read, so that the mesh may differ.

    Args:
        folder: path, which all processes share.
        max_to_keep: int, how many of the last epochs are kept. None for all.
        **options: others of `keras.callbacks.OrbaxCheckpoint`, such as `save_on_background=False`.

    It needs the extra `jax`, and Keras 3.14 or newer. Example:

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
    """Load the model of a checkpoint of `OrbaxBackup` or `keras.callbacks.OrbaxCheckpoint`.

    Its weights are laid out by the active distribution on any devices. Without one they are on a
    single device, where the model is then saved, evaluated and exported like any other. (Keras's
    own `load_model` needs the devices on which a checkpoint was written.) Every backend reads it,
    so TensorFlow can export what JAX has trained.

    Args:
        folder: path.
        model: a built model that gets the state. None makes the saved one.
        step: int, of which checkpoint. None for the last. `OrbaxBackup` counts epochs from 0.
        compile: bool, whether a model that is made is compiled like the saved one.

    Returns:
        The model. Its optimizer has the saved state, if it is compiled.

    Raises:
        ValueError: there is no such checkpoint, or it has other weights.
    """
    ocp = import_orbax("ka.distribution.load_orbax")
    folder = pathlib.Path(folder).absolute()
    if not folder.is_dir():
        raise ValueError(f"There is no folder {folder}: expected one that OrbaxBackup filled.")
    with ocp.training.Checkpointer(str(folder)) as checkpointer:
        steps = [checkpoint.step for checkpoint in checkpointer.checkpoints]
        if step is None and steps:
            step = max(steps)
        if step not in steps:
            available = f"it has those of {sorted(steps)}" if steps else "it has none that is whole"
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
    """Import `orbax.checkpoint.v1`, which `feature` needs."""
    return import_extra("orbax.checkpoint", feature, "Orbax", "jax").v1


def _load_state(checkpointer, step, model):
    """Set the variables of a model to the values in a checkpoint, each in its own layout."""
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
        # All leaves are asked for: Orbax reads a tree whole.
        forms[name] = _map(saved[name], lambda path, _, pairs=pairs: _abstract(pairs.get(path)))
    loaded = checkpointer.load_checkpointables(step, {"pytree": forms})["pytree"]
    for name, pairs in matched.items():
        values = dict(_paths(loaded[name], leaves=True))
        for path, variable in pairs.items():
            variable.assign(values[path])


def _abstract(variable):
    """Return the form of a saved array for Orbax: laid out like a variable, or NumPy's."""
    if variable is None or keras.distribution.distribution() is None:
        return np.ndarray
    import jax

    value = variable.value
    return jax.ShapeDtypeStruct(value.shape, value.dtype, sharding=value.sharding)


def _map(tree, function, prefix=""):
    """Return a nested dict with `function(path, leaf)` for every leaf."""
    if not isinstance(tree, dict):
        return function(prefix, tree)
    prefix = f"{prefix}/" if prefix else ""
    return {name: _map(inside, function, prefix + name) for name, inside in tree.items()}


def _paths(tree, leaves=False):
    """List the paths of the leaves of a nested dict, or pairs (path, leaf)."""
    paths = []
    _map(tree, lambda path, leaf: paths.append((path, leaf) if leaves else path))
    return paths


def _match(paths, variables, model, folder):
    """{path in a checkpoint: variable} of the same names.

    Keras numbers seed generators, and layers without a name, as it makes them in a process, and
    some paths begin with the name of the model, others of the same model do not. Where they differ
    in that, variables of the same name are taken in their order.
    """
    by_path = {variable.path: variable for variable in variables}
    if set(paths) == set(by_path):
        return by_path
    ours, theirs = ({_order(path, model.name): path for path in side} for side in (by_path, paths))
    names = [sorted(name for name, _ in side) for side in (ours, theirs)]
    if names[0] != names[1] or (len(ours), len(theirs)) != (len(by_path), len(paths)):
        other = sorted(set(names[0]) ^ set(names[1])) or sorted(names[0])
        raise ValueError(
            f"The checkpoint in {folder} has {len(paths)} variables and the model {len(by_path)}, "
            f"among them {other[0]}: expected a model built and compiled as the one that was saved."
        )
    pairs = zip(sorted(theirs), sorted(ours), strict=True)
    return {theirs[their]: by_path[ours[our]] for their, our in pairs}


def _order(path, model_name):
    """(a path without the numbers in it and the name of its model, these numbers)."""
    numbered = r"_(\d+)(?=_|$)"
    model_name = re.sub(numbered, "", model_name)
    parts = path.split("/")
    numbers = [tuple(map(int, re.findall(numbered, part))) for part in parts]
    names = [re.sub(numbered, "", part).removeprefix(f"{model_name}_") for part in parts]
    if names[0] == model_name:
        names, numbers = names[1:], numbers[1:]
    return "/".join(names), tuple(numbers)
